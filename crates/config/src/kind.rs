//! The kinds of drives, and what a drive of some kind has no use for.
//!
//! **Invariants**: a key that changes nothing on a drive of the scenario's kind is refused. Keys are told from
//! their defaults by value: one that is written with its default value says nothing wrong.

use leyden_sim::{ConfigError, Span};
use serde::Serialize;
use serde_json::Value;

use super::{PreconditionKind, Scenario};

/// The kind of a scenario's drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveKind {
    /// A conventional drive.
    Conventional,
    /// A zoned drive.
    Zoned,
    /// A block device on a conventional and a zoned drive.
    ZonedBlock,
}

/// Keys that only one kind of drive reads: what the others say to them.
struct Unread {
    /// Below `device`, the table of the conventional member, or `precondition`.
    keys: &'static [&'static str],
    /// The feature that the drive lacks.
    why: &'static str,
}

const ON_ZONED: [Unread; 3] = [
    Unread {
        keys: &["atomic"],
        why: "a zone is written in order, and a zoned drive promises no atomic writes beyond a logical block",
    },
    Unread {
        keys: &[
            "ftl.over_provisioning",
            "ftl.capacity",
            "ftl.gc",
            "ftl.placement",
            "ftl.zombie_block",
            "ftl.log_stream",
            "ftl.map",
        ],
        why: "a zoned drive collects nothing and has no mapping table",
    },
    Unread { keys: &["buffer.schedule"], why: "a zoned drive has buffer.zones.schedule" },
];

const PRECONDITION_ON_ZONED: [Unread; 1] = [Unread {
    keys: &["distribution", "rest", "tolerance", "max_passes", "settle"],
    why: "a zoned drive is filled at most, and reaches no steady state",
}];

const ON_LAYERED: [Unread; 1] = [Unread {
    keys: &["atomic"],
    why: "a block device on two drives splits writes, and promises no atomic ones",
}];

const ON_CONVENTIONAL: [Unread; 1] =
    [Unread { keys: &["buffer.zones"], why: "a conventional drive has no zones" }];

impl Scenario {
    /// The kind of its drive.
    pub const fn kind(&self) -> DriveKind {
        if self.host.is_layered() {
            DriveKind::ZonedBlock
        } else if self.device.zoned.is_some() {
            DriveKind::Zoned
        } else {
            DriveKind::Conventional
        }
    }

    /// Refuses what has no effect on a drive of this kind.
    pub(super) fn check_kind(&self) -> Result<(), ConfigError> {
        match self.kind() {
            DriveKind::Conventional => check_unread(&self.device, "device", &ON_CONVENTIONAL),
            DriveKind::Zoned => {
                check_unread(&self.device, "device", &ON_ZONED)?;
                self.check_zoned()
            }
            DriveKind::ZonedBlock => {
                // A missing half of such a device is reported when it is built.
                if self.device.zoned.is_some() {
                    check_unread(&self.device, "device", &ON_ZONED)?;
                }
                let conventional = self.host.conventional.as_ref();
                conventional.map_or(Ok(()), |member| {
                    check_unread(member, "host.conventional", &ON_CONVENTIONAL)?;
                    check_unread(member, "host.conventional", &ON_LAYERED)
                })
            }
        }
    }

    fn check_zoned(&self) -> Result<(), ConfigError> {
        if !self.host.is_bare() {
            let problem = "the page cache and hints are for conventional drives; leave it out";
            return Err(ConfigError::new("host", problem));
        }
        let has_store = self.workload.lsm.is_some() || self.workload.recorded.is_some();
        if has_store && (self.run.ramp.time, self.run.ramp.requests) != (Span::ZERO, 0) {
            let problem = "the figures of a store count from its first put; leave it out \
                           (workload.recorded.skip leaves out the first puts of a recording)";
            return Err(ConfigError::new("run.ramp", problem));
        }
        let kind = match self.precondition.kind {
            PreconditionKind::None | PreconditionKind::Fill => {
                return check_unread(&self.precondition, "precondition", &PRECONDITION_ON_ZONED);
            }
            PreconditionKind::Steady => "steady",
            PreconditionKind::Sampled => "sampled",
        };
        let problem = format!(
            "\"{kind}\" waits for garbage collection, and a zoned drive has none; use \"fill\", which writes \
             and resets every zone"
        );
        Err(ConfigError::new("precondition.kind", problem))
    }
}

/// Refuses the first of `unread` in `config` that is not as it is by default.
fn check_unread<C: Serialize + Default>(
    config: &C,
    place: &str,
    unread: &[Unread],
) -> Result<(), ConfigError> {
    let json = |config: &C| serde_json::to_value(config).unwrap_or_default();
    let (given, default) = (json(config), json(&C::default()));
    for Unread { keys, why } in unread {
        for key in *keys {
            let [given, default] = [&given, &default].map(|value| at(value, key));
            if let Some((path, default)) = difference(given, default, key) {
                let back = match default {
                    Value::Null => String::new(),
                    default => format!(", or set it to {default}, its default"),
                };
                let problem = format!("it has no effect: {why}; leave it out{back}");
                return Err(ConfigError::new(format!("{place}.{path}"), problem));
            }
        }
    }
    Ok(())
}

fn at<'v>(value: &'v Value, key: &str) -> &'v Value {
    key.split('.').fold(value, |value, key| &value[key])
}

/// The first key at or below `path` where the two differ, and the second one's value of it.
fn difference<'v>(one: &Value, other: &'v Value, path: &str) -> Option<(String, &'v Value)> {
    let (Value::Object(table), Value::Object(_)) = (one, other) else {
        return (one != other).then(|| (path.to_owned(), other));
    };
    // The name of a policy is the key's own value.
    if table.contains_key("policy") && one != other {
        return Some((path.to_owned(), &other["policy"]));
    }
    table.iter().find_map(|(key, value)| difference(value, &other[key], &format!("{path}.{key}")))
}
