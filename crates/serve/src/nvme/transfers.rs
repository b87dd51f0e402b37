//! Data that hosts were invited to send, or will be: commands whose data does not come with them.
//!
//! **Invariants**
//! - What is invited has its room, and no more is invited than half of what one client may have: its other commands go on.
//! - Data comes in order. A transfer that takes too long ends its connection.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use leyden_nvme::Io;
use leyden_nvme::tcp::Fatal;
use leyden_nvme::wire::Sqe;

use crate::budget::{BYTES_MOST, Permit};
use crate::clock::wall;

/// Bytes that are invited at once.
const INVITED_MOST: usize = BYTES_MOST / 2;
/// A host that was invited sends all within this time.
const PATIENCE: Duration = Duration::from_mins(1);

/// A command whose data is to come.
pub(super) struct Coming {
    pub(super) sqe: Sqe,
    pub(super) io: Option<Io>,
    pub(super) bytes: usize,
    pub(super) permit: Permit,
}

/// One whose data is on its way.
struct Invited {
    coming: Coming,
    data: Vec<u8>,
    /// Some of it had another digest.
    is_damaged: bool,
    since: Instant,
}

/// One whose data has come.
pub(super) struct Arrived {
    pub(super) sqe: Sqe,
    pub(super) io: Option<Io>,
    pub(super) data: Vec<u8>,
    pub(super) permit: Permit,
    pub(super) is_damaged: bool,
}

/// See the module.
#[derive(Default)]
pub(super) struct Transfers {
    invited: BTreeMap<u16, Invited>,
    /// Those that wait for room.
    waiting: VecDeque<Coming>,
    bytes: usize,
    next_tag: u16,
}

impl Transfers {
    /// Queues a command.
    pub(super) fn queue(&mut self, coming: Coming) {
        self.waiting.push_back(coming);
    }

    /// The command that is next to be invited, if it is not too much beside the others; and whether any is under way.
    pub(super) fn next(&mut self) -> Option<(Coming, bool)> {
        let bytes = self.waiting.front()?.bytes;
        let is_alone = self.invited.is_empty();
        if !is_alone && self.bytes + bytes > INVITED_MOST {
            return None;
        }
        Some((self.waiting.pop_front()?, !is_alone))
    }

    /// It has to wait for room still.
    pub(super) fn put_back(&mut self, coming: Coming) {
        self.waiting.push_front(coming);
    }

    /// It is invited, as what number.
    pub(super) fn invite(&mut self, coming: Coming) -> u16 {
        while self.invited.contains_key(&self.next_tag) {
            self.next_tag = self.next_tag.wrapping_add(1);
        }
        let tag = self.next_tag;
        self.next_tag = tag.wrapping_add(1);
        self.bytes += coming.bytes;
        let (data, is_damaged, since) = (Vec::new(), false, wall());
        self.invited.insert(tag, Invited { coming, data, is_damaged, since });
        tag
    }

    /// Whether this data was asked for.
    ///
    /// # Errors
    /// Why it was not.
    pub(super) fn check(&self, cid: u16, tag: u16, at: u32, bytes: u32) -> Result<(), Fatal> {
        let invited = self.invited.get(&tag).ok_or(Fatal::field(10))?;
        if invited.coming.sqe.cid.get() != cid {
            return Err(Fatal::field(8));
        }
        if at as usize != invited.data.len() {
            return Err(Fatal::SEQUENCE);
        }
        if u64::from(at) + u64::from(bytes) > invited.coming.bytes as u64 {
            return Err(Fatal::OUT_OF_RANGE);
        }
        Ok(())
    }

    /// The data that has arrived.
    pub(super) fn so_far(&mut self, tag: u16) -> Vec<u8> {
        self.invited.get_mut(&tag).map(|it| std::mem::take(&mut it.data)).unwrap_or_default()
    }

    /// More has come: all of it, if that was the last.
    pub(super) fn came(&mut self, tag: u16, data: Vec<u8>, is_right: bool) -> Option<Arrived> {
        let invited = self.invited.get_mut(&tag)?;
        (invited.data, invited.is_damaged) = (data, invited.is_damaged || !is_right);
        if invited.data.len() < invited.coming.bytes {
            return None;
        }
        let Invited { coming, data, is_damaged, .. } = self.invited.remove(&tag)?;
        let Coming { sqe, io, bytes, permit } = coming;
        self.bytes -= bytes;
        Some(Arrived { sqe, io, data, permit, is_damaged })
    }

    /// There was no memory for what has come.
    pub(super) fn give_up(&mut self, tag: u16) -> Option<Coming> {
        let invited = self.invited.remove(&tag)?;
        self.bytes -= invited.coming.bytes;
        Some(invited.coming)
    }

    /// True if a host that was invited takes too long.
    pub(super) fn is_overdue(&self) -> bool {
        let now = wall();
        self.invited.values().any(|it| now.duration_since(it.since) > PATIENCE)
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        self.invited.clear();
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Limits, Window};
    use std::sync::Arc;

    fn coming(window: &Arc<Window>, cid: u16, bytes: usize) -> Coming {
        let permit = window.enter(bytes, || ()).unwrap();
        Coming { sqe: Sqe { cid: cid.into(), ..Sqe::default() }, io: None, bytes, permit }
    }

    #[test]
    fn data_comes_in_order_and_within_what_was_invited() {
        let window = Arc::new(Window::new(Arc::new(Budget::new(Limits::default())), 1_024));
        let mut transfers = Transfers::default();
        let tag = transfers.invite(coming(&window, 7, 8_192));
        assert_eq!(transfers.check(7, tag + 1, 0, 1), Err(Fatal::field(10)));
        assert_eq!(transfers.check(8, tag, 0, 1), Err(Fatal::field(8)));
        assert_eq!(transfers.check(7, tag, 4, 1), Err(Fatal::SEQUENCE));
        assert_eq!(transfers.check(7, tag, 0, 8_193), Err(Fatal::OUT_OF_RANGE));
        assert_eq!(transfers.check(7, tag, 0, u32::MAX), Err(Fatal::OUT_OF_RANGE));
        assert_eq!(transfers.check(7, tag, 0, 4_096), Ok(()));
        let mut data = transfers.so_far(tag);
        data.resize(4_096, 1);
        assert!(transfers.came(tag, data, false).is_none());
        assert_eq!(transfers.check(7, tag, 0, 4_096), Err(Fatal::SEQUENCE), "again");
        let mut data = transfers.so_far(tag);
        data.resize(8_192, 2);
        let arrived = transfers.came(tag, data, true).unwrap();
        assert!(arrived.is_damaged, "the first half was");
        assert_eq!((arrived.data.len(), transfers.bytes), (8_192, 0));
        assert_eq!(transfers.check(7, tag, 0, 1), Err(Fatal::field(10)), "it is over");
    }

    #[test]
    fn no_more_is_invited_than_leaves_room_for_others() {
        let window = Arc::new(Window::new(Arc::new(Budget::new(Limits::default())), 1_024));
        let mut transfers = Transfers::default();
        let mut invited = 0;
        for cid in 0..50 {
            transfers.queue(coming(&window, cid, 1 << 20));
            while let Some((next, is_beside)) = transfers.next() {
                assert_eq!(is_beside, invited > 0);
                transfers.invite(next);
                invited += 1;
            }
        }
        assert_eq!(invited, INVITED_MOST >> 20);
        let end = transfers.so_far(3);
        assert!(end.is_empty());
        assert!(transfers.came(3, vec![0; 1 << 20], true).is_some());
        assert!(transfers.next().is_some(), "there is room again");
    }
}
