//! Entry points of fuzz targets and of the short fuzz test: any bytes that come in over a socket.

pub use crate::http::fuzz::{request as http_request, seed as http_seed};
pub use leyden_nvme::fuzz::{host as nvme_host, seed as nvme_seed};
pub use leyden_wire::fuzz::{client as nbd_client, seed as nbd_seed};
pub use leyden_wire::fuzz::{
    program, program_seed, served as served_drive, served_seed as served_drive_seed,
};

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use crate::budget::{Budget, Limits};
use crate::clock::Pace;
use crate::guests::Guests;
use crate::http;
use crate::listen::Socket;
use crate::nbd::{Agreed, Export};
use crate::nvme::{self, Connection, CutMode, NvmeOptions, Shared};
use crate::owner::{Handle, Owner};
use crate::programs::{Claim, Program};
use crate::server::thread;
use crate::session::{self, Protocol};
use crate::stream::Stream;
use crate::switch::Ask;

/// A small drive, served to clients that send any bytes, for as long as the process runs.
pub struct Sessions {
    handles: [Handle; 1],
    guests: Guests,
    budget: Arc<Budget>,
    nvme: Arc<Shared>,
    http: Arc<http::Shared>,
}

impl Sessions {
    /// Makes the drive, in an image that must not exist.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(image: &Path) -> Self {
        let drive = leyden_image::fuzz::drive(image).expect("an image");
        let (owner, handle) = Owner::new(drive, Pace::Untimed, crate::Lies::default());
        thread("drive", move || owner.run()).expect("a thread");
        let (guests, budget) = (Guests::new(4), Arc::new(Budget::new(Limits::default())));
        let handles = [handle];
        let name = Some("nqn.2026-01.local.leyden:fuzz".to_owned());
        let (listen, hosts, cut) = (Vec::new(), Vec::new(), CutMode::Error);
        let options = NvmeOptions { listen, name, hosts, secrets: BTreeMap::new(), cut };
        let nvme = nvme::front(&handles, &options).expect("a namespace");
        let http = http::fuzz_front(&handles).expect("a drive");
        Self { handles, guests, budget, nvme, http }
    }

    /// Serves an NBD client that sends these bytes, takes all replies and goes.
    ///
    /// # Errors
    /// If it is sent away.
    pub fn nbd(&self, sent: &[u8]) -> Result<(), String> {
        let export = Export { name: "disk".to_owned(), tls: None, sector_bytes: 512 };
        self.serve::<Agreed>(sent, &export)
    }

    /// The same of a program.
    ///
    /// # Errors
    /// If it is sent away.
    pub fn program(&self, sent: &[u8]) -> Result<(), String> {
        self.serve::<Program>(sent, &Claim::default())
    }

    /// The same of an NVMe host.
    ///
    /// # Errors
    /// If it is sent away.
    pub fn nvme(&self, sent: &[u8]) -> Result<(), String> {
        self.serve::<Connection>(sent, &self.nvme)
    }

    /// The same of a browser.
    ///
    /// # Errors
    /// If it is sent away.
    pub fn http(&self, sent: &[u8]) -> Result<(), String> {
        self.serve::<http::Connection>(sent, &self.http)
    }

    fn serve<P: Protocol<Error: std::fmt::Display>>(
        &self,
        sent: &[u8],
        front: &P::Front,
    ) -> Result<(), String> {
        let (server, mut client) = UnixStream::pair().map_err(|error| error.to_string())?;
        let socket = Socket::from(server);
        std::thread::scope(|scope| {
            let client = scope.spawn(move || {
                let _ = client.write_all(sent); // the server may have hung up
                let _ = client.shutdown(std::net::Shutdown::Write);
                let _ = io::copy(&mut client, &mut io::sink());
            });
            let guest = self.guests.admit(&socket);
            let stream = Stream::Open(socket.clone());
            let served = session::serve::<P>(stream, front, &self.handles, &guest, &self.budget);
            socket.close();
            // The end of the scope waits for its work only: memory that an ending thread still has looks leaked.
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            served.map_err(|error| error.to_string())
        })
    }
}

/// Any bytes as a question on the control socket.
///
/// # Errors
/// If they are none.
pub fn control_line(line: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<Ask>(line).map(drop)
}
