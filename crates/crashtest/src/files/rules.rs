//! Durability rules by file system, in one place.
//!
//! | | `posix` | `xfs` | `ext4` | `btrfs` |
//! |---|---|---|---|---|
//! | a page of 4 KiB | by itself | by itself | by itself | by itself, behind what is in the journal |
//! | a piece of a page, with smaller atoms | by itself | no older than its block, and than a length that only its page brings | no older than its block | as its page |
//! | names, lengths that are set, extended attributes | each by itself | in one journal, in order | in one journal, in order | in one journal, in order; behind it names that syncs have written to a log of files, as `left/tree_log.rs` keeps it |
//! | the length that a write brings | by itself | behind the last page below it, and what is in the journal | by itself, behind what is in the journal | the length at the time of some page behind the last call that set it |
//! | blocks for new bytes | - | behind what is in the journal | behind what is in the journal | the same, for each write |
//! | `fsync` of a file | its bytes, length and extended attributes | and the journal up to its last change | as `xfs` | and its names, unless it has none left; where the log cannot have them, the journal |
//! | `fdatasync` | its bytes and length | the journal only up to what its bytes and length need | as `xfs` | as `fsync` |
//! | `fsync` of a folder | its entries | the journal up to its last change | as `xfs` | its new entries and those that it lost; where a file left it, the journal |
//! | a rename over a file | - | - | the length that the file has then is in the journal before | - |
//! | closing a file that was cut to nothing | - | - | the same | - |
//!
//! Sources. `posix`: fsync(2), "Calling fsync() does not necessarily ensure that the entry in the directory containing
//! the file has also reached disk"; POSIX.1-2017 `fsync`, `fdatasync`; fdatasync(2): no metadata that reading the bytes does not
//! need. `xfs`: Linux 6.12, fs/xfs: the log is written in
//! order (`xfs_log_force_seq`), sizes follow the end of I/O (`xfs_setfilesize`), new blocks are unwritten until then.
//! `ext4`: Linux 6.12, fs/ext4: the size follows the submission of I/O (`mpage_map_and_submit_extent`), blocks are
//! unwritten until its end (`dioread_nolock`, the default since 5.6, with which `data=ordered` waits for no new bytes),
//! `auto_da_alloc` in `ext4_rename` and `ext4_release_file`. Extended attributes: a transaction of their own (`xfs_attr_set`,
//! `ext4_xattr_set_handle`). `btrfs`: Linux 6.12, fs/btrfs: a superblock ends a transaction
//! (`btrfs_commit_transaction`), the end of I/O enters new extents and the length (`btrfs_finish_one_ordered`), and `fsync` writes a
//! log of one file with its names, new folders above and files whose names it took (`btrfs_log_inode_parent`, `log_conflicting_inodes`),
//! or ends the transaction; names that logged files get later are written to the log at once (`btrfs_log_new_name`).
//! Pieces: NVM Express Base 2.0, AWUPF, and ATA: a drive keeps or
//! loses one logical block as a whole, and no more; Linux 6.12, `xlog_write_iclog` and `journal_submit_commit_record`: the log is
//! written behind a flush of the drive (`REQ_PREFLUSH`), so that the bytes of what it says are whole.

use serde::{Deserialize, Serialize};

/// Which promises the files keep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// The promises of the standard and of the manual pages, and no more: software that holds here
    /// holds on any file system.
    Posix,
    /// XFS of Linux. The default: a file system in wide use that has no heuristics for software that forgets `fsync`.
    #[default]
    Xfs,
    /// ext4 of Linux with its default options (`data=ordered`, `auto_da_alloc`, delayed allocation).
    Ext4,
    /// Btrfs of Linux with its default options: data is copied on write (`nodatacow` is not covered), names change in
    /// transactions, and `fsync` logs one file.
    Btrfs,
}

impl Persistence {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Posix, Self::Xfs, Self::Ext4, Self::Btrfs];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Posix => "posix",
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
            Self::Btrfs => "btrfs",
        }
    }

    /// Names, and lengths that are set, stand in one journal, in the order of their calls.
    pub(crate) const fn has_journal(self) -> bool {
        !matches!(self, Self::Posix)
    }

    /// The length that a write brings may be there without its bytes.
    pub(crate) const fn has_lengths_alone(self) -> bool {
        matches!(self, Self::Posix | Self::Ext4)
    }

    /// A rename over a file, and the end of a handle on a file that was cut to nothing, enter the length first.
    pub(crate) const fn brings_lengths(self) -> bool {
        matches!(self, Self::Ext4)
    }

    /// Bytes go to new blocks, which a transaction enters.
    pub(crate) const fn copies_blocks(self) -> bool {
        matches!(self, Self::Btrfs)
    }

    /// A sync of a file writes a log of it, and leaves the transactions where they are.
    pub(crate) const fn logs_files(self) -> bool {
        matches!(self, Self::Btrfs)
    }
}
