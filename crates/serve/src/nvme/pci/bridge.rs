//! The function between its client and its worker, who take turns with it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leyden_nvme::Connected;
use leyden_nvme::pci::{
    Function, IrqChange, Refused, Request, VECTORS, device_info, irq_info, region_info,
};

use super::super::CutMode;
use super::super::house::Shared;
use super::memory::{Given, HostMemory};
use super::note::Note;

/// The function, the memory of its host, and the files of its interrupts.
pub(super) struct State {
    pub(super) function: Function,
    pub(super) memory: HostMemory,
    vectors: Vec<Option<OwnedFd>>,
    /// Power cuts that it has seen.
    cuts: u64,
}

/// See the module.
pub(super) struct Bridge {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Connected,
    state: Mutex<State>,
    /// The worker has been told to look at queues, and has not yet.
    is_rung: AtomicBool,
}

impl Bridge {
    pub(super) fn new(shared: Arc<Shared>, queue: Connected) -> Self {
        let (function, memory) = (Function::new(queue.controller), HostMemory::default());
        let vectors = (0..VECTORS).map(|_| None).collect();
        let state = Mutex::new(State { function, memory, vectors, cuts: shared.cuts() });
        Self { shared, queue, state, is_rung: AtomicBool::new(false) }
    }

    // A panic ends both threads of the client, and nobody else has it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The function, if it has power. One whose power was gone has begun anew.
    pub(super) fn powered(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        self.is_there(&mut state).then_some(state)
    }

    fn is_there(&self, state: &mut State) -> bool {
        let (cut, is_dark) = (self.shared.cut, self.shared.is_dark());
        let is_one = self.shared.drives.len() == 1;
        let forgets = match cut {
            CutMode::Lost => true,
            CutMode::Dead => is_dark || is_one,
            CutMode::Hang | CutMode::Error => false,
        };
        let cuts = self.shared.cuts();
        if state.cuts != cuts && forgets {
            state.function.reset(&mut self.shared.lock().subsystem);
        }
        state.cuts = cuts;
        !(is_dark && matches!(cut, CutMode::Lost | CutMode::Dead))
    }

    /// Tells the worker to look at queues.
    pub(super) fn ring(&self, to: &Sender<Note>) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            let _ = to.send(Note::Rung); // a worker that has gone ends the client, too
        }
    }

    /// The worker looks now.
    pub(super) fn looks(&self) {
        self.is_rung.store(false, Ordering::Release);
    }

    /// Fires the vectors whose bits are set.
    pub(super) fn fire(&self, vectors: u32) {
        let Some(state) = self.powered() else { return };
        for (number, file) in state.vectors.iter().enumerate() {
            if let Some(file) = file.as_ref().filter(|_| vectors & 1 << number != 0) {
                // A counter that is full wakes its reader already.
                let _ = rustix::io::write(file, &1_u64.to_ne_bytes());
            }
        }
    }

    /// Carries out a request. The body of the reply.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) fn carry_out(
        &self,
        request: Request<'_>,
        body: &[u8],
        files: Vec<OwnedFd>,
        to: &Sender<Note>,
    ) -> Result<Vec<u8>, Refused> {
        match request {
            Request::Version => Err(Refused::INVALID), // it is agreed on
            Request::DeviceInfo => Ok(device_info()),
            Request::RegionInfo(index) => Ok(region_info(index)),
            Request::IrqInfo(index) => Ok(irq_info(index)),
            Request::Map { address, bytes, offset, reads, writes } => {
                let given = Given { address, bytes, offset, reads, writes };
                let file = files.into_iter().next();
                self.lock().memory.give(given, file).map(|()| Vec::new())
            }
            Request::Unmap { all: true, .. } => {
                self.lock().memory.clear();
                Ok(body.to_vec())
            }
            Request::Unmap { address, bytes, .. } => {
                self.lock().memory.take(address, bytes)?;
                Ok(body.to_vec())
            }
            Request::SetIrqs(change) => self.set_irqs(change, files).map(|()| Vec::new()),
            Request::Read(region, at, count) => {
                let data = match self.powered() {
                    Some(state) => {
                        state.function.read(&self.shared.lock().subsystem, region, at, count)
                    }
                    None => vec![0xff; count],
                };
                Ok([&body[..PLACE_BYTES], &data].concat())
            }
            Request::Write(region, at, data) => {
                if let Some(mut state) = self.powered() {
                    let mut house = self.shared.lock();
                    let is_rung = state.function.write(&mut house.subsystem, region, at, data);
                    if is_rung {
                        house.tell(); // a wrong doorbell is an event
                        self.ring(to);
                    }
                }
                Ok(body[..PLACE_BYTES].to_vec())
            }
            Request::Reset => {
                let mut state = self.lock();
                self.is_there(&mut state);
                state.function.reset(&mut self.shared.lock().subsystem);
                Ok(Vec::new())
            }
        }
    }

    fn set_irqs(&self, change: IrqChange, files: Vec<OwnedFd>) -> Result<(), Refused> {
        let range = |start: u16, count: u16| usize::from(start)..usize::from(start + count);
        match change {
            IrqChange::Assign { start, count } => {
                if !files.is_empty() && files.len() != usize::from(count) {
                    return Err(Refused::INVALID);
                }
                for file in &files {
                    let flags = rustix::fs::fcntl_getfl(file).map_err(|_| Refused::INVALID)?;
                    let flags = flags | rustix::fs::OFlags::NONBLOCK; // nobody waits for its reader
                    rustix::fs::fcntl_setfl(file, flags).map_err(|_| Refused::INVALID)?;
                }
                let mut files = files.into_iter();
                let mut state = self.lock();
                state.vectors[range(start, count)].fill_with(|| files.next());
            }
            IrqChange::Disable => self.lock().vectors.fill_with(|| None),
            IrqChange::Fire { start, count } => {
                self.fire(range(start, count).map(|vector| 1 << vector).sum());
            }
            IrqChange::Nothing => {}
        }
        Ok(())
    }
}

/// Bytes that say which part of a region is meant; replies repeat them.
const PLACE_BYTES: usize = 16;
