//! The mapping table's journal under pressure: pages of 128 records, two of them in DRAM, so that it
//! overflows to flash and is shortened all the time.

use std::collections::{BTreeMap, BTreeSet};

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_device::{BlockDevice, Command, Completion, Config, Lba, Op, Recovery, Ssd, Stamp};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::map::journal::Journal;
use leyden_ftl::recovery::StepName;
use leyden_nand::Lpn;
use leyden_power::{DumpConfig, Part};
use leyden_sim::{Bytes, Ratio, Rng, Time};

const DIES: u64 = 4;
const JOURNAL_PAGES: u64 = 2;

/// Two channels, two dies each, blocks of 8 pages of 1 KiB, units of 512 B; 16 entries in a mapping page.
fn config(seed: u64) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 64;
    config.nand.pages_per_block = 8;
    config.nand.page_size = Bytes::new(1024);
    config.ftl.mapping_unit = Bytes::new(512);
    config.ftl.over_provisioning = Ratio::from_percent(90);
    config.ftl.map.entries_per_page = Some(16);
    let journal = Journal { size: Bytes::new(2048), flash: Ratio::from_percent(10) };
    config.ftl.map.protection = ProtectionConfig::Journal(journal);
    config.buffer.size = Bytes::new(64 * 512);
    config.buffer.region = if seed % 4 == 3 { Region::None } else { Region::Full };
    let schedules = ScheduleConfig::POLICIES;
    let schedule = schedules[seed as usize % schedules.len()].name;
    config.buffer.schedule = ScheduleConfig::by_name(schedule).unwrap();
    let dumps = DumpConfig::POLICIES;
    let dump = DumpConfig::by_name(dumps[seed as usize % dumps.len()].name).unwrap();
    config.power = Some(leyden_power::Config { dump, ..leyden_power::Config::default() });
    config
}

/// A drive, and what it may hold of each unit: several versions where that is open.
struct Case {
    ssd: Ssd<Stamp>,
    rng: Rng,
    may_hold: BTreeMap<u64, BTreeSet<u64>>,
    next_stamp: u64,
    out: Vec<Completion<Stamp>>,
}

impl Case {
    fn new(config: &Config, seed: u64) -> Self {
        let ssd = Ssd::new(config, seed).unwrap();
        let rng = Rng::new(seed, "map_journal");
        Self { ssd, rng, may_hold: BTreeMap::new(), next_stamp: 1, out: Vec::new() }
    }

    /// The next event, and every invariant after it.
    fn step(&mut self) {
        let time = self.ssd.next_event().expect("a command is under way");
        self.ssd.advance(time, &mut self.out);
        self.ssd.check(); // among them: no more records in DRAM than are protected
        if let Some(cost) = self.ssd.cut_cost() {
            assert!(cost.map_pages <= JOURNAL_PAGES + DIES, "{cost:?}");
        }
    }

    /// A command of many units; what they may hold while it is under way.
    fn submit(&mut self) -> Vec<(u64, u64)> {
        let units = u64::from(self.ssd.mapping_units());
        let (op, most) = match self.rng.below(12) {
            0 => (Op::Trim, 400), // more than the journal in DRAM has room for
            1 => (Op::Trim, 20),
            2..=5 => (Op::Write, 16),
            _ => (Op::Write, 4),
        };
        let first = self.rng.below(units);
        let count = (1 + self.rng.below(most)).min(units - first);
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let command = Command::new(op, Lba(first), count as u32, stamp);
        self.ssd.submit(self.ssd.now(), command);
        let value = if op == Op::Trim { 0 } else { stamp };
        let changes: Vec<_> = (0..count).map(|i| (first + i, value)).collect();
        for &(unit, stamp) in &changes {
            self.may_hold.entry(unit).or_insert_with(|| [0].into()).insert(stamp);
        }
        changes
    }

    fn finish(&mut self) {
        while self.out.is_empty() {
            self.step();
        }
        self.out.clear();
    }

    fn settle(&mut self, changes: Vec<(u64, u64)>) {
        for (unit, stamp) in changes {
            self.may_hold.insert(unit, [stamp].into());
        }
    }

    /// Writes and trims until the journal has wrapped, and cuts the power amid a command.
    fn round(&mut self, region: Region) -> (leyden_device::PowerLoss, Recovery) {
        for _ in 0..350 {
            let changes = self.submit();
            self.finish();
            self.settle(changes);
        }
        if region == Region::None {
            self.ssd.submit(self.ssd.now(), Command::flush());
            self.finish();
        }
        let _open = self.submit();
        for _ in 0..self.rng.below(30) {
            if self.ssd.next_event().is_some() {
                self.step();
            }
        }
        let soon = self.ssd.now().as_ns() + self.rng.below(300_000);
        let cut = Time::from_ns(self.ssd.next_event().map_or(soon, |next| next.as_ns().min(soon)));
        let loss = self.ssd.cut_power(cut);
        let mut recovery = self.ssd.restore_power(cut);
        if self.rng.below(2) == 0 {
            let again = Time::from_ns(cut.as_ns() + self.rng.below(recovery.scan.as_ns()));
            assert!(self.ssd.cut_power(again).during_recovery);
            let steps = std::mem::take(&mut recovery.steps);
            recovery = self.ssd.restore_power(again);
            assert_eq!(steps, recovery.steps, "recovery is idempotent");
        }
        self.out.clear();
        self.ssd.advance(recovery.ready_at, &mut self.out);
        self.ssd.check();
        self.out.clear();
        (loss, recovery)
    }

    /// Reads everything: what may be is narrowed down to what is.
    fn verify(&mut self, what: &str) {
        for (unit, may_hold) in std::mem::take(&mut self.may_hold) {
            self.ssd.submit(self.ssd.now(), Command::read(Lba(unit), 1));
            while self.out.is_empty() {
                let time = self.ssd.next_event().unwrap();
                self.ssd.advance(time, &mut self.out);
            }
            let holds = self.out.pop().unwrap().data().unwrap()[0].0;
            assert!(
                may_hold.contains(&holds),
                "unit {unit} holds {holds}, not {may_hold:?}: {what}"
            );
            self.may_hold.insert(unit, [holds].into());
        }
    }
}

fn pages_of(recovery: &Recovery, name: StepName) -> Option<u64> {
    recovery.steps.iter().find(|step| step.name == name).map(|step| step.pages)
}

#[test]
fn what_was_promised_survives_while_the_journal_overflows() {
    let (mut replayed, mut copied) = (0, 0);
    for seed in 0..12 {
        let mut config = config(seed);
        if seed % 3 == 2 {
            config.nand.faults.program_failures = Ratio::from_ppm(2_000);
        }
        let mut case = Case::new(&config, seed);
        for round in 0..4 {
            let (loss, recovery) = case.round(config.buffer.region);
            assert!(loss.lost.is_empty() && loss.uncertain.is_empty(), "{loss:?}");
            assert_eq!(pages_of(&recovery, StepName::RollForward), None);
            replayed += pages_of(&recovery, StepName::ReplayJournal).unwrap();
            case.verify(&format!("round {round} of seed {seed}"));
        }
        let stats = case.ssd.stats();
        assert!(stats.map.journal_pages > 20 && stats.map.writebacks > 20, "{stats:?}");
        assert_eq!(stats.ftl.programs.map, stats.map.journal_pages + stats.map.writebacks);
        copied += stats.ftl.gc.copied_units;
    }
    assert!(copied > 0);
    assert!(replayed > 12 * 4 * JOURNAL_PAGES, "{replayed} pages: hardly any was on flash");
}

#[test]
fn a_journal_that_the_energy_did_not_reach_is_found_by_a_scan() {
    let (mut scanned, mut whole) = (0, 0);
    for seed in 0..12 {
        let mut config = config(seed);
        let power = config.power.as_mut().unwrap();
        power.allow_underprovisioned = true;
        power.bank.part = Part::Ceramic;
        power.bank.parts = Some(2 + 2 * seed as u32);
        let mut case = Case::new(&config, seed);
        for round in 0..4 {
            let (loss, recovery) = case.round(config.buffer.region);
            case.may_hold.retain(|&unit, _| !loss.lost.contains(&Lpn(unit as u32)));
            if loss.uncertain.is_empty() {
                whole += 1;
            } else {
                scanned += 1;
                assert!(pages_of(&recovery, StepName::RollForward).is_some());
                // Trims may be lost with the journal: anything may be in their place.
                case.may_hold.retain(|_, may_hold| !may_hold.contains(&0));
            }
            case.verify(&format!("round {round} of seed {seed}"));
        }
    }
    assert!(scanned > 0 && whole > 0, "{scanned} with a scan, {whole} without");
}
