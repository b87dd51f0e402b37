//! The variants of a drive: each dump policy with each protection of the mapping table.

use leyden_device::{Provision, provision_of};
use leyden_ftl::map::{ProtectionConfig, partial::Partial};
use leyden_power::DumpConfig;
use leyden_sim::{ConfigError, Ratio};

use super::SizedDrive;
use crate::run::power;
use leyden_config::Scenario;

/// The shares of the table that Hexa's figures vary, and some between, in percent.
const PROTECTED: [u64; 5] = [50, 25, 10, 5, 1];

/// A variant of a scenario's drive.
pub(super) struct Variant {
    /// The scenario with this drive.
    pub(super) scenario: Scenario,
    /// It has the scenario's dump policy.
    pub(super) own_dump: bool,
    /// It has the scenario's protection.
    pub(super) own_protection: bool,
    /// Its worst case and its measurements, as far as they are known.
    pub(super) sized: SizedDrive,
}

/// Every variant of `scenario`, whose drive has a power table and a fixed capacity; the one it is itself
/// among them. `spare` is what it keeps back as it stands in the file.
pub(super) fn variants(scenario: &Scenario, spare: &Provision) -> Vec<Variant> {
    let dumps = DumpConfig::POLICIES.iter().filter_map(|policy| DumpConfig::by_name(policy.name));
    let own = &scenario.device.power.as_ref().expect("there is a power table").dump;
    let dumps: Vec<DumpConfig> =
        dumps.map(|dump| if dump.name() == own.name() { own.clone() } else { dump }).collect();
    let mut variants = Vec::new();
    for dump in &dumps {
        for protection in protections(&scenario.device.ftl.map.protection) {
            variants.push(variant(scenario, dump, protection, spare));
        }
    }
    variants
}

/// From all of the table to nothing, with the scenario's own.
fn protections(own: &ProtectionConfig) -> Vec<ProtectionConfig> {
    let partial = |protected| ProtectionConfig::Partial(Partial { protected });
    let mut shares: Vec<Ratio> = PROTECTED.map(Ratio::from_percent).into();
    if let ProtectionConfig::Partial(Partial { protected }) = own
        && !shares.contains(protected)
    {
        shares.push(*protected);
        shares.sort_by(|a, b| b.cmp(a));
    }
    let others = ["full", "journal", "none"].map(ProtectionConfig::by_name);
    let [full, mut journal, none] =
        others.map(|policy| policy.expect("a policy of that name is registered"));
    if let ProtectionConfig::Journal(_) = own {
        journal.clone_from(own);
    }
    let partials = shares.into_iter().map(partial);
    std::iter::once(full).chain(partials).chain([journal, none]).collect()
}

fn variant(
    scenario: &Scenario,
    dump: &DumpConfig,
    protection: ProtectionConfig,
    spare: &Provision,
) -> Variant {
    let mut scenario = scenario.clone();
    let map = &mut scenario.device.ftl.map;
    let own_protection = map.protection == protection;
    let protected = match &protection {
        ProtectionConfig::Partial(Partial { protected }) => Some(protected.as_f64()),
        ProtectionConfig::Full(_) | ProtectionConfig::Journal(_) | ProtectionConfig::None(_) => {
            None
        }
    };
    let name = protection.name().to_owned();
    map.protection = protection;
    let power = scenario.device.power.as_mut().expect("there is a power table");
    let own_dump = power.dump == *dump;
    power.dump = dump.clone();
    let mut sized = SizedDrive {
        protection: name,
        protected,
        dump: dump.name().to_owned(),
        own: own_dump && own_protection,
        ..SizedDrive::default()
    };
    match fit(&mut scenario, spare) {
        Ok(provision) => {
            sized.kept_blocks_per_die = provision.kept_blocks_per_die;
            sized.worst = provision.supply.as_ref().map(power::worst);
        }
        Err(error) => sized.problem = Some(error.to_string()),
    }
    Variant { scenario, own_dump, own_protection, sized }
}

/// Adds to the flash what the drive keeps back beyond `spare`, or takes away what it does not.
fn fit(scenario: &mut Scenario, spare: &Provision) -> Result<Provision, ConfigError> {
    let device = &mut scenario.device;
    let blocks = device.nand.blocks_per_plane;
    device.nand.blocks_per_plane = blocks.saturating_mul(2);
    let plenty = provision_of(device);
    device.nand.blocks_per_plane = blocks;
    // Twice the flash of a large drive may have no addresses; a large one has room for what is kept back.
    let kept = plenty.or_else(|_| provision_of(device))?.kept_blocks_per_die;
    // Planes that work apart share the blocks of their die.
    let planes = (spare.blocks_per_die / blocks).max(1);
    let more = kept.saturating_sub(spare.kept_blocks_per_die).div_ceil(planes);
    let less = spare.kept_blocks_per_die.saturating_sub(kept) / planes;
    device.nand.blocks_per_plane = blocks + more - less;
    provision_of(device)
}
