//! Asynchronous events of a controller: requests that the host has outstanding, and what is to be told of.
//!
//! **Invariants**: an event of a kind is told once until the host has read its log page; a request is answered once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::status::Status;

/// Asynchronous Event Requests that a controller holds: AERL + 1.
pub(crate) const REQUESTS_MOST: usize = 4;

/// Asynchronous events for a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    /// A namespace is another than it was.
    NamespaceChanged(u32),
    /// The drive has changed the state of a zone: namespace and first block.
    ZoneChanged(u32, u64),
    /// A doorbell of a queue that there is not was rung.
    NoDoorbell,
    /// A doorbell was given a value that it cannot have.
    BadDoorbell,
}

/// Log page that tells more, type, information, and the bit of feature 0Bh that enables it, if one does.
struct Kind {
    page: u8,
    class: u32,
    information: u8,
    enabled_by: Option<u32>,
}

pub(crate) const ERRORS: u8 = 0x01;

pub(crate) const CHANGED_NAMESPACES: u8 = 0x04;
pub(crate) const CHANGED_ZONES: u8 = 0xbf;
/// Optional events supported (OAES), and the bits that feature 0Bh may have: SMART's critical warnings beside.
pub(crate) const NOTICES: u32 = 1 << 8 | 1 << 27;
pub(crate) const CONFIGURABLE: u32 = NOTICES | 0x3f;
const ERROR: u32 = 0;
const NOTICE: u32 = 2;

impl Event {
    const fn kind(self) -> Kind {
        let (page, class, information, enabled_by) = match self {
            Self::NamespaceChanged(_) => (CHANGED_NAMESPACES, NOTICE, 0x00, Some(1 << 8)),
            Self::ZoneChanged(..) => (CHANGED_ZONES, NOTICE, 0xef, Some(1 << 27)),
            Self::NoDoorbell => (ERRORS, ERROR, 0x00, None),
            Self::BadDoorbell => (ERRORS, ERROR, 0x01, None),
        };
        Kind { page, class, information, enabled_by }
    }

    /// Double words 0 and 1 of the completion.
    const fn result(self) -> u64 {
        let Kind { page, class, information, .. } = self.kind();
        let low = class | (information as u32) << 8 | (page as u32) << 16;
        let high = if let Self::ZoneChanged(namespace, _) = self { namespace } else { 0 };
        low as u64 | (high as u64) << 32
    }
}

/// Events of one controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    /// Identifiers of requests that wait for something to happen.
    held: VecDeque<u16>,
    pending: VecDeque<Event>,
    /// Log pages of events that were told, and that the host has not read.
    unread: BTreeSet<u8>,
    pub(crate) enabled: u32,
    namespaces: BTreeSet<u32>,
    zones: BTreeMap<u32, BTreeSet<u64>>,
}

impl Events {
    /// Holds a request.
    pub(crate) fn hold(&mut self, cid: u16) -> Result<(), Status> {
        if self.held.len() >= REQUESTS_MOST {
            return Err(Status::EVENT_LIMIT);
        }
        self.held.push_back(cid);
        Ok(())
    }

    /// Something has happened.
    pub(crate) fn raise(&mut self, event: Event) {
        match event {
            Event::NamespaceChanged(namespace) => drop(self.namespaces.insert(namespace)),
            Event::ZoneChanged(namespace, start) => {
                self.zones.entry(namespace).or_default().insert(start);
            }
            Event::NoDoorbell | Event::BadDoorbell => {}
        }
        let page = event.kind().page;
        let is_known = self.unread.contains(&page)
            || self.pending.iter().any(|other| other.kind().page == page);
        if self.wants(event) && !is_known {
            self.pending.push_back(event);
        }
    }

    /// True if the host has enabled events of this kind.
    pub(crate) const fn wants(&self, event: Event) -> bool {
        match event.kind().enabled_by {
            Some(bit) => self.enabled & bit != 0,
            None => true,
        }
    }

    /// A request that can be answered, and its result.
    pub(crate) fn take(&mut self) -> Option<(u16, u64)> {
        if self.pending.is_empty() {
            return None;
        }
        let cid = self.held.pop_front()?;
        let event = self.pending.pop_front()?;
        self.unread.insert(event.kind().page);
        Some((cid, event.result()))
    }

    /// The host has read this log page, and will be told again of what happens next.
    fn read(&mut self, page: u8) {
        self.unread.remove(&page);
        self.pending.retain(|event| event.kind().page != page);
    }

    /// The host has read the error log; `keep`, if it is to be told of errors no more.
    pub(crate) fn errors_seen(&mut self, keep: bool) {
        if !keep {
            self.read(ERRORS);
        }
    }

    /// Namespaces that have changed; `keep`, if they are to be told again.
    pub(crate) fn changed_namespaces(&mut self, keep: bool) -> Vec<u32> {
        let all = self.namespaces.iter().copied().collect();
        if !keep {
            self.namespaces.clear();
            self.read(CHANGED_NAMESPACES);
        }
        all
    }

    /// Zones of a namespace that have changed, by their first blocks.
    pub(crate) fn changed_zones(&mut self, namespace: u32, keep: bool) -> Vec<u64> {
        let all = self.zones.get(&namespace).into_iter().flatten().copied().collect();
        if !keep {
            self.zones.remove(&namespace);
            self.read(CHANGED_ZONES);
        }
        all
    }

    /// A controller that is reset answers no request.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening() -> Events {
        Events { enabled: NOTICES, ..Events::default() }
    }

    #[test]
    fn an_event_is_told_once_until_its_page_is_read() {
        let mut events = listening();
        for cid in 0..4 {
            events.hold(cid).unwrap();
        }
        assert_eq!(events.hold(4), Err(Status::EVENT_LIMIT));
        assert_eq!(events.take(), None);
        events.raise(Event::ZoneChanged(2, 1_024));
        events.raise(Event::ZoneChanged(2, 2_048));
        assert_eq!(events.take(), Some((0, 0x2_00bf_ef02)));
        assert_eq!(events.take(), None);
        events.raise(Event::ZoneChanged(2, 4_096));
        assert_eq!(events.take(), None, "its page was not read yet");
        assert_eq!(events.changed_zones(2, true), [1_024, 2_048, 4_096]);
        events.raise(Event::ZoneChanged(2, 8_192));
        assert_eq!(events.take(), None, "read, and kept");
        assert_eq!(events.changed_zones(2, false).len(), 4);
        assert!(events.changed_zones(2, false).is_empty());
        events.raise(Event::NamespaceChanged(1));
        events.raise(Event::ZoneChanged(2, 0));
        assert_eq!(events.take(), Some((1, 0x0004_0002)));
        assert_eq!(events.take(), Some((2, 0x2_00bf_ef02)));
    }

    #[test]
    fn disabled_events_are_noted_and_not_sent() {
        let mut events = Events::default();
        events.hold(7).unwrap();
        events.raise(Event::NamespaceChanged(3));
        assert_eq!(events.take(), None);
        assert_eq!(events.changed_namespaces(false), [3]);
        events.reset();
        events.enabled = NOTICES;
        events.raise(Event::NamespaceChanged(3));
        assert_eq!(events.take(), None, "a reset drops requests");
    }
}
