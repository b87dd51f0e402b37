//! The control socket of a drive in the caller's process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use crate::control::{self, socket_of};
use crate::direct::Direct;
use crate::guests::{Guest, Guests};
use crate::listen::{Access, Bell, Listen, Listener, Socket};
use crate::server::{ServeError, accept, thread};

/// Lets `leyden cut`, `restore` and `status` reach a drive that a program has opened itself, until it is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    bell: Bell,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Opens the socket beside the drive's image. Who asks a drive that is gone is told so.
    ///
    /// # Errors
    /// If somebody else listens there, or the system has no thread left.
    pub fn open(drive: &Arc<Direct>) -> Result<Self, ServeError> {
        let address = Listen::Unix(socket_of(&drive.path()));
        let at = |error| ServeError::Listen(address.to_string(), error);
        let listener = Listener::bind(&address, Access::default()).map_err(at)?;
        let bell = listener.bell().map_err(at)?;
        let closing = Arc::new(AtomicBool::new(false));
        let (shut, drive) = (Arc::clone(&closing), Arc::downgrade(drive));
        let answer = move |drive: &Weak<Direct>, ask| Some(drive.upgrade()?.control(ask));
        let serve = move |stream: Socket, guest: Guest| {
            drop(control::serve(&stream, &guest, |ask| answer(&drive, ask)));
        };
        let askers = Guests::new(control::ASKERS_MOST);
        let thread = thread("control", move || accept(&listener, &shut, &askers, None, serve))?;
        Ok(Self { bell, closing, thread: Some(thread) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.bell.ring(); // the accepting thread wakes, and sees the flag
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it has nothing to say
        }
    }
}
