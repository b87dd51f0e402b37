//! Entry points of fuzz targets and of the short fuzz test: any bytes that come in over a socket.

pub use crate::http::fuzz::{request as http_request, seed as http_seed};
pub use leyden_nvme::fuzz::{host as nvme_host, seed as nvme_seed, vfio_user, vfio_user_seed};
pub use leyden_wire::fuzz::{client as nbd_client, seed as nbd_seed};
pub use leyden_wire::fuzz::{
    program, program_seed, served as served_drive, served_seed as served_drive_seed,
};

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use leyden_nvme::fuzz::{POKE, poke};
use leyden_nvme::pci::{FILES_MOST, HEADER_BYTES, Header};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use zerocopy::FromBytes;

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
    http: Arc<http::Shared<http::Watch>>,
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
        let access = crate::Access::default();
        let secrets = BTreeMap::new();
        let options = NvmeOptions { listen, access, name, hosts, secrets, cut };
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
        self.serve::<http::Connection<http::Watch>>(sent, &self.http)
    }

    /// The same of a client of vfio-user, whose messages are those of [`vfio_user`].
    ///
    /// # Errors
    /// If it is sent away.
    pub fn vfio_user(&self, sent: &[u8]) -> Result<(), String> {
        let (server, client) = UnixStream::pair().map_err(|error| error.to_string())?;
        let socket = Socket::from(server);
        std::thread::scope(|scope| {
            let mut replies = client.try_clone().map_err(|error| error.to_string())?;
            let reader = scope.spawn(move || drop(io::copy(&mut replies, &mut io::sink())));
            let client = scope.spawn(move || {
                let _ = machine(&client, sent); // the server may have hung up
                let _ = client.shutdown(std::net::Shutdown::Write);
            });
            let guest = self.guests.admit(&socket);
            let served = nvme::serve(socket.clone(), &self.nvme, &guest, &self.budget);
            socket.close();
            for thread in [client, reader] {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
            served.map_err(|error| error.to_string())
        })
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

/// Sends the messages of a machine, with its memory and its interrupts' files where they belong.
fn machine(client: &UnixStream, mut sent: &[u8]) -> io::Result<()> {
    let memory = memfd_create("memory", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&memory, 1 << 20)?;
    let (_rings, interrupt) = UnixStream::pair()?;
    while let Some(head) = sent.first_chunk::<HEADER_BYTES>() {
        let header = Header::read_from_bytes(head).expect("as many bytes");
        let length = HEADER_BYTES + header.follows().unwrap_or(0);
        let (message, rest) = sent.split_at_checked(length).unwrap_or((sent, &[]));
        sent = rest;
        let body = &message[HEADER_BYTES..];
        if header.command() == POKE {
            if let Some((address, bytes)) = poke(body).filter(|it| it.0 < 1 << 20) {
                let _ = rustix::io::pwrite(&memory, bytes, address); // some of it is enough
            }
            continue;
        }
        let count = body.get(16).map_or(0, |&count| usize::from(count).min(FILES_MOST));
        let files = match header.command() {
            2 => vec![memory.as_fd()],
            8 => vec![interrupt.as_fd(); count],
            _ => Vec::new(),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MOST))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            along.push(SendAncillaryMessage::ScmRights(&files));
        }
        let bytes = [IoSlice::new(message)];
        let count = sendmsg(client, &bytes, &mut along, SendFlags::NOSIGNAL)?;
        (&*client).write_all(&message[count..])?;
    }
    Ok(())
}

/// Any bytes as a question on the control socket.
///
/// # Errors
/// If they are none.
pub fn control_line(line: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<Ask>(line).map(drop)
}
