//! The medium alone survives a power cut: a drive built from it, in another process, holds all
//! promised data.
#![expect(clippy::disallowed_methods, reason = "the other process is told what to read")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command as Process;

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Completion, Config, Lba, Op, Ssd, Stamp, Status};
use leyden_ftl::map::ProtectionConfig;
use leyden_nand::MediumState;
use leyden_sim::{Bytes, Ratio, Rng, Span};

/// Set in the fresh process: which protection, and where the medium and the promises lie.
const ENVIRONMENT: &str = "LEYDEN_TEST_MEDIUM";

fn config(protection: &str) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 40;
    config.nand.pages_per_block = 16;
    config.nand.faults.program_failures = Ratio::from_ppm(300);
    config.ftl.over_provisioning = Ratio::from_percent(70);
    config.ftl.map.protection = ProtectionConfig::by_name(protection).unwrap();
    config.ftl.map.entries_per_page = Some(64);
    config.buffer.region = Region::Full;
    config.buffer.size = Bytes::new(256 << 10);
    config.power = Some(leyden_power::Config::default());
    config
}

/// The content that each unit must have, by number: 0 for trimmed units.
type Promises = BTreeMap<u64, u64>;

/// Works with a drive and cuts its power; what it had acknowledged is promised.
fn work(config: &Config, seed: u64) -> (Ssd<Stamp>, Promises) {
    let mut ssd = Ssd::<Stamp>::new(config, seed).unwrap();
    let units = u64::from(ssd.mapping_units());
    let mut rng = Rng::new(seed, "medium alone");
    let (mut promises, mut open, mut done) = (Promises::new(), BTreeMap::new(), Vec::new());
    for stamp in 1..=3 * units {
        let unit = rng.below(units);
        let (lba, is_trim) = (Lba(unit * 8), rng.below(12) == 0);
        let command = if is_trim { Command::trim(lba, 8) } else { Command::write(lba, 8, stamp) };
        let id = ssd.submit(ssd.now(), command);
        open.insert(id, (unit, if is_trim { 0 } else { stamp }));
        while open.len() > 8 {
            let time = ssd.next_event().expect("commands are under way");
            ssd.advance(time, &mut done);
            for completion in done.drain(..) {
                assert_eq!(completion.status, Status::Success);
                let (unit, stamp) = open.remove(&completion.id).unwrap();
                promises.insert(unit, stamp);
            }
        }
    }
    // Commands in flight may be kept or not.
    for (unit, _) in open.into_values() {
        promises.remove(&unit);
    }
    let loss = ssd.cut_power(ssd.now() + Span::from_us(100));
    assert!(loss.lost.is_empty() && loss.cost.pages > 0, "{loss:?}");
    (ssd, promises)
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("leyden-medium-{}-{name}", std::process::id()))
}

fn reads_back(config: &Config, medium: &[u8], promises: &Promises) {
    let mut blank = Ssd::<Stamp>::blank_medium(config, 1).unwrap();
    let state: MediumState<'_, Stamp> = postcard::from_bytes(medium).unwrap();
    assert!(blank.restore(state));
    let mut ssd = Ssd::on_medium(config, blank).unwrap();
    let recovery = ssd.restore_power(ssd.now());
    assert!(recovery.pages_restored > 0, "{recovery:?}");
    let mut done: Vec<Completion<Stamp>> = Vec::new();
    for (&unit, &stamp) in promises {
        ssd.submit(ssd.now(), Command::read(Lba(unit * 8), 8));
        while done.is_empty() {
            let time = ssd.next_event().expect("a read is under way");
            ssd.advance(time, &mut done);
        }
        let completion = done.pop().unwrap();
        assert_eq!(completion.op, Op::Read);
        assert_eq!(completion.data().unwrap(), &[Stamp(stamp)], "unit {unit}");
    }
    ssd.check();
}

/// The other half of the test below, in the process that it starts.
#[test]
fn a_fresh_process_recovers_from_the_medium_alone() {
    let Ok(what) = std::env::var(ENVIRONMENT) else { return };
    let (protection, name) = what.split_once(':').unwrap();
    let medium = std::fs::read(format!("{name}.medium")).unwrap();
    let promises = postcard::from_bytes(&std::fs::read(format!("{name}.promises")).unwrap());
    reads_back(&config(protection), &medium, &promises.unwrap());
    std::fs::write(format!("{name}.done"), b"read back").unwrap();
}

#[test]
fn what_was_promised_is_on_the_medium() {
    for (seed, policy) in (1..).zip(ProtectionConfig::POLICIES) {
        let config = config(policy.name);
        let (ssd, promises) = work(&config, seed);
        assert!(promises.len() > 500);
        let name = file(policy.name).display().to_string();
        let medium = ssd.into_medium();
        std::fs::write(format!("{name}.medium"), postcard::to_stdvec(&medium.state()).unwrap())
            .unwrap();
        drop(medium);
        std::fs::write(format!("{name}.promises"), postcard::to_stdvec(&promises).unwrap())
            .unwrap();
        let status = Process::new(std::env::current_exe().unwrap())
            .args(["--exact", "medium_alone::a_fresh_process_recovers_from_the_medium_alone"])
            .env(ENVIRONMENT, format!("{}:{name}", policy.name))
            .status();
        assert!(status.unwrap().success(), "{}", policy.name);
        assert!(std::fs::exists(format!("{name}.done")).unwrap(), "the other process did nothing");
        for end in ["medium", "promises", "done"] {
            std::fs::remove_file(format!("{name}.{end}")).unwrap();
        }
    }
}

/// A clone of a busy drive goes on exactly as the drive does, and shares nothing with it.
#[test]
fn a_busy_drive_can_be_cloned() {
    let config = config("partial");
    let mut ssd = Ssd::<Stamp>::new(&config, 5).unwrap();
    let units = u64::from(ssd.mapping_units());
    let (mut rng, mut done) = (Rng::new(5, "clones"), Vec::new());
    for stamp in 1..=2 * units {
        ssd.submit(ssd.now(), Command::write(Lba(rng.below(units) * 8), 8, stamp));
        if stamp % 16 == 0 {
            let time = ssd.next_event().expect("writes are under way");
            ssd.advance(time, &mut done);
        }
    }
    assert!(!ssd.is_idle());
    let run = |mut drive: Ssd<Stamp>| {
        let mut done = Vec::new();
        while let Some(time) = drive.next_event() {
            drive.advance(time, &mut done);
        }
        drive.check();
        (drive.digest(), done.len())
    };
    let (clone, mut cut) = (ssd.clone(), ssd.clone());
    let loss = cut.cut_power(cut.now());
    assert_eq!(run(clone), run(ssd.clone()));
    assert_eq!(
        cut.digest(),
        {
            ssd.cut_power(ssd.now());
            ssd.digest()
        },
        "{loss:?}"
    );
}
