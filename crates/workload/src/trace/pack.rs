//! Moves what a trace touches together, so that a drive of the size of its footprint is full of it.
//!
//! **What lives here**: which addresses a trace touches, and where they move to ([`Packing`]). **What
//! doesn't**: how large the drive is.
//!
//! **Invariants**: addresses keep their order, and neighbours stay neighbours; so does what is not
//! aligned to 4 KiB, as whole units of 4 KiB move.

use std::sync::Arc;

use leyden_device::{Lba, Op};

use super::error::TraceError;
use super::profile::Cover;
use crate::Request;

/// Sectors of the units that move.
const UNIT_SECTORS: u64 = 8;

/// Where what a trace touches moves to.
///
/// ```
/// use std::sync::Arc;
/// use leyden_device::{Lba, Op};
/// use leyden_sim::Time;
/// use leyden_workload::{Class, Request, trace::Packing};
///
/// let write = |lba| Request {
///     at: Time::ZERO, op: Op::Write, lba: Lba(lba), sectors: 8, fua: false, class: Class::Data,
/// };
/// let trace = [write(800), write(80)];
/// let packing = Arc::new(Packing::of(trace.into_iter().map(Ok)).unwrap());
/// let packed: Vec<u64> =
///     packing.apply(trace.into_iter().map(Ok)).map(|request| request.unwrap().lba.0).collect();
/// assert_eq!((packed, packing.sectors()), (vec![8, 0], 16));
/// ```
#[derive(Debug, Default)]
pub struct Packing {
    /// First unit, the first beyond, and where the first one moves to; ascending.
    extents: Vec<(u64, u64, u64)>,
}

impl Packing {
    /// Of everything that `requests` touch, hints included.
    pub fn of(
        requests: impl Iterator<Item = Result<Request, TraceError>>,
    ) -> Result<Self, TraceError> {
        let mut cover = Cover::default();
        for request in requests {
            let Request { op, lba, sectors, .. } = request?;
            // A flush of a file touches nothing.
            if sectors > 0 && op != Op::Flush {
                let end = lba.0.saturating_add(u64::from(sectors)).div_ceil(UNIT_SECTORS);
                cover.add(lba.0 / UNIT_SECTORS, end);
            }
        }
        let mut next = 0;
        let extents = cover.iter().map(|(begin, end)| {
            let at = next;
            next += end - begin;
            (begin, end, at)
        });
        Ok(Self { extents: extents.collect() })
    }

    /// Sectors that the trace touches, in whole units: the least capacity that holds it packed.
    pub fn sectors(&self) -> u64 {
        self.extents.last().map_or(0, |&(begin, end, at)| (at + end - begin) * UNIT_SECTORS)
    }

    /// Where `lba` moves to. What the trace does not touch goes to where it would begin.
    fn place(&self, lba: Lba) -> Lba {
        let unit = lba.0 / UNIT_SECTORS;
        let next = self.extents.partition_point(|&(begin, ..)| begin <= unit);
        let at = next.checked_sub(1).map_or(0, |found| {
            let (begin, end, at) = self.extents[found];
            at + (unit - begin).min(end - begin)
        });
        Lba(at * UNIT_SECTORS + lba.0 % UNIT_SECTORS)
    }

    /// A flush of a file, which is as long as what of it the trace touches.
    fn file(&self, flush: Request) -> Request {
        let (lba, end) =
            (self.place(flush.lba), self.place(Lba(flush.lba.0 + u64::from(flush.sectors))));
        // No length would make it a flush of everything.
        Request { lba, sectors: (end.0.saturating_sub(lba.0) as u32).max(1), ..flush }
    }

    /// `requests` at their new addresses.
    pub fn apply<I>(self: &Arc<Self>, requests: I) -> Packed<I>
    where
        I: Iterator<Item = Result<Request, TraceError>>,
    {
        Packed { packing: Some(Arc::clone(self)), inner: requests }
    }
}

/// Requests at the addresses that a [`Packing`] gives them.
#[derive(Debug)]
pub struct Packed<I> {
    /// `None` if they stay where they are.
    packing: Option<Arc<Packing>>,
    inner: I,
}

impl<I> Packed<I> {
    /// `requests` at the addresses that they have.
    pub const fn not(requests: I) -> Self {
        Self { packing: None, inner: requests }
    }
}

impl<I> Iterator for Packed<I>
where
    I: Iterator<Item = Result<Request, TraceError>>,
{
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let request = self.inner.next()?;
        let Some(packing) = &self.packing else { return Some(request) };
        Some(request.map(|request| match request.sectors {
            0 => request,
            _ if request.op == Op::Flush => packing.file(request),
            _ => Request { lba: packing.place(request.lba), ..request },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
    use leyden_sim::Time;
    use proptest::prelude::*;

    fn request(lba: u64, sectors: u32) -> Request {
        let (at, op, class) = (Time::ZERO, Op::Write, Class::Unknown);
        Request { at, op, lba: Lba(lba), sectors, fua: false, class }
    }

    proptest! {
        /// Against the slow twin: number the units that are touched.
        #[test]
        fn units_are_numbered_in_order(trace in prop::collection::vec((0_u64..400, 0_u32..40), 1..40)) {
            let trace: Vec<Request> = trace.into_iter().map(|(lba, n)| request(lba, n)).collect();
            let units = |r: &Request| {
                let end = if r.sectors == 0 { 0 } else { r.lba.0 + u64::from(r.sectors) };
                r.lba.0 / 8..end.div_ceil(8)
            };
            let mut touched: Vec<u64> = trace.iter().flat_map(units).collect();
            touched.sort_unstable();
            touched.dedup();
            let packing = Arc::new(Packing::of(trace.iter().copied().map(Ok)).unwrap());
            prop_assert_eq!(packing.sectors(), touched.len() as u64 * 8);
            let packed = packing.apply(trace.iter().copied().map(Ok));
            for (old, new) in trace.iter().zip(packed.map(Result::unwrap)) {
                if old.sectors == 0 {
                    prop_assert_eq!(*old, new);
                    continue;
                }
                let number = touched.iter().position(|&unit| unit == old.lba.0 / 8).unwrap() as u64;
                prop_assert_eq!(new, Request { lba: Lba(number * 8 + old.lba.0 % 8), ..*old });
            }
        }
    }
}
