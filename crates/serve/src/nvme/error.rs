//! Ends of connections that their hosts did not ask for.

use std::io;

use leyden_nvme::Wrong;
use leyden_nvme::tcp::Fatal;
use thiserror::Error;

/// Why a connection has ended before its host went.
#[derive(Debug, Error)]
pub(crate) enum ConnectionError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The host does not speak the protocol.
    #[error(transparent)]
    Fatal(#[from] Fatal),
    /// The host has not proved its identity, or does not accept the controller's.
    #[error("authentication has failed: {0}")]
    Unproved(#[from] Wrong),
    /// It was invited to send data, and has not.
    #[error("the host does not send the data that it was invited to send")]
    Overdue,
}
