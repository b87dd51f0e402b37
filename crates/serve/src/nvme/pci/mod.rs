//! Clients of vfio-user, which have the drives as a PCI function: virtual machines.
//!
//! **What lives here**: a client's session, of two threads: one answers its messages ([`bridge`]), so that a register never
//! waits for a drive; the other has the queues ([`worker`]). **What doesn't**: what messages, registers and queues are
//! (`leyden_nvme::pci`).
//!
//! The crate `vfio_user` has the protocol, too. It waits for a client without a deadline, takes one descriptor a message, and
//! answers errors of requests that want no answer.
//!
//! **Invariants**: each client has a controller and a memory of its own; no client ends anything but itself.

mod bridge;
mod inbox;
mod memory;
pub(super) mod note;
mod worker;

use std::io;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use leyden_nvme::pci::{Request, version};
use thiserror::Error;

use super::house::{Link, Shared};
use crate::budget::{Budget, COMMANDS_MOST, Window};
use crate::guests::Guest;
use crate::listen::Socket;
use crate::session::Closing;
use crate::stream::{Stream, send};
use bridge::Bridge;
use inbox::{Inbox, Message};
use note::Note;
use worker::Worker;

/// A client says which version it speaks within this time.
const NEGOTIATION: Duration = Duration::from_secs(10);

/// Why a client was sent away.
#[derive(Debug, Error)]
pub(crate) enum PciError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not speak the protocol.
    #[error("the client sends a message that there is not")]
    Message,
    /// It speaks another version, or does not say which.
    #[error("the client does not begin with version 0 of vfio-user")]
    Version,
    /// Every controller is taken.
    #[error("there are as many hosts as there can be")]
    Busy,
}

/// Serves one client until it goes.
pub(crate) fn serve(
    socket: Socket,
    shared: &Arc<Shared>,
    guest: &Guest,
    budget: &Arc<Budget>,
) -> Result<(), PciError> {
    let Socket::Unix(unix) = &socket else { return Err(PciError::Message) };
    let mut inbox = Inbox::new(Arc::clone(unix), NEGOTIATION)?;
    let window = Arc::new(Window::new(Arc::clone(budget), COMMANDS_MOST));
    let mut stream = Stream::Open(socket);
    let Some(Message { header, body, .. }) = inbox.next()? else { return Ok(()) };
    let begins = matches!(Request::parse(&header, &body), Ok(Request::Version));
    let Some(reply) = header.reply(&version(body.len())).filter(|_| begins) else {
        return Err(PciError::Version);
    };
    guest.settle()?;
    let mut house = shared.lock();
    let queue = house.subsystem.attach().map_err(|_| PciError::Busy)?;
    let (to, notes) = std::sync::mpsc::channel();
    let number = house.register(queue, Link::Pci(to.clone()), shared.cuts());
    drop(house);
    let _registered = Registered(shared, number);
    send(&mut stream, &reply, &window)?;
    let bridge = Bridge::new(Arc::clone(shared), queue);
    std::thread::scope(|scope| {
        let closing = Closing(stream.clone()); // ends this thread if the worker has ended
        let (own, windows, bridge) = (to.clone(), Arc::clone(&window), &bridge);
        let work = move || {
            let _closing = closing;
            Worker::new(bridge, own, windows).run(&notes);
        };
        let worker = Builder::new().name("queues".to_owned()).spawn_scoped(scope, work)?;
        let stop = Stopping(to.clone()); // ends the worker if this thread panics
        let mut answered = || -> Result<(), PciError> {
            while let Some(Message { header, body, files }) = inbox.next()? {
                guest.has_asked()?;
                let request = Request::parse(&header, &body);
                let done = request.and_then(|it| bridge.carry_out(it, &body, files, &to));
                let reply = match done {
                    Ok(body) => header.reply(&body),
                    Err(refused) => header.refuse(refused),
                };
                if let Some(reply) = reply {
                    send(&mut stream, &reply, &window)?;
                }
            }
            Ok(())
        };
        let answered = answered();
        drop(stop);
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        answered
    })
}

/// A worker that stops when this is dropped.
struct Stopping(std::sync::mpsc::Sender<Note>);

impl Drop for Stopping {
    fn drop(&mut self) {
        let _ = self.0.send(Note::Stop); // it may have gone
    }
}

/// A function that hosts find, until this is dropped.
struct Registered<'a>(&'a Shared, u64);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.lock().forget(self.1);
    }
}
