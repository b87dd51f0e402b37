/**
 * The C interface of Leyden: a simulated SSD, in an image file that is opened in the caller's process, or served by
 * another one.
 *
 * Link with `-lleyden`. A worked example is in docs/c-interface.md.
 *
 * **Status.** Calls return a `leyden_status`: 0 is success and every other value is a failure. Positive values
 * are NVMe status fields (status code type in bits 10:8, status code in bits 7:0) and come from the drive;
 * negative values (`LEYDEN_E_*`) come from this library. `leyden_last_error` has a sentence about the last failure
 * of the calling thread. Pointers that a failed call would have written to are left alone unless its description
 * says otherwise.
 *
 * **Threads.** A drive may be used by any number of threads at once, and calls block until the drive has answered.
 * With the latency off, reads run side by side and everything else one at a time. `leyden_close` and
 * `leyden_abandon` must be the last call on a drive. A drive is useless in a child process after `fork`.
 *
 * **Addresses** are byte offsets on the drive. Offsets and lengths must be multiples of `block_bytes`
 * (`leyden_identify`). Zones are numbered from 0; zone `z` begins at `z * zone_size_bytes`.
 *
 * **Versions.** Structures that a caller hands over begin with their size, which the caller sets (`stats.size = sizeof
 * stats`); the library reads and writes no more than that. Later versions only add functions, constants, and fields
 * at the end of structures; otherwise `LEYDEN_ABI_VERSION` changes.
 *
 * **Durability.** A write is acknowledged when the drive's write buffer has it. It survives a power cut from then
 * on if the buffer protects it (`LEYDEN_REGION_FULL`; or `LEYDEN_REGION_SELECTIVE`, for writes with `LEYDEN_PLP` and for
 * whatever a Zone Random Write Area holds), and otherwise after a later `leyden_flush` or if it was written with
 * `LEYDEN_FUA`. Of a zone a prefix survives. A process that dies without `leyden_close` is a power cut at that
 * moment: the next `leyden_open` finds what the drive's capacitors saved.
 */
/* Made by `cargo xtask header` from crates/capi/src: change that. */

#ifndef LEYDEN_H
#define LEYDEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface. `leyden_abi_version` returns that of the library. */
#define LEYDEN_ABI_VERSION UINT32_C(1)

/** The result of a call: see "Status" above. */
typedef int32_t leyden_status;

/** Success. */
#define LEYDEN_OK ((leyden_status)0)

/* ---- Failures of this library. ---- */

/** A null pointer, an unknown flag, a structure whose size was not set, or a length that is impossible. */
#define LEYDEN_E_ARGUMENT ((leyden_status)-1)

/** There is no such image, scenario or zone. */
#define LEYDEN_E_NOT_FOUND ((leyden_status)-2)

/** The file exists already: images are never overwritten. */
#define LEYDEN_E_EXISTS ((leyden_status)-3)

/** The image is open, in this process or in another. */
#define LEYDEN_E_IN_USE ((leyden_status)-4)

/** The file is no image, or one of another format version. */
#define LEYDEN_E_FOREIGN ((leyden_status)-5)

/** Something in the image is not as it was written. */
#define LEYDEN_E_DAMAGED ((leyden_status)-6)

/** The image was left in the midst of work by a version whose drive acts otherwise: open it once with that version. */
#define LEYDEN_E_DIVERGED ((leyden_status)-7)

/** The drive's configuration is impossible. */
#define LEYDEN_E_CONFIG ((leyden_status)-8)

/** The image cannot be read or written. */
#define LEYDEN_E_IO ((leyden_status)-9)

/** The file system of the image is full. The command has not happened, and the drive goes on. */
#define LEYDEN_E_NO_SPACE ((leyden_status)-10)

/** The power failed while the command was under way: it may have happened, in part or whole, or not. */
#define LEYDEN_E_POWER_LOST ((leyden_status)-11)

/** The power is off (`leyden_restore`) or on (`leyden_cut`) already. */
#define LEYDEN_E_SWITCH ((leyden_status)-12)

/** An earlier failure to write the image has stopped the drive: close it and open it again. */
#define LEYDEN_E_STOPPED ((leyden_status)-13)

/** The call does not apply to a conventional drive. */
#define LEYDEN_E_NOT_ZONED ((leyden_status)-14)

/** A bug in Leyden. The drive is stopped. */
#define LEYDEN_E_BUG ((leyden_status)-15)

/** The server of the drive is gone, or what is at the address is none. */
#define LEYDEN_E_GONE ((leyden_status)-16)

/* ---- NVMe status fields. ---- */

/** Invalid Command Opcode. */
#define LEYDEN_NVME_INVALID_OPCODE ((leyden_status)0x001)

/** Invalid Field in Command: no multiple of `block_bytes`, or `LEYDEN_PLP` on a drive that protects nothing. */
#define LEYDEN_NVME_INVALID_FIELD ((leyden_status)0x002)

/** Command Sequence Error: a protected write above unprotected data, if the drive refuses these. */
#define LEYDEN_NVME_SEQUENCE_ERROR ((leyden_status)0x00c)

/** LBA Out of Range. */
#define LEYDEN_NVME_LBA_OUT_OF_RANGE ((leyden_status)0x080)

/** Namespace Not Ready: the power is off. */
#define LEYDEN_NVME_NOT_READY ((leyden_status)0x082)

/** Command Size Limit Exceeded. */
#define LEYDEN_NVME_SIZE_LIMIT ((leyden_status)0x183)

/**
 * Invalid Zone Operation Request: an append to a zone with a Zone Random Write Area, or such an area where there can
 * be none.
 */
#define LEYDEN_NVME_ZONE_INVALID_OPERATION ((leyden_status)0x1b6)

/** Zone Random Write Area Resources Unavailable: `zrwa_max` zones have one. */
#define LEYDEN_NVME_ZRWA_UNAVAILABLE ((leyden_status)0x1b7)

/** Zone Boundary Error: beyond the zone's capacity, or across zones. */
#define LEYDEN_NVME_ZONE_BOUNDARY ((leyden_status)0x1b8)

/** Zone Is Full. */
#define LEYDEN_NVME_ZONE_FULL ((leyden_status)0x1b9)

/** Zone Is Read Only. */
#define LEYDEN_NVME_ZONE_READ_ONLY ((leyden_status)0x1ba)

/** Zone Is Offline. */
#define LEYDEN_NVME_ZONE_OFFLINE ((leyden_status)0x1bb)

/** Zone Invalid Write: not at the write pointer, or outside the Zone Random Write Area. */
#define LEYDEN_NVME_ZONE_INVALID_WRITE ((leyden_status)0x1bc)

/** Too Many Active Zones. */
#define LEYDEN_NVME_TOO_MANY_ACTIVE ((leyden_status)0x1bd)

/** Too Many Open Zones. */
#define LEYDEN_NVME_TOO_MANY_OPEN ((leyden_status)0x1be)

/** Invalid Zone State Transition. */
#define LEYDEN_NVME_ZONE_INVALID_TRANSITION ((leyden_status)0x1bf)

/** Write Fault: the flash has no room left. */
#define LEYDEN_NVME_WRITE_FAULT ((leyden_status)0x280)

/** Unrecovered Read Error: the bytes in the image are not those that were written. */
#define LEYDEN_NVME_UNRECOVERED_READ ((leyden_status)0x281)

/* ---- Flags of writes and appends. ---- */

/** Force Unit Access: acknowledged when it survives a power cut. */
#define LEYDEN_FUA UINT32_C(1)

/**
 * Selective-PLP's flag: the data goes to the protected region of the buffer, and survives a power cut from its
 * acknowledgement on, with everything below it in its zone. Drives of region `LEYDEN_REGION_NONE` refuse it.
 */
#define LEYDEN_PLP UINT32_C(2)

/* ---- Flags of `leyden_open`. ---- */

/**
 * If the image was left by a process that died, leave the power off. By default it is turned on, and `leyden_open`
 * returns when the drive has recovered.
 */
#define LEYDEN_OPEN_POWER_OFF UINT32_C(1)

/**
 * Let `leyden cut`, `restore` and `status` reach this drive, through a socket beside the image (its name and
 * `.sock`).
 */
#define LEYDEN_OPEN_CONTROL UINT32_C(2)

/* ---- Flags of `leyden_connect`. ---- */

/**
 * Be the only program that claims the drive, for as long as it is connected: for a file system that must not be mounted
 * twice. Programs that do not claim it may use it meanwhile.
 */
#define LEYDEN_CONNECT_CLAIM UINT32_C(1)

/* ---- Flags of `leyden_zone_open`. ---- */

/** Give the zone a Zone Random Write Area. The zone must be empty. */
#define LEYDEN_ZONE_ZRWA UINT32_C(1)

/* ---- The part of the write buffer that capacitors protect. ---- */

/** Nothing. */
#define LEYDEN_REGION_NONE UINT32_C(0)

/** A region of it, for writes that ask for it. */
#define LEYDEN_REGION_SELECTIVE UINT32_C(1)

/** All of it. */
#define LEYDEN_REGION_FULL UINT32_C(2)

/* ---- States of zones, with the numbers of the ZNS Command Set. ---- */

/** Empty. */
#define LEYDEN_ZONE_EMPTY UINT32_C(0x1)

/** Implicitly Opened. */
#define LEYDEN_ZONE_IMPLICITLY_OPEN UINT32_C(0x2)

/** Explicitly Opened. */
#define LEYDEN_ZONE_EXPLICITLY_OPEN UINT32_C(0x3)

/** Closed. */
#define LEYDEN_ZONE_CLOSED UINT32_C(0x4)

/** Read Only. */
#define LEYDEN_ZONE_READ_ONLY UINT32_C(0xd)

/** Full. */
#define LEYDEN_ZONE_FULL UINT32_C(0xe)

/** Offline. */
#define LEYDEN_ZONE_OFFLINE UINT32_C(0xf)

/* ---- Attributes of zones. ---- */

/** It has a Zone Random Write Area (ZRWAV). */
#define LEYDEN_ZONE_HAS_ZRWA UINT32_C(1)

/** The drive changed its state, and not the host (ZFC). */
#define LEYDEN_ZONE_CHANGED UINT32_C(2)

/** No offset: the write pointer of a zone that cannot be written. */
#define LEYDEN_NO_OFFSET UINT64_MAX

/** A drive in an open image, or one that is served. */
typedef struct leyden_drive leyden_drive;

/** How an image is opened. */
typedef struct leyden_open_options {
    /** `sizeof` this structure. */
    uint32_t size;
    /** `LEYDEN_OPEN_*`. */
    uint32_t flags;
    /**
     * How fast the drive's time goes: 1 as the wall's, so that calls take the time that the modelled flash takes;
     * 0.1 at a tenth of that speed. 0 turns the latency off: a call returns as soon as its effects have been
     * computed, and reads take none of the drive's time.
     */
    double speed;
    /** A file, which must not exist, to record what the drive is asked (`leyden recording`); NULL for none. */
    const char *record_path;
} leyden_open_options;

/** How a served drive is connected to. */
typedef struct leyden_connect_options {
    /** `sizeof` this structure. */
    uint32_t size;
    /** `LEYDEN_CONNECT_*`. */
    uint32_t flags;
} leyden_connect_options;

/** The findings of opening an image. */
typedef struct leyden_open_report {
    /** `sizeof` this structure. */
    uint32_t size;
    /** 1 if the process that had the image last did not close it: a power cut (`leyden_last_cut`). */
    uint32_t was_killed;
    /** Commands that were run again to get to the moment of its death. */
    uint64_t replayed_commands;
} leyden_open_report;

/** The identity of a drive. */
typedef struct leyden_identity {
    /** `sizeof` this structure. */
    uint32_t size;
    /** 1 for a zoned drive, 0 for a conventional one, whose zone fields are 0. */
    uint32_t is_zoned;
    /** Offsets and lengths of reads and writes are multiples of this: a logical block. */
    uint32_t block_bytes;
    /** Bytes that are kept or lost as a whole: an aligned unit of this size is never torn. */
    uint32_t unit_bytes;
    /** Bytes that can be addressed; of a zoned drive zones times their size. */
    uint64_t capacity_bytes;
    /** The most bytes of a read or a write. */
    uint64_t transfer_max_bytes;
    /** The part of the write buffer that capacitors protect: `LEYDEN_REGION_*`. */
    uint32_t region;
    /** Zones. */
    uint32_t zone_count;
    /** From the beginning of a zone to the next. */
    uint64_t zone_size_bytes;
    /** Writable bytes of a zone. */
    uint64_t zone_capacity_bytes;
    /** The most open zones. */
    uint32_t open_max;
    /** The most active zones: open or closed. */
    uint32_t active_max;
    /** The most bytes of an append. */
    uint64_t append_max_bytes;
    /** Size of a Zone Random Write Area; 0 if there are none. */
    uint64_t zrwa_size_bytes;
    /** Commits of an area are multiples of this. */
    uint64_t zrwa_granularity_bytes;
    /** The most zones with such an area at once. */
    uint32_t zrwa_max;
    /** 1 if a read may go from a zone into the next. */
    uint32_t reads_across_zones;
    /** Size of the protected region of the write buffer, the room of Zone Random Write Areas included. */
    uint64_t protected_bytes;
    /** Size of the rest of the write buffer. */
    uint64_t plain_bytes;
} leyden_identity;

/** A zone. */
typedef struct leyden_zone {
    /** Its number. */
    uint32_t zone;
    /** `LEYDEN_ZONE_EMPTY` and so on. */
    uint32_t state;
    /** `LEYDEN_ZONE_HAS_ZRWA`, `LEYDEN_ZONE_CHANGED`. */
    uint32_t attributes;
    /** 0. */
    uint32_t reserved;
    /** Offset of its first byte. */
    uint64_t start_bytes;
    /** Its writable bytes. */
    uint64_t capacity_bytes;
    /**
     * Offset of its write pointer; `LEYDEN_NO_OFFSET` if it is full, read-only or offline. A Zone Random Write Area
     * begins there.
     */
    uint64_t write_pointer_bytes;
    /**
     * Bytes from its beginning that flash or the buffer holds. A full zone holds less than its capacity if it was
     * finished, or if a power cut took its last data: the rest reads as zeroes.
     */
    uint64_t held_bytes;
} leyden_zone;

/** A power cut. */
typedef struct leyden_cut_report {
    /** `sizeof` this structure. */
    uint32_t size;
    /** Commands that were under way. */
    uint32_t interrupted_commands;
    /** The drive's clock at that moment. */
    uint64_t time_ns;
    /** Bytes of the host's data that were protected, and dumped. */
    uint64_t dumped_bytes;
    /** How long the dump took. */
    uint64_t dump_ns;
    /** Energy that it took from the capacitors. */
    uint64_t energy_nj;
    /** Energy left in them. */
    uint64_t energy_left_nj;
    /** Pages whose program the cut has torn. */
    uint64_t torn_pages;
    /**
     * Bytes that were promised to be kept and are lost, because the energy did not reach (`leyden_lost_ranges`). What
     * was never promised is not counted.
     */
    uint64_t lost_bytes;
    /** Number of ranges that they lie in. */
    uint64_t lost_ranges;
} leyden_cut_report;

/** A range of the drive. */
typedef struct leyden_range {
    /** Offset of its first byte. */
    uint64_t offset_bytes;
    /** Its length. */
    uint64_t length_bytes;
} leyden_range;

/** How a drive came back. */
typedef struct leyden_restore_report {
    /** `sizeof` this structure. */
    uint32_t size;
    /** 0. */
    uint32_t reserved;
    /** Until it was ready, by its own clock. */
    uint64_t ready_ns;
    /** Reading flash, of that time. */
    uint64_t scan_ns;
    /** Charging the capacitors, of that time. */
    uint64_t charge_ns;
    /** Pages read. */
    uint64_t scanned_pages;
    /** Pages of the dump that were put back. */
    uint64_t restored_pages;
} leyden_restore_report;

/** Counters of a drive since its image was opened, and what it holds now. */
typedef struct leyden_stats {
    /** `sizeof` this structure. */
    uint32_t size;
    /** 1 if the power is on. */
    uint32_t is_on;
    /** The drive's clock. */
    uint64_t time_ns;
    /** Reads by the host. */
    uint64_t reads;
    /** Bytes of them. */
    uint64_t read_bytes;
    /** Writes and appends by the host. */
    uint64_t writes;
    /** Bytes of them. */
    uint64_t written_bytes;
    /** Flushes by the host. */
    uint64_t flushes;
    /** Commands that failed. */
    uint64_t failures;
    /** Bytes programmed to flash, padding included. */
    uint64_t programmed_bytes;
    /** Bytes of padding: pages that a flush or FUA did not let fill. */
    uint64_t padded_bytes;
    /** Pages that dumps have programmed. */
    uint64_t dumped_pages;
    /** Blocks erased. */
    uint64_t erases;
    /** Blocks retired, or bad from the factory. */
    uint64_t bad_blocks;
    /** Time that writes spent waiting for room in the buffer, summed over commands. */
    uint64_t stalled_ns;
    /** Zones reset. */
    uint64_t zone_resets;
    /** Flushes that had to wait for data to be programmed. */
    uint64_t flushes_waited;
    /** Bytes that a reset took out of the protected region before they were programmed. */
    uint64_t discarded_protected_bytes;
    /** Bytes in the protected region now, Zone Random Write Areas excluded. */
    uint64_t protected_bytes;
    /** The most at once, with the room of Zone Random Write Areas. */
    uint64_t protected_peak_bytes;
    /** Bytes in the rest of the buffer now. */
    uint64_t plain_bytes;
    /** Open zones. */
    uint32_t open_zones;
    /** Active zones, open ones among them. */
    uint32_t active_zones;
    /** Bytes that the image takes up in its file system. */
    uint64_t image_bytes;
    /** Bytes of its log since the last checkpoint. */
    uint64_t log_bytes;
} leyden_stats;

/* ---- Versions and errors. ---- */

/** The version of the interface that this library has: compare it with `LEYDEN_ABI_VERSION`. */
uint32_t leyden_abi_version(void);

/** The version of Leyden, as text. */
const char *leyden_version(void);

/** The name of a status, such as "Zone Is Full"; never NULL. */
const char *leyden_status_name(leyden_status status);

/**
 * The message of this thread's last failed call, with its remedy; an empty text if none has
 * failed. It is valid until the next failing call of this thread. Never NULL.
 */
const char *leyden_last_error(void);

/* ---- Images. ---- */

/**
 * Makes an image with an empty drive, at `path`.
 *
 * `drive` names a scenario whose table `[device]` describes it: a file, or a bundled one such as "devices/zns".
 * `settings` are `setting_count` texts that change it, such as "device.zoned.zrwa.count=8", or "seed=7"; NULL for
 * none. A drive without a table `[device.power]` gets the default one.
 *
 * Fails with `LEYDEN_E_EXISTS`, `LEYDEN_E_NOT_FOUND`, `LEYDEN_E_CONFIG`, `LEYDEN_E_NO_SPACE` or `LEYDEN_E_IO`; there is no
 * image then.
 */
leyden_status leyden_create(
    const char *path,
    const char *drive,
    const char *const *settings,
    size_t setting_count);

/**
 * Opens the image at `path`, and puts its drive into `*drive`.
 *
 * `options` may be NULL: latency off. `report` may be NULL. If the process that had the image last did not close
 * it, that was a power cut: the drive is brought to the moment of its death, the capacitors save what they reach, and
 * the power is turned on again, unless `LEYDEN_OPEN_POWER_OFF` is given.
 *
 * Fails with `LEYDEN_E_NOT_FOUND`, `LEYDEN_E_IN_USE`, `LEYDEN_E_FOREIGN`, `LEYDEN_E_DAMAGED`, `LEYDEN_E_DIVERGED`,
 * `LEYDEN_E_EXISTS` (the recording) or `LEYDEN_E_IO`; `*drive` is NULL then.
 */
leyden_status leyden_open(
    const char *path,
    const leyden_open_options *options,
    leyden_open_report *report,
    leyden_drive **drive);

/**
 * Connects to a drive that another process serves (`leyden serve IMAGE --programs unix:PATH`), and puts it into
 * `*drive`. `address` is `unix:PATH`. `options` may be NULL.
 *
 * All calls on it do what they do on a drive in an image, for any number of programs at once. When the server is
 * gone they fail with `LEYDEN_E_GONE`, those under way too: whether these have happened is not known. If it was killed, that
 * was a power cut. Serve the image again, and connect again.
 *
 * Fails with `LEYDEN_E_NOT_FOUND` (nobody serves a drive there), `LEYDEN_E_IN_USE` (`LEYDEN_CONNECT_CLAIM`, and
 * somebody else has claimed it), `LEYDEN_E_FOREIGN` (the server speaks another version), `LEYDEN_E_ARGUMENT` or
 * `LEYDEN_E_GONE`; `*drive` is NULL then.
 */
leyden_status leyden_connect(
    const char *address,
    const leyden_connect_options *options,
    leyden_drive **drive);

/**
 * Lets the drive come to rest, and closes the image; hangs up on a served drive, which goes on. The handle is gone even if that fails; the next
 * opening is a power cut then. NULL is ignored.
 */
leyden_status leyden_close(leyden_drive *drive);

/**
 * Leaves the image as if this process were killed now: the next opening is a power cut at this moment. A served drive
 * goes on. The handle is gone. NULL is ignored.
 */
void leyden_abandon(leyden_drive *drive);

/* ---- The drive. ---- */

/** The drive's sizes and limits, and the part of its buffer that capacitors protect. */
leyden_status leyden_identify(leyden_drive *drive, leyden_identity *identity);

/** Counters, and what the drive holds now. */
leyden_status leyden_get_stats(leyden_drive *drive, leyden_stats *stats);

/**
 * Every counter of every layer as JSON, with a final NUL. `*needed_bytes` becomes the size that it takes. If
 * `buffer_bytes` is less, as much as fits is written, and a NUL; `buffer` may be NULL if it is 0.
 */
leyden_status leyden_get_stats_json(
    leyden_drive *drive,
    char *buffer,
    size_t buffer_bytes,
    size_t *needed_bytes);

/** Notes a text in the recording, in order with the drive's commands. Without a recording it goes nowhere. */
leyden_status leyden_mark(leyden_drive *drive, const char *text, size_t text_bytes);

/* ---- Reading and writing. ---- */

/**
 * Reads `length_bytes` bytes from `offset_bytes` on. What was never written reads as zeroes, in zones everything above
 * what they hold.
 */
leyden_status leyden_read(leyden_drive *drive, uint64_t offset_bytes, void *buffer, size_t length_bytes);

/**
 * Writes `length_bytes` bytes at `offset_bytes`. `flags` are `LEYDEN_FUA` and `LEYDEN_PLP`.
 *
 * A zone is written at its write pointer only. A zone with a Zone Random Write Area is written anywhere from its write
 * pointer up to twice the size of the area above it, in any order, and again: so the last block of a log can be
 * written anew with each record that is added to it. All of the area lies in the protected region of the buffer,
 * whatever the flags. A write that ends beyond it commits the lowest blocks, which cannot be written any more, and the
 * area moves up.
 */
leyden_status leyden_write(
    leyden_drive *drive,
    uint64_t offset_bytes,
    const void *buffer,
    size_t length_bytes,
    uint32_t flags);

/**
 * Appends `length_bytes` bytes to zone `zone`, and puts the offset at which they lie into `*offset_bytes`. `flags` are
 * as for `leyden_write`. Zones with a Zone Random Write Area take no appends.
 */
leyden_status leyden_append(
    leyden_drive *drive,
    uint32_t zone,
    const void *buffer,
    size_t length_bytes,
    uint32_t flags,
    uint64_t *offset_bytes);

/** Returns when everything that was acknowledged before survives a power cut. */
leyden_status leyden_flush(leyden_drive *drive);

/**
 * Tells a conventional drive that these bytes are not needed any more: whole units of them read as zeroes. Zones are
 * reset instead: of a zoned drive this changes nothing.
 */
leyden_status leyden_trim(leyden_drive *drive, uint64_t offset_bytes, uint64_t length_bytes);

/* ---- Zones. ---- */

/**
 * Describes up to `zone_count` zones from `first_zone` on, in `zones`, whose elements are `zone_bytes` apart
 * (`sizeof(leyden_zone)`). `*described` becomes how many.
 */
leyden_status leyden_zone_report(
    leyden_drive *drive,
    uint32_t first_zone,
    uint32_t zone_count,
    leyden_zone *zones,
    size_t zone_bytes,
    uint32_t *described);

/**
 * Opens a zone explicitly. With `LEYDEN_ZONE_ZRWA` in `flags` it gets a Zone Random Write Area, which it has until it is
 * full or reset, over power cuts, too.
 */
leyden_status leyden_zone_open(leyden_drive *drive, uint32_t zone, uint32_t flags);

/** Closes a zone: it stays active. */
leyden_status leyden_zone_close(leyden_drive *drive, uint32_t zone);

/**
 * Finishes a zone: it is full, and takes no resources any more. What its Zone Random Write Area holds is dropped:
 * commit it before (`leyden_zrwa_commit`).
 */
leyden_status leyden_zone_finish(leyden_drive *drive, uint32_t zone);

/** Resets a zone: it is empty. */
leyden_status leyden_zone_reset(leyden_drive *drive, uint32_t zone);

/** Resets every zone that is open, closed or full. */
leyden_status leyden_zone_reset_all(leyden_drive *drive);

/**
 * Commits a Zone Random Write Area up to `end_bytes`, an offset within or at the end of the area: the write pointer
 * moves there, and what is below cannot be written any more. The length from the write pointer must be a multiple of
 * `zrwa_granularity_bytes`. Committed data stays protected until it is on flash. Blocks that were not written are
 * zeroes.
 */
leyden_status leyden_zrwa_commit(leyden_drive *drive, uint64_t end_bytes);

/* ---- The switch. ---- */

/**
 * Cuts the power: commands under way end with `LEYDEN_E_POWER_LOST`, capacitors save what is protected, and all
 * commands fail with `LEYDEN_NVME_NOT_READY` until `leyden_restore`. `report` may be NULL.
 */
leyden_status leyden_cut(leyden_drive *drive, leyden_cut_report *report);

/**
 * Returns the power, and waits until the drive has recovered; of a served one, commands wait for that. With a `capacitance_nf` above 0 the drive has a
 * bank of so many nanofarads from now on. `report` may be NULL.
 *
 * Fails with `LEYDEN_E_SWITCH` if the power is on, and with `LEYDEN_E_CONFIG` if there can be no drive with this bank.
 */
leyden_status leyden_restore(leyden_drive *drive, uint64_t capacitance_nf, leyden_restore_report *report);

/**
 * The last power cut of this handle, the death of the last process included; of a served drive the last one since it has
 * been served. Fails with `LEYDEN_E_NOT_FOUND` if there was
 * none.
 */
leyden_status leyden_last_cut(leyden_drive *drive, leyden_cut_report *report);

/**
 * Ranges that the last power cut has taken although they were promised to be kept: up to `range_count` of them into
 * `ranges`, whose elements are `range_bytes` apart (`sizeof(leyden_range)`). `*total` becomes how many there are.
 */
leyden_status leyden_lost_ranges(
    leyden_drive *drive,
    leyden_range *ranges,
    size_t range_count,
    size_t range_bytes,
    size_t *total);

#ifdef __cplusplus
}
#endif

#endif
