//! Torture itself: a drive that is right passes, each planted bug is found, and what is found is made
//! small.

mod mock;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use leyden_device::{NoData, Ssd};
use leyden_torture::campaign::{Campaign, Summary};
use leyden_torture::{
    Case, Coverage, Failure, Grain, Kind, Options, Outcome, SeedFile, Subject, Tally, run_on,
    run_through, shrink,
};
use mock::{Bug, Mock};

/// The options of `seed`, for a drive that knows units only, and keeps or loses each by itself.
fn drawn(seed: u64) -> Options {
    let mut options = Options { grain: Grain::Unit, ..Options::draw(seed) };
    options.device.atomic = None;
    options
}

/// The options of a conventional drive's run.
fn conventional(case: Case) -> Options {
    let Case::Conventional(options) = case else { panic!("{case:?}") };
    *options
}

/// The outcome of a drive that there cannot be, as shrinking may ask for.
fn refused(options: &Options) -> Option<Outcome> {
    let error = Ssd::<NoData>::new(&options.device, 0).err()?;
    let failure = Failure { kind: Kind::Refused, cuts: 0, message: error.to_string() };
    Some(Outcome {
        tally: Tally::default(),
        coverage: Coverage::default(),
        digest: 0,
        failure: Some(failure),
    })
}

fn run(options: &Options, bug: Bug) -> Outcome {
    refused(options).unwrap_or_else(|| run_on(options, Mock::new(options, bug)))
}

/// The first seed that finds `bug`.
fn found(bug: Bug) -> (u64, Outcome) {
    let outcomes = (0..100).map(|seed| (seed, run(&drawn(seed), bug)));
    outcomes.into_iter().find(|(_, outcome)| outcome.failure.is_some()).expect("100 are enough")
}

#[test]
fn a_drive_that_is_right_passes() {
    let mut cuts = 0;
    for seed in 0..100 {
        let options = drawn(seed);
        let outcome = run(&options, Bug::None);
        assert_eq!(outcome.failure, None, "seed {seed}");
        assert_eq!(run(&options, Bug::None), outcome);
        cuts += outcome.tally.cuts;
    }
    assert!(cuts > 4_000, "{cuts}");
}

/// A drive that is right but for keeping or losing each unit by itself has no atomic writes.
#[test]
fn a_drive_that_tears_atomic_writes_is_found_within_few_seeds() {
    let promises = |seed| Options { grain: Grain::Unit, ..Options::draw(seed) };
    let outcomes = (1_000_000_000..).take(20).map(|seed| run(&promises(seed), Bug::None));
    let torn = |outcome: &Outcome| outcome.failure.as_ref().is_some_and(|it| it.kind == Kind::Torn);
    let count = outcomes.filter(torn).count();
    assert!(count >= 1, "{count} of 20");
}

/// Through a page cache and a way for hints, which every fourth seed has.
fn through_a_cache(bug: Bug, seeds: u64) -> impl Iterator<Item = (u64, Outcome)> {
    let options = (0..seeds).map(drawn);
    let is_cached =
        |options: &Options| options.host.as_ref().is_some_and(|host| host.page_cache.is_some());
    let run =
        move |options: Options| (options.seed, run_through(&options, Mock::new(&options, bug)));
    options.filter(is_cached).map(run)
}

#[test]
fn a_cache_on_a_drive_that_is_right_passes_and_loses_what_it_may() {
    let (mut seeds, mut dirty, mut unwritten) = (0, 0, 0);
    for (seed, outcome) in through_a_cache(Bug::None, 200) {
        assert_eq!(outcome.failure, None, "seed {seed}");
        let options = drawn(seed);
        assert_eq!(run_through(&options, Mock::new(&options, Bug::None)), outcome);
        seeds += 1;
        dirty += outcome.tally.cached_losses;
        unwritten += outcome.tally.unwritten_units;
    }
    assert!(seeds > 30 && dirty > 1_000 && unwritten > 100, "{seeds} {dirty} {unwritten}");
}

#[test]
fn a_cache_hides_no_bug_below_it() {
    for bug in [Bug::ForgetsFlush, Bug::ForgetsFua] {
        // Only where the drive's buffer is not protected is there anything to forget.
        let mut found = through_a_cache(bug, 200).filter_map(|(_, outcome)| outcome.failure);
        let kind = found.next().map(|failure| failure.kind);
        assert!(matches!(kind, Some(Kind::Lost | Kind::Reappeared)), "{bug:?}: {kind:?}");
    }
}

#[test]
fn a_host_that_is_not_needed_for_a_failure_is_left_out() {
    let cached = through_a_cache(Bug::ForgetsFlush, 200);
    let (seed, _) = cached.into_iter().find(|(_, outcome)| outcome.failure.is_some()).unwrap();
    let attempt = |options: &Options| {
        let run = || run_through(options, Mock::new(options, Bug::ForgetsFlush));
        refused(options).unwrap_or_else(run)
    };
    let shrunk = shrink(&drawn(seed), 3_000, attempt).unwrap();
    assert!(shrunk.options.host.is_none(), "{:#?}", shrunk.options.host);
}

#[test]
fn planted_bugs_are_found_and_made_small() {
    let bugs = [
        (Bug::ForgetsFlush, Kind::Lost, 6),
        (Bug::ForgetsFua, Kind::Lost, 3),
        (Bug::SkipsDump(20), Kind::Lost, 60),
        (Bug::RecoversOnce, Kind::Lost, 4),
        (Bug::ForgetsTrims, Kind::Lost, 6),
        (Bug::Panics(30), Kind::Panicked, 60),
    ];
    for (bug, kind, most_commands) in bugs {
        let (seed, outcome) = found(bug);
        assert_eq!(outcome.failure.unwrap().kind, kind, "{bug:?}");
        let options = drawn(seed);
        let shrunk = shrink(&options, 3_000, |options| run(options, bug)).unwrap();
        assert_eq!(shrunk.failure.kind, kind);
        let left = |options: &Options| -> u32 {
            options.rounds.iter().map(leyden_torture::Round::kept).sum()
        };
        assert!(left(&shrunk.options) <= most_commands, "{bug:?}: {:#?}", shrunk.options);
        assert!(shrunk.options.rounds.len() <= 3, "{bug:?}: {:#?}", shrunk.options.rounds);
        // The kept file fails in the same way.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seed.json");
        let case = Case::Conventional(Box::new(shrunk.options));
        std::fs::write(&path, SeedFile::new(case, None).to_json()).unwrap();
        let again = run(&conventional(SeedFile::read(&path).unwrap().case), bug);
        assert_eq!(again.failure, Some(shrunk.failure));
    }
}

fn campaign(threads: usize, seeds: u64, state: Option<&std::path::Path>) -> Summary {
    let campaign = Campaign {
        subject: Subject::Conventional,
        start: 5,
        seeds,
        threads,
        state: state.map(std::path::Path::to_owned),
        guided: false,
    };
    let work = |seed| run(&drawn(seed), Bug::SkipsDump(20));
    campaign.run_with(&work, &AtomicBool::new(false), &mut |_| ()).unwrap()
}

#[test]
fn a_campaign_finds_the_same_however_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let whole = campaign(1, 40, None);
    assert!(whole.violations > 0 && whole.violations < 40);
    let parallel = campaign(3, 40, None);
    campaign(2, 11, Some(&path));
    let resumed = campaign(2, 40, Some(&path));
    for other in [parallel, resumed] {
        assert_eq!(other.digest, whole.digest);
        assert_eq!(other.failed, whole.failed);
        assert_eq!(other.tally, whole.tally);
    }
}

#[test]
fn seeds_beyond_the_last_one_are_refused_at_once() {
    let attempt = |start, seeds| {
        let campaign = Campaign {
            subject: Subject::Conventional,
            start,
            seeds,
            threads: 1,
            state: None,
            guided: false,
        };
        let work = |seed| run(&drawn(seed), Bug::None);
        campaign.run_with(&work, &AtomicBool::new(false), &mut |_| ())
    };
    let message = attempt(u64::MAX, 1).unwrap_err().to_string();
    assert!(message.starts_with("there are no 1 seeds from 18446744073709551615 on"), "{message}");
    assert!(attempt(7, u64::MAX).is_err());
    assert_eq!(attempt(u64::MAX - 2, 2).unwrap().seeds, 2);
}

#[test]
fn two_campaigns_do_not_share_a_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let of = |seeds| Campaign {
        subject: Subject::Conventional,
        start: 0,
        seeds,
        threads: 1,
        state: Some(path.clone()),
        guided: false,
    };
    let second = Mutex::new(None);
    let none = |_: u64| -> Outcome { unreachable!("the state is not its own") };
    let work = |seed| {
        let attempt = of(1).run_with(&none, &AtomicBool::new(false), &mut |_| ());
        *second.lock().unwrap() = attempt.err();
        run(&drawn(seed), Bug::None)
    };
    of(1).run_with(&work, &AtomicBool::new(false), &mut |_| ()).unwrap();
    let refusal = second.into_inner().unwrap().expect("the second is refused").to_string();
    assert!(refusal.contains("is in use by another campaign"), "{refusal}");
    of(2)
        .run_with(&|seed| run(&drawn(seed), Bug::None), &AtomicBool::new(false), &mut |_| ())
        .unwrap();
}

#[test]
fn foreign_and_damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.json");
    let attempt = || {
        let campaign = Campaign {
            subject: Subject::Conventional,
            start: 0,
            seeds: 1,
            threads: 1,
            state: Some(path.clone()),
            guided: false,
        };
        let work = |seed| run(&drawn(seed), Bug::None);
        campaign.run_with(&work, &AtomicBool::new(false), &mut |_| ())
    };
    attempt().unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    let refused = |text: &str, part: &str| {
        std::fs::write(&path, text).unwrap();
        let message = attempt().unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("help:"), "{message}");
    };
    refused("{}", "no campaign's state");
    refused("\u{1}", "no campaign's state");
    refused(&good[..good.len() / 2], "no campaign's state");
    refused(&good.replace("\"start\": 0", "\"start\": 7"), "its first seed is 7");
    refused(&good.replace("\"leyden_torture_campaign\": 3", "\"leyden_torture_campaign\": 9"), "9");
    refused(&good.replace("\"program\": \"", "\"program\": \"x"), "its version is x");

    let case = Case::Conventional(Box::new(drawn(3)));
    let good = SeedFile::new(case.clone(), None).to_json();
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        SeedFile::read(&path)
    };
    assert_eq!(read(&good).unwrap().case, case);
    let refused = |text: &str, part: &str| {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("help:"), "{message}");
    };
    refused("[]", "no seed file");
    refused(&good[..good.len() / 2], "no seed file");
    refused(&good.replace("\"leyden_torture\": 1", "\"leyden_torture\": 2"), "version 2");
    refused(&good.replace("\"queue_depth\"", "\"queue_death\""), "queue_death");
    assert!(SeedFile::read(std::path::Path::new("/no/such")).is_err());
}

#[test]
fn runs_that_differ_are_told_apart() {
    let options = drawn(1);
    let (one, other) =
        (Mock::new(&options, Bug::Unrepeatable), Mock::new(&options, Bug::Unrepeatable));
    assert_ne!(run_on(&options, one).digest, run_on(&options, other).digest);
}
