//! The front end for browsers and Prometheus: a page that follows served drives and has their switch, or one that follows a
//! campaign, and their metrics.
//!
//! **What lives here**: requests and what refuses them ([`request`]), connections ([`connection`]) and their replies ([`reply`]), the page ([`page`]) and
//! the text of metrics ([`metrics`]), each of any subject ([`subject`]); and the two subjects: drives ([`drives`]) with the watch
//! that reads them ([`watch`], [`reading`], [`sample`]), and campaigns ([`campaign`]). **What doesn't**: memory,
//! places and deadlines of clients, which are the session's as of every front end.
//!
//! **Invariants**
//! - Clients take from the budget of the server, and at most an eighth of its places: those that read and write the drive
//!   have the rest.
//! - Without the token nothing changes, and the drive does nothing for a request.

mod campaign;
mod connection;
mod drives;
pub(crate) mod fuzz;
mod metrics;
mod page;
mod reading;
mod reply;
mod request;
mod sample;
mod secret;
mod subject;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub use campaign::{Campaign, CampaignFacts, CampaignFailure, CampaignNews, campaign_metrics};
pub(crate) use connection::{Connection, Shared};
pub use metrics::{ServedKind, ServedMetric, served_metrics};
use subject::PageSubject;
use thiserror::Error;
pub(crate) use watch::Watch;

use crate::budget::Limits;
use crate::listen::{Access, Bell, Listen, Listener};
use crate::owner::Handle;
use crate::server::{Allowance, House, ServeError, Server, thread};

/// Of the places of a server, the share that pages and Prometheus may have.
const SHARE_OF_PLACES: usize = 8;
/// They have that many in any case: a page takes one, and each press of its switch another.
const PLACES_LEAST: usize = 2;

/// How browsers find what is shown.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where.
    pub listen: Listen,
    /// The token for whatever changes a drive; `None` for a random one.
    pub token: Option<String>,
}

/// Why nothing can be watched.
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

/// Drives or a campaign that can be watched, until this is dropped.
pub struct Http {
    /// Ends the connections of those that follow its subject.
    end: Box<dyn Fn() + Send + Sync>,
    token: String,
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
        let watch = Arc::new(Watch::new(&handles).ok_or(HttpError::Gone)?);
        let mut http = Self::open(Arc::clone(&watch), handles.clone(), allowance, options)?;
        http.threads.push(thread("watch", move || watch.run(&handles))?);
        Ok(http)
    }

    /// Begins to show a campaign.
    ///
    /// # Errors
    /// If nobody may listen there.
    pub fn of_campaign(campaign: Arc<Campaign>, options: &HttpOptions) -> Result<Self, HttpError> {
        let allowance = Allowance::new(Limits::default()).of_pages();
        Self::open(campaign, Vec::new(), allowance, options)
    }

    fn open<S: PageSubject>(
        subject: Arc<S>,
        handles: Vec<Handle>,
        allowance: Allowance,
        options: &HttpOptions,
    ) -> Result<Self, HttpError> {
        let token = match &options.token {
            Some(token) => token.clone(),
            None => secret::random().map_err(HttpError::Token)?,
        };
        let at = |error| ServeError::Listen(options.listen.to_string(), error);
        let listener = Listener::bind(&options.listen, Access::default()).map_err(at)?;
        let (address, bell) = (listener.address().map_err(at)?, listener.bell().map_err(at)?);
        let own_name = name_of(&options.listen);
        let shared = front(Arc::clone(&subject), token.clone(), own_name, allowance.connections());
        let closing = Arc::new(AtomicBool::new(false));
        let house = House::new(handles, allowance, &closing);
        let door = house.open::<Connection<S>>("HTTP client", listener, shared)?;
        let end = Box::new(move || subject.end());
        Ok(Self { end, token, address, bell, closing, threads: vec![door] })
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
        &self.token
    }
}

/// The front of a server with so many places.
fn front<S>(
    subject: Arc<S>,
    token: String,
    own_name: Option<String>,
    places: usize,
) -> Arc<Shared<S>> {
    Arc::new(Shared {
        subject,
        token,
        own_names: own_name.into_iter().collect(),
        seats_most: (places / SHARE_OF_PLACES).max(PLACES_LEAST),
        seats: Arc::default(),
    })
}

/// The same for fuzz targets, where nobody follows a drive; `None` if one is gone.
pub(crate) fn fuzz_front(handles: &[Handle]) -> Option<Arc<Shared<Watch>>> {
    let watch = Watch::new(handles)?;
    watch.end();
    Some(front(Arc::new(watch), fuzz::TOKEN.to_owned(), None, 0))
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
        (self.end)();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // it has nothing to say
        }
    }
}
