//! State shared by all connections of NVMe hosts: the subsystem, the drives, and the connected hosts.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leyden_nvme::wire::{Cqe, Sqe};
use leyden_nvme::{Connected, Health, Namespace, Status, Subsystem, tcp};

use super::pci::note::Note;
use super::{CutMode, drives};
use crate::clock::wall;
use crate::listen::Socket;
use crate::owner::Handle;
use crate::session::{Encoded, Outbox};

/// A connection that a host has made a queue of.
struct Registered {
    queue: Connected,
    link: Link,
    /// Power cuts before it began.
    cuts: u64,
    /// The time since when its host is to prove who it is.
    unproved: Option<Instant>,
}

/// The way to a host at any time.
pub(super) enum Link {
    /// Over a connection.
    Tcp { terms: tcp::Terms, out: Outbox, socket: Socket },
    /// By the worker of its function.
    Pci(Sender<Note>),
}

impl Link {
    /// The host's request for events is answered.
    fn tell(&self, cid: u16, result: u64) {
        match self {
            Self::Tcp { terms, out, .. } => {
                let cqe = Cqe { result: result.into(), cid: cid.into(), ..Cqe::default() };
                out.send(Encoded::new(tcp::response(*terms, cqe), Vec::new()), None);
            }
            Self::Pci(to) => drop(to.send(Note::Event(cid, result))),
        }
    }

    /// Ends it. A worker ends its connection.
    fn close(&self) {
        match self {
            Self::Tcp { socket, .. } => socket.close(),
            Self::Pci(to) => drop(to.send(Note::Stop)),
        }
    }

    /// True if it ends when the power of a drive does. A client of vfio-user is only told that its device is gone: QEMU
    /// aborts if the connection ends while messages are on their way.
    const fn ends_with_power(&self) -> bool {
        matches!(self, Self::Tcp { .. })
    }
}

/// The subsystem, and its connections by a number of their own.
pub(super) struct State {
    pub(super) subsystem: Subsystem,
    connections: BTreeMap<u64, Registered>,
    next: u64,
}

/// See the module.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// As in the subsystem: they never change.
    pub(super) namespaces: Vec<Namespace>,
    pub(super) drives: Vec<Handle>,
    pub(super) cut: CutMode,
    began: Instant,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("namespaces", &self.namespaces).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(subsystem: Subsystem, drives: Vec<Handle>, cut: CutMode) -> Self {
        let namespaces = subsystem.namespaces().to_vec();
        let state = State { subsystem, connections: BTreeMap::new(), next: 0 };
        Self { state: Mutex::new(state), namespaces, drives, cut, began: wall() }
    }

    // Each change leaves the subsystem whole: nothing is half done if a thread panics.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock of controllers.
    pub(super) fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// True if no drive has power.
    pub(super) fn is_dark(&self) -> bool {
        self.drives.iter().all(Handle::is_off)
    }

    /// Power cuts of all drives so far.
    pub(super) fn cuts(&self) -> u64 {
        self.drives.iter().map(|drive| u64::from(drive.switched().div_ceil(2))).sum()
    }

    /// The namespace of a command.
    pub(super) fn namespace(&self, sqe: &Sqe) -> Result<&Namespace, Status> {
        Namespace::numbered(&self.namespaces, sqe.nsid.get())
    }

    /// How each drive is; `None` of one without power.
    pub(super) fn health(&self) -> Vec<Option<Health>> {
        let of = |drive: &Handle| {
            if drive.is_off() { None } else { drive.look(drives::health) }
        };
        self.drives.iter().map(of).collect()
    }

    /// Ends the connections that a power cut has found.
    pub(super) fn close_cut(&self) {
        let cuts = self.cuts();
        let is_meant = |it: &&Registered| it.cuts < cuts && it.link.ends_with_power();
        for it in self.lock().connections.values().filter(is_meant) {
            it.link.close();
        }
    }

    /// Ends all connections.
    pub(super) fn close_all(&self) {
        for it in self.lock().connections.values() {
            it.link.close();
        }
    }
}

impl State {
    /// A connection has become a queue; its number.
    pub(super) fn register(&mut self, queue: Connected, link: Link, cuts: u64) -> u64 {
        self.next += 1;
        // A client of vfio-user proves nothing: its socket is its owner's.
        let unproved = matches!(link, Link::Tcp { .. }).then(wall);
        self.connections.insert(self.next, Registered { queue, link, cuts, unproved });
        self.next
    }

    /// The host of a connection has proved who it is, or need not.
    pub(super) fn proved(&mut self, number: u64) {
        if let Some(it) = self.connections.get_mut(&number) {
            it.unproved = None;
        }
    }

    /// Ends the connections of hosts that have not proved in time who they are. Returns how many.
    pub(super) fn close_unproved(&self, patience: Duration) -> usize {
        let is_late =
            |it: &&Registered| it.unproved.is_some_and(|since| since.elapsed() > patience);
        let late = self.connections.values().filter(is_late);
        late.inspect(|it| it.link.close()).count()
    }

    /// A connection has ended. With its admin queue a controller goes, and with that its other queues.
    pub(super) fn forget(&mut self, number: u64) {
        let Some(Registered { queue, .. }) = self.connections.remove(&number) else { return };
        self.subsystem.disconnect(queue);
        if queue.queue == 0 {
            self.close(queue.controller);
        }
    }

    /// Ends the connections of a controller.
    pub(super) fn close(&self, controller: u16) {
        let of = self.connections.values().filter(|it| it.queue.controller == controller);
        of.for_each(|it| it.link.close());
    }

    /// Tells hosts that have asked for it what has happened.
    pub(super) fn tell(&mut self) {
        let admin = self.connections.values().filter(|it| it.queue.queue == 0);
        for it in admin {
            while let Some((cid, result)) = self.subsystem.event(it.queue.controller) {
                it.link.tell(cid, result);
            }
        }
    }
}
