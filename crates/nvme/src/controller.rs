//! A controller: its properties, its queues, and what a host has set.

use crate::events::Events;
use crate::fabrics::Property;
use crate::status::Status;

/// Entries of a queue at most: CAP.MQES + 1.
pub const QUEUE_MOST: u16 = 1_024;
/// I/O queues that a host may have.
pub const QUEUES_MOST: u16 = 16;

/// Queues of 1,024 entries, contiguous; ready within 7.5 s; NVM and all I/O command sets; pages of 4 KiB.
const CAP: u64 = 1 << 43 | 1 << 37 | 15 << 24 | 1 << 16 | (QUEUE_MOST as u64 - 1);
/// Version 2.0.
pub(crate) const VERSION: u32 = 0x0002_0000;
/// CC.EN, and the values of CC's fields that are known.
const ENABLE: u32 = 1;
const READY: u32 = 1;
const FAILED: u32 = 1 << 1;
const SHUTDOWN: u32 = 3 << 14;
const SHUTDOWN_DONE: u32 = 2 << 2;
const SHUTDOWN_STATE: u32 = 3 << 2;

/// The host of a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) id: [u8; 16],
}

/// How a controller is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Over fabrics, to learn what there is.
    Discovery,
    /// Over fabrics.
    Fabrics,
    /// As a PCI function.
    Pci,
}

/// An entry of the error log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    pub(crate) count: u64,
    pub(crate) queue: u16,
    pub(crate) cid: u16,
    pub(crate) status: Status,
    pub(crate) start: u64,
    pub(crate) namespace: u32,
}

/// Entries of the error log: ELPE + 1.
pub(crate) const ERRORS_MOST: usize = 64;

/// The features that a host has set.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Feature 06h: the volatile cache is used. If not, every write is one with force unit access.
    pub(crate) caches: bool,
    /// Feature 0Ah: the host asks for atomicity at power failures only.
    pub(crate) power_fail_only: bool,
    /// Feature 04h: over and under, in kelvins.
    pub(crate) temperatures: [u16; 2],
    /// Feature 08h: how many completions and how long an interrupt may wait for; it waits for none here.
    pub(crate) coalescing: u16,
    /// Feature 09h, by vector: those without coalescing.
    pub(crate) uncoalesced: u32,
    /// Feature 16h.
    pub(crate) behaviour: [u8; 512],
}

impl Default for Settings {
    fn default() -> Self {
        let temperatures = [0xffff, 0];
        Self {
            caches: true,
            power_fail_only: false,
            temperatures,
            coalescing: 0,
            uncoalesced: 0,
            behaviour: [0; 512],
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Controller {
    pub(crate) host: Host,
    pub(crate) kind: Kind,
    pub(crate) keep_alive_ms: u32,
    heard_ms: u64,
    config: u32,
    status: u32,
    /// I/O queues that the host may connect.
    pub(crate) granted: u16,
    /// Queues that are connected, by number.
    queues: u32,
    pub(crate) settings: Settings,
    pub(crate) events: Events,
    errors: Vec<Failed>,
    errors_seen: u64,
}

impl Controller {
    pub(crate) fn new(host: Host, kind: Kind, keep_alive_ms: u32, now_ms: u64) -> Self {
        Self {
            host,
            kind,
            keep_alive_ms,
            heard_ms: now_ms,
            config: 0,
            status: 0,
            granted: QUEUES_MOST,
            queues: 1,
            settings: Settings::default(),
            events: Events::default(),
            errors: Vec::new(),
            errors_seen: 0,
        }
    }

    pub(crate) fn is_discovery(&self) -> bool {
        self.kind == Kind::Discovery
    }

    /// I/O queues that its host may have.
    pub const fn queues(&self) -> u16 {
        self.granted
    }

    /// Its queues cannot be reached: a fatal status, until the host resets it.
    pub(crate) const fn fail(&mut self) {
        self.status |= FAILED;
    }

    /// True if it takes commands.
    pub const fn is_ready(&self) -> bool {
        self.status & READY != 0 && self.status & FAILED == 0
    }

    /// True if writes are to be durable when they are acknowledged: the host has switched the cache off.
    pub const fn forces_unit_access(&self) -> bool {
        !self.settings.caches
    }

    pub(crate) fn hear(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    pub(crate) fn set_keep_alive(&mut self, ms: u32, now_ms: u64) {
        (self.keep_alive_ms, self.heard_ms) = (ms, now_ms);
    }

    /// True if nothing was heard of its host for longer than was agreed.
    pub(crate) const fn has_expired(&self, now_ms: u64) -> bool {
        let ms = self.keep_alive_ms as u64;
        ms > 0 && now_ms.saturating_sub(self.heard_ms) > ms
    }

    /// A queue is connected.
    pub(crate) const fn add_queue(&mut self, queue: u16) -> Result<(), Status> {
        if self.queues & 1 << queue != 0 {
            return Err(Status::SEQUENCE);
        }
        self.queues |= 1 << queue;
        Ok(())
    }

    pub(crate) const fn remove_queue(&mut self, queue: u16) {
        self.queues &= !(1 << queue);
    }

    /// The value of a property; `None` if there is none of this size there.
    pub(crate) const fn property(&self, property: Property) -> Option<u64> {
        match (property.offset, property.is_long) {
            (0x00, true) => Some(CAP),
            (0x08, false) => Some(VERSION as u64),
            (0x14, false) => Some(self.config as u64),
            (0x1c, false) => Some(self.status as u64),
            _ => None,
        }
    }

    /// Sets a property; all but CC are read only.
    pub(crate) fn set_property(&mut self, property: Property, value: u64) -> Result<(), Status> {
        if (property.offset, property.is_long) != (0x14, false) {
            return Err(Status::INVALID_FIELD);
        }
        let (was, now) = (self.config, value as u32);
        self.config = now;
        if was & ENABLE == 0 && now & ENABLE != 0 {
            self.status = if is_known(now) { READY } else { FAILED };
        } else if was & ENABLE != 0 && now & ENABLE == 0 {
            self.reset();
        }
        self.status &= !SHUTDOWN_STATE;
        if now & SHUTDOWN != 0 {
            self.status |= SHUTDOWN_DONE; // nothing is to be done: the drive's power stays on
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.status = 0;
        self.settings = Settings::default();
        self.events.reset();
    }

    /// Notes a command that has failed.
    pub(crate) fn failed(&mut self, entry: Failed) {
        self.errors_seen += 1;
        self.errors.insert(0, Failed { count: self.errors_seen, ..entry });
        self.errors.truncate(ERRORS_MOST);
    }

    /// Commands that have failed, the newest first.
    pub(crate) fn errors(&self) -> &[Failed] {
        &self.errors
    }
    pub(crate) const fn errors_seen(&self) -> u64 {
        self.errors_seen
    }
}

/// Whether CC asks for what there is: pages of 4 KiB, round robin, and one of the command sets. Sizes of entries are not
/// looked at: discovery controllers are given those of I/O controllers.
const fn is_known(config: u32) -> bool {
    let (css, page, arbitration) = (config >> 4 & 7, config >> 7 & 0xf, config >> 11 & 7);
    (css == 0 || css == 6) && page == 0 && arbitration == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Controller {
        Controller::new(Host { name: "host".to_owned(), id: [1; 16] }, Kind::Fabrics, 5_000, 0)
    }

    const CC: Property = Property { offset: 0x14, is_long: false };
    const CSTS: Property = Property { offset: 0x1c, is_long: false };

    #[test]
    fn it_is_enabled_reset_and_shut_down_as_linux_does_it() {
        let mut it = controller();
        let cap = it.property(Property { offset: 0, is_long: true }).unwrap();
        assert_eq!(cap, 0x0000_0820_0f01_03ff);
        it.set_property(CC, 0x0046_0060).unwrap();
        assert!(!it.is_ready());
        it.set_property(CC, 0x0046_0061).unwrap();
        assert_eq!(it.property(CSTS), Some(1));
        it.settings.caches = false;
        it.set_property(CC, 0x0046_4061).unwrap();
        assert_eq!(it.property(CSTS), Some(1 | 2 << 2), "shut down, EN still set");
        it.set_property(CC, 0x0046_0060).unwrap();
        assert_eq!(it.property(CSTS), Some(0));
        assert!(!it.forces_unit_access(), "a reset forgets what was set");
    }

    #[test]
    fn unknown_settings_are_a_fatal_status_or_refused() {
        let mut it = controller();
        it.set_property(CC, 0x0046_0081 | 1 << 7).unwrap(); // pages of 8 KiB
        assert_eq!(it.property(CSTS), Some(2));
        assert!(!it.is_ready());
        let cap = Property { offset: 0, is_long: true };
        assert_eq!(it.set_property(cap, 1), Err(Status::INVALID_FIELD));
        assert_eq!(it.set_property(CSTS, 1), Err(Status::INVALID_FIELD));
        for (offset, is_long) in [(0x00, false), (0x14, true), (0x20, false), (0x68, false)] {
            assert_eq!(it.property(Property { offset, is_long }), None);
        }
    }

    #[test]
    fn a_silent_host_is_noticed_unless_it_asked_not_to_be() {
        let mut it = controller();
        assert!(!it.has_expired(5_000) && it.has_expired(5_001));
        it.hear(5_001);
        assert!(!it.has_expired(10_001));
        it.set_keep_alive(0, 0);
        assert!(!it.has_expired(u64::MAX));
    }

    #[test]
    fn the_error_log_keeps_the_newest() {
        let mut it = controller();
        for cid in 0..100 {
            let status = Status::INVALID_FIELD;
            it.failed(Failed { count: 0, queue: 1, cid, status, start: 7, namespace: 1 });
        }
        let (count, cid) = (it.errors()[0].count, it.errors()[0].cid);
        assert_eq!((it.errors().len(), count, cid), (ERRORS_MOST, 100, 99));
    }
}
