//! Power cuts, one at a time, on a drive small enough to think through. Torture draws the rest.

use std::collections::BTreeMap;

use leyden_buffer::Region;
use leyden_device::{
    BlockDevice, Command, Completion, Config, CutLoss, Lba, Op, Recovery, Ssd, Stamp, Status,
    provision_of,
};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::recovery::StepName;
use leyden_nand::{FaultTarget, Occasion};
use leyden_power::DumpConfig;
use leyden_sim::{Bytes, Energy, Ratio, Rng, Span, Time};

/// Two channels, two dies each, blocks of 8 pages of 8 KiB; 16 entries in a mapping page.
fn config(protection: &str, dump: &str, region: Region) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 32;
    config.nand.pages_per_block = 8;
    config.buffer.size = Bytes::new(32 * 4096);
    config.buffer.region = region;
    config.ftl.over_provisioning = Ratio::from_percent(250);
    config.ftl.map.protection = ProtectionConfig::by_name(protection).unwrap();
    config.ftl.map.entries_per_page = Some(16);
    let dump = DumpConfig::by_name(dump).unwrap();
    config.power = Some(leyden_power::Config { dump, ..leyden_power::Config::default() });
    config
}

fn submit(ssd: &mut Ssd<Stamp>, op: Op, unit: u64, stamp: u64) {
    let command = Command::new(op, Lba(unit * 8), 8, stamp);
    ssd.submit(ssd.now(), command);
}

fn finish(ssd: &mut Ssd<Stamp>) -> Vec<Completion<Stamp>> {
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    done
}

fn read(ssd: &mut Ssd<Stamp>, unit: u64) -> u64 {
    submit(ssd, Op::Read, unit, 0);
    let done = finish(ssd);
    done.iter().find(|done| done.op == Op::Read).unwrap().data().unwrap()[0].0
}

/// Writes and trims at random, cuts the power at a random moment, and checks every promise, some
/// times over.
fn survives(config: &Config, seed: u64) -> Recovery {
    let mut ssd = Ssd::<Stamp>::new(config, seed).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(seed, "power_cut");
    let mut kept: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last = Recovery::default();
    for round in 0..6_u64 {
        let mut pending = BTreeMap::new();
        let mut out = Vec::new();
        for i in 0..600 {
            let stamp = round * 1_000 + i + 1;
            let unit = rng.below(units);
            // One command at a time, so that the order of writes is known.
            let op = if rng.below(5) == 0 { Op::Trim } else { Op::Write };
            submit(&mut ssd, op, unit, stamp);
            pending.insert(unit, if op == Op::Trim { 0 } else { stamp });
            while out.is_empty() {
                let time = ssd.next_event().unwrap();
                ssd.advance(time, &mut out);
            }
            out.clear();
        }
        if config.buffer.region == Region::None {
            submit(&mut ssd, Op::Flush, 0, 0);
            while out.is_empty() {
                let time = ssd.next_event().unwrap();
                ssd.advance(time, &mut out);
            }
        }
        kept.extend(pending);
        let cut = Time::from_ns(ssd.now().as_ns() + rng.below(2_000_000));
        ssd.advance(cut, &mut out);
        let loss = ssd.cut_power(cut);
        assert!(loss.lost.is_empty() && loss.lost_map_pages == 0, "{loss:?}");
        last = ssd.restore_power(cut);
        if rng.below(2) == 0 {
            // Once more, before it is ready.
            let again = Time::from_ns(cut.as_ns() + rng.below(last.scan.as_ns()));
            assert!(ssd.cut_power(again).during_recovery);
            last = ssd.restore_power(again);
        }
        ssd.advance(last.ready_at, &mut out);
        ssd.check();
        for (&unit, &stamp) in &kept {
            assert_eq!(
                read(&mut ssd, unit),
                stamp,
                "unit {unit} after cut {round} of seed {seed}: {:?} {:?}",
                config.ftl.map.protection,
                (&config.power, config.buffer.region),
            );
        }
    }
    last
}

#[test]
fn what_was_promised_survives_under_every_protection() {
    for protection in ProtectionConfig::POLICIES {
        for dump in DumpConfig::POLICIES {
            for region in [Region::Full, Region::None] {
                for seed in 0..4 {
                    survives(&config(protection.name, dump.name, region), seed);
                }
            }
        }
    }
}

#[test]
fn what_a_smaller_bank_would_lose_is_what_a_cut_loses() {
    let mut config = config("full", "balanced", Region::Full);
    let filled = |config: &Config| {
        let mut ssd = Ssd::<Stamp>::new(config, 3).unwrap();
        let mut out = Vec::new();
        (0..200).for_each(|unit| submit(&mut ssd, Op::Write, unit, unit + 1));
        while out.len() < 150 {
            let time = ssd.next_event().unwrap();
            ssd.advance(time, &mut out);
        }
        ssd
    };
    let ssd = filled(&config);
    let (cost, supply) = (ssd.cut_cost().unwrap(), ssd.power_supply().unwrap());
    assert!(cost.promised > Bytes::new(0) && cost.energy <= supply.need.energy);
    assert_eq!(ssd.cut_loss(cost.energy).unwrap(), CutLoss::default());
    assert_eq!(provision_of(&config).unwrap().supply, Some(supply));

    let power = config.power.as_mut().unwrap();
    let half = Energy::from_pj(cost.energy.as_pj() / 2);
    power.bank.capacitance = Some(supply.bank.capacitance_for(half));
    power.allow_underprovisioned = true;
    let mut ssd = filled(&config);
    let bank = ssd.power_supply().unwrap().bank.energy();
    let foreseen = ssd.cut_loss(bank).unwrap();
    let loss = ssd.cut_power(ssd.now());
    assert!(!loss.lost.is_empty());
    assert_eq!(foreseen.promised.get(), loss.lost.len() as u64 * 4096);
    assert_eq!(foreseen.map_pages, loss.lost_map_pages);
    let stats = ssd.stats();
    assert_eq!((stats.power_cuts, stats.ssd.lost_units), (1, loss.lost.len() as u64));
    assert_eq!(stats.ftl.programs.dump, loss.cost.pages);
    let recovery = ssd.restore_power(ssd.now());
    assert_eq!(ssd.stats().ftl.reads.recovery, recovery.pages_scanned);
}

/// A drive whose buffer is full of data that it has promised to keep, stamped from `stamp` on.
fn fill_buffer(ssd: &mut Ssd<Stamp>, stamp: u64) {
    let mut out = Vec::new();
    for unit in 0..24 {
        submit(ssd, Op::Write, unit, stamp + unit);
        while out.len() as u64 <= unit {
            let time = ssd.next_event().unwrap();
            ssd.advance(time, &mut out);
        }
    }
}

/// Each dump takes blocks, and is given up when the drive is ready. Cuts that follow at once must find
/// room for their own: the blocks of older dumps are erased before the drive is ready.
#[test]
fn cuts_in_a_row_find_room_for_their_dumps() {
    for dump in DumpConfig::POLICIES {
        for protection in ProtectionConfig::POLICIES {
            let config = config(protection.name, dump.name, Region::Full);
            let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
            fill_buffer(&mut ssd, 1);
            for cut in 0..40 {
                let loss = ssd.cut_power(ssd.now());
                assert!(loss.lost.is_empty() && loss.uncertain.is_empty(), "cut {cut}: {loss:?}");
                let ready_at = ssd.restore_power(ssd.now()).ready_at;
                ssd.advance(ready_at, &mut Vec::new());
            }
            ssd.check();
            assert!((0..24).all(|unit| read(&mut ssd, unit) == unit + 1));
        }
    }
}

/// When the blocks for dumps go bad, the drive cannot promise anything more. It keeps what it has.
#[test]
fn a_drive_without_room_for_dumps_can_be_read() {
    let mut config = config("full", "balanced", Region::Full);
    config.nand.faults.erase_failures = Ratio::from_percent(40);
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    fill_buffer(&mut ssd, 1);
    let mut cuts = 0;
    while !ssd.is_read_only() {
        assert!(cuts < 100, "every dump's blocks are erased, and many of them go bad");
        let loss = ssd.cut_power(ssd.now());
        assert!(loss.lost.is_empty() && loss.uncertain.is_empty(), "cut {cuts}: {loss:?}");
        let ready_at = ssd.restore_power(ssd.now()).ready_at;
        ssd.advance(ready_at, &mut Vec::new());
        cuts += 1;
    }
    for _ in 0..3 {
        submit(&mut ssd, Op::Write, 3, 99);
        submit(&mut ssd, Op::Trim, 4, 0);
        submit(&mut ssd, Op::Flush, 0, 0);
        let codes: Vec<_> = finish(&mut ssd).iter().map(|done| (done.op, done.status)).collect();
        assert!(codes.contains(&(Op::Write, Status::WriteFault)), "{codes:?}");
        assert!(codes.contains(&(Op::Trim, Status::WriteFault)), "{codes:?}");
        assert!(codes.contains(&(Op::Flush, Status::Success)), "{codes:?}");
        assert!((0..24).all(|unit| read(&mut ssd, unit) == unit + 1));
        assert!(ssd.cut_power(ssd.now()).lost.is_empty());
        let ready_at = ssd.restore_power(ssd.now()).ready_at;
        ssd.advance(ready_at, &mut Vec::new());
        assert!(ssd.is_read_only());
    }
}

/// Blocks that were bad from the beginning are not there to be kept back.
#[test]
fn a_drive_with_too_few_good_blocks_for_a_dump_is_refused() {
    let mut config = config("full", "balanced", Region::Full);
    config.nand.faults.factory_bad_blocks = Ratio::from_percent(97);
    let error = Ssd::<Stamp>::new(&config, 1).unwrap_err();
    assert_eq!(error.key, "nand.faults.factory_bad_blocks");
}

/// A server may learn late that the power is gone: its clients' commands still end.
#[test]
fn commands_to_a_drive_without_power_end_with_an_error() {
    let mut ssd = Ssd::<Stamp>::new(&config("full", "balanced", Region::Full), 1).unwrap();
    submit(&mut ssd, Op::Write, 3, 7);
    finish(&mut ssd);
    ssd.cut_power(ssd.now());
    let ops = [Op::Read, Op::Write, Op::Flush, Op::Trim, Op::WriteZeroes, Op::WritePrepare];
    for op in ops {
        submit(&mut ssd, op, 3, 8);
    }
    assert!(ssd.next_event() == Some(ssd.now()) && !ssd.is_idle());
    let done = finish(&mut ssd);
    assert_eq!(done.iter().map(|done| done.op).collect::<Vec<_>>(), ops);
    let refused = |done: &Completion<Stamp>| {
        done.status == Status::NotReady && done.data().is_none() && done.time == ssd.now()
    };
    assert!(done.iter().all(refused));

    // Completions that were not fetched yet come before later events.
    submit(&mut ssd, Op::Write, 3, 9);
    ssd.restore_power(ssd.now() + Span::from_us(1));
    submit(&mut ssd, Op::Read, 3, 0);
    let done = finish(&mut ssd);
    let statuses: Vec<_> = done.iter().map(|done| done.status).collect();
    assert_eq!(statuses, [Status::NotReady, Status::Success]);
    assert_eq!(done[1].data().unwrap(), &[Stamp(7)]);
    assert!(done[0].time < done[1].time && ssd.is_idle());
}

/// The power returns before the dump has ended, fails again, and returns once more.
#[test]
fn a_dump_takes_its_time_whatever_the_power_does_meanwhile() {
    let config = config("full", "balanced", Region::Full);
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    for unit in 0..8 {
        submit(&mut ssd, Op::Write, unit, unit + 1);
    }
    finish(&mut ssd);
    let at = ssd.now();
    let loss = ssd.cut_power(at);
    let end = at + loss.cost.time;
    assert!(loss.cost.pages > 0 && loss.cost.time > Span::from_us(700), "{loss:?}");
    let half = Span::from_ns(loss.cost.time.as_ns() / 2);
    let recovery = ssd.restore_power(at + half);
    assert_eq!(recovery.dump, end.since(at + half));
    assert_eq!(recovery.ready_at, end + recovery.scan.max(recovery.charge));
    let again = ssd.cut_power(at + half + Span::from_ns(1));
    assert!(again.during_recovery && again.lost.is_empty(), "{again:?}");
    let recovery = ssd.restore_power(at + half + Span::from_ns(2));
    assert_eq!(recovery.ready_at, end + recovery.scan.max(recovery.charge));
    ssd.advance(recovery.ready_at, &mut Vec::new());
    assert!((0..8).all(|unit| read(&mut ssd, unit) == unit + 1));
    // Later, there is nothing left to wait for.
    let at = ssd.now();
    let loss = ssd.cut_power(at);
    let recovery = ssd.restore_power(at + loss.cost.time);
    assert_eq!(recovery.dump, Span::ZERO);
}

/// The operation that the configuration names to fail does, once, and its data is not lost.
#[test]
fn an_operation_that_is_named_to_fail_does() {
    let mut config = config("full", "balanced", Region::None);
    let occasion = |what, nth| Occasion { what, nth };
    config.nand.faults.occasions =
        vec![occasion(FaultTarget::Data, 3), occasion(FaultTarget::Data, 5)];
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    for unit in 0..40 {
        submit(&mut ssd, Op::Write, unit, unit + 1);
    }
    submit(&mut ssd, Op::Flush, 0, 0);
    assert!(finish(&mut ssd).iter().all(|done| done.status == Status::Success));
    assert_eq!(ssd.stats().ftl.program_failures, 2);
    assert!((0..40).all(|unit| read(&mut ssd, unit) == unit + 1));
    config.nand.faults.occasions = vec![occasion(FaultTarget::Erase, 0)];
    let error = Ssd::<Stamp>::new(&config, 1).unwrap_err();
    assert_eq!(error.key, "nand.faults.occasions");
}

/// Recovery's reads of a dump take as long as its place says: on one die, or over all of them.
#[test]
fn recovery_reads_a_dump_where_it_lies() {
    let put_back = |dump: &str, stride: u64| {
        let mut ssd = Ssd::<Stamp>::new(&config("full", dump, Region::Full), 1).unwrap();
        // Two units share a page; every fourth page belongs to the same of four dies.
        let units = (0..7).map(|page| page * stride).flat_map(|page| [2 * page, 2 * page + 1]);
        let units: Vec<u64> = units.collect();
        for &unit in &units {
            submit(&mut ssd, Op::Write, unit, unit + 1);
        }
        while !ssd.is_idle() {
            let time = ssd.next_event().unwrap();
            ssd.advance(time, &mut Vec::new());
        }
        let loss = ssd.cut_power(ssd.now());
        assert_eq!(loss.cost.promised, Bytes::new(14 * 4096), "all of it is still in the buffer");
        let recovery = ssd.restore_power(ssd.now());
        ssd.advance(recovery.ready_at, &mut Vec::new());
        assert!(units.iter().all(|&unit| read(&mut ssd, unit) == unit + 1));
        let step = recovery.steps.iter().find(|step| step.name == StepName::PutBack).unwrap();
        assert_eq!(step.pages, 7);
        step.time
    };
    let nand = leyden_nand::Config::default();
    let one = nand.read + nand.channel_rate.time_for(8192);
    // Seven pages on one die; two at most on each; and the same wherever they belong.
    assert_eq!(put_back("in_place", 4), one.saturating_mul(7));
    assert!(put_back("in_place", 1) < one.saturating_mul(3));
    assert!(put_back("balanced", 4) < one.saturating_mul(4));
}

/// Programs of the dump fail, as many as the bank and the blocks for dumps are made for. Nothing is lost, and their
/// blocks are not used again.
#[test]
fn programs_of_a_dump_that_fail_lose_nothing() {
    for dump in DumpConfig::POLICIES {
        let mut config = config("partial", dump.name, Region::Full);
        config.nand.faults.program_failures = Ratio::from_percent(20);
        config.power.as_mut().unwrap().failed_programs = 3;
        let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
        let mut failed = 0;
        let mut cuts = 0;
        while !ssd.is_read_only() && cuts < 12 {
            let bad = ssd.medium().bad_blocks();
            fill_buffer(&mut ssd, 1);
            let cost = ssd.cut_cost().unwrap();
            let loss = ssd.cut_power(ssd.now());
            assert_eq!(loss.cost, cost, "what a cut would cost is what it costs");
            assert!(loss.lost.is_empty() && loss.uncertain.is_empty(), "{}: {loss:?}", dump.name);
            failed += loss.cost.failed_programs;
            assert!(loss.cost.failed_programs <= 3);
            // The dump is obsolete when the drive is ready; its blocks go when the next one is.
            let ready_at = ssd.restore_power(ssd.now()).ready_at;
            ssd.advance(ready_at, &mut Vec::new());
            assert!((0..24).all(|unit| read(&mut ssd, unit) == unit + 1), "{}", dump.name);
            cuts += 1;
            assert!(ssd.medium().bad_blocks() >= bad);
        }
        assert!(failed > 3, "{}: {failed} of {cuts} dumps", dump.name);
        assert!(ssd.medium().bad_blocks() > 0, "{}", dump.name);
    }
}
