//! Each planted bug is found within a stated number of seeds, all of which the drive as it is passes.
//! `cargo test --workspace --features leyden-torture/canary --test canary`
#![cfg(feature = "canary")]

mod planted;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use leyden_sim::canary::Canary;
use leyden_torture::{Options, run};

/// Bugs, and the seeds within which each is found (docs/reliability.md).
const WITHIN: &[(Canary, u64)] = &[
    (Canary::LostGcMapUpdate, 1_000),
    (Canary::MappedBeforeCopied, 1_000),
    (Canary::FlushForgotten, 1_000),
    (Canary::FlushForgetsInFlight, 1_000),
    (Canary::FuaEarly, 1_000),
    (Canary::DumpPageSkipped, 1_000),
    (Canary::DumpMapPageSkipped, 1_000),
    (Canary::TrimNotSaved, 1_000),
    (Canary::FlushForgetsTrims, 1_000),
    (Canary::CopyLeavesPageClean, 1_000),
    (Canary::OlderVersionWins, 1_000),
    (Canary::StaleVersionMapped, 1_000),
    (Canary::TornPageBelieved, 1_000),
    (Canary::FailedProgramBelieved, 1_000),
    (Canary::MapPageDropped, 1_000),
    (Canary::MapPageStale, 1_000),
    (Canary::ErasedBeforeMapped, 1_000),
    (Canary::DumpGivenUpEarly, 1_000),
    (Canary::PutBackForgotten, 1_000),
    (Canary::OldDumpsKept, 1_000),
    (Canary::AppendPointBack, 1_000),
    (Canary::CacheFlushForgetsWriteback, 1_000),
    (Canary::CacheFlushKept, 1_000),
    (Canary::CacheTrimIgnored, 1_000),
    (Canary::CacheFailureKept, 1_000),
    (Canary::CacheSyncForgetsWriteback, 1_000),
    (Canary::CacheSyncKept, 1_000),
    (Canary::CacheSyncFirstRunOnly, 1_000),
    (Canary::CacheSyncFailureKept, 1_000),
    (Canary::HeirWithoutEpoch, 1_000),
    (Canary::FuaLeftToNewer, 1_000),
    (Canary::CoalescedKeepsOld, 1_000),
    (Canary::TrimmedInFlightMapped, 1_000),
    (Canary::FlushEndsAnEpochEarly, 1_000),
    (Canary::NewestSkipsStaged, 1_000),
    (Canary::PromotionLeftOut, 1_000),
    (Canary::HeirUnprotected, 1_000),
    (Canary::OldVersionNotKept, 1_000),
    (Canary::FuaUnprotected, 1_000),
    (Canary::BaseNotUntilLatest, 1_000),
    (Canary::AgeingForgotten, 1_000),
    (Canary::ChannelFree, 1_000),
    (Canary::NextDoorInPlace, 1_000),
    (Canary::InFlightNotCharged, 1_000),
    (Canary::TornFreeAtOnce, 1_000),
    (Canary::LossUnderstated, 1_000),
    (Canary::LossOverstated, 1_000),
    (Canary::AllUncertain, 1_000),
    (Canary::ReadOnlyForNothing, 1_000),
    (Canary::ReadyWithRoomSomewhere, 1_000),
    (Canary::DumpTakesNoTime, 1_000),
    (Canary::DemandForgetsWriting, 1_000),
    (Canary::UncertainForgotten, 1_000),
    (Canary::RootOmitsPage, 1_000),
    (Canary::WaitingFlushFails, 1_000),
    (Canary::SometimesFails, 1_000),
    (Canary::PartialMergeForgets, 1_000),
    (Canary::MergedWithFlash, 1_000),
    (Canary::UnitsSwapped, 1_000),
    (Canary::PartialZeroesKept, 1_000),
    (Canary::FuaPageWaits, 1_000),
    (Canary::VersionNotRestored, 1_000),
    (Canary::ScanDropsHalf, 1_000),
    (Canary::ScanForgetsTrims, 1_000),
    (Canary::JournalReversed, 1_000),
    (Canary::JournalTailLate, 1_000),
    (Canary::JournalFailureBelieved, 1_000),
    (Canary::MapSequenceForgotten, 1_000),
    (Canary::GateOpen, 1_000),
    (Canary::ErasedWhileValid, 1_000),
    (Canary::RootForgetsVersion, 1_000),
    (Canary::HalfErasedUsed, 1_000),
    (Canary::TransferNotHeld, 1_000),
];

#[test]
fn every_planted_bug_is_found() {
    // `CANARY=FuaEarly` looks for that one alone.
    let chosen = std::env::var("CANARY").ok();
    assert!(WITHIN.iter().map(|&(canary, _)| canary).eq(Canary::ALL.iter().copied()));
    let missed = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // What is planted is the thread's own.
            scope.spawn(|| {
                while let Some(&(canary, within)) = WITHIN.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    if chosen.as_ref().is_some_and(|name| *name != format!("{canary:?}")) {
                        continue;
                    }
                    let run = |seed| run(&Options::draw(seed)).failure;
                    if planted::find(canary, within, run).is_none() {
                        missed.lock().unwrap().push(canary);
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn the_drive_as_it_is_passes_the_same_seeds() {
    let most = WITHIN.iter().map(|&(_, within)| within).max().unwrap();
    for seed in 0..most {
        assert_eq!(run(&Options::draw(seed)).failure, None, "seed {seed}");
    }
}
