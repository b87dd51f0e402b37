//! The promise of a device at the end of a command.

use crate::{Op, Request};

/// The promise of an acknowledged write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Nothing, but with FUA: the buffer is not protected.
    None,
    /// That it is kept: the whole buffer is protected.
    Full,
    /// That it is kept, if it carried the PLP flag or FUA.
    Selective,
}

impl Promise {
    /// True if `request` is promised with its acknowledgement.
    pub(crate) fn at_once(self, request: &Request) -> bool {
        let fua = request.fua && request.op != Op::Trim;
        match self {
            Self::Full => true,
            Self::None => fua,
            Self::Selective => fua || request.plp,
        }
    }
}
