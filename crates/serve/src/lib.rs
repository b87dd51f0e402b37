//! A drive in real time, for clients of all kinds.
//!
//! **What lives here**: the thread that owns the drive and its clock ([`owner`]); the session of a client ([`session`]) with
//! its memory ([`budget`]) and its place ([`guests`]), and the protocols that it speaks: NBD ([`nbd`]), that of programs
//! with the C interface ([`programs`]), NVMe over TCP ([`nvme`]), and HTTP ([`http`]); FUSE ([`fuse`]) and the control socket ([`control`]), where the
//! switch is ([`switch`]), and errors that come and go ([`faults`]); TLS for NBD ([`tls`]); and the other side of [`programs`]: [`Remote`]. **What doesn't**: wire formats (`leyden-wire`), the drive and its file
//! (`leyden-image`).
//!
//! **Invariants**
//! - One thread has the drive. Everyone else sends it messages and is answered, each command once.
//! - What clients have under way is bounded, for each of them and for all, in commands and in bytes. A client that
//!   does not read its answers stops only itself.
//! - No error of a client ends anything but that client's connection.

pub mod about;
mod ask;
mod budget;
mod clock;
pub mod control;
mod control_socket;
mod cuts;
mod direct;
mod engine;
mod faults;
mod fuse;
pub mod fuzz;
mod guests;
mod http;
mod latencies;
mod listen;
mod nbd;
mod negotiating;
mod nvme;
mod owner;
mod pacing;
mod programs;
mod random;
mod remote;
mod server;
mod session;
mod stream;
mod switch;
mod tls;

pub use ask::{Answer, Ask, Failure};
pub use budget::{Limits, TooLittle};
pub use clock::Pace;
pub use control_socket::ControlSocket;
pub use direct::{Call, Counts, Direct, DirectError};
pub use engine::lies::Lies;
pub use fuse::{Blocks, Mount};
pub use http::{
    Campaign, CampaignFacts, CampaignFailure, CampaignNews, Http, HttpError, HttpOptions,
    ServedKind, ServedMetric, campaign_metrics, served_metrics,
};
pub use leyden_device::{FaultReport, FaultRule};
pub use leyden_nvme::{HostSecrets, Secret, SecretError, parse_secrets};
pub use listen::{Access, Listen};
pub use nvme::{CutMode, Nvme, NvmeError, NvmeOptions};
pub use owner::Handle;
pub use remote::{Outcome, Remote, RemoteError};
pub use server::{ServeError, Server, ServerOptions};
pub use switch::{
    Answer as ControlAnswer, Ask as ControlAsk, CostReport, CutReport, HOST_SHARE_MOST,
    LayerReport, RestoreReport, StatusReport,
};
pub use tls::{Tls, TlsError, TlsFiles};
