//! The versions that one unit may have, in constant space however many they are.
//!
//! A unit is written often between two promises, and each of those versions may come back after a
//! cut. They need no list: the log knows which command stamped the unit, and two ticks say which of
//! them are dead. A version is dead if it was submitted before the last time the unit was known, or
//! if it had ended before a version was submitted that has certainly replaced it.

use crate::command::Effect;
use crate::log::{Entry, Log, Tick};

/// A set of versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct View {
    /// The stamp that the unit was known to have at `since`; 0 for zeroes.
    pub(crate) base: u64,
    /// When. Besides the base, only versions submitted later are in the set.
    pub(crate) since: Tick,
    /// The latest submission of a version that replaces what ended before it.
    pub(crate) floor: Tick,
}

impl View {
    /// Never written.
    const NEW: Self = Self { base: 0, since: Tick::START, floor: Tick::START };

    /// The base is not replaced.
    pub(crate) fn has_base(&self) -> bool {
        self.since >= self.floor
    }

    pub(crate) fn raise(&mut self, floor: Tick) {
        self.floor = self.floor.max(floor);
    }

    /// From now on the unit is known to have been `stamp` at `tick`. False if that is no news.
    pub(crate) fn narrow(&mut self, stamp: u64, tick: Tick) -> bool {
        let news = self.since < tick;
        if news {
            (self.base, self.since) = (stamp, tick);
        }
        news
    }
}

/// The possible versions of a unit on a drive without the energy for its promises, until a read has
/// shown one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// The possible versions of the unit otherwise.
    pub(crate) before: View,
    /// Of the stamps of forgotten commands, those from here on may be found.
    oldest: u64,
    /// Zeroes may be found, whatever was written.
    zeroes: bool,
}

/// A unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// The versions that a read may return now.
    pub(crate) current: View,
    /// The versions that a read may return after a cut now.
    pub(crate) durable: View,
    /// Commands in flight that change it.
    pub(crate) in_flight: u32,
    /// Those of them that make it zeroes.
    pub(crate) zeroing: u32,
    /// The latest submission of a command that changes it.
    pub(crate) submitted: Tick,
    /// The latest submission of one that makes it zeroes.
    pub(crate) zero_submitted: Tick,
    /// The latest end of one that makes it zeroes.
    pub(crate) zero_ended: Tick,
    /// The latest failure of one that makes it zeroes.
    pub(crate) zero_failed: Tick,
    /// The latest submission of one that makes it zeroes and that a flush has covered.
    zero_flushed: Tick,
    /// The version that the last recovery left, once a read has shown that.
    pub(crate) left: Option<u64>,
    /// The loss that the drive has reported, if any.
    pub(crate) lost: Option<Loss>,
    /// When a cache last failed to write it out; what was submitted until then may be gone.
    pub(crate) unwritten: Tick,
    /// As [`Unit::unwritten`], when a flush had said so: flushes promise nothing of that any more.
    pub(crate) given_up: Tick,
}

impl Unit {
    pub(crate) const NEW: Self = Self {
        current: View::NEW,
        durable: View::NEW,
        in_flight: 0,
        zeroing: 0,
        submitted: Tick::START,
        zero_submitted: Tick::START,
        zero_ended: Tick::START,
        zero_failed: Tick::START,
        zero_flushed: Tick::START,
        left: None,
        lost: None,
        unwritten: Tick::START,
        given_up: Tick::START,
    };

    /// True if zeroes, other than the base, are in `view` now.
    pub(crate) fn may_be_zeroed(&self, view: &View) -> bool {
        self.zeroing > 0 || (self.zero_ended > view.since && self.zero_ended >= view.floor)
    }

    /// True if zeroes in `view`, other than the base, are of a command that failed.
    pub(crate) fn may_be_failed_zeroes(&self, view: &View) -> bool {
        self.zero_failed > view.since && self.zero_failed >= view.floor
    }

    /// The known version at the time of the promise, if nothing has replaced it for certain since.
    /// `None` also if zeroes that are not promised look the same.
    pub(crate) fn durable_base(&self) -> Option<u64> {
        let View { base, .. } = self.durable;
        let is_unique = base != 0 || !self.may_be_zeroed(&self.durable);
        (self.durable.has_base() && is_unique).then_some(base)
    }

    /// True if a cache has failed to write it out, and nothing has replaced it since: the cache may
    /// have what is new, what lies below may be older, and reads may find either.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.unwritten > Tick::START && self.current.floor <= self.unwritten
    }

    /// A flush has made durable what a command submitted at `submitted` did.
    pub(crate) fn flushed(&mut self, submitted: Tick, effect: Effect) {
        self.promised(submitted, effect);
        self.settle();
    }

    /// The effect of a command submitted at `submitted` is durable.
    pub(crate) fn promised(&mut self, submitted: Tick, effect: Effect) {
        if effect == Effect::Zeroes {
            self.zero_flushed = self.zero_flushed.max(submitted);
        }
        self.durable.raise(submitted);
    }

    /// True if the newest promise is that of zeroes, by a flush or force unit access, and nothing was known of the unit since.
    pub(crate) fn has_flushed_zeroes(&self) -> bool {
        let promised = self.durable.floor;
        self.lost.is_none() && promised == self.zero_flushed && promised > self.durable.since
    }

    /// A flush has made something durable: that a cache cannot have lost, either.
    pub(crate) fn settle(&mut self) {
        if self.is_unwritten() {
            self.current = self.durable;
        }
    }

    /// Enters a loss that the drive has reported: the unit may be any older version.
    pub(crate) fn lose(&mut self) {
        let before = self.lost.map_or(self.durable, |lost| lost.before);
        self.lost = Some(Loss { before, oldest: 0, zeroes: true });
        let anything = View { floor: Tick::START, ..View::NEW };
        (self.current, self.durable) = (anything, anything);
    }

    /// The drive does not know where the unit lies, and has looked for the newest version that flash holds.
    /// The promised version is there, but one that an earlier recovery gave up may be newer.
    /// `known` is the entry of the unit's base or promise, if that is a write.
    pub(crate) fn blur(&mut self, known: Known) {
        if self.lost.is_some() {
            return self.lose();
        }
        let (base, floor, oldest) = match known {
            Known::Zeroes => return self.lose(),
            Known::Write(submitted) => (0, submitted, u64::MAX),
            // It is older than every command that is remembered.
            Known::Forgotten(stamp) => (stamp, Tick::START, stamp.saturating_sub(MOST_OVERTAKEN)),
        };
        self.lost = Some(Loss { before: self.durable, oldest, zeroes: false });
        let view = View { base, since: Tick::START, floor };
        (self.current, self.durable) = (view, view);
    }
}

/// The known, or promised, version of a unit whose place the drive does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// It may be zeroes: nothing on flash says so.
    Zeroes,
    /// A write that was submitted then, or a later one.
    Write(Tick),
    /// The write with this stamp, which is forgotten.
    Forgotten(u64),
}

/// No command overtakes another that was submitted so many commands later.
const MOST_OVERTAKEN: u64 = 512;

/// The versions of a unit that a read may return, as far as they were known when the read was
/// submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) view: View,
    /// Zeroes, other than the base, were in the view.
    pub(crate) zeroes: bool,
    /// Nothing in flight changed the unit.
    pub(crate) quiet: bool,
    /// The drive had said that it lost the unit's promised version.
    pub(crate) lost: Option<Loss>,
    /// The versions added when a cache failed to write it out during the read, and whether zeroes
    /// are among them.
    unwritten: Option<(View, bool)>,
}

impl Seen {
    pub(crate) fn new(unit: &Unit) -> Self {
        Self {
            view: unit.current,
            zeroes: unit.may_be_zeroed(&unit.current),
            quiet: unit.in_flight == 0,
            lost: unit.lost,
            unwritten: None,
        }
    }

    /// The versions that recovery left.
    pub(crate) fn left(view: View, zeroes: bool) -> Self {
        Self { view, zeroes, quiet: false, lost: None, unwritten: None }
    }

    /// A cache has failed to write the unit out while the read was under way.
    pub(crate) fn widen(&mut self, unit: &Unit) {
        self.quiet = false;
        // Later failures leave no older versions.
        self.unwritten.get_or_insert((unit.current, unit.may_be_zeroed(&unit.current)));
    }

    /// Since when the unit is known, at the least.
    pub(crate) fn since(&self) -> Tick {
        self.unwritten.map_or(self.view.since, |(view, _)| view.since.min(self.view.since))
    }

    /// True if a read submitted at `read` may return `stamp` of unit `number`.
    pub(crate) fn allows(
        &self,
        unit: &Unit,
        number: u32,
        log: &Log,
        read: Tick,
        stamp: u64,
    ) -> bool {
        let views = std::iter::once((self.view, self.zeroes)).chain(self.unwritten);
        for (view, zeroes) in views {
            if stamp == view.base && view.has_base() || stamp == 0 && zeroes {
                return true;
            }
            let is_in_view =
                |entry: &Entry| entry.submitted > view.since && entry.ended >= view.floor;
            if stamp != 0 && log.stamped(number, stamp).is_some_and(is_in_view) {
                return true;
            }
        }
        if stamp == 0 {
            return unit.zero_submitted > read || self.lost.is_some_and(|lost| lost.zeroes);
        }
        self.lost.is_some_and(|lost| stamp >= lost.oldest) && log.is_forgotten(stamp)
    }
}
