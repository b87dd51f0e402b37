//! What writes carry, and who looks at what reads return.

use leyden_device::{Completion, Payload};
use leyden_workload::Request;

use super::Violation;

/// Supplies the content of writes and sees every completion. Called by the driver once per
/// submission and once per completion, in that order; `slot` names the command in between.
pub trait Content<P: Payload> {
    /// A command is about to be submitted.
    fn submit(&mut self, slot: u32, request: &Request) -> P::WriteData;
    /// The command completed.
    fn complete(&mut self, slot: u32, completion: &Completion<P>) -> Result<(), Violation>;
}

/// Writes carry the default content; nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

impl<P: Payload> Content<P> for Unchecked {
    #[inline]
    fn submit(&mut self, _: u32, _: &Request) -> P::WriteData {
        P::WriteData::default()
    }
    #[inline]
    fn complete(&mut self, _: u32, _: &Completion<P>) -> Result<(), Violation> {
        Ok(())
    }
}
