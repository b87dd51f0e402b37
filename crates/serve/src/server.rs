//! The server: the drive's thread, and a thread for each front end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use leyden_image::{Drive, ImageError};
use thiserror::Error;
use tracing::{debug, info, warn};

use crate::budget::{Budget, Limits};
use crate::clock::{Pace, wall};
use crate::control;
use crate::engine::lies::Lies;
use crate::fuse::Mount;
use crate::guests::{Guest, Guests};
use crate::listen::{Access, Bell, Listen, Listener, Socket};
use crate::nbd::{Agreed, Export};
use crate::owner::{Ended, Handle, Owner};
use crate::pacing::Pacing;
use crate::programs::{Claim, Program};
use crate::session::{self, Protocol};
use crate::stream::Stream;
use crate::tls::Tls;

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
    /// Bytes of a sector that NBD clients see: a power of two from 512 on, and a divisor of the capacity.
    pub sector_bytes: u32,
    /// The folder in which it is a file, `disk`, for loop devices.
    pub fuse: Option<PathBuf>,
    /// Promises that the drive breaks on purpose, to see whether a test of what is written on it would notice.
    pub lies: Lies,
    /// The most that all clients take.
    pub limits: Limits,
    /// The users that may connect to its sockets.
    pub access: Access,
}

impl ServerOptions {
    /// A drive at this pace, for nobody yet.
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            nbd: Vec::new(),
            programs: Vec::new(),
            tls: None,
            sector_bytes: 512,
            fuse: None,
            lies: Lies::default(),
            limits: Limits::default(),
            access: Access::default(),
        }
    }
}

/// Why a drive could not be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Another process listens there, or listening is not permitted.
    #[error("cannot listen at {0}")]
    Listen(String, #[source] io::Error),
    /// FUSE is not to be had, or the folder is none.
    #[error("cannot mount at {0}; is there a /dev/fuse, and is fuse3 installed?")]
    Mount(String, #[source] io::Error),
    /// The drive has zones, and its clients would not know of them.
    #[error(
        "{0} is a zoned drive, and NBD and FUSE know no zones: serve it to programs with --programs unix:PATH \
         (docs/c-interface.md), or to NVMe hosts with --nvme tcp (docs/nvme.md)"
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
    bells: Vec<Bell>,
    mount: Option<Mount>,
    /// The threads that accept clients, and what tells them to end.
    doors: Vec<JoinHandle<()>>,
    closing: Arc<AtomicBool>,
    allowance: Allowance,
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
        let mut bells = Vec::new();
        let mut bind = |listen: &Listen| {
            let at = |error| ServeError::Listen(listen.to_string(), error);
            let listener = Listener::bind(listen, options.access).map_err(at)?;
            let (address, bell) = (listener.address().map_err(at)?, listener.bell().map_err(at)?);
            bells.push(bell);
            Ok::<_, ServeError>((listener, address))
        };
        let (control, _) = bind(&Listen::Unix(control::socket_of(drive.path())))?;
        let fronts = options.nbd.iter().map(&mut bind).collect::<Result<Vec<_>, _>>()?;
        let programs = options.programs.iter().map(|path| bind(&Listen::Unix(path.clone())));
        let programs = programs.collect::<Result<Vec<_>, _>>()?;
        let export = Export {
            name: drive.config().name.clone(),
            tls: options.tls.clone(),
            sector_bytes: options.sector_bytes,
        };
        let (owner, handle) = Owner::new(drive, options.pace, options.lies);
        let closing = Arc::new(AtomicBool::new(false));
        let allowance = Allowance::new(options.limits);
        let house = House::new(vec![handle.clone()], allowance.clone(), &closing);
        let (mut nbd, mut doors) = (Vec::new(), Vec::new());
        for (listener, address) in fronts {
            nbd.push(address);
            doors.push(house.open::<Agreed>("NBD client", listener, export.clone())?);
        }
        let claim = Claim::default();
        for (listener, _) in programs {
            doors.push(house.open::<Program>("program", listener, claim.clone())?);
        }
        let to = handle.clone();
        let serve = move |stream: Socket, guest: Guest| {
            drop(control::serve(&stream, &guest, |ask| to.control(ask)));
        };
        let shut = Arc::clone(&closing);
        let askers = Guests::new(control::ASKERS_MOST);
        doors.push(thread("control", move || accept(&control, &shut, &askers, None, serve))?);
        let owner = thread("drive", move || owner.run())?;
        let mount = match &options.fuse {
            Some(folder) => Some(
                Mount::new(folder, handle.clone())
                    .map_err(|error| ServeError::Mount(folder.display().to_string(), error))?,
            ),
            None => None,
        };
        Ok(Self { handle, owner, nbd, bells, mount, doors, closing, allowance })
    }

    /// The way to the drive.
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The limits of its clients, for other front ends of the same server.
    pub(crate) const fn allowance(&self) -> &Allowance {
        &self.allowance
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
        self.bells.iter().for_each(Bell::ring); // accepting threads wake, and see the flag
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

/// Connections and memory of all clients of a server together, at all its addresses.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    guests: Guests,
    budget: Arc<Budget>,
}

impl Allowance {
    /// Clients at once.
    pub(crate) fn connections(&self) -> usize {
        self.guests.most()
    }

    /// The same, for pages.
    pub(crate) fn of_pages(&self) -> Self {
        Self { guests: self.guests.of_pages(), budget: Arc::clone(&self.budget) }
    }

    pub(crate) fn new(limits: Limits) -> Self {
        Self { guests: Guests::new(limits.connections()), budget: Arc::new(Budget::new(limits)) }
    }
}

/// Clients of a listener: how logs show them, and how many come.
#[derive(Clone, Copy)]
pub(crate) struct Clients {
    pub(crate) what: &'static str,
    /// That they come and go is worth a line for debugging only.
    pub(crate) is_brief: bool,
    /// Connections accepted per second, at most; `None` for any number.
    pub(crate) accepted_per_s: Option<u32>,
}

/// The state that all listeners of a server share.
pub(crate) struct House {
    handles: Vec<Handle>,
    allowance: Allowance,
    closing: Arc<AtomicBool>,
}

impl House {
    /// Of these drives.
    pub(crate) fn new(
        handles: Vec<Handle>,
        allowance: Allowance,
        closing: &Arc<AtomicBool>,
    ) -> Self {
        Self { handles, allowance, closing: Arc::clone(closing) }
    }

    /// Serves clients of one listener, which are called `what` in logs.
    pub(crate) fn open<
        P: Protocol<Front: Send + Clone + 'static, Error: std::fmt::Display> + 'static,
    >(
        &self,
        what: &'static str,
        listener: Listener,
        front: P::Front,
    ) -> Result<JoinHandle<()>, ServeError> {
        let handles = self.handles.clone();
        let (is_brief, accepted_per_s) = (P::IS_BRIEF, P::ACCEPTED_PER_S);
        let clients = Clients { what, is_brief, accepted_per_s };
        self.open_with(clients, listener, move |socket, guest, budget| {
            session::serve::<P>(Stream::Open(socket), &front, &handles, guest, budget)
        })
    }

    /// The same with the session's own way to serve.
    pub(crate) fn open_with<E: std::fmt::Display>(
        &self,
        clients: Clients,
        listener: Listener,
        session: impl Fn(Socket, &Guest, &Arc<Budget>) -> Result<(), E> + Clone + Send + 'static,
    ) -> Result<JoinHandle<()>, ServeError> {
        let Allowance { guests, budget } = self.allowance.clone();
        let Clients { what, is_brief, accepted_per_s } = clients;
        let serve = move |socket: Socket, guest: Guest| {
            let (client, peer) = (guest.number(), guest.peer());
            let say = |said: &str| {
                if is_brief {
                    debug!(client, peer, "{what}{said}");
                } else {
                    guest.say(|left_out| info!(client, peer, left_out, "{what}{said}"));
                }
            };
            say("");
            match session(socket, &guest, &budget) {
                Ok(()) => say(" has gone"),
                Err(error) => {
                    guest.say(|left_out| warn!(client, peer, left_out, %error, "{what} sent away"));
                }
            }
        };
        let closing = Arc::clone(&self.closing);
        thread("listener", move || accept(&listener, &closing, &guests, accepted_per_s, serve))
    }
}

/// Accepts clients, and serves each in a thread of its own. Whatever goes wrong with one of them, is that
/// one's affair.
pub(crate) fn accept(
    listener: &Listener,
    closing: &AtomicBool,
    guests: &Guests,
    accepted_per_s: Option<u32>,
    serve: impl Fn(Socket, Guest) + Clone + Send + 'static,
) {
    let mut pacing = accepted_per_s.map(|per_s| Pacing::new(per_s, wall()));
    loop {
        let wait = pacing.as_mut().map_or(Duration::ZERO, |pacing| pacing.take(wall()));
        std::thread::sleep(wait);
        let accepted = listener.accept();
        if closing.load(Ordering::Acquire) {
            return;
        }
        let Ok(socket) = accepted else {
            // A client that has gone again before it was accepted; or there are too many files open.
            std::thread::sleep(BREATH);
            continue;
        };
        let guest = guests.admit(&socket);
        let serve = serve.clone();
        // Without a thread it is hung up on; the guest's place is free again, as after a panic.
        if thread("client", move || serve(socket, guest)).is_err() {
            warn!("a client was sent away: the system has no thread for it");
            std::thread::sleep(BREATH);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::listen::dial;

    /// Clients that come together are all served, and not faster than the listener's rate.
    #[test]
    fn a_flood_waits_for_its_turn() {
        const PER_S: u32 = 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = Listener::bind(&Listen::Unix(path.clone()), Access::default()).unwrap();
        let (bell, closing, guests) =
            (listener.bell().unwrap(), AtomicBool::new(false), Guests::new(2));
        let serve = |mut socket: Socket, _: Guest| socket.write_all(b"!").unwrap();
        let began = wall();
        std::thread::scope(|scope| {
            scope.spawn(|| accept(&listener, &closing, &guests, Some(PER_S), serve));
            let clients = (0..PER_S).map(|_| dial(&path, Duration::from_secs(10)).unwrap());
            for mut client in clients.collect::<Vec<_>>() {
                client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
                client.read_exact(&mut [0; 1]).unwrap();
            }
            closing.store(true, Ordering::Release);
            bell.ring();
        });
        assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a scope would wait for the listener")]
    fn places_come_back_after_300_panics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = Listener::bind(&Listen::Unix(path.clone()), Access::default()).unwrap();
        let bell = listener.bell().unwrap();
        let serve = |mut socket: Socket, guest: Guest| {
            guest.settle().unwrap();
            guest.has_asked().unwrap();
            let mut word = [0; 1];
            socket.read_exact(&mut word).unwrap();
            assert_eq!(&word, b"!", "a session that panics");
            socket.write_all(&word).unwrap();
        };
        let guests = Guests::new(2);
        let accepting = guests.clone();
        let closing = Arc::new(AtomicBool::new(false));
        let shut = Arc::clone(&closing);
        let door = std::thread::spawn(move || accept(&listener, &shut, &accepting, None, serve));
        let ask = |word: &[u8]| {
            let mut client = dial(&path, Duration::from_secs(10)).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let _ = client.write_all(word); // a server without a place has hung up
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer);
            answer
        };
        for _ in 0..300 {
            assert!(ask(b"?").is_empty());
        }
        assert_eq!(ask(b"!"), b"!");
        closing.store(true, Ordering::Release);
        bell.ring();
        door.join().unwrap();
    }
}
