//! The server: the drive's thread, and a thread for each front end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use leyden_image::{Drive, ImageError};
use thiserror::Error;
use tracing::{info, warn};

use crate::clock::Pace;
use crate::control;
use crate::fuse::Mount;
use crate::listen::{Listen, Listener, Socket};
use crate::nbd;
use crate::owner::{Ended, Handle, Owner};
use crate::programs::{self, Claim};
use crate::tls::Tls;

/// The most clients at once.
const CLIENTS_MOST: usize = 256;
/// Between two clients, if the first could not be accepted.
const BREATH: Duration = Duration::from_millis(10);

/// How a drive is served.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// How fast its time goes.
    pub pace: Pace,
    /// Where NBD clients find it.
    pub nbd: Vec<Listen>,
    /// Where programs with the C interface find it: sockets in the file system.
    pub programs: Vec<PathBuf>,
    /// NBD clients must use TLS, then.
    pub tls: Option<Tls>,
    /// The folder in which it is a file, `disk`, for loop devices.
    pub fuse: Option<PathBuf>,
    /// Flushes are answered and not done, and force unit access is left out: a drive that lies, to see
    /// whether a test of what is written on it would notice.
    pub lies: bool,
}

/// Why a drive could not be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Somebody else listens there, or nobody may.
    #[error("cannot listen at {0}")]
    Listen(String, #[source] io::Error),
    /// FUSE is not to be had, or the folder is none.
    #[error("cannot mount at {0}; is there a /dev/fuse, and is fuse3 installed?")]
    Mount(String, #[source] io::Error),
    /// The drive has zones, and its clients would not know of them.
    #[error(
        "{0} is a zoned drive, and NBD and FUSE know no zones: serve it to programs with --programs unix:PATH \
         (docs/c-interface.md)"
    )]
    Zoned(String),
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
    /// The other addresses that it listens at.
    others: Vec<Listen>,
    mount: Option<Mount>,
    /// The threads that accept clients, and what tells them to end.
    doors: Vec<JoinHandle<()>>,
    closing: Arc<AtomicBool>,
}

impl Server {
    /// Begins to serve `drive`.
    ///
    /// # Errors
    /// If an address is in use, the drive has zones, or the system has no threads left.
    pub fn start(drive: Drive, options: &ServerOptions) -> Result<Self, ServeError> {
        if drive.device().zoned().is_some() && (!options.nbd.is_empty() || options.fuse.is_some()) {
            return Err(ServeError::Zoned(drive.path().display().to_string()));
        }
        let bind = |listen: &Listen| {
            let at = |error| ServeError::Listen(listen.to_string(), error);
            let listener = Listener::bind(listen).map_err(at)?;
            let address = listener.address().map_err(at)?;
            Ok::<_, ServeError>((listener, address))
        };
        let (control, socket) = bind(&Listen::Unix(control::socket_of(drive.path())))?;
        let fronts = options.nbd.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let programs = options.programs.iter().map(|path| bind(&Listen::Unix(path.clone())));
        let programs = programs.collect::<Result<Vec<_>, _>>()?;
        let name = drive.config().name.clone();
        let (owner, handle) = Owner::new(drive, options.pace, options.lies);
        let closing = Arc::new(AtomicBool::new(false));
        let (mut nbd, mut doors) = (Vec::new(), Vec::new());
        for (listener, address) in fronts {
            nbd.push(address);
            let (handle, name, tls) = (handle.clone(), name.clone(), options.tls.clone());
            let serve = move |stream| {
                info!("NBD client");
                match nbd::serve(stream, &name, &handle, tls.as_ref()) {
                    Ok(()) => info!("NBD client has gone"),
                    Err(error) => warn!(%error, "NBD client sent away"),
                }
            };
            let closing = Arc::clone(&closing);
            doors.push(thread("nbd", move || accept(&listener, &closing, serve))?);
        }
        let (claim, mut others) = (Claim::default(), vec![socket]);
        for (listener, address) in programs {
            others.push(address);
            let (handle, claim) = (handle.clone(), claim.clone());
            let serve = move |stream| {
                info!("program");
                match programs::serve(stream, &handle, &claim) {
                    Ok(()) => info!("program has gone"),
                    Err(error) => warn!(%error, "program sent away"),
                }
            };
            let closing = Arc::clone(&closing);
            doors.push(thread("programs", move || accept(&listener, &closing, serve))?);
        }
        let to = handle.clone();
        let serve = move |stream| drop(control::serve(stream, |ask| to.control(ask)));
        let shut = Arc::clone(&closing);
        doors.push(thread("control", move || accept(&control, &shut, serve))?);
        let owner = thread("drive", move || owner.run())?;
        let mount = match &options.fuse {
            Some(folder) => Some(
                Mount::new(folder, handle.clone())
                    .map_err(|error| ServeError::Mount(folder.display().to_string(), error))?,
            ),
            None => None,
        };
        Ok(Self { handle, owner, nbd, others, mount, doors, closing })
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
        drop(self.mount);
        let ended = self.owner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.closing.store(true, Ordering::Release);
        for address in self.nbd.iter().chain(&self.others) {
            address.knock(); // wakes the accepting thread, which then sees the flag
        }
        for door in self.doors {
            let _ = door.join(); // it has nothing to say
        }
        ended
    }
}

pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ServeError> {
    Builder::new().name(name.to_owned()).spawn(run).map_err(ServeError::Thread)
}

/// Accepts clients, and serves each in a thread of its own. Whatever goes wrong with one of them, is that
/// one's affair.
pub(crate) fn accept(
    listener: &Listener,
    closing: &AtomicBool,
    serve: impl Fn(Socket) + Clone + Send + 'static,
) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        if closing.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = accepted else {
            // A client that has gone again before it was accepted; or there are too many files open.
            std::thread::sleep(BREATH);
            continue;
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MOST {
            clients.fetch_sub(1, Ordering::Relaxed);
            continue; // hung up on, as a full server does
        }
        let (serve, left) = (serve.clone(), Arc::clone(&clients));
        let run = move || {
            serve(stream);
            left.fetch_sub(1, Ordering::Relaxed);
        };
        if thread("client", run).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
