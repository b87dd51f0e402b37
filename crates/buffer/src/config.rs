//! The write buffer's configuration.

use leyden_sim::{Bytes, ConfigError, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::pools::{PoolSize, PoolSizes};
use crate::schedule::ScheduleConfig;
use crate::zoned::ZonePoolConfig;

/// The DRAM that holds acknowledged writes until they are on flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What capacitors protect.
    pub region: Region,
    /// Its size, data only.
    pub size: Bytes,
    /// Of this, with the region `selective`, what capacitors protect.
    #[serde(skip_serializing_if = "is_not_given")]
    pub protected_size: Bytes,
    /// Share of the buffer that dirty data may fill before it is written out. Hexa (section IV):
    /// half.
    pub flush_threshold: Ratio,
    /// Which pages go to flash next. Zoned drives have `zones.schedule` instead.
    pub schedule: ScheduleConfig,
    /// What else there is to say of a zoned drive's buffer.
    #[serde(skip_serializing_if = "is_default")]
    pub zones: ZonePoolConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            region: Region::Full,
            size: Bytes::new(64 << 20),
            protected_size: Bytes::new(0),
            flush_threshold: Ratio::from_percent(50),
            schedule: ScheduleConfig::default(),
            zones: ZonePoolConfig::default(),
        }
    }
}

/// What capacitors protect of the buffer, and so what FLUSH and FUA cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// Nothing: FLUSH and FUA wait until the data is on flash.
    None,
    /// All of it: FLUSH and FUA cost nothing.
    #[default]
    Full,
    /// `protected_size` of it, for writes that ask for it with the PLP flag, or on conventional drives with
    /// FUA: FLUSH waits only for the rest.
    Selective,
}

/// A part of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// Capacitors keep what is in it.
    Protected,
    /// Volatile.
    Plain,
}

impl PoolKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Protected, Self::Plain];

    /// As an array index.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

fn is_default(zones: &ZonePoolConfig) -> bool {
    *zones == ZonePoolConfig::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_not_given(size: &Bytes) -> bool {
    size.get() == 0
}

impl Config {
    /// Checks every value, and computes the pools of a conventional drive's buffer, in mapping units.
    /// `page_units` are the mapping units of a flash page, `streams` how many pages are gathered at once.
    ///
    /// # Errors
    /// Names the key that is impossible.
    pub fn slots(
        &self,
        unit_bytes: u32,
        page_units: u32,
        streams: u8,
    ) -> Result<PoolSizes, ConfigError> {
        if self.flush_threshold == Ratio::ZERO || self.flush_threshold > Ratio::ONE {
            return Err(ConfigError::new(
                "flush_threshold",
                format!("{} is not above 0 % and up to 100 %", self.flush_threshold),
            ));
        }
        // A page of each stream may wait for its last unit; twice that, so that one page can be on
        // its way while the next is gathered.
        let least = u64::from(page_units) * u64::from(streams) * 2;
        let pool = |size: Bytes, key: &str| {
            let slots = size.get() / u64::from(unit_bytes);
            if slots < least || slots > 1 << 30 {
                return Err(ConfigError::new(
                    key,
                    format!(
                        "{size} is not between {} (two pages for each of {streams} streams) and {}",
                        Bytes::new(least * u64::from(unit_bytes)),
                        Bytes::new(u64::from(unit_bytes) << 30),
                    ),
                ));
            }
            let threshold = self.flush_threshold.of(slots).clamp(least / 2, slots);
            Ok(PoolSize { slots: slots as u32, threshold: threshold as u32 })
        };
        let none = PoolSize::default();
        match self.region {
            Region::Full => Ok([pool(self.size, "size")?, none]),
            Region::None => Ok([none, pool(self.size, "size")?]),
            Region::Selective => {
                let protected = pool(self.protected_size, "protected_size")?;
                let rest = self.size.get().saturating_sub(self.protected_size.get());
                let plain = pool(Bytes::new(rest), "size").map_err(|_| {
                    let problem = format!(
                        "beside protected_size ({}) it leaves {} for unprotected data, and that takes {}",
                        self.protected_size,
                        Bytes::new(rest),
                        Bytes::new(least * u64::from(unit_bytes)),
                    );
                    ConfigError::new("size", problem)
                })?;
                Ok([protected, plain])
            }
        }
    }
}
