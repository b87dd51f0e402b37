//! Capacitors: most banks hold exactly what the drive needs at worst, some less.

use leyden_device::{Config, NoData, Ssd};
use leyden_power::{DumpConfig, Part};
use leyden_sim::{Capacitance, Power, Ratio, Rng, Span, Voltage};

use super::chance::{coin, spread};

/// The longest that a bank charges: a page cache looks many times meanwhile whether it can write.
const LONGEST_CHARGE_NS: u64 = 1_000_000_000;

/// Everything about the bank but its size, which depends on the drive.
pub(super) fn draw_bank(rng: &mut Rng, config: &mut Config) {
    let power = config.power.insert(leyden_power::Config::default());
    power.dump = DumpConfig::drawn(rng.next_u64());
    let native = config.nand.program.as_ns();
    if let DumpConfig::BalancedSlc(slc) = &mut power.dump {
        slc.bits_per_cell = 1 + rng.below(4) as u32;
        slc.program = Span::from_ns(spread(rng, native));
    }
    let parts = [
        (Part::TantalumPolymer, 16_000),
        (Part::Aluminium, 35_000),
        (Part::Ceramic, 35_000),
        (Part::Supercapacitor, 5_400),
    ];
    let (part, rated_mv) = parts[rng.below(4) as usize];
    power.bank.part = part;
    let (charge_mv, share) = (2_000 + rng.below(rated_mv - 1_999), rng.below(90));
    if coin(rng) {
        power.bank.charge_voltage = Some(Voltage::from_mv(charge_mv));
        power.bank.minimum_voltage = Some(Voltage::from_mv((charge_mv * share / 100).max(1)));
    }
    power.bank.efficiency = Ratio::from_percent(if coin(rng) { 90 } else { 30 + rng.below(71) });
    power.bank.ageing = coin(rng).then(|| Ratio::from_percent(rng.below(60)));
    power.reset = Span::from_ns(spread(rng, 500_000));
    power.base_power = Power::from_mw(spread(rng, 10_000));
    power.program_power = Power::from_mw(spread(rng, 1_000));
    power.charge_power = Power::from_mw(spread(rng, 1_000_000));
    power.failed_programs = draw_failed_programs(rng);
}

/// Programs of a dump that may fail: none for half of the drives. Takes nothing from `rng`, which deals what seeds
/// have always dealt.
pub(crate) fn draw_failed_programs(rng: &Rng) -> u32 {
    let mut own = Rng::new(rng.clone().next_u64(), "failed programs");
    if coin(&mut own) { 0 } else { 1 + own.below(6) as u32 }
}

/// The bank's size: for half of the drives exactly what they need at worst, for an eighth 50 to 99 % of that,
/// for a sixteenth a single ceramic part, and else as many parts as it takes. `None` if there is no such bank.
pub(super) fn fit_bank(rng: &mut Rng, config: &mut Config) -> Option<()> {
    let needed = Ssd::<NoData>::new(config, 0).ok()?.power_supply()?.capacitance.as_nf();
    let power = config.power.as_mut()?;
    match rng.below(16) {
        0..8 => power.bank.capacitance = Some(Capacitance::from_nf(needed.max(1))),
        8 | 9 => {
            power.allow_underprovisioned = true;
            let part = 50 + rng.below(50);
            power.bank.capacitance = Some(Capacitance::from_nf((needed * part / 100).max(1)));
        }
        10 => leave_no_energy(power),
        _ => {}
    }
    let bank = Ssd::<NoData>::new(config, 0).ok()?.power_supply()?.bank;
    let power = config.power.as_mut()?;
    // When new, without losses.
    let stored_pj = bank.energy().as_pj().saturating_mul(4);
    let least = Power::from_mw((stored_pj / LONGEST_CHARGE_NS).clamp(1, 1_000_000));
    power.charge_power = power.charge_power.max(least);
    Some(())
}

/// The drive with a bank that saves next to nothing; `None` if its program power is too much for that.
pub(super) fn without_energy(config: &Config) -> Option<Config> {
    let mut config = config.clone();
    leave_no_energy(config.power.as_mut()?);
    Ssd::<NoData>::new(&config, 0).is_ok().then_some(config)
}

/// A single ceramic part.
fn leave_no_energy(power: &mut leyden_power::Config) {
    power.allow_underprovisioned = true;
    (power.bank.capacitance, power.bank.parts) = (None, Some(1));
    power.bank.part = Part::Ceramic;
    (power.bank.charge_voltage, power.bank.minimum_voltage) = (None, None);
}
