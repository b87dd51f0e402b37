//! Synthetic jobs for zoned drives: `[[workload.zone_job]]`.

use leyden_device::SECTOR_BYTES;
use leyden_sim::{Bytes, ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ZoneLayout;

/// A job that writes zones: some streams, each filling a zone of its own and then the next of the job's
/// zones, which it resets first if it was written before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ZoneJobConfig {
    /// The name in tables.
    pub name: String,
    /// How it writes.
    pub pattern: ZonePattern,
    /// Zones that are written at once.
    pub streams: u32,
    /// Zones that the job has; at least one more than it has streams. The more it has, the longer its data
    /// lives.
    pub zones: u32,
    /// Bytes of a write; with `log`, of a record.
    pub block_size: Bytes,
    /// Writes of a stream in flight at once.
    pub queue_depth: u32,
    /// Writes ask for protection (the PLP flag).
    pub plp: bool,
    /// Besides, the first of this number of writes of a stream asks for it; 0 for none.
    pub plp_every: u32,
    /// A FLUSH after this number of writes of a stream; 0 for none.
    pub flush_every: u32,
    /// Zones are finished when this share of them is written.
    pub finish_at: Ratio,
    /// Writes of the job in all.
    pub requests: u64,
}

/// How a stream writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZonePattern {
    /// With Zone Append.
    #[default]
    Append,
    /// With writes at the write pointer.
    Write,
    /// As a log of records in a Zone Random Write Area (TP 4076): each write brings the blocks that its record lies
    /// in, and the record after it begins in the last of them.
    Log,
}

impl Default for ZoneJobConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            pattern: ZonePattern::default(),
            streams: 1,
            zones: 8,
            block_size: Bytes::new(64 << 10),
            queue_depth: 1,
            plp: false,
            plp_every: 0,
            flush_every: 0,
            finish_at: Ratio::ONE,
            requests: 100_000,
        }
    }
}

impl ZoneJobConfig {
    /// Checks every value against the zones of a drive, of which `left` are not another job's.
    ///
    /// # Errors
    /// Names the key that is impossible, and what would be right.
    pub fn check(&self, layout: &ZoneLayout, left: u32) -> Result<(), ConfigError> {
        if self.streams == 0 || self.zones <= self.streams || self.zones > left {
            let problem = format!(
                "{} zones for {} streams: a stream needs one and a next one, and {left} of the \
                 drive's {} zones are left",
                self.zones, self.streams, layout.zones
            );
            return Err(ConfigError::new("zones", problem));
        }
        let block = layout.block * SECTOR_BYTES;
        let size = self.block_size.get();
        if self.pattern == ZonePattern::Log {
            self.check_log(layout)?;
        } else if size == 0 || !size.is_multiple_of(block) || size > layout.capacity * SECTOR_BYTES
        {
            let problem = format!(
                "{} is not a multiple of the logical block ({}) within a zone",
                self.block_size,
                Bytes::new(block)
            );
            return Err(ConfigError::new("block_size", problem));
        }
        if self.queue_depth == 0 || self.queue_depth > 1 << 16 {
            let problem = format!("{} is not in 1..=65536", self.queue_depth);
            return Err(ConfigError::new("queue_depth", problem));
        }
        if self.requests == 0 {
            return Err(ConfigError::new("requests", "0: a job that writes nothing"));
        }
        if self.finish_at == Ratio::ZERO || self.finish_at > Ratio::ONE {
            let problem = format!("{} is not above 0 % and up to 100 %", self.finish_at);
            return Err(ConfigError::new("finish_at", problem));
        }
        Ok(())
    }

    fn check_log(&self, layout: &ZoneLayout) -> Result<(), ConfigError> {
        if layout.area == 0 {
            let problem = "log: the drive has no Zone Random Write Areas; add [device.zoned.zrwa]";
            return Err(ConfigError::new("pattern", problem));
        }
        // A record that begins amid a block needs that block, too.
        let most = Bytes::new((layout.area - layout.block) * SECTOR_BYTES);
        if self.block_size == Bytes::new(0) || self.block_size > most {
            let problem = format!("a record of {} is not in 1 B..={most}", self.block_size);
            return Err(ConfigError::new("block_size", problem));
        }
        if self.queue_depth != 1 {
            let problem =
                "a log's records share blocks, and are written one after the other: it is 1";
            return Err(ConfigError::new("queue_depth", problem));
        }
        Ok(())
    }
}
