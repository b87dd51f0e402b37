//! The C interface of Leyden: a simulated SSD, in an image file that is opened in the caller's process, or served by
//! another one.
//!
//! Link with `-lleyden`. A worked example is in docs/c-interface.md.
//!
//! **Status.** Calls return a `leyden_status`: 0 is success and every other value is a failure. Positive values
//! are NVMe status fields (status code type in bits 10:8, status code in bits 7:0) and come from the drive;
//! negative values (`LEYDEN_E_*`) come from this library. `leyden_last_error` has a sentence about the last failure
//! of the calling thread. Pointers that a failed call would have written to are left alone unless its description
//! says otherwise.
//!
//! **Threads.** A drive may be used by any number of threads at once, and calls block until the drive has answered.
//! With the latency off, reads run side by side and everything else one at a time. `leyden_close` and
//! `leyden_abandon` must be the last call on a drive. A drive is useless in a child process after `fork`.
//!
//! **Addresses** are byte offsets on the drive. Offsets and lengths must be multiples of `block_bytes`
//! (`leyden_identify`). Zones are numbered from 0; zone `z` begins at `z * zone_size_bytes`.
//!
//! **Versions.** Structures that a caller hands over begin with their size, which the caller sets (`stats.size = sizeof
//! stats`); the library reads and writes no more than that. Later versions only add functions, constants, and fields
//! at the end of structures; otherwise `LEYDEN_ABI_VERSION` changes.
//!
//! **Durability.** A write is acknowledged when the drive's write buffer has it. It survives a power cut from then
//! on if the buffer protects it (`LEYDEN_REGION_FULL`; or `LEYDEN_REGION_SELECTIVE`, for writes with `LEYDEN_PLP` and for
//! whatever a Zone Random Write Area holds), and otherwise after a later `leyden_flush` or if it was written with
//! `LEYDEN_FUA`. Of a zone a prefix survives. A process that dies without `leyden_close` is a power cut at that
//! moment: the next `leyden_open` finds what the drive's capacitors saved.

use std::ffi::c_char;

/// The version of this interface. `leyden_abi_version` returns that of the library.
pub const LEYDEN_ABI_VERSION: u32 = 1;

/// The result of a call: see "Status" above.
pub type leyden_status = i32;

/// Success.
pub const LEYDEN_OK: leyden_status = 0;

// Failures of this library.

/// A null pointer, an unknown flag, a structure whose size was not set, or a length that is impossible.
pub const LEYDEN_E_ARGUMENT: leyden_status = -1;
/// There is no such image, scenario or zone.
pub const LEYDEN_E_NOT_FOUND: leyden_status = -2;
/// The file exists already: images are never overwritten.
pub const LEYDEN_E_EXISTS: leyden_status = -3;
/// The image is open, in this process or in another.
pub const LEYDEN_E_IN_USE: leyden_status = -4;
/// The file is no image, or one of another format version.
pub const LEYDEN_E_FOREIGN: leyden_status = -5;
/// Something in the image is not as it was written.
pub const LEYDEN_E_DAMAGED: leyden_status = -6;
/// The image was left in the midst of work by a version whose drive acts otherwise: open it once with that version.
pub const LEYDEN_E_DIVERGED: leyden_status = -7;
/// The drive's configuration is impossible.
pub const LEYDEN_E_CONFIG: leyden_status = -8;
/// The image cannot be read or written.
pub const LEYDEN_E_IO: leyden_status = -9;
/// The file system of the image is full. The command has not happened, and the drive goes on.
pub const LEYDEN_E_NO_SPACE: leyden_status = -10;
/// The power failed while the command was under way: it may have happened, in part or whole, or not.
pub const LEYDEN_E_POWER_LOST: leyden_status = -11;
/// The power is off (`leyden_restore`) or on (`leyden_cut`) already.
pub const LEYDEN_E_SWITCH: leyden_status = -12;
/// An earlier failure to write the image has stopped the drive: close it and open it again.
pub const LEYDEN_E_STOPPED: leyden_status = -13;
/// The call does not apply to a conventional drive.
pub const LEYDEN_E_NOT_ZONED: leyden_status = -14;
/// A bug in Leyden. The drive is stopped.
pub const LEYDEN_E_BUG: leyden_status = -15;
/// The server of the drive is gone, or what is at the address is none.
pub const LEYDEN_E_GONE: leyden_status = -16;

// NVMe status fields.

/// Invalid Command Opcode.
pub const LEYDEN_NVME_INVALID_OPCODE: leyden_status = 0x001;
/// Invalid Field in Command: no multiple of `block_bytes`, or `LEYDEN_PLP` on a drive that protects nothing.
pub const LEYDEN_NVME_INVALID_FIELD: leyden_status = 0x002;
/// Command Sequence Error: a protected write above unprotected data, if the drive refuses these.
pub const LEYDEN_NVME_SEQUENCE_ERROR: leyden_status = 0x00c;
/// LBA Out of Range.
pub const LEYDEN_NVME_LBA_OUT_OF_RANGE: leyden_status = 0x080;
/// Namespace Not Ready: the power is off.
pub const LEYDEN_NVME_NOT_READY: leyden_status = 0x082;
/// Command Size Limit Exceeded.
pub const LEYDEN_NVME_SIZE_LIMIT: leyden_status = 0x183;
/// Invalid Zone Operation Request: an append to a zone with a Zone Random Write Area, or such an area where there can
/// be none.
pub const LEYDEN_NVME_ZONE_INVALID_OPERATION: leyden_status = 0x1b6;
/// Zone Random Write Area Resources Unavailable: `zrwa_max` zones have one.
pub const LEYDEN_NVME_ZRWA_UNAVAILABLE: leyden_status = 0x1b7;
/// Zone Boundary Error: beyond the zone's capacity, or across zones.
pub const LEYDEN_NVME_ZONE_BOUNDARY: leyden_status = 0x1b8;
/// Zone Is Full.
pub const LEYDEN_NVME_ZONE_FULL: leyden_status = 0x1b9;
/// Zone Is Read Only.
pub const LEYDEN_NVME_ZONE_READ_ONLY: leyden_status = 0x1ba;
/// Zone Is Offline.
pub const LEYDEN_NVME_ZONE_OFFLINE: leyden_status = 0x1bb;
/// Zone Invalid Write: not at the write pointer, or outside the Zone Random Write Area.
pub const LEYDEN_NVME_ZONE_INVALID_WRITE: leyden_status = 0x1bc;
/// Too Many Active Zones.
pub const LEYDEN_NVME_TOO_MANY_ACTIVE: leyden_status = 0x1bd;
/// Too Many Open Zones.
pub const LEYDEN_NVME_TOO_MANY_OPEN: leyden_status = 0x1be;
/// Invalid Zone State Transition.
pub const LEYDEN_NVME_ZONE_INVALID_TRANSITION: leyden_status = 0x1bf;
/// Write Fault: the flash has no room left.
pub const LEYDEN_NVME_WRITE_FAULT: leyden_status = 0x280;
/// Unrecovered Read Error: the bytes in the image are not those that were written.
pub const LEYDEN_NVME_UNRECOVERED_READ: leyden_status = 0x281;

// Flags of writes and appends.

/// Force Unit Access: acknowledged when it survives a power cut.
pub const LEYDEN_FUA: u32 = 1;
/// Selective-PLP's flag: the data goes to the protected region of the buffer, and survives a power cut from its
/// acknowledgement on, with everything below it in its zone. Drives of region `LEYDEN_REGION_NONE` refuse it.
pub const LEYDEN_PLP: u32 = 2;

// Flags of `leyden_open`.

/// If the image was left by a process that died, leave the power off. By default it is turned on, and `leyden_open`
/// returns when the drive has recovered.
pub const LEYDEN_OPEN_POWER_OFF: u32 = 1;
/// Let `leyden cut`, `restore` and `status` reach this drive, through a socket beside the image (its name and
/// `.sock`).
pub const LEYDEN_OPEN_CONTROL: u32 = 2;

// Flags of `leyden_connect`.

/// Be the only program that claims the drive, for as long as it is connected: for a file system that must not be mounted
/// twice. Programs that do not claim it may use it meanwhile.
pub const LEYDEN_CONNECT_CLAIM: u32 = 1;

// Flags of `leyden_zone_open`.

/// Give the zone a Zone Random Write Area. The zone must be empty.
pub const LEYDEN_ZONE_ZRWA: u32 = 1;

// The part of the write buffer that capacitors protect.

/// Nothing.
pub const LEYDEN_REGION_NONE: u32 = 0;
/// A region of it, for writes that ask for it.
pub const LEYDEN_REGION_SELECTIVE: u32 = 1;
/// All of it.
pub const LEYDEN_REGION_FULL: u32 = 2;

// States of zones, with the numbers of the ZNS Command Set.

/// Empty.
pub const LEYDEN_ZONE_EMPTY: u32 = 0x1;
/// Implicitly Opened.
pub const LEYDEN_ZONE_IMPLICITLY_OPEN: u32 = 0x2;
/// Explicitly Opened.
pub const LEYDEN_ZONE_EXPLICITLY_OPEN: u32 = 0x3;
/// Closed.
pub const LEYDEN_ZONE_CLOSED: u32 = 0x4;
/// Read Only.
pub const LEYDEN_ZONE_READ_ONLY: u32 = 0xd;
/// Full.
pub const LEYDEN_ZONE_FULL: u32 = 0xe;
/// Offline.
pub const LEYDEN_ZONE_OFFLINE: u32 = 0xf;

// Attributes of zones.

/// It has a Zone Random Write Area (ZRWAV).
pub const LEYDEN_ZONE_HAS_ZRWA: u32 = 1;
/// The drive changed its state, and not the host (ZFC).
pub const LEYDEN_ZONE_CHANGED: u32 = 2;

/// No offset: the write pointer of a zone that cannot be written.
pub const LEYDEN_NO_OFFSET: u64 = u64::MAX;

/// A drive in an open image, or one that is served.
pub struct leyden_drive {
    _opaque: [u8; 0],
}

/// How an image is opened.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_open_options {
    /// `sizeof` this structure.
    pub size: u32,
    /// `LEYDEN_OPEN_*`.
    pub flags: u32,
    /// How fast the drive's time goes: 1 as the wall's, so that calls take the time that the modelled flash takes;
    /// 0.1 at a tenth of that speed. 0 turns the latency off: a call returns as soon as its effects have been
    /// computed, and reads take none of the drive's time.
    pub speed: f64,
    /// A file, which must not exist, to record what the drive is asked (`leyden recording`); NULL for none.
    pub record_path: *const c_char,
}

/// How a served drive is connected to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_connect_options {
    /// `sizeof` this structure.
    pub size: u32,
    /// `LEYDEN_CONNECT_*`.
    pub flags: u32,
}

/// The findings of opening an image.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_open_report {
    /// `sizeof` this structure.
    pub size: u32,
    /// 1 if the process that had the image last did not close it: a power cut (`leyden_last_cut`).
    pub was_killed: u32,
    /// Commands that were run again to get to the moment of its death.
    pub replayed_commands: u64,
}

/// The identity of a drive.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_identity {
    /// `sizeof` this structure.
    pub size: u32,
    /// 1 for a zoned drive, 0 for a conventional one, whose zone fields are 0.
    pub is_zoned: u32,
    /// Offsets and lengths of reads and writes are multiples of this: a logical block.
    pub block_bytes: u32,
    /// Bytes that are kept or lost as a whole: an aligned unit of this size is never torn.
    pub unit_bytes: u32,
    /// Bytes that can be addressed; of a zoned drive zones times their size.
    pub capacity_bytes: u64,
    /// The most bytes of a read or a write.
    pub transfer_max_bytes: u64,
    /// The part of the write buffer that capacitors protect: `LEYDEN_REGION_*`.
    pub region: u32,
    /// Zones.
    pub zone_count: u32,
    /// From the beginning of a zone to the next.
    pub zone_size_bytes: u64,
    /// Writable bytes of a zone.
    pub zone_capacity_bytes: u64,
    /// The most open zones.
    pub open_max: u32,
    /// The most active zones: open or closed.
    pub active_max: u32,
    /// The most bytes of an append.
    pub append_max_bytes: u64,
    /// Size of a Zone Random Write Area; 0 if there are none.
    pub zrwa_size_bytes: u64,
    /// Commits of an area are multiples of this.
    pub zrwa_granularity_bytes: u64,
    /// The most zones with such an area at once.
    pub zrwa_max: u32,
    /// 1 if a read may go from a zone into the next.
    pub reads_across_zones: u32,
    /// Size of the protected region of the write buffer, the room of Zone Random Write Areas included.
    pub protected_bytes: u64,
    /// Size of the rest of the write buffer.
    pub plain_bytes: u64,
}

/// A zone.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_zone {
    /// Its number.
    pub zone: u32,
    /// `LEYDEN_ZONE_EMPTY` and so on.
    pub state: u32,
    /// `LEYDEN_ZONE_HAS_ZRWA`, `LEYDEN_ZONE_CHANGED`.
    pub attributes: u32,
    /// 0.
    pub reserved: u32,
    /// Offset of its first byte.
    pub start_bytes: u64,
    /// Its writable bytes.
    pub capacity_bytes: u64,
    /// Offset of its write pointer; `LEYDEN_NO_OFFSET` if it is full, read-only or offline. A Zone Random Write Area
    /// begins there.
    pub write_pointer_bytes: u64,
    /// Bytes from its beginning that flash or the buffer holds. A full zone holds less than its capacity if it was
    /// finished, or if a power cut took its last data: the rest reads as zeroes.
    pub held_bytes: u64,
}

/// A power cut.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_cut_report {
    /// `sizeof` this structure.
    pub size: u32,
    /// Commands that were under way.
    pub interrupted_commands: u32,
    /// The drive's clock at that moment.
    pub time_ns: u64,
    /// Bytes of the host's data that were protected, and dumped.
    pub dumped_bytes: u64,
    /// How long the dump took.
    pub dump_ns: u64,
    /// Energy that it took from the capacitors.
    pub energy_nj: u64,
    /// Energy left in them.
    pub energy_left_nj: u64,
    /// Pages whose program the cut has torn.
    pub torn_pages: u64,
    /// Bytes that were promised to be kept and are lost, because the energy did not reach (`leyden_lost_ranges`). What
    /// was never promised is not counted.
    pub lost_bytes: u64,
    /// Number of ranges that they lie in.
    pub lost_ranges: u64,
}

/// A range of the drive.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_range {
    /// Offset of its first byte.
    pub offset_bytes: u64,
    /// Its length.
    pub length_bytes: u64,
}

/// How a drive came back.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_restore_report {
    /// `sizeof` this structure.
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Until it was ready, by its own clock.
    pub ready_ns: u64,
    /// Reading flash, of that time.
    pub scan_ns: u64,
    /// Charging the capacitors, of that time.
    pub charge_ns: u64,
    /// Pages read.
    pub scanned_pages: u64,
    /// Pages of the dump that were put back.
    pub restored_pages: u64,
}

/// Counters of a drive since its image was opened, and what it holds now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct leyden_stats {
    /// `sizeof` this structure.
    pub size: u32,
    /// 1 if the power is on.
    pub is_on: u32,
    /// The drive's clock.
    pub time_ns: u64,
    /// Reads by the host.
    pub reads: u64,
    /// Bytes of them.
    pub read_bytes: u64,
    /// Writes and appends by the host.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Flushes by the host.
    pub flushes: u64,
    /// Commands that failed.
    pub failures: u64,
    /// Bytes programmed to flash, padding included.
    pub programmed_bytes: u64,
    /// Bytes of padding: pages that a flush or FUA did not let fill.
    pub padded_bytes: u64,
    /// Pages that dumps have programmed.
    pub dumped_pages: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Blocks retired, or bad from the factory.
    pub bad_blocks: u64,
    /// Time that writes spent waiting for room in the buffer, summed over commands.
    pub stalled_ns: u64,
    /// Zones reset.
    pub zone_resets: u64,
    /// Flushes that had to wait for data to be programmed.
    pub flushes_waited: u64,
    /// Bytes that a reset took out of the protected region before they were programmed.
    pub discarded_protected_bytes: u64,
    /// Bytes in the protected region now, Zone Random Write Areas excluded.
    pub protected_bytes: u64,
    /// The most at once, with the room of Zone Random Write Areas.
    pub protected_peak_bytes: u64,
    /// Bytes in the rest of the buffer now.
    pub plain_bytes: u64,
    /// Open zones.
    pub open_zones: u32,
    /// Active zones, open ones among them.
    pub active_zones: u32,
    /// Bytes that the image takes up in its file system.
    pub image_bytes: u64,
    /// Bytes of its log since the last checkpoint.
    pub log_bytes: u64,
}
