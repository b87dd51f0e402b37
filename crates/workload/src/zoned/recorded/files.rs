//! Files of a recording on the drive: what each operation asks of it.

use leyden_device::{Op, SECTOR_BYTES};

use super::super::fs::{File, FileKind, Fs, Run};
use super::super::lsm::request;
use super::super::{SyncOrder, ZoneLayout};
use super::steps::Step;
use super::{Event, FileOp, FileTrace, LogZoneEnd, RecordedConfig, Role};
use crate::{Class, Request};

/// Bytes of a log that the plugin holds back at most while they need not be durable yet.
const HELD_MOST: u64 = 256 << 10;

/// The request of a step.
pub(super) enum StepRequest {
    /// This; ask again when it has ended.
    Request(Request),
    /// No zone is free: ask again when one was reset.
    NoRoom,
    /// Nothing more.
    Done,
}

/// A file, and what of it is not on the drive.
#[derive(Clone, Debug, Default)]
struct FileState {
    file: File,
    /// Bytes that wait for a block, or for a sync.
    bytes: u64,
    /// Where the next read goes on.
    read_at: u64,
    /// It was changed since its place was last written down.
    is_changed: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Files {
    pub(super) fs: Fs,
    block: u64,
    has_region: bool,
    order: SyncOrder,
    log_zone_end: LogZoneEnd,
    all: Vec<FileState>,
    /// How many sectors each file is going to have.
    sectors: Vec<u64>,
    /// The file of names and places that is written, and the one before.
    names: [File; 2],
}

impl Files {
    pub(super) fn new(
        layout: ZoneLayout,
        trace: &FileTrace,
        has_region: bool,
        config: &RecordedConfig,
    ) -> Self {
        let mut bytes = vec![0_u64; trace.files as usize];
        for event in trace.events.iter().filter(|event| event.op == FileOp::Append) {
            bytes[event.file as usize] += event.bytes;
        }
        let block_bytes = layout.block * SECTOR_BYTES;
        let sectors = |bytes: u64| bytes.div_ceil(block_bytes) * layout.block;
        Self {
            fs: Fs::new(layout),
            block: layout.block,
            has_region,
            order: config.order,
            log_zone_end: config.log_zone_end,
            all: vec![FileState::default(); trace.files as usize],
            sectors: bytes.into_iter().map(sectors).collect(),
            names: Default::default(),
        }
    }

    /// The request of `step` of `event`; a step that needs several requests is changed into its
    /// remainder. Files that a flush has made are fresh; writes of tables have up to `most` bytes.
    pub(super) fn ask(
        &mut self,
        event: &Event,
        step: &mut Step,
        is_fresh: bool,
        most: u64,
    ) -> StepRequest {
        let is_table = event.role == Role::Table;
        let held = &mut self.all[event.file as usize];
        match step {
            Step::Append { bytes } => {
                held.bytes += std::mem::take(bytes);
                held.is_changed |= is_table;
                match (is_table, self.has_region) {
                    (true, _) if held.bytes >= self.block * SECTOR_BYTES => {
                        self.write(event, is_fresh, most, false)
                    }
                    // Durable when it was appended.
                    (false, true) if held.bytes > 0 => self.write(event, is_fresh, most, false),
                    (false, false) if held.bytes >= HELD_MOST => {
                        self.write(event, is_fresh, most, false)
                    }
                    _ => StepRequest::Done,
                }
            }
            // Force unit access makes durable what lies below in the zone, too.
            Step::Rest if held.bytes > 0 => {
                self.write(event, is_fresh, most, !is_table && !self.has_region)
            }
            Step::Read { bytes } if *bytes > 0 => {
                let sectors =
                    std::mem::take(bytes).div_ceil(SECTOR_BYTES * self.block) * self.block;
                let run = held.file.at(held.read_at, sectors).or_else(|| {
                    held.read_at = 0;
                    held.file.at(0, sectors)
                });
                let Some(run) = run else { return StepRequest::Done }; // it was there before the recording
                held.read_at += run.sectors;
                StepRequest::Request(request(Op::Read, run, Class::Data))
            }
            Step::Flush if held.is_changed && self.order == SyncOrder::Sound => {
                *step = Step::Nothing;
                let nowhere = Run { lba: 0, sectors: 0 };
                StepRequest::Request(request(Op::Flush, nowhere, Class::Unknown))
            }
            Step::Extents if held.is_changed => {
                held.is_changed = false;
                self.name()
            }
            Step::Name => {
                *step = Step::Nothing;
                self.name()
            }
            Step::Gone => {
                let file = std::mem::take(held).file;
                self.fs.delete(&file);
                StepRequest::Done
            }
            _ => StepRequest::Done,
        }
    }

    /// Writes what is held of a file: of a table that grows whole blocks, else all of it, filled up. A table lies in one
    /// zone. Without a region a log continues in another zone once this one is durable, unless `log_zone_end` says otherwise.
    fn write(&mut self, event: &Event, is_fresh: bool, most: u64, fua: bool) -> StepRequest {
        let kind = match event.role {
            Role::Log => FileKind::Log,
            Role::Table if is_fresh => FileKind::Fresh,
            Role::Table => FileKind::Compacted,
            Role::Manifest | Role::Other => FileKind::Meta,
        };
        let class = match event.role {
            Role::Log => Class::Wal,
            Role::Table => Class::Data,
            Role::Manifest | Role::Other => Class::FsMeta,
        };
        let held = &mut self.all[event.file as usize];
        let block_bytes = self.block * SECTOR_BYTES;
        let wanted = held.bytes.min(most.max(block_bytes));
        let blocks = match event.role {
            Role::Table if held.bytes >= block_bytes => wanted / block_bytes,
            _ => wanted.div_ceil(block_bytes),
        };
        if event.role == Role::Table && held.file.runs.is_empty() {
            self.fs.keep_together(kind, self.sectors[event.file as usize]);
        }
        let Some(run) = self.fs.extend(&mut held.file, kind, blocks * self.block) else {
            return StepRequest::NoRoom;
        };
        let syncs = self.log_zone_end == LogZoneEnd::Sync && !self.has_region;
        let is_last = event.role == Role::Log && syncs && self.fs.ends_zone(run);
        held.bytes = held.bytes.saturating_sub(run.sectors * SECTOR_BYTES);
        StepRequest::Request(Request { fua: fua || is_last, ..request(Op::Write, run, class) })
    }

    /// A record of names and places, which is durable when it is written; files of them change when one has filled a
    /// zone.
    fn name(&mut self) -> StepRequest {
        let Some(run) = self.fs.extend(&mut self.names[0], FileKind::Meta, self.block) else {
            return StepRequest::NoRoom;
        };
        if self.names[0].runs.len() > 1 {
            self.fs.delete(&std::mem::take(&mut self.names[1]));
            self.names.swap(0, 1);
        }
        StepRequest::Request(Request {
            fua: !self.has_region,
            ..request(Op::Write, run, Class::FsMeta)
        })
    }
}
