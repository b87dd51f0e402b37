//! Canaries: bugs planted on purpose, to show that torture finds their like.
//!
//! **What lives here**: their names, and which one is planted. **What doesn't**: the bugs; each is an
//! `if is_planted(..)` at the place where a slip would make it.
//!
//! **Invariants**: without the cargo feature `canary`, [`is_planted`] is constantly false, and nothing
//! is left of any canary in the program. With it, what is planted is the thread's own.

/// A bug, by what is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Canary {
    /// Garbage collection moves data and forgets to update the mapping table.
    LostGcMapUpdate,
    /// Garbage collection updates the mapping table when a copy's program starts, not when it ends.
    MappedBeforeCopied,
    /// A FLUSH of an unprotected buffer completes at once.
    FlushForgotten,
    /// A FLUSH does not wait for programs that have begun.
    FlushForgetsInFlight,
    /// A FUA write completes when it is in the buffer.
    FuaEarly,
    /// The dump leaves out the last page of the host's data.
    DumpPageSkipped,
    /// The dump leaves out the last mapping page.
    DumpMapPageSkipped,
    /// A trim does not make its mapping page dirty.
    TrimNotSaved,
    /// A FLUSH does not wait until the trims before it are on flash.
    FlushForgetsTrims,
    /// A copy of garbage collection leaves its mapping page clean, and what it was copied from is erased.
    CopyLeavesPageClean,
    /// The scan for the newest copy of a unit prefers the oldest.
    OlderVersionWins,
    /// An older version whose program ends late is mapped over a newer one.
    StaleVersionMapped,
    /// A page whose program the cut has torn is not recognised as such.
    TornPageBelieved,
    /// A page whose program failed is taken for programmed.
    FailedProgramBelieved,
    /// A mapping page that was handed to a die counts as clean, but flash keeps what it held before.
    MapPageDropped,
    /// A mapping page that changed while it was being written counts as clean.
    MapPageStale,
    /// A block is erased though the mapping pages on flash still point to what was copied out of it.
    ErasedBeforeMapped,
    /// The dump is given up when recovery begins, not when the drive is ready.
    DumpGivenUpEarly,
    /// Recovery does not put the last unit of the dump back.
    PutBackForgotten,
    /// The blocks of older dumps are not erased before the drive is ready.
    OldDumpsKept,
    /// Recovery takes the last written page of an open block for the first that is free.
    AppendPointBack,
    /// A flush of the page cache does not wait for pages that are being written out.
    CacheFlushForgetsWriteback,
    /// A flush of the page cache is not passed on to the drive.
    CacheFlushKept,
    /// A trim goes to the drive, and what the page cache holds of it stays there.
    CacheTrimIgnored,
    /// A flush of the page cache ends well though write-backs have failed.
    CacheFailureKept,
    /// A flush of a file does not wait for pages that are being written out.
    CacheSyncForgetsWriteback,
    /// A flush of a file is not passed on to the drive.
    CacheSyncKept,
    /// A flush of a file writes out the first run of dirty pages only.
    CacheSyncFirstRunOnly,
    /// A flush of a file ends well though write-backs of its pages have failed.
    CacheSyncFailureKept,
    /// A newer version that takes over for a failed program does not inherit what a FLUSH waits for.
    HeirWithoutEpoch,
    /// A FUA write ends when its failed program is left to a newer version, which nobody writes out for it.
    FuaLeftToNewer,
    /// An overwrite of data that waits for its page is acknowledged, and the old data is written.
    CoalescedKeepsOld,
    /// A trim of data whose program is under way does not keep it from being mapped.
    TrimmedInFlightMapped,
    /// A FLUSH does not wait for the last epoch before it.
    FlushEndsAnEpochEarly,
    /// A dump leaves out data that waits for the rest of its page.
    NewestSkipsStaged,
    /// A protected write of data that is buffered unprotected leaves it where it is.
    PromotionLeftOut,
    /// An unprotected version takes over for a failed program of a protected one, and stays unprotected.
    HeirUnprotected,
    /// A dump leaves out a protected version on its way to flash, because a newer, unprotected one is there.
    OldVersionNotKept,
    /// A FUA write that ends in the buffer is in its unprotected part.
    FuaUnprotected,
    /// A dump pays for base power until the end of the program that it starts, not of the last one.
    BaseNotUntilLatest,
    /// The budget of a dump is that of a new bank.
    AgeingForgotten,
    /// A page of a dump does not wait for its channel.
    ChannelFree,
    /// A page of a dump in place goes to the die after the one that its address names.
    NextDoorInPlace,
    /// Programs in flight at a cut cost a dump nothing.
    InFlightNotCharged,
    /// A die whose operation is broken off takes a page of the dump at once.
    TornFreeAtOnce,
    /// A cut does not name the last unit that it has lost.
    LossUnderstated,
    /// A cut also names the unit after the last one that it has lost.
    LossOverstated,
    /// A cut says that it does not know where anything lies.
    AllUncertain,
    /// A drive becomes read-only at its fifth power cut.
    ReadOnlyForNothing,
    /// A drive is ready if any of its dies has room for a dump.
    ReadyWithRoomSomewhere,
    /// Recovery does not wait for the end of a dump.
    DumpTakesNoTime,
    /// The worst case leaves out mapping pages that dies are writing.
    DemandForgetsWriting,
    /// A cut does not say whose entries it has lost with a mapping page.
    UncertainForgotten,
    /// The root of a dump does not list its last mapping page.
    RootOmitsPage,
    /// A FLUSH that has to wait ends with a write fault.
    WaitingFlushFails,
    /// Every 200th command that writes ends with a write fault.
    SometimesFails,
    /// A write of a part of a unit makes the rest of it zeroes.
    PartialMergeForgets,
    /// A write of a part of a unit is put together with what flash holds, not with the buffer.
    MergedWithFlash,
    /// Of a write of three units or more, two change places.
    UnitsSwapped,
    /// Zeroes in a part of a unit are acknowledged, and not written.
    PartialZeroesKept,
    /// The last, partly filled page of a FUA write is never programmed.
    FuaPageWaits,
    /// The count of versions begins at 1 again after a scan.
    VersionNotRestored,
    /// A scan finds only every other unit.
    ScanDropsHalf,
    /// A scan takes data for valid that a saved mapping page knows to be trimmed.
    ScanForgetsTrims,
    /// The journal is replayed from its end to its beginning.
    JournalReversed,
    /// The root of a dump names the first record of the journal that is needed one too late.
    JournalTailLate,
    /// A page of the journal whose program failed counts as written.
    JournalFailureBelieved,
    /// Mapping pages written after a recovery are numbered from 1 again.
    MapSequenceForgotten,
    /// A program changes the table however many mapping pages are dirty.
    GateOpen,
    /// A collected block is erased before its copies have been programmed.
    ErasedWhileValid,
    /// The root of a dump does not keep the count of versions.
    RootForgetsVersion,
    /// A block whose erase was broken off is used without being erased again.
    HalfErasedUsed,
    /// A program in flight at a cut is taken to end without its transfer.
    TransferNotHeld,
    /// A page of a zone whose program failed counts as programmed.
    ZoneFailureBelieved,
    /// Recovery believes the write pointer of the dump, whatever data was kept.
    ZonePointerBelieved,
    /// Of two copies of a zone's unit recovery takes the one that was programmed first.
    ZoneOldestCopyWins,
    /// Recovery takes pages of a zone that an earlier cut had given up for new ones.
    ZoneGivenUpPageTaken,
    /// Recovery misses the pages of zones that were programmed in place at the cut.
    ZoneHomePagesMissed,
    /// A reset leaves what is buffered of the zone to be programmed.
    ZoneResetKeepsBuffer,
    /// The end of a program of what a zone held before its reset counts for what it holds now.
    ZoneStaleEndBelieved,
    /// A protected write above unprotected data of its zone leaves that unprotected.
    ZonePromotionForgotten,
    /// A flush of a zoned drive does not wait for programs that have begun.
    ZoneFlushForgetsInFlight,
    /// A page of a zone counts as kept though pages below it are not programmed.
    ZonePrefixUnordered,
    /// What a Zone Random Write Area holds is not dumped.
    ZrwaNotDumped,
    /// A zone that is closed to open another still counts as open.
    ZoneImplicitCloseUncounted,
    /// Finish gives up what is buffered of the zone.
    ZoneFinishDropsTail,
    /// A copy reads from one logical block further on.
    CopyNextDoor,
    /// A copy's flag is forgotten: its data is not protected.
    CopyUnprotected,
    /// A copy with FUA ends when it is in the buffer.
    CopyFuaEarly,
    /// A zoned block device uses a zone again before the tables that gave it up survive.
    BlockFreedBeforeCommit,
    /// A commit does not flush the zoned member before it writes the tables.
    BlockDataUnflushed,
    /// A commit writes the superblock of the first set without its tables.
    BlockSuperblockFirst,
    /// A commit writes over the newest set of tables first.
    BlockNewestSetFirst,
    /// Recovery takes the set of tables with the lower generation.
    BlockOlderSetWins,
    /// A FLUSH of a zoned block device ends at once.
    BlockFlushForgetsTables,
    /// A FUA write ends though the tables that say where its data lies may be lost.
    BlockFuaForgetsTables,
    /// A write to a new place leaves the block valid in the old one, too.
    BlockOldPlaceKept,
    /// A trim forgets what the buffer zone holds.
    BlockTrimForgetsBuffer,
    /// A block is valid in its new place before it has been written there.
    BlockValidBeforeWritten,
    /// A merge into a new zone leaves out what the buffer zone holds.
    BlockMergeForgetsBuffer,
    /// A chunk is used while it is moved.
    BlockJobUnguarded,
    /// A sequential zone is used again without a reset.
    BlockResetForgotten,
    /// Recovery takes the last valid block of a sequential zone for its write pointer.
    BlockPointerBelieved,
    /// A FUA write ends when the tables that survive are right, though a commit under way writes others.
    BlockCommitForgotten,
    /// What a journal leaves in its zones is not moved before they are given up.
    BlockJournalDropped,
    /// A writer that waits for a zone hears a write fault, though one is on its way.
    BlockGivesUpEarly,
}

impl Canary {
    /// Those of conventional drives, and of what stands on them.
    pub const ALL: &[Self] = &[
        Self::LostGcMapUpdate,
        Self::MappedBeforeCopied,
        Self::FlushForgotten,
        Self::FlushForgetsInFlight,
        Self::FuaEarly,
        Self::DumpPageSkipped,
        Self::DumpMapPageSkipped,
        Self::TrimNotSaved,
        Self::FlushForgetsTrims,
        Self::CopyLeavesPageClean,
        Self::OlderVersionWins,
        Self::StaleVersionMapped,
        Self::TornPageBelieved,
        Self::FailedProgramBelieved,
        Self::MapPageDropped,
        Self::MapPageStale,
        Self::ErasedBeforeMapped,
        Self::DumpGivenUpEarly,
        Self::PutBackForgotten,
        Self::OldDumpsKept,
        Self::AppendPointBack,
        Self::CacheFlushForgetsWriteback,
        Self::CacheFlushKept,
        Self::CacheTrimIgnored,
        Self::CacheFailureKept,
        Self::CacheSyncForgetsWriteback,
        Self::CacheSyncKept,
        Self::CacheSyncFirstRunOnly,
        Self::CacheSyncFailureKept,
        Self::HeirWithoutEpoch,
        Self::FuaLeftToNewer,
        Self::CoalescedKeepsOld,
        Self::TrimmedInFlightMapped,
        Self::FlushEndsAnEpochEarly,
        Self::NewestSkipsStaged,
        Self::PromotionLeftOut,
        Self::HeirUnprotected,
        Self::OldVersionNotKept,
        Self::FuaUnprotected,
        Self::BaseNotUntilLatest,
        Self::AgeingForgotten,
        Self::ChannelFree,
        Self::NextDoorInPlace,
        Self::InFlightNotCharged,
        Self::TornFreeAtOnce,
        Self::LossUnderstated,
        Self::LossOverstated,
        Self::AllUncertain,
        Self::ReadOnlyForNothing,
        Self::ReadyWithRoomSomewhere,
        Self::DumpTakesNoTime,
        Self::DemandForgetsWriting,
        Self::UncertainForgotten,
        Self::RootOmitsPage,
        Self::WaitingFlushFails,
        Self::SometimesFails,
        Self::PartialMergeForgets,
        Self::MergedWithFlash,
        Self::UnitsSwapped,
        Self::PartialZeroesKept,
        Self::FuaPageWaits,
        Self::VersionNotRestored,
        Self::ScanDropsHalf,
        Self::ScanForgetsTrims,
        Self::JournalReversed,
        Self::JournalTailLate,
        Self::JournalFailureBelieved,
        Self::MapSequenceForgotten,
        Self::GateOpen,
        Self::ErasedWhileValid,
        Self::RootForgetsVersion,
        Self::HalfErasedUsed,
        Self::TransferNotHeld,
    ];

    /// Those of zoned drives alone.
    pub const ZONED: &[Self] = &[
        Self::ZoneFailureBelieved,
        Self::ZonePointerBelieved,
        Self::ZoneOldestCopyWins,
        Self::ZoneGivenUpPageTaken,
        Self::ZoneHomePagesMissed,
        Self::ZoneResetKeepsBuffer,
        Self::ZoneStaleEndBelieved,
        Self::ZonePromotionForgotten,
        Self::ZoneFlushForgetsInFlight,
        Self::ZonePrefixUnordered,
        Self::ZrwaNotDumped,
        Self::ZoneImplicitCloseUncounted,
        Self::ZoneFinishDropsTail,
        Self::CopyNextDoor,
        Self::CopyUnprotected,
        Self::CopyFuaEarly,
    ];

    /// Those of block devices on a conventional and a zoned drive.
    pub const ZONED_BLOCK: &[Self] = &[
        Self::BlockFreedBeforeCommit,
        Self::BlockDataUnflushed,
        Self::BlockSuperblockFirst,
        Self::BlockNewestSetFirst,
        Self::BlockOlderSetWins,
        Self::BlockFlushForgetsTables,
        Self::BlockFuaForgetsTables,
        Self::BlockOldPlaceKept,
        Self::BlockTrimForgetsBuffer,
        Self::BlockValidBeforeWritten,
        Self::BlockMergeForgetsBuffer,
        Self::BlockJobUnguarded,
        Self::BlockResetForgotten,
        Self::BlockPointerBelieved,
        Self::BlockCommitForgotten,
        Self::BlockJournalDropped,
        Self::BlockGivesUpEarly,
    ];
}

#[cfg(feature = "canary")]
mod planted {
    use super::Canary;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Canary>> = const { Cell::new(None) };
    }

    /// Plants a bug in everything that this thread runs from now on, or none.
    pub fn plant(canary: Option<Canary>) {
        PLANTED.set(canary);
    }

    /// True if this bug is planted.
    pub fn is_planted(canary: Canary) -> bool {
        PLANTED.get() == Some(canary)
    }
}

#[cfg(feature = "canary")]
pub use planted::{is_planted, plant};

/// True if this bug is planted: never, without the feature `canary`.
#[cfg(not(feature = "canary"))]
#[inline]
pub const fn is_planted(_: Canary) -> bool {
    false
}
