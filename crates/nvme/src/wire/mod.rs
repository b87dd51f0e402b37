//! Structures on the wire, byte for byte: entries of queues, and the structures that commands
//! carry. Little endian.

mod page;

pub use page::Page;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A structure of the wire: its fields lie as they are written here, and have the specification's names.
macro_rules! wire {
    ($item:item) => {
        #[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the names are the specification's")]
        $item
    };
}
pub(crate) use wire;

wire! {
    /// An SGL descriptor: what data a command takes along, and how (Base 2.0, figure 110).
    #[derive(PartialEq, Eq, Default)]
    pub struct Sgl {
        pub address: U64,
        pub length: U32,
        pub reserved: [u8; 3],
        pub id: u8,
    }
}

/// SGL data block with an offset: the data is in the capsule.
pub const SGL_IN_CAPSULE: u8 = 0x01;
/// Transport SGL data block: the data follows, or comes back.
pub const SGL_TRANSPORT: u8 = 0x5a;

wire! {
    /// A submission queue entry (Base 2.0, figure 87).
    #[derive(PartialEq, Eq, Default)]
    pub struct Sqe {
        pub opcode: u8,
        pub flags: u8,
        pub cid: U16,
        pub nsid: U32,
        pub cdw2: U32,
        pub cdw3: U32,
        pub metadata: U64,
        pub sgl: Sgl,
        pub cdw10: U32,
        pub cdw11: U32,
        pub cdw12: U32,
        pub cdw13: U32,
        pub cdw14: U32,
        pub cdw15: U32,
    }
}

/// Bytes of a submission queue entry.
pub const SQE_BYTES: usize = size_of::<Sqe>();
/// The opcode of fabrics commands.
const FABRICS: u8 = 0x7f;

impl Sqe {
    /// Command dwords 10 and 11: where a command of an I/O queue begins.
    pub const fn start(&self) -> u64 {
        self.cdw10.get() as u64 | (self.cdw11.get() as u64) << 32
    }

    /// True of a fabrics command: what it says is in [`Sqe::fabrics`].
    pub const fn is_fabrics(&self) -> bool {
        self.opcode == FABRICS
    }

    /// The same entry as a fabrics command has it.
    pub fn fabrics(&self) -> FabricsSqe {
        zerocopy::transmute!(*self)
    }
}

wire! {
    /// A submission queue entry of a fabrics command (Base 2.0, figure 544): what lies where an I/O command has its dwords.
    pub struct FabricsSqe {
        pub opcode: u8,
        pub flags: u8,
        pub cid: U16,
        pub kind: u8,
        pub reserved: [u8; 19],
        pub sgl: Sgl,
        /// Connect: record format. Property: size. Authentication: protocol.
        pub word40: U16,
        /// Connect: queue.
        pub word42: U16,
        /// Connect: queue size. Property: offset, with the word behind.
        pub word44: U16,
        /// Connect: attributes.
        pub word46: U16,
        /// Connect: keep alive. Property: value.
        pub value: U64,
        pub reserved2: [u8; 8],
    }
}

wire! {
    /// A completion queue entry (Base 2.0, figure 92).
    #[derive(PartialEq, Eq, Default)]
    pub struct Cqe {
        pub result: U64,
        pub head: U16,
        pub queue: U16,
        pub cid: U16,
        pub status: U16,
    }
}

wire! {
    /// The data of Connect (Base 2.0, figure 547).
    pub struct ConnectData {
        pub host_id: [u8; 16],
        pub controller: U16,
        pub reserved: [u8; 238],
        pub subsystem: [u8; 256],
        pub host: [u8; 256],
        pub reserved2: [u8; 256],
    }
}

wire! {
    /// A range of Dataset Management (NVM Command Set 1.0, figure 40).
    #[derive(PartialEq, Eq, Default)]
    pub struct DsmRange {
        pub attributes: U32,
        pub blocks: U32,
        pub start: U64,
    }
}

wire! {
    /// A source range of a copy, format 0h (NVM Command Set 1.0, figure 33).
    #[derive(PartialEq, Eq, Default)]
    pub struct CopyRange {
        pub reserved: U64,
        pub start: U64,
        /// 0's based.
        pub blocks: U16,
        pub reserved2: [u8; 6],
        /// Of protection information.
        pub tags: [u8; 8],
    }
}

wire! {
    /// A zone descriptor (ZNS Command Set 1.1, figure 37).
    #[derive(PartialEq, Eq, Default)]
    pub struct ZoneDescriptor {
        pub kind: u8,
        pub state: u8,
        pub attributes: u8,
        pub information: u8,
        pub reserved: [u8; 4],
        pub capacity: U64,
        pub start: U64,
        pub write_pointer: U64,
        pub reserved2: [u8; 32],
    }
}

/// Bytes of a zone descriptor, and of the head of a report.
pub const ZONE_BYTES: usize = size_of::<ZoneDescriptor>();

const _: () = assert!(SQE_BYTES == 64 && size_of::<FabricsSqe>() == 64 && size_of::<Cqe>() == 16);
const _: () = assert!(size_of::<ConnectData>() == 1_024 && ZONE_BYTES == 64);
const _: () = assert!(size_of::<DsmRange>() == 16 && size_of::<CopyRange>() == 32);

/// A name in a field of 256 bytes: up to its first zero byte. `None` if it has none, or is no UTF-8.
pub fn name_of(field: &[u8; 256]) -> Option<&str> {
    let end = field.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&field[..end]).ok()
}
