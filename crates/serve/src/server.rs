//! The server: the drive's thread, and a thread for each front end.

use std::io;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};

use leyden_image::{Drive, ImageError};
use thiserror::Error;

use crate::clock::Pace;
use crate::control;
use crate::listen::{Listen, Listener, Stream, bind_unix};
use crate::nbd;
use crate::owner::{Ended, Handle, Owner};

/// The most clients at once.
const CLIENTS_MOST: usize = 256;

/// How a drive is served.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// How fast its time goes.
    pub pace: Pace,
    /// Where NBD clients find it.
    pub nbd: Vec<Listen>,
}

/// Why a drive could not be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Somebody else listens there, or nobody may.
    #[error("cannot listen at {0}")]
    Listen(String, #[source] io::Error),
    /// The system has no thread left.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// A drive that is being served. Its threads end with the process, or when it is told to stop.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    owner: JoinHandle<Ended>,
    nbd: Vec<Listen>,
}

impl Server {
    /// Begins to serve `drive`.
    ///
    /// # Errors
    /// If an address is in use, or the system has no threads left.
    pub fn start(drive: Drive, options: &ServerOptions) -> Result<Self, ServeError> {
        let at = |what: String| move |error| ServeError::Listen(what, error);
        let socket = control::socket_of(drive.path());
        let control = bind_unix(&socket).map_err(at(socket.display().to_string()))?;
        let mut listeners = Vec::new();
        for listen in &options.nbd {
            listeners.push(Listener::bind(listen).map_err(at(listen.to_string()))?);
        }
        let bound = listeners.iter().map(Listener::address).collect::<Result<Vec<_>, _>>();
        let nbd = bound.map_err(at("an NBD address".to_owned()))?;
        let name = drive.config().name.clone();
        let (owner, handle) = Owner::new(drive, options.pace);
        for listener in listeners {
            let (handle, name) = (handle.clone(), name.clone());
            thread("nbd", move || accept_nbd(&listener, &name, &handle))?;
        }
        let to = handle.clone();
        thread("control", move || accept_control(&control, &to))?;
        let owner = thread("drive", move || {
            let ended = owner.run();
            let _ = std::fs::remove_file(&socket); // nobody answers there any more
            ended
        })?;
        Ok(Self { handle, owner, nbd })
    }

    /// The way to the drive.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where NBD clients find it: of a port 0 it is known now which one it is.
    pub fn nbd(&self) -> &[Listen] {
        &self.nbd
    }

    /// True if the drive's thread has ended: it was told to stop, or its image failed.
    pub fn has_ended(&self) -> bool {
        self.owner.is_finished()
    }

    /// Waits until the drive's thread has ended.
    ///
    /// # Errors
    /// If the image could not be written: opening it again will be a power cut.
    pub fn join(self) -> Result<(), ImageError> {
        drop(self.handle);
        self.owner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ServeError> {
    Builder::new().name(name.to_owned()).spawn(run).map_err(ServeError::Thread)
}

fn accept_nbd(listener: &Listener, name: &str, drive: &Handle) {
    let clients = Arc::new(AtomicUsize::new(0));
    while let Ok(stream) = accept(|| listener.accept()) {
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MOST {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue; // closed unanswered, as a full server does
        }
        let (drive, name, clients) = (drive.clone(), name.to_owned(), Arc::clone(&clients));
        let serve = move |stream: Stream| {
            // Whatever was wrong, it was this client's affair.
            let _ = nbd::serve(stream, &name, &drive);
            clients.fetch_sub(1, Ordering::Relaxed);
        };
        if thread("nbd client", move || serve(stream)).is_err() {
            return;
        }
    }
}

fn accept_control(listener: &UnixListener, drive: &Handle) {
    while let Ok((stream, _)) = accept(|| listener.accept()) {
        let drive = drive.clone();
        let serve = move || {
            let _ = control::serve(stream, &drive); // the client is gone
        };
        if thread("control client", serve).is_err() {
            return;
        }
    }
}

/// Accepts the next client; one that has gone again before it was accepted is no reason to stop.
fn accept<T>(mut next: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match next() {
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
