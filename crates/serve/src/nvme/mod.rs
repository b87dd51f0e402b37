//! The front end for NVMe hosts over TCP and vfio-user: all drives of a server as one subsystem.
//!
//! **What lives here**: connections and what they hold ([`connection`]), PCI functions of virtual machines ([`pci`]), hosts that
//! prove who they are ([`authentication`]), what commands ask of drives ([`io`]) and of the subsystem ([`admin`]), how a host sees a
//! power cut ([`CutMode`]), and what happens unasked ([`keeper`]). **What doesn't**: what bytes and commands mean
//! (`leyden-nvme`).
//!
//! **Invariants**
//! - Each command ends once, or its connection does; but for those that a power cut is to leave without an end.
//! - Nobody waits for a drive's thread while the subsystem is locked: drives' threads lock it.

mod admin;
mod authentication;
mod connection;
mod drives;
mod error;
mod house;
mod io;
mod keeper;
mod pci;
mod reply;
mod transfers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use leyden_nvme::{Fit, HostSecrets, Subsystem, SubsystemError};
use thiserror::Error;

use crate::listen::{Access, Bell, Listen, Listener};
use crate::owner::Handle;
use crate::server::{Clients, House, ServeError, Server, thread};
pub(crate) use connection::Connection;
pub(crate) use house::Shared;
pub(crate) use pci::serve;

/// How a host sees that the power of a drive is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CutMode {
    /// Its connections end, and none is accepted while no drive has power: a box whose power is gone. Over vfio-user as
    /// `Dead`.
    #[default]
    Lost,
    /// Connections stay, and commands never end.
    Hang,
    /// As `Hang`, and once no drive has power, properties read as all ones: a device that was pulled out. A PCI function
    /// forgets its queues with that.
    Dead,
    /// Commands end with a status: Commands Aborted due to Power Loss, then Namespace Not Ready.
    Error,
}

/// How NVMe hosts find drives.
#[derive(Clone, Debug)]
pub struct NvmeOptions {
    /// Where: over TCP, or by vfio-user at sockets in the file system.
    pub listen: Vec<Listen>,
    /// The users that may connect to these sockets.
    pub access: Access,
    /// The subsystem's name; `None` for one made of the first drive's.
    pub name: Option<String>,
    /// Names of hosts that may connect; all if there are none.
    pub hosts: Vec<String>,
    /// The secrets of hosts, by name. If there are any, each host proves its identity, and others may not connect.
    pub secrets: BTreeMap<String, HostSecrets>,
    /// How a power cut looks.
    pub cut: CutMode,
}

/// Why drives cannot be served to NVMe hosts.
#[derive(Debug, Error)]
pub enum NvmeError {
    /// A drive that is no namespace.
    #[error("{0} cannot be an NVMe namespace: {1}")]
    Fit(String, Fit),
    /// A name that is none.
    #[error(transparent)]
    Subsystem(#[from] SubsystemError),
    /// It cannot listen, or has no thread.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A drive is not served any more.
    #[error("a drive has ended")]
    Gone,
}

/// Drives that NVMe hosts find, until this is dropped.
#[derive(Debug)]
pub struct Nvme {
    shared: Arc<Shared>,
    name: String,
    addresses: Vec<Listen>,
    bells: Vec<Bell>,
    doors: Vec<JoinHandle<()>>,
    closing: Arc<AtomicBool>,
}

/// The subsystem of these drives.
pub(crate) fn front(drives: &[Handle], options: &NvmeOptions) -> Result<Arc<Shared>, NvmeError> {
    let seen = drives.iter().map(|drive| drives::look(drive).ok_or(NvmeError::Gone));
    let seen = seen.collect::<Result<Vec<_>, _>>()?;
    let first = seen.first().ok_or(NvmeError::Gone)?;
    let name = options.name.clone().unwrap_or_else(|| drives::subsystem_name(&first.name));
    let mut namespaces = Vec::new();
    for drive in &seen {
        let namespace = drive.namespace(&name);
        namespace.check().map_err(|fit| NvmeError::Fit(drive.path.clone(), fit))?;
        namespaces.push(namespace);
    }
    let serial = drives::serial(&name, &first.path);
    let subsystem = Subsystem::new(name, serial, namespaces, options.hosts.clone())?;
    let subsystem = subsystem.with_secrets(options.secrets.clone())?;
    Ok(Arc::new(Shared::new(subsystem, drives.to_vec(), options.cut)))
}

impl Nvme {
    /// Begins to serve the drives of `servers`, which become the namespaces 1, 2, and so on. Hosts count among the clients
    /// of the first.
    ///
    /// # Errors
    /// If there is no server, a drive cannot be a namespace, a name is none, or nobody may listen there.
    pub fn start(servers: &[Server], options: &NvmeOptions) -> Result<Self, NvmeError> {
        let drives: Vec<_> = servers.iter().map(|server| server.handle().clone()).collect();
        let shared = front(&drives, options)?;
        let allowance = servers.first().ok_or(NvmeError::Gone)?.allowance().clone();
        let name = shared.lock().subsystem.name().to_owned();
        let closing = Arc::new(AtomicBool::new(false));
        let house = House::new(drives, allowance, &closing);
        let (addresses, bells, doors) = (Vec::new(), Vec::new(), Vec::new());
        let mut nvme = Self { shared, name, addresses, bells, doors, closing };
        for listen in &options.listen {
            let at = |error| ServeError::Listen(listen.to_string(), error);
            let listener = Listener::bind(listen, options.access).map_err(at)?;
            nvme.addresses.push(listener.address().map_err(at)?);
            nvme.bells.push(listener.bell().map_err(at)?);
            let shared = Arc::clone(&nvme.shared);
            nvme.doors.push(match listen {
                Listen::Tcp(_) => house.open::<Connection>("NVMe host", listener, shared)?,
                Listen::Unix(_) => {
                    let what = "client of vfio-user";
                    let clients = Clients { what, is_brief: false, accepted_per_s: None };
                    house.open_with(clients, listener, move |socket, guest, budget| {
                        serve(socket, &shared, guest, budget)
                    })?
                }
            });
        }
        let (kept, shut) = (Arc::clone(&nvme.shared), Arc::clone(&nvme.closing));
        nvme.doors.push(thread("keeper", move || keeper::keep(&kept, &shut))?);
        Ok(nvme)
    }

    /// The subsystem's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where hosts find it: of a port 0 it is known now which one it is.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }
}

impl Drop for Nvme {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        for bell in &self.bells {
            bell.ring(); // the accepting thread wakes, and sees the flag
        }
        self.shared.close_all();
        for door in self.doors.drain(..) {
            let _ = door.join(); // it has nothing to say
        }
    }
}
