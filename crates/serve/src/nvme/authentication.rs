//! The proof of a host's identity, queue by queue, before anything else.

use std::time::Duration;

use leyden_nvme::wire::Sqe;
use leyden_nvme::{Connected, Entropy, Exchange, Status, Wrong};

use super::house::State;
use super::reply::Replier;
use crate::random;

/// A host has proved who it is within this time, or goes: a slow one reckons with 8,192 bits.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// Bit 17 of the result of Connect: the queue takes nothing before its host is authenticated.
pub(super) const REQUIRED: u64 = 1 << 17;

/// The authentication of one queue's host.
#[derive(Default)]
pub(super) struct Authentication {
    /// `None` if nobody is asked who it is.
    exchange: Option<Exchange>,
}

impl Authentication {
    /// The authentication of a queue that was just connected.
    pub(super) fn of(state: &State, queue: Connected) -> Self {
        Self { exchange: state.subsystem.exchange(queue) }
    }

    /// True if the queue takes commands.
    pub(super) fn is_done(&self) -> bool {
        self.exchange.as_ref().is_none_or(Exchange::is_authenticated)
    }

    /// Whether a queue takes this before its host is known.
    pub(super) fn admits(&self, sqe: &Sqe) -> Result<(), Status> {
        let is_message = sqe.is_fabrics() && sqe.fabrics().is_authentication();
        if self.is_done() || is_message { Ok(()) } else { Err(Status::NOT_AUTHENTICATED) }
    }

    /// Takes a message of the host.
    pub(super) fn send(&mut self, data: &[u8], replier: Replier) {
        let Some(exchange) = &mut self.exchange else {
            return replier.end(Status::INVALID_OPCODE, 0);
        };
        match entropy() {
            Ok(entropy) => {
                exchange.send(data, entropy);
                replier.end(Status::SUCCESS, 0);
            }
            Err(_) => replier.end(Status::INTERNAL, 0),
        }
    }

    /// The message that is due to the host.
    pub(super) fn receive(&mut self, bytes: u32, replier: Replier) {
        let Some(exchange) = &mut self.exchange else {
            return replier.end(Status::INVALID_OPCODE, 0);
        };
        match exchange.receive(bytes as usize) {
            Ok(message) => replier.data(message, 0),
            Err(_) => replier.end(Status::INVALID_FIELD, 0),
        }
    }

    /// Ends the connection of a host that has not proved who it is.
    pub(super) fn verdict(&self) -> Result<(), Wrong> {
        match &self.exchange {
            Some(exchange) if exchange.is_over() => Err(exchange.wrong().unwrap_or(Wrong::Message)),
            _ => Ok(()),
        }
    }
}

/// Fresh chance for one exchange.
fn entropy() -> std::io::Result<Entropy> {
    let bytes = random::bytes::<132>()?;
    let (challenge, rest) = bytes.split_first_chunk::<64>().expect("132 bytes");
    let (exponent, rest) = rest.split_first_chunk::<64>().expect("68 bytes");
    let sequence = u32::from_le_bytes(*rest.first_chunk().expect("4 bytes")).max(1);
    Ok(Entropy { challenge: *challenge, exponent: *exponent, sequence })
}
