//! The rows of a timeline, and the names of what stands in them.

use leyden_device::{ActivityKind, Op, SECTOR_BYTES};
use leyden_record::{FollowedCommand, Timeline};
use leyden_sim::Span;

use crate::format;

/// A command of the host, and its row.
pub(super) struct Placed<'a> {
    /// From 0, which is the slow command's own.
    pub row: u32,
    pub command: &'a FollowedCommand,
    pub is_slow: bool,
}

/// Commands in rows, as few as it takes for none to lie over another; the slow one in the first.
pub(super) fn packed(timeline: &Timeline) -> Vec<Placed<'_>> {
    let mut commands: Vec<&FollowedCommand> = timeline.commands.iter().collect();
    commands.sort_by_key(|command| command.arrived);
    let slow = slow_command(timeline);
    let slow = slow.and_then(|slow| commands.iter().position(|it| std::ptr::eq(*it, slow)));
    // When each row is free again; the first is the slow command's.
    let mut rows: Vec<Span> = vec![Span::ZERO];
    let mut placed = Vec::with_capacity(commands.len());
    for (index, command) in commands.into_iter().enumerate() {
        let is_slow = Some(index) == slow;
        let row = if is_slow {
            0
        } else {
            let free = rows.iter().skip(1).position(|free| *free <= command.arrived);
            let row = free.map_or(rows.len(), |row| row + 1);
            if row == rows.len() {
                rows.push(Span::ZERO);
            }
            rows[row] = command.ended.unwrap_or(timeline.window.1);
            row as u32
        };
        placed.push(Placed { row, command, is_slow });
    }
    placed
}

/// The command that the timeline is about; none if it is about a moment.
pub fn slow_command(timeline: &Timeline) -> Option<&FollowedCommand> {
    let slow = timeline.slow?;
    let is_slow =
        |it: &&FollowedCommand| it.arrived == slow.arrived && it.ended == Some(slow.completed);
    // The first in the order of arrival, as for all who name one.
    timeline.commands.iter().filter(is_slow).min_by_key(|it| it.arrived)
}

pub(super) fn command_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Trim => "trim",
        Op::WriteZeroes => "write zeroes",
        Op::WritePrepare => "hint",
        Op::ZoneAppend => "zone append",
        Op::Copy => "copy",
        Op::Zone(_) => "zone management",
        Op::ZoneReport => "zone report",
    }
}

pub(super) fn operation_name(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::HostRead => "read for the host",
        ActivityKind::OwnRead => "read to copy",
        ActivityKind::HostProgram => "program for the host",
        ActivityKind::CopyProgram => "program of a copy",
        ActivityKind::MappingProgram => "program of the mapping table",
        ActivityKind::Erase => "erase",
    }
}

/// A command in words: "write of 4 KiB at LBA 1,594,408".
pub fn described(command: &FollowedCommand) -> String {
    let name = command_name(command.op);
    if command.sectors == 0 {
        return name.to_owned();
    }
    let size = format::bytes(u64::from(command.sectors) * SECTOR_BYTES);
    format!("{name} of {size} at LBA {}", format::count(command.lba as f64))
}
