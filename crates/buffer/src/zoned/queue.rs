//! The units of a zone in the buffer.

use std::collections::VecDeque;

use leyden_nand::Content;
use serde::{Deserialize, Serialize};

/// A page on its way to flash, or on flash before what is below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Page {
    /// Its first unit, from the zone's beginning.
    pub(super) first: u32,
    pub(super) units: u32,
    pub(super) state: PageState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum PageState {
    InFlight,
    Done,
    /// Its program has failed: it is programmed again before anything else.
    Failed,
}

/// See the module's documentation. Units are counted from the zone's beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "C: Content")]
pub(super) struct Queue<C: Content> {
    /// Everything below is on flash.
    pub(super) base: u32,
    /// From `base` on.
    pub(super) units: VecDeque<C>,
    /// Programs of everything below have begun.
    pub(super) started: u32,
    /// Everything below that is in the buffer is protected, and nothing from here on is.
    pub(super) protected: u32,
    /// Pages between `base` and `started`, in order.
    pub(super) pages: VecDeque<Page>,
    pub(super) failed_pages: u32,
    /// Units below do not wait for their page to be full.
    pub(super) forced: u32,
    /// When it last had its turn, or got a unit after having none to program, among all arrivals.
    pub(super) since: u64,
    /// It was read from since it was last considered.
    pub(super) is_referenced: bool,
    /// The contents of its Zone Random Write Area, from the write pointer on.
    pub(super) window: VecDeque<Option<C>>,
}

impl<C: Content> Default for Queue<C> {
    fn default() -> Self {
        Self {
            base: 0,
            units: VecDeque::new(),
            started: 0,
            protected: 0,
            pages: VecDeque::new(),
            failed_pages: 0,
            forced: 0,
            since: 0,
            is_referenced: false,
            window: VecDeque::new(),
        }
    }
}

impl<C: Content> Queue<C> {
    /// Where the next unit goes.
    #[inline]
    pub(super) fn end(&self) -> u32 {
        self.base + self.units.len() as u32
    }

    /// Units whose programs have not begun.
    #[inline]
    pub(super) fn dirty(&self) -> u32 {
        self.end() - self.started
    }

    /// How many units of `from..to` are protected, and how many are not.
    #[inline]
    pub(super) fn split(&self, from: u32, to: u32) -> [u32; 2] {
        let middle = self.protected.clamp(from, to);
        [middle - from, to - middle]
    }
}
