//! Options from a seed, as a swarm: for each seed, each feature is on or off first, and then gets its
//! weight. Groce et al., "Swarm Testing" (ISSTA 2012): leaving features out finds what no mix of all
//! of them does.

use leyden_device::{AtomicConfig, Config, Region, Ssd, Stamp};
use leyden_ftl::Copies;
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Digest, Ratio, Rng, Span};

use super::bank::without_energy;
use super::chance::{coin, spread};
use super::device::{Size, draw_device};
use super::host::draw_host;
use super::{Cut, Mix, Options, Round, Verify, Work};
use crate::traced::Grain;

/// Changes whenever the same seed draws other options, so that campaigns are not mixed up.
pub(crate) const DRAW_VERSION: u32 = 14;

/// These seeds draw drives with atomic writes only.
const ATOMIC: std::ops::Range<u64> = 1_000_000_000..2_000_000_000;

impl Options {
    /// The options of `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut choices = rng(seed, "device");
        let size = Size::drawn(&mut rng(seed, "size"));
        let (mut device, units) = loop {
            let Some(mut device) = draw_device(&mut choices, size) else { continue };
            draw_variations(&mut device, seed);
            if let Ok(drive) = Ssd::<Stamp>::new(&device, mixed(seed)) {
                break (device, drive.mapping_units());
            }
        };
        let unit_bytes = device.ftl.mapping_unit.get();
        let host = draw_host(&mut rng(seed, "host"), units.into(), unit_bytes);
        let mut work = draw_work(&mut rng(seed, "work"));
        if device.buffer.region == Region::Selective {
            work.plp = draw_plp(&mut rng(seed, "plp"));
        }
        let fails_often = device.nand.faults.program_failures >= Ratio::from_percent(1);
        let is_hot = fails_often && rng(seed, "hot failures").below(4) > 0;
        if is_hot {
            make_hot(&mut work, &mut rng(seed, "hot work"));
        }
        let has_occasions = !device.nand.faults.occasions.is_empty();
        let mut rounds = draw_rounds(&mut rng(seed, "rounds"));
        if has_occasions {
            // A drive that was loaded has its occasions before it again.
            for round in &mut rounds {
                round.reload = false;
            }
        }
        if is_hot {
            cut_after_failures(&mut rounds, &mut rng(seed, "cuts after failures"));
        }
        let mut collections = rng(seed, "cuts amid collections");
        if collections.below(8) == 0 {
            cut_amid_collections(&mut rounds, &mut collections);
        }
        let mut pages = rng(seed, "cuts at table pages");
        let protection = &device.ftl.map.protection;
        if !matches!(protection, ProtectionConfig::Full(_)) && pages.below(6) == 0 {
            cut_at_table_pages(&mut rounds, &mut pages);
            let has_journal = matches!(protection, ProtectionConfig::Journal(_));
            if has_journal
                && coin(&mut pages)
                && let Some(starved) = without_energy(&device)
            {
                device = starved;
            }
        }
        let mut trims = rng(seed, "cuts after trims");
        if device.flushes_trims()
            && trims.below(4) == 0
            && let Some(starved) = without_energy(&device)
        {
            device = starved;
            cut_after_trims(&mut rounds, &mut trims);
        }
        let grain = if rng(seed, "grain").below(8) == 0 { Grain::Sector } else { Grain::Unit };
        Self { seed, grain, device, host, work, rounds }
    }
}

/// Options added since the draws of drives were settled: each from a generator of its own, so that
/// no other draw changes.
fn draw_variations(device: &mut Config, seed: u64) {
    if coin(&mut rng(seed, "copies")) {
        device.ftl.map.copies = Copies::Dirty;
    }
    let mut drain = rng(seed, "drain");
    if drain.below(3) == 0 {
        let most = device.buffer.flush_threshold.as_ppm();
        device.buffer.drain_to = Some(Ratio::from_ppm(drain.below(most + 1)));
    }
    let mut dying = rng(seed, "dying");
    if dying.below(24) == 0 {
        // Dies lose their blocks for dumps: the drive can only be read.
        device.nand.faults.erase_failures = Ratio::from_percent(5 + dying.below(36));
    }
    let mut atomic = rng(seed, "atomic");
    if atomic.below(4) == 0 || ATOMIC.contains(&seed) {
        draw_atomic(device, &mut atomic);
    }
    let mut kept = rng(seed, "kept blocks");
    if kept.below(8) == 0 {
        let mut more = device.clone();
        more.ftl.map.kept_blocks = Some(1 + kept.below(6) as u32);
        if Ssd::<Stamp>::new(&more, 0).is_ok() {
            *device = more;
        }
    }
}

/// Atomic writes of any size that the drive has means for, with and without boundaries.
fn draw_atomic(device: &mut Config, rng: &mut Rng) {
    let (unit, page) = (device.ftl.mapping_unit.get(), device.nand.page_size.get());
    let block = unit.min(4_096);
    let most = match device.buffer.region {
        Region::Full => 2 * page.max(4 * unit),
        Region::None | Region::Selective => page,
    };
    let (has_lines, has_offset) = (rng.below(3) == 0, coin(rng));
    for _ in 0..8 {
        let size = |blocks: u64| Bytes::new(blocks * block);
        let power_fail = 1 + rng.below(most / block);
        let normal = power_fail + if coin(rng) { rng.below(8) } else { 0 };
        let lines = [power_fail, normal].map(|least| least + spread(rng, 8) - 1);
        let offset = rng.below(lines[0].min(lines[1]) + 1);
        let mut table = AtomicConfig { nawupf: size(power_fail), ..AtomicConfig::default() };
        table.nawun = (normal > power_fail).then(|| size(normal));
        if has_lines {
            (table.nabspf, table.nabsn) = (Some(size(lines[0])), Some(size(lines[1])));
            table.nabo = has_offset.then(|| size(offset));
        }
        let with = Config { atomic: Some(table), ..device.clone() };
        if Ssd::<Stamp>::new(&with, 0).is_ok() {
            *device = with;
            return;
        }
    }
}

/// `seed`, spread over all bits: [`Rng::new`] takes no notice of the lowest one, and the streams of
/// neighbours are alike.
pub(crate) fn mixed(seed: u64) -> u64 {
    Digest::default().add(seed).value()
}

/// The generator for `purpose` in the run of `seed`.
pub(crate) fn rng(seed: u64, purpose: &str) -> Rng {
    Rng::new(mixed(seed), purpose)
}

/// A share in `0..most` percent with the given chance of being there at all.
fn share(rng: &mut Rng, is_on: bool, most_percent: u64) -> Ratio {
    let ppm = 1 + rng.below(most_percent * 10_000);
    if is_on { Ratio::from_ppm(ppm) } else { Ratio::ZERO }
}

pub(crate) fn draw_work(rng: &mut Rng) -> Work {
    let weight = |rng: &mut Rng, most: u64| if coin(rng) { 1 + rng.below(most) as u32 } else { 0 };
    let mix = Mix {
        reads: weight(rng, 500),
        trims: weight(rng, 150),
        write_zeroes: weight(rng, 100),
        flushes: weight(rng, 150),
    };
    Work {
        fill: if rng.below(4) > 0 { Ratio::from_percent(1 + rng.below(100)) } else { Ratio::ZERO },
        queue_depth: spread(rng, 32) as u32,
        mix,
        fua: {
            let is_on = coin(rng);
            share(rng, is_on, 50)
        },
        unaligned: {
            let is_on = coin(rng);
            share(rng, is_on, 60)
        },
        hot: {
            let is_on = coin(rng);
            share(rng, is_on, 95)
        },
        hot_part: Ratio::from_ppm(1 + rng.below(300_000)),
        sequential: {
            let is_on = coin(rng);
            share(rng, is_on, 90)
        },
        largest_units: spread(rng, 24) as u32,
        hints: {
            let is_on = coin(rng);
            share(rng, is_on, 100)
        },
        tenants: if rng.below(4) == 0 { 2 + rng.below(2) as u32 } else { 1 },
        trace: rng.below(16) == 0,
        late: {
            let is_on = rng.below(4) == 0;
            share(rng, is_on, 40)
        },
        plp: Ratio::ZERO,
    }
}

/// Some drives get no flag, and their FUA writes alone are protected.
fn draw_plp(rng: &mut Rng) -> Ratio {
    let is_on = rng.below(4) > 0;
    share(rng, is_on, 60)
}

/// Versions of the same few units follow each other: when a program fails, a newer version is there, and somebody
/// waits, with FLUSH or with FUA.
fn make_hot(work: &mut Work, rng: &mut Rng) {
    if coin(rng) {
        (work.fua, work.mix.flushes) = (Ratio::from_percent(5 + rng.below(30)), 0);
    } else {
        work.mix.flushes = work.mix.flushes.max(100);
    }
    (work.trace, work.tenants) = (false, 1);
    (work.hot, work.hot_part) = (Ratio::from_percent(80), Ratio::from_ppm(10_000));
    work.queue_depth = work.queue_depth.max(8);
    work.largest_units = work.largest_units.min(2);
}

/// Cuts follow the failure of a program: what it held waits for another page then, or has been left to a newer
/// version. The work before is short, for failures use blocks up, and all is read after it.
fn cut_after_failures(rounds: &mut [Round], rng: &mut Rng) {
    for round in rounds {
        let (events, most_commands) = (spread(rng, 32) as u32 - 1, spread(rng, 32) as u32);
        if rng.below(8) > 0 {
            round.cut = Cut::AfterFailure { events };
            round.commands = round.commands.min(most_commands);
            (round.verify, round.early) = (Verify::All, false);
        }
    }
}

/// Most cuts fall amid a collection: each wastes a page of the block that data is moved to.
fn cut_amid_collections(rounds: &mut [Round], rng: &mut Rng) {
    for round in rounds {
        let pages = spread(rng, 16) as u32;
        if rng.below(4) > 0 {
            round.cut = Cut::AtCopy { pages };
        }
    }
}

/// Most cuts fall on the program of a page of the table or of its journal, and a quarter of them is followed by another cut at
/// once: what was handed over is on flash or in the dump, never neither.
fn cut_at_table_pages(rounds: &mut [Round], rng: &mut Rng) {
    for round in rounds {
        let pages = spread(rng, 8) as u32;
        if rng.below(4) == 0 {
            continue;
        }
        round.cut = Cut::AtTablePage { pages };
        if rng.below(4) == 0 {
            (round.off, round.again) =
                (Span::from_ns(1), vec![Ratio::from_ppm(rng.below(1_000_001))]);
        }
    }
}

/// Most cuts follow trims and a FLUSH at once: it has waited for them, or they are undone.
fn cut_after_trims(rounds: &mut [Round], rng: &mut Rng) {
    for round in rounds {
        let trims = spread(rng, 16) as u32;
        if rng.below(4) > 0 {
            (round.cut, round.verify) = (Cut::AfterTrims { trims }, Verify::All);
        }
    }
}

pub(crate) fn draw_rounds(rng: &mut Rng) -> Vec<Round> {
    let count = 16 + rng.below(64);
    // Per seed: how long rounds are, and which kinds of cuts there are.
    let most_commands = 8 + spread(rng, 512);
    let kinds: Vec<u64> = (0..4).filter(|_| coin(rng)).collect();
    let kinds = if kinds.is_empty() { vec![0, 1, 2, 3] } else { kinds };
    let again = coin(rng);
    let reloads = rng.below(8) == 0;
    let early = coin(rng);
    let round = |number| Round {
        number,
        commands: if coin(rng) { 1 + rng.below(most_commands) } else { spread(rng, most_commands) }
            as u32,
        reload: reloads && rng.below(8) == 0,
        skip: Vec::new(),
        cut: draw_cut(rng, &kinds),
        off: Span::from_ns(spread(rng, 1 << 30)),
        again: if again { draw_again(rng) } else { Vec::new() },
        early: early && coin(rng),
        check: rng.below(8) == 0,
        verify: match rng.below(8) {
            0 => Verify::All,
            1 | 2 => Verify::Nothing,
            _ => Verify::Some(spread(rng, 32) as u32),
        },
    };
    (0..count).map(round).collect()
}

fn draw_cut(rng: &mut Rng, kinds: &[u64]) -> Cut {
    let kind = kinds[rng.below(kinds.len() as u64) as usize];
    // Uniform to the nanosecond within a span of any order: less than a transfer to several erases.
    let moment = |rng: &mut Rng| {
        let span = spread(rng, 1 << 24);
        Span::from_ns(rng.below(span + 1))
    };
    match kind {
        0 => Cut::After(moment(rng)),
        1 => Cut::AtEvent { events: rng.below(40) as u32, before: coin(rng) },
        2 if coin(rng) => Cut::AfterFlush(Span::ZERO),
        2 => Cut::AfterFlush(moment(rng)),
        _ => Cut::Idle(moment(rng)),
    }
}

fn draw_again(rng: &mut Rng) -> Vec<Ratio> {
    let mut again = Vec::new();
    while again.len() < 4 && rng.below(3) == 0 {
        again.push(Ratio::from_ppm(rng.below(1_000_001)));
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_its_options() {
        for seed in 0..50 {
            assert_eq!(Options::draw(seed), Options::draw(seed));
        }
        let rounds: Vec<_> = (0..8).map(|seed| Options::draw(seed).rounds).collect();
        for (index, some) in rounds.iter().enumerate() {
            assert!(rounds[..index].iter().all(|other| other != some), "seed {index}");
        }
    }

    #[test]
    fn a_share_of_the_seeds_has_a_host() {
        let hosts: Vec<_> = (0..200).map(|seed| Options::draw(seed).host).collect();
        let bare = hosts.iter().filter(|host| host.is_none()).count();
        let cached = hosts.iter().flatten().filter(|host| host.page_cache.is_some()).count();
        assert!((100..170).contains(&bare) && (30..80).contains(&cached), "{bare} {cached}");
        assert!(bare + cached < 200, "none has a way for hints alone");
        for seed in 0..200 {
            Options::draw(seed).check().unwrap();
        }
    }
}
