//! NVMe: what commands say, what a controller answers, and how both travel over TCP and by a PCI function's queues.
//!
//! **What lives here**: entries of queues and pages of data as bytes ([`wire`]); commands of the NVM and ZNS sets as values
//! ([`Io`]); the subsystem with its controllers, which answers every admin and fabrics command ([`Subsystem`]); PDUs of
//! NVMe/TCP ([`tcp`]); a PCI function with its registers and queues, and the messages of vfio-user ([`pci`]). **What doesn't**: sockets, threads, clocks, drives. What a command does to data is the drive's.
//!
//! Sources: NVM Express Base 2.0, PCIe Transport 1.0, NVM Command Set 1.0, Zoned Namespace Command Set 1.1, TCP Transport 1.0.
//!
//! **Invariants**
//! - Whatever the bytes are, a parser returns a value or a status, and allocates no more than it was given.
//! - Each command is parsed once, and each has exactly one end.

mod admin;
mod auth;
mod controller;
mod events;
mod fabrics;
pub mod fuzz;
mod io;
mod namespace;
pub mod pci;
mod sample;
mod status;
mod subsystem;
pub mod tcp;
pub mod wire;
mod zones;

pub use admin::{Answer, Around, Health, transfer, wants_health};
pub use auth::{
    Entropy, Exchange, HostSecrets, MESSAGE_MOST, Secret, SecretError, Wrong, parse_secrets,
};
pub use controller::{Controller, QUEUE_MOST, QUEUES_MOST};
pub use events::Event;
pub use fabrics::{Connected, FabricsCommand, Property};
pub use io::{Io, Management, Ranges, Report, Transfer};
pub use namespace::{Fit, Namespace, TRANSFER_MOST, Zones};
pub use status::Status;
pub use subsystem::{DISCOVERY_NQN, NQN_MOST, Subsystem, SubsystemError};
pub use zones::{ZoneSeen, report};
