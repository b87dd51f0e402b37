//! Layers between the software and the drive.

use leyden_device::Config;
use leyden_host::{Channel, HintChannelConfig, PageCacheConfig, ZonedBlockConfig};
use leyden_sim::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Layers between software and drive; none without these tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// How announcements of coming writes (zombie hints) get to the drive. Without this table, or with
    /// `channel = "off"`, they don't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<HintChannelConfig>,
    /// A page cache that all requests go through. It announces its dirty pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCacheConfig>,
    /// Makes a block device of two drives: the zoned one of `[device]` and the conventional one of
    /// `[host.conventional]`, as Linux's dm-zoned does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zoned_block: Option<ZonedBlockConfig>,
    /// The conventional drive beside a zoned one; a table like `[device]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conventional: Option<Config>,
}

impl HostConfig {
    /// True if the device is made up of two drives, or half of what that takes is given.
    pub(super) const fn is_layered(&self) -> bool {
        self.zoned_block.is_some() || self.conventional.is_some()
    }

    /// Whether software talks to the drive itself.
    pub fn is_bare(&self) -> bool {
        *self == Self::default()
    }

    /// The way of hints to the drive, if there is one.
    pub fn channel(&self) -> Option<&HintChannelConfig> {
        self.hints.as_ref().filter(|hints| hints.channel != Channel::Off)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        match &self.hints {
            Some(hints) => hints.check().map_err(|error| error.within("hints").within("host")),
            None => Ok(()),
        }
    }
}
