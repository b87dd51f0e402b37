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
