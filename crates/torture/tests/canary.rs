//! Each planted bug is found within a stated number of seeds, all of which the drive as it is passes.
//! `cargo test --workspace --features leyden-torture/canary --test canary`
#![cfg(feature = "canary")]

use leyden_sim::canary::{Canary, plant};
use leyden_torture::{Options, run};

/// Bugs, and the seeds within which each is found (docs/reliability.md).
const WITHIN: &[(Canary, u64)] = &[
    (Canary::LostGcMapUpdate, 10),
    (Canary::MappedBeforeCopied, 10),
    (Canary::FlushForgotten, 10),
    (Canary::FlushForgetsInFlight, 10),
    (Canary::FuaEarly, 10),
    (Canary::DumpPageSkipped, 10),
    (Canary::DumpMapPageSkipped, 10),
    (Canary::TrimNotSaved, 10),
    (Canary::OlderVersionWins, 30),
    (Canary::StaleVersionMapped, 10),
    (Canary::TornPageBelieved, 30),
    (Canary::FailedProgramBelieved, 60),
    (Canary::MapPageDropped, 10),
    (Canary::MapPageStale, 10),
    (Canary::ErasedBeforeMapped, 30),
    (Canary::DumpGivenUpEarly, 10),
    (Canary::PutBackForgotten, 10),
    (Canary::OldDumpsKept, 30),
    (Canary::AppendPointBack, 10),
    (Canary::CacheFlushForgetsWriteback, 10),
    (Canary::CacheFlushKept, 30),
    (Canary::CacheTrimIgnored, 10),
    (Canary::CacheFailureKept, 200),
];

#[test]
#[expect(clippy::print_stdout, reason = "the table of docs/reliability.md")]
fn every_planted_bug_is_found() {
    assert_eq!(WITHIN.len(), Canary::ALL.len());
    let mut missed = Vec::new();
    for &(canary, within) in WITHIN {
        plant(Some(canary));
        let found = (0..within).find_map(|seed| Some((seed, run(&Options::draw(seed)).failure?)));
        plant(None);
        match found {
            Some((seed, failure)) => {
                let kind = format!("{:?}", failure.kind);
                println!("| {canary:?} | {} | {kind} | {} |", seed, failure.cuts);
            }
            None => missed.push(canary),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_drive_as_it_is_passes_the_same_seeds() {
    let most = WITHIN.iter().map(|&(_, within)| within).max().unwrap();
    for seed in 0..most {
        assert_eq!(run(&Options::draw(seed)).failure, None, "seed {seed}");
    }
}
