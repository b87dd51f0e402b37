//! How announcements get to the drive, and how wrong they are.

use leyden_device::{HINT_UNIT_BYTES, Hint, MOST_RANGES, SECTOR_BYTES};
use leyden_sim::{ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::queue::Shape;

/// The dirty-range queue of the block layer (Zombie Chasing, 4.2), and errors of its entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HintChannelConfig {
    /// How hints reach the drive.
    pub channel: Channel,
    /// The most ranges that a command of its own names; with `channel = "command"` only.
    pub batch: u32,
    /// How long a range waits at most for its command to fill up; with `channel = "command"` only.
    pub max_delay: Span,
    /// The most ranges that wait for their way to the drive. Of more, the oldest is dropped: its
    /// data has been dirty the longest and is overwritten soonest, so the drive would gain least.
    pub queue: u32,
    /// The most sectors of 512 bytes that a hint names, rounded down to whole units of 4 KiB. 2,040 are
    /// 255 units: a length byte that counts units. Zombie Chasing's counts sectors (section 4.1): 255
    /// sectors, which are 31 units.
    pub max_sectors: u32,
    /// Whether ranges that wait and are neighbours become one, while a hint can name it. Zombie Chasing
    /// does not say that its queue does so (section 4.2).
    pub merge: bool,
    /// How long each announcement is held back before it enters the queue.
    pub late: Span,
    /// Share of announcements that are lost.
    pub missing: Ratio,
    /// For each announcement, the chance that one more is made, as long, at a place chosen at random
    /// in the whole drive.
    pub false_share: Ratio,
}

impl Default for HintChannelConfig {
    fn default() -> Self {
        Self {
            channel: Channel::default(),
            batch: MOST_RANGES as u32,
            // Short beside the seconds that data stays dirty.
            max_delay: Span::from_ms(10),
            // 1 GiB of dirty data in writes of 16 KiB, as in the paper's micro-benchmark.
            queue: 65_536,
            max_sectors: MOST_SECTORS,
            merge: true,
            late: Span::ZERO,
            missing: Ratio::ZERO,
            false_share: Ratio::ZERO,
        }
    }
}

/// How hints reach the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Not at all: announcements are forgotten.
    Off,
    /// One with each read or write command (Zombie Chasing, 3.3). Costs nothing, but the drive hears
    /// only as often as it is asked for something.
    #[default]
    Piggyback,
    /// In commands of their own, whose cost the drive charges: a queue slot, the controller's time
    /// for a command, 16 bytes a range on the link.
    Command,
}

/// The most that [`HintChannelConfig::queue`] may be.
const LONGEST_QUEUE: u32 = 1 << 24;

/// Sectors of a unit that hints count in.
const UNIT_SECTORS: u32 = (HINT_UNIT_BYTES / SECTOR_BYTES) as u32;
/// The most that [`HintChannelConfig::max_sectors`] may be: all that a hint can name.
const MOST_SECTORS: u32 = Hint::MOST_UNITS * UNIT_SECTORS;

impl HintChannelConfig {
    /// The shape of the ranges that wait.
    pub(super) fn shape(&self) -> Shape {
        Shape { merging: self.merge, most_units: self.max_sectors / UNIT_SECTORS }
    }

    /// Checks every value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        if !(1..=MOST_RANGES as u32).contains(&self.batch) {
            return refuse("batch", format!("{} is not in 1..={MOST_RANGES}", self.batch));
        }
        if !(1..=LONGEST_QUEUE).contains(&self.queue) {
            return refuse("queue", format!("{} is not in 1..={LONGEST_QUEUE}", self.queue));
        }
        if !(UNIT_SECTORS..=MOST_SECTORS).contains(&self.max_sectors) {
            let problem = format!(
                "{} is not in {UNIT_SECTORS}..={MOST_SECTORS}: a hint names 1 to {} units of 4 KiB",
                self.max_sectors,
                Hint::MOST_UNITS
            );
            return refuse("max_sectors", problem);
        }
        for (key, share) in [("missing", self.missing), ("false_share", self.false_share)] {
            if share > Ratio::ONE {
                return refuse(key, format!("{share} is more than 100 %"));
            }
        }
        Ok(())
    }
}
