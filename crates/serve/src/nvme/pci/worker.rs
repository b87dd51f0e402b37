//! The worker of a function: takes commands from queues in the host's memory, and puts completions there.
//!
//! **Invariants**
//! - No command is taken without room for its data: those beyond stay in the host's queues.
//! - Nothing is read or written in the host's memory without power, nor after a reset of the function.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use leyden_nvme::pci::{self, QUEUE_OPCODES, Taken};
use leyden_nvme::{Connected, Io, Status, TRANSFER_MOST, Transfer};

use super::super::admin;
use super::super::io::{self, Command};
use super::super::reply::{Replier, Way};
use super::bridge::Bridge;
use super::note::{Ended, Note};
use crate::budget::{COMMAND_BYTES, Full, Permit, Window};
use crate::clock::wall;
use crate::owner::Batch;
use crate::session::{Asks, batches_of, hand_over};

/// Commands that are taken, and notes that are read, before the others have their turn.
const AT_ONCE: usize = 64;

/// See the module.
pub(super) struct Worker<'a> {
    bridge: &'a Bridge,
    to: Sender<Note>,
    window: Arc<Window>,
    batches: Vec<Batch>,
    /// A command that waits for memory.
    held: Option<Taken>,
}

/// The needs of a command: bytes of data that come with it, and bytes of memory.
struct Needs {
    io: Option<Io>,
    comes: usize,
    memory: usize,
}

impl<'a> Worker<'a> {
    pub(super) fn new(bridge: &'a Bridge, to: Sender<Note>, window: Arc<Window>) -> Self {
        let batches = batches_of(&bridge.shared.drives);
        Self { bridge, to, window, batches, held: None }
    }

    /// Works until it is told to stop.
    pub(super) fn run(mut self, notes: &Receiver<Note>) {
        while let Ok(first) = notes.recv() {
            let (mut vectors, mut next, mut count) = (0, Some(first), 1);
            let mut stops = false;
            while let Some(note) = next.take() {
                vectors |= match note {
                    Note::Stop => {
                        stops = true; // behind what was rung before
                        0
                    }
                    Note::Rung => self.room(),
                    Note::Ended(ended) => self.deliver(ended),
                    Note::Event(cid, result) => self.tell(cid, result),
                };
                if count < AT_ONCE {
                    next = notes.try_recv().ok();
                    count += 1;
                }
            }
            if vectors != 0 {
                self.bridge.fire(vectors);
            }
            let taken = (0..AT_ONCE).take_while(|_| self.take()).count();
            hand_over(&self.bridge.shared.drives, &mut self.batches);
            if stops {
                return;
            }
            if taken == AT_ONCE {
                self.bridge.ring(&self.to); // there may be more
            }
        }
    }

    /// Queues may have room again: posts completions that wait for it. The vectors to fire.
    fn room(&self) -> u32 {
        self.bridge.looks();
        let Some(mut state) = self.bridge.powered() else { return 0 };
        let state = &mut *state;
        let mut house = self.bridge.shared.lock();
        let posted = state.function.post_waiting(&mut house.subsystem, &state.memory);
        posted.into_iter().map(bit).fold(0, |all, one| all | one)
    }

    /// Gives the host what a command has ended with. The vector to fire.
    fn deliver(&self, ended: Ended) -> u32 {
        let Ended { taken, mut status, mut result, data, permit } = ended;
        let Some(mut state) = self.bridge.powered() else { return 0 };
        let state = &mut *state;
        let given = state.function.give(&state.memory, &taken, &data);
        drop((data, permit));
        let mut house = self.bridge.shared.lock();
        if let Err(failed) = given {
            (status, result) = (failed, 0);
            let Connected { controller, .. } = self.bridge.queue;
            house.subsystem.failed(controller, taken.origin.queue, &taken.sqe, failed);
        }
        let ended = (status, result);
        state.function.end(&mut house.subsystem, &state.memory, &taken, ended).map_or(0, bit)
    }

    /// The vector to fire for an event.
    fn tell(&self, cid: u16, result: u64) -> u32 {
        let Some(mut state) = self.bridge.powered() else { return 0 };
        let state = &mut *state;
        let mut house = self.bridge.shared.lock();
        let told = (cid, result);
        state.function.tell(&mut house.subsystem, &state.memory, told).map_or(0, bit)
    }

    /// Takes a command and begins it. False if there is none, or no room for it.
    fn take(&mut self) -> bool {
        let Some(taken) = self.held.take().or_else(|| self.next()) else { return false };
        let needs = self.needs(&taken);
        let memory = needs.as_ref().map_or(0, |needs| needs.memory);
        match self.enter(COMMAND_BYTES + memory) {
            Some(Ok(permit)) => self.begin(taken, &needs, permit),
            Some(Err(Full)) => self.replier(taken, None).end(Status::NO_MEMORY, 0),
            None => {
                self.held = Some(taken);
                return false;
            }
        }
        true
    }

    fn next(&self) -> Option<Taken> {
        let mut state = self.bridge.powered()?;
        let state = &mut *state;
        state.function.take(&mut self.bridge.shared.lock().subsystem, &state.memory)
    }

    /// Room for a command. `None` if it has to wait for commands of the same client: their ends are notes, so this does not
    /// wait for them.
    fn enter(&mut self, bytes: usize) -> Option<Result<Permit, Full>> {
        match self.window.try_enter(bytes) {
            Ok(permit) => Some(Ok(permit)),
            Err(Full) if !self.window.is_idle() => None,
            Err(Full) => Some(self.window.enter(bytes, || {})),
        }
    }

    fn needs(&self, taken: &Taken) -> Result<Needs, Status> {
        let sqe = &taken.sqe;
        // No fused commands, and no SGLs (SGLS 0).
        if sqe.flags & 0xc3 != 0 {
            return Err(Status::INVALID_FIELD);
        }
        if taken.origin.queue == 0 {
            let (comes, memory) = match leyden_nvme::transfer(&pci::transfer(sqe)) {
                Transfer::FromHost(bytes) => (bytes, bytes),
                Transfer::ToHost(bytes) if bytes > TRANSFER_MOST => {
                    return Err(Status::INVALID_FIELD);
                }
                Transfer::ToHost(bytes) => (0, bytes),
                Transfer::None | Transfer::AtLeast(_) => (0, 0),
            };
            return Ok(Needs { io: None, comes, memory });
        }
        let io = Io::parse(&self.bridge.shared.namespaces, sqe)?;
        let (comes, memory) = match io.transfer() {
            Transfer::FromHost(bytes) | Transfer::AtLeast(bytes) => (bytes, bytes),
            Transfer::ToHost(bytes) => (0, bytes),
            Transfer::None => (0, 0),
        };
        Ok(Needs { io: Some(io), comes, memory: memory + io.passing_bytes() })
    }

    fn begin(&mut self, taken: Taken, needs: &Result<Needs, Status>, permit: Permit) {
        let replier = self.replier(taken, Some(permit));
        let (io, comes) = match needs {
            Ok(Needs { io, comes, .. }) => (*io, *comes),
            Err(status) => return replier.end(*status, 0),
        };
        let data = match self.data(&taken, comes) {
            Ok(data) => data,
            Err(status) => return replier.end(status, 0),
        };
        let shared = &self.bridge.shared;
        let controller = self.bridge.queue.controller;
        if taken.origin.queue > 0 {
            let command = Command { sqe: taken.sqe, io, data, replier };
            let mut asks = Asks::new(&mut self.batches, wall());
            return io::carry_out(shared, controller, command, &mut asks);
        }
        if QUEUE_OPCODES.contains(&taken.sqe.opcode) {
            let Some(mut state) = self.bridge.powered() else { return };
            let managed = state.function.manage(&shared.lock().subsystem, &taken.sqe);
            drop(state);
            return replier.end(managed.err().unwrap_or(Status::SUCCESS), 0);
        }
        let command = Command { sqe: pci::transfer(&taken.sqe), io: None, data, replier };
        admin::carry_out(shared, controller, None, command);
    }

    fn data(&self, taken: &Taken, bytes: usize) -> Result<Vec<u8>, Status> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let state = self.bridge.powered().ok_or(Status::DATA_TRANSFER)?;
        state.function.data(&state.memory, taken, bytes)
    }

    fn replier(&self, taken: Taken, permit: Option<Permit>) -> Replier {
        let queue = Connected { queue: taken.origin.queue, ..self.bridge.queue };
        Replier {
            shared: Arc::clone(&self.bridge.shared),
            queue: Some(queue),
            sqe: taken.sqe,
            permit,
            way: Way::Pci(taken, self.to.clone()),
        }
    }
}

const fn bit(vector: u16) -> u32 {
    1 << vector
}
