//! The configuration space of the function.

use super::{BAR_BYTES, PENDING_AT, TABLE_AT, VECTORS, VENDOR};
use crate::wire::Page;

/// Bytes of it.
pub(super) const CONFIG_BYTES: usize = 256;
/// The capability of message-signalled interrupts, MSI-X.
const MSI_X: usize = 0x40;
const BAR0: usize = 0x10;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct ConfigSpace {
    bytes: Vec<u8>,
    /// The bits of each byte that a host may write.
    writable: Vec<u8>,
}

impl Default for ConfigSpace {
    fn default() -> Self {
        let mut bytes = Page::new(CONFIG_BYTES);
        bytes
            .u16(0, VENDOR)
            .u16(2, 1)
            .u16(6, 1 << 4) // capabilities
            .u8(8, 1)
            .bytes(9, &[0x02, 0x08, 0x01]) // NVM Express, of non-volatile memory, of mass storage
            .u32(BAR0, 1 << 2) // memory with addresses of 64 bits
            .u16(0x2c, VENDOR)
            .u16(0x2e, 1)
            .u8(0x34, MSI_X as u8)
            .u8(MSI_X, 0x11)
            .u16(MSI_X + 2, VECTORS - 1)
            .u32(MSI_X + 4, TABLE_AT as u32)
            .u32(MSI_X + 8, PENDING_AT as u32);
        let mut writable = Page::new(CONFIG_BYTES);
        writable
            .u16(4, 0x0546) // memory, bus master, parity, SERR, no INTx
            .u8(0x0c, 0xff)
            .u32(BAR0, !(BAR_BYTES as u32 - 1)) // the bits that stay are its size
            .u32(BAR0 + 4, u32::MAX)
            .u8(0x3c, 0xff)
            .u16(MSI_X + 2, 3 << 14);
        Self { bytes: bytes.into_bytes(), writable: writable.into_bytes() }
    }
}

impl ConfigSpace {
    /// The bytes there; the range is within it.
    pub(super) fn read(&self, at: usize, count: usize) -> Vec<u8> {
        self.bytes[at..at + count].to_vec()
    }

    /// Writes the bits that can be written.
    pub(super) fn write(&mut self, at: usize, data: &[u8]) {
        for (place, &byte) in (at..).zip(data) {
            let mask = self.writable[place];
            self.bytes[place] = self.bytes[place] & !mask | byte & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_function_that_nvme_drivers_look_for() {
        let config = ConfigSpace::default();
        assert_eq!(config.read(9, 3), [2, 8, 1], "programming interface, subclass, class");
        assert_eq!((config.read(6, 1)[0] & 0x10, config.read(0x34, 1)[0]), (0x10, 0x40));
        assert_eq!(config.read(0x40, 12), [0x11, 0, 16, 0, 0, 0x20, 0, 0, 0, 0x30, 0, 0]);
        assert_eq!(config.read(0x3d, 1), [0], "no interrupt pin");
    }

    #[test]
    fn a_host_finds_the_size_of_the_registers_and_changes_nothing_else() {
        let mut config = ConfigSpace::default();
        config.write(0, &[0xff; CONFIG_BYTES]);
        assert_eq!(config.read(0x10, 8), [4, 0xc0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "16 KiB");
        assert_eq!(config.read(0x14 + 4, 16), [0; 16], "no others");
        assert_eq!(config.read(0, 4), [0x59, 0x4c, 1, 0]);
        assert_eq!(config.read(0x42, 2), [16, 0xc0], "enabled and masked");
        assert_eq!(config.read(0x30, 4), [0; 4], "no ROM");
    }
}
