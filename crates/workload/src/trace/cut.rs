//! A part of a trace: the first requests, a stretch of time, so many bytes.
//!
//! **What lives here**: cutting a sample out of a stream. **What doesn't**: sampling of addresses.
//!
//! **Invariants**: the part's first request is at time zero; reading stops as soon as nothing more
//! can follow.

use leyden_device::{Op, SECTOR_BYTES};
use leyden_sim::Time;

use crate::Request;

use super::error::TraceError;

/// Which part. All conditions hold at once; `Default` is the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cut {
    /// At most so many requests; hints don't count.
    pub max_requests: Option<u64>,
    /// Only requests at this time of the whole or later.
    pub from: Option<Time>,
    /// Only requests before this time of the whole.
    pub until: Option<Time>,
    /// Stop before the request that brings what was read and written above so many bytes.
    pub max_bytes: Option<u64>,
}

impl Cut {
    /// Cuts the part out of `requests`.
    pub fn apply<I>(self, requests: I) -> CutIter<I>
    where
        I: Iterator<Item = Result<Request, TraceError>>,
    {
        CutIter { cut: self, inner: requests, base: None, requests: 0, bytes: 0, ended: false }
    }
}

/// The part that a [`Cut`] leaves.
#[derive(Debug)]
pub struct CutIter<I> {
    cut: Cut,
    inner: I,
    base: Option<Time>,
    requests: u64,
    bytes: u64,
    ended: bool,
}

impl<I> CutIter<I> {
    /// Whether `request` still belongs to the part, which it then counts into.
    fn take(&mut self, request: &Request) -> bool {
        let bytes = match request.op {
            Op::Read | Op::Write | Op::ZoneAppend => u64::from(request.sectors) * SECTOR_BYTES,
            Op::Flush
            | Op::Trim
            | Op::WriteZeroes
            | Op::WritePrepare
            | Op::Copy
            | Op::Zone(_)
            | Op::ZoneReport => 0,
        };
        self.requests += u64::from(request.op != Op::WritePrepare);
        self.bytes = self.bytes.saturating_add(bytes);
        self.cut.max_requests.is_none_or(|max| self.requests <= max)
            && self.cut.max_bytes.is_none_or(|max| self.bytes <= max)
            && self.cut.until.is_none_or(|until| request.at < until)
    }
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for CutIter<I> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let mut request = match self.inner.next()? {
                Ok(request) => request,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            };
            if self.cut.from.is_some_and(|from| request.at < from) {
                continue;
            }
            if !self.take(&request) {
                break;
            }
            let base = *self.base.get_or_insert(request.at);
            request.at = Time::from_ns(request.at.as_ns() - base.as_ns());
            return Some(Ok(request));
        }
        self.ended = true;
        None
    }
}
