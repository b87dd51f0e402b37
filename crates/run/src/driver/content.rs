//! The content of writes, and the check of what reads return.

use leyden_device::{Completion, Payload};
use leyden_sim::Time;
use leyden_workload::Request;

use super::{DriveError, Outage};

/// Supplies the content of writes and sees every completion. Called by the driver once per
/// submission and once per completion, in that order; `slot` names the command in between.
pub trait Content<P: Payload> {
    /// False if writes carry the default content and completions tell it nothing: the driver calls neither
    /// [`Content::submit`] nor [`Content::complete`] then.
    fn is_checked(&self) -> bool {
        true
    }
    /// A command is about to be submitted.
    fn submit(&mut self, slot: u32, now: Time, request: &Request) -> P::WriteData;
    /// Whether [`Content::unwritten`] does anything; always the same.
    #[inline]
    fn minds_unwritten(&self) -> bool {
        false
    }
    /// A cache could not write these mapping units out. Called before the completions of that moment.
    fn unwritten(&mut self, units: Vec<u32>) {
        let _ = units;
    }
    /// The command completed.
    fn complete(&mut self, slot: u32, completion: &Completion<P>) -> Result<(), DriveError>;
    /// The power was cut, and is back: none of the commands outstanding will complete. Yields how many
    /// mapping units have lost what was promised, if that can be told.
    fn cut(&mut self, outage: &Outage<P>) -> Result<Option<u64>, DriveError>;
}

/// Writes carry the default content; nobody looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

impl<P: Payload> Content<P> for Unchecked {
    fn is_checked(&self) -> bool {
        false
    }
    #[inline]
    fn submit(&mut self, _: u32, _: Time, _: &Request) -> P::WriteData {
        P::WriteData::default()
    }
    #[inline]
    fn complete(&mut self, _: u32, _: &Completion<P>) -> Result<(), DriveError> {
        Ok(())
    }
    fn cut(&mut self, _: &Outage<P>) -> Result<Option<u64>, DriveError> {
        Ok(None)
    }
}
