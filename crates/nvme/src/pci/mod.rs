//! A controller as a PCI function, as clients of vfio-user find it.
//!
//! **What lives here**: messages ([`Request`]); configuration space, registers and doorbells ([`Function`]); queues in the
//! host's memory; the pages of a command's data ([`pages`]). **What doesn't**: sockets, the host's memory itself
//! ([`Memory`]), interrupts, and what commands mean.
//!
//! Sources: NVM Express Base 2.0, PCIe Transport 1.0; PCI Local Bus 3.0; the vfio-user specification of QEMU.
//!
//! **Invariants**
//! - Registers, doorbells and pages may hold anything: each is answered with a status, an event or a fatal status.
//! - A completion goes to the queue that its command came from, or nowhere once that was deleted or reset.

mod config;
mod function;
mod message;
mod prp;
mod queues;

pub use function::{Function, Region};
pub use message::{
    FILES_MOST, HEADER_BYTES, Header, IrqChange, MESSAGE_MOST, Refused, Request, device_info,
    irq_info, region_info, version,
};
pub use prp::{Prps, pages, transfer};
pub use queues::{Origin, Taken};

/// A vendor number that nobody has: hosts find the drive by its class.
pub(crate) const VENDOR: u16 = 0x4c59;
/// Interrupt vectors: one for each queue.
pub const VECTORS: u16 = crate::QUEUES_MOST + 1;
/// Opcodes of admin commands that make and delete queues.
pub const QUEUE_OPCODES: [u8; 4] = [0x00, 0x01, 0x04, 0x05];
/// Bytes of a page of the host's memory: CC.MPS is 0.
pub const PAGE_BYTES: u64 = 4_096;

/// Bytes of the registers' region, and where in it the doorbells and the interrupt tables are.
const BAR_BYTES: u64 = 16 << 10;
const DOORBELLS_AT: u64 = 0x1000;
const TABLE_AT: u64 = 0x2000;
const PENDING_AT: u64 = 0x3000;

/// The memory of a host.
pub trait Memory {
    /// Reads what is at `address`.
    ///
    /// # Errors
    /// If not all of it is there.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable>;
    /// Writes there.
    ///
    /// # Errors
    /// If not all of it is there.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Unreachable>;
}

/// Memory that the host has not given, or has taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable;

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Memory from 0 on.
    pub(crate) struct Flat(pub(crate) RefCell<Vec<u8>>);

    impl Flat {
        pub(crate) fn new(bytes: usize) -> Self {
            Self(RefCell::new(vec![0; bytes]))
        }
        pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
            self.0.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
        }
        pub(crate) fn get<const N: usize>(&self, at: usize) -> [u8; N] {
            self.0.borrow()[at..at + N].try_into().unwrap()
        }
    }

    impl Memory for Flat {
        fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
            let memory = self.0.borrow();
            let from = memory.get(address as usize..).ok_or(Unreachable)?;
            bytes.copy_from_slice(from.get(..bytes.len()).ok_or(Unreachable)?);
            Ok(())
        }
        fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
            let mut memory = self.0.borrow_mut();
            let to = memory.get_mut(address as usize..).ok_or(Unreachable)?;
            to.get_mut(..bytes.len()).ok_or(Unreachable)?.copy_from_slice(bytes);
            Ok(())
        }
    }
}
