//! Operations that fail because the configuration names them ([`Occasion`]).

use std::collections::BTreeSet;

use crate::{FaultTarget, Kind, Occasion, PageKind};

/// The operations that are to fail: those to come, and those on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Occasions {
    /// With how many of the kind there are still to be before it.
    to_come: Vec<(Occasion, u64)>,
    /// By the fingerprint of what is to be done where: an operation on its way is the only one there.
    on_the_way: BTreeSet<u64>,
}

impl Occasions {
    pub(super) fn new(occasions: &[Occasion]) -> Self {
        let to_come = occasions.iter().map(|&occasion| (occasion, occasion.nth)).collect();
        Self { to_come, on_the_way: BTreeSet::new() }
    }

    /// An operation starts.
    #[inline]
    pub(super) fn start(&mut self, kind: Kind, page: PageKind) {
        if !self.to_come.is_empty() {
            self.count(kind, page);
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&mut self, kind: Kind, page: PageKind) {
        let what = match (kind, page) {
            (Kind::Erase(_), _) => FaultTarget::Erase,
            (_, PageKind::Data) => FaultTarget::Data,
            (_, PageKind::Mapping) => FaultTarget::Mapping,
            (_, PageKind::Journal) => FaultTarget::Journal,
            (_, PageKind::Dump | PageKind::Root) => return,
        };
        for (_, left) in self.to_come.iter_mut().filter(|(occasion, _)| occasion.what == what) {
            *left -= 1;
            if *left == 0 {
                self.on_the_way.insert(kind.fingerprint());
            }
        }
        self.to_come.retain(|&(_, left)| left > 0);
    }

    /// True if the operation, which has ended, is to have failed.
    #[inline]
    pub(super) fn ended(&mut self, kind: Kind) -> bool {
        !self.on_the_way.is_empty() && self.was_on_the_way(kind)
    }

    #[cold]
    #[inline(never)]
    fn was_on_the_way(&mut self, kind: Kind) -> bool {
        self.on_the_way.remove(&kind.fingerprint())
    }

    /// The power fails: nothing is on its way.
    pub(super) fn cut(&mut self) {
        self.on_the_way.clear();
    }

    /// Occasions that have not come.
    pub(super) fn to_come(&self) -> impl Iterator<Item = &Occasion> {
        self.to_come.iter().map(|(occasion, _)| occasion)
    }
}
