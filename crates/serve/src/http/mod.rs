//! The front end for browsers and Prometheus: a page that follows served drives and has their switch, and their metrics.
//!
//! **What lives here**: requests and what refuses them ([`request`]), connections ([`connection`]) and their replies ([`reply`]), the watch that reads the
//! drives ([`watch`], [`reading`], [`sample`]), the metrics ([`metrics`]) and the page ([`page`]). **What doesn't**: memory,
//! places and deadlines of clients, which are the session's as of every front end.
//!
//! **Invariants**
//! - Clients take from the budget of the server, and at most an eighth of its places: those that read and write the drive
//!   have the rest.
//! - Without the token nothing changes, and the drive does nothing for a request.

mod connection;
pub(crate) mod fuzz;
mod metrics;
mod page;
mod reading;
mod reply;
mod request;
mod sample;
mod secret;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

pub(crate) use connection::{Connection, Shared};
pub use metrics::{SERVED_METRICS, ServedKind, ServedMetric};
use thiserror::Error;
use watch::Watch;

use crate::listen::{Access, Bell, Listen, Listener};
use crate::owner::Handle;
use crate::server::{House, ServeError, Server, thread};

/// Of the places of a server, the share that pages and Prometheus may have.
const SHARE_OF_PLACES: usize = 8;
/// They have that many in any case: a page takes one, and each press of its switch another.
const PLACES_LEAST: usize = 2;

/// How browsers find drives.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where.
    pub listen: Listen,
    /// The token for whatever changes a drive; `None` for a random one.
    pub token: Option<String>,
}

/// Why drives cannot be watched.
#[derive(Debug, Error)]
pub enum HttpError {
    /// It cannot listen, or has no thread.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A drive is not served any more.
    #[error("a drive has ended")]
    Gone,
    /// The system has no random numbers.
    #[error("no token can be made: the kernel gives no random bytes")]
    Token(#[source] std::io::Error),
}

/// Drives that can be watched, until this is dropped.
pub struct Http {
    shared: Arc<Shared>,
    address: Listen,
    bell: Bell,
    closing: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("address", &self.address).finish_non_exhaustive() // and no token
    }
}

impl Http {
    /// Begins to show the drives of `servers`. Clients count among those of the first.
    ///
    /// # Errors
    /// If there is no server, a drive is gone, or nobody may listen there.
    pub fn start(servers: &[Server], options: &HttpOptions) -> Result<Self, HttpError> {
        let allowance = servers.first().ok_or(HttpError::Gone)?.allowance().of_pages();
        let handles: Vec<_> = servers.iter().map(|server| server.handle().clone()).collect();
        let token = match &options.token {
            Some(token) => token.clone(),
            None => secret::random().map_err(HttpError::Token)?,
        };
        let at = |error| ServeError::Listen(options.listen.to_string(), error);
        let listener = Listener::bind(&options.listen, Access::default()).map_err(at)?;
        let (address, bell) = (listener.address().map_err(at)?, listener.bell().map_err(at)?);
        let name = name_of(&options.listen);
        let shared =
            front(&handles, token, name, allowance.connections()).ok_or(HttpError::Gone)?;
        let closing = Arc::new(AtomicBool::new(false));
        let house = House::new(handles.clone(), allowance, &closing);
        let door = house.open::<Connection>("HTTP client", listener, Arc::clone(&shared))?;
        let mut http = Self { shared, address, bell, closing, threads: vec![door] };
        let watched = Arc::clone(&http.shared);
        http.threads.push(thread("watch", move || watched.watch.run(&handles))?);
        Ok(http)
    }

    /// Where browsers find the page: of a port 0 it is known now which one it is.
    pub fn url(&self) -> String {
        match &self.address {
            Listen::Tcp(address) => format!("http://{address}/"),
            Listen::Unix(path) => path.display().to_string(),
        }
    }

    /// The token for whatever changes a drive.
    pub fn token(&self) -> &str {
        &self.shared.token
    }
}

/// The front of a server of these drives, with so many places; `None` if a drive is gone.
fn front(
    handles: &[Handle],
    token: String,
    own_name: Option<String>,
    places: usize,
) -> Option<Arc<Shared>> {
    Some(Arc::new(Shared {
        watch: Watch::new(handles)?,
        token,
        own_names: own_name.into_iter().collect(),
        seats_most: (places / SHARE_OF_PLACES).max(PLACES_LEAST),
        seats: AtomicUsize::new(0),
    }))
}

/// The same for fuzz targets, where nobody follows a drive.
pub(crate) fn fuzz_front(handles: &[Handle]) -> Option<Arc<Shared>> {
    let shared = front(handles, fuzz::TOKEN.to_owned(), None, 0)?;
    shared.watch.end();
    Some(shared)
}

/// The host that a server was told to listen at, as clients may call it.
fn name_of(listen: &Listen) -> Option<String> {
    let Listen::Tcp(address) = listen else { return None };
    address.rsplit_once(':').map(|(name, _)| name.to_ascii_lowercase())
}

impl Drop for Http {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.bell.ring(); // the accepting thread wakes, and sees the flag
        self.shared.watch.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // it has nothing to say
        }
    }
}
