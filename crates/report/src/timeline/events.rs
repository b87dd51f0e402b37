//! The contents of a trace: rows, slices in the order in which they begin and end, and counters.

use std::cmp::Reverse;

use leyden_device::ActivityKind;
use leyden_record::{FollowedOperation, Levels, Timeline};
use leyden_sim::Span;

use super::{CHANNELS, DIES, HOST, rows};

/// A named track of a group; 0 is the group's own.
pub(super) struct Track {
    pub(super) group: u64,
    pub(super) row: u64,
    pub(super) name: String,
}

/// A stretch of time on a track. On one track, slices nest or lie beside each other.
pub(super) struct Slice {
    pub(super) group: u64,
    pub(super) row: u64,
    pub(super) name: &'static str,
    pub(super) span: (Span, Span),
    /// Figures beside the name.
    pub(super) figures: Vec<(&'static str, u64)>,
    /// The arrow that begins or ends here.
    pub(super) flow: Option<u64>,
}

/// One end of a slice.
pub(super) enum Edge<'a> {
    Begin(&'a Slice),
    End(&'a Slice),
}

impl Edge<'_> {
    pub(super) fn at(&self) -> Span {
        match self {
            Self::Begin(slice) => slice.span.0,
            Self::End(slice) => slice.span.1,
        }
    }
}

/// The units of Perfetto's counters.
#[derive(Clone, Copy)]
pub(super) enum CounterUnit {
    Count = 2,
    Bytes = 3,
}

/// A level of the drive.
pub(super) struct Counter {
    pub(super) row: u64,
    pub(super) name: &'static str,
    pub(super) unit: CounterUnit,
    pub(super) of: fn(&Levels) -> u64,
}

pub(super) fn counters() -> [Counter; 3] {
    [
        Counter {
            row: 1,
            name: "write buffer",
            unit: CounterUnit::Bytes,
            of: |it| it.buffered_bytes,
        },
        Counter { row: 2, name: "free blocks", unit: CounterUnit::Count, of: |it| it.free_blocks },
        Counter {
            row: 3,
            name: "programs waiting at the gate",
            unit: CounterUnit::Count,
            of: |it| it.at_gate,
        },
    ]
}

/// Rows of commands, channels and dies, in their order.
pub(super) fn rows(timeline: &Timeline) -> Vec<Track> {
    let most = rows::packed(timeline).iter().map(|it| it.row).max();
    let host = (0..most.map_or(0, |most| most + 1)).map(|row| Track {
        group: HOST,
        row: u64::from(row) + 1,
        name: if row == 0 { "slow command".to_owned() } else { format!("row {row}") },
    });
    let numbers = |group, name: &'static str, of: fn(&FollowedOperation) -> u32| {
        let mut all: Vec<u32> = timeline.operations.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().map(move |number| Track {
            group,
            row: u64::from(number) + 1,
            name: format!("{name} {number}"),
        })
    };
    let channels = numbers(CHANNELS, "channel", |it| it.channel);
    let dies = numbers(DIES, "die", |it| it.die);
    host.filter(|row| row.row > 1 || timeline.slow.is_some()).chain(channels).chain(dies).collect()
}

/// All slices; of an operation the whole comes before its parts.
pub(super) fn slices(timeline: &Timeline) -> Vec<Slice> {
    let host = rows::packed(timeline).into_iter().map(|it| {
        let command = it.command;
        Slice {
            group: HOST,
            row: u64::from(it.row) + 1,
            name: rows::command_name(command.op),
            span: (command.arrived, command.ended.unwrap_or(timeline.window.1)),
            figures: vec![
                ("lba", command.lba),
                ("sectors", command.sectors.into()),
                ("waited in the host, ns", command.submitted.as_ns() - command.arrived.as_ns()),
            ],
            flow: None,
        }
    });
    let flash = timeline.operations.iter().zip(1..).flat_map(|(it, number)| flash(it, number));
    host.chain(flash).collect()
}

/// An operation on its die, its parts within, and its transfer on the channel.
fn flash(it: &FollowedOperation, number: u64) -> Vec<Slice> {
    let name = rows::operation_name(it.kind);
    let address = if it.kind == ActivityKind::Erase { "block" } else { "page" };
    let figures = || vec![(address, it.address.into()), ("die", it.die.into())];
    let flow = it.transfer.map(|_| number);
    let row = u64::from(it.die) + 1;
    let span = (it.begin(), it.end());
    let mut slices = vec![Slice { group: DIES, row, name, span, figures: figures(), flow }];
    let parts =
        [("waits for its channel", it.waited), ("transfer", it.transfer), ("array", it.array)];
    for (name, span) in parts {
        slices.extend(span.map(|span| Slice {
            group: DIES,
            row,
            name,
            span,
            figures: Vec::new(),
            flow: None,
        }));
    }
    slices.extend(it.transfer.map(|span| {
        let row = u64::from(it.channel) + 1;
        Slice { group: CHANNELS, row, name, span, figures: figures(), flow }
    }));
    slices
}

/// Beginnings and ends in the order of time; on each track the inner slice ends first.
pub(super) fn edges(slices: &mut [Slice]) -> Vec<Edge<'_>> {
    // Dies before channels: of one moment, an arrow begins before it ends.
    slices.sort_by_key(|it| (Reverse(it.group), it.row, it.span.0, Reverse(it.span.1)));
    let mut edges = Vec::new();
    let mut open: Vec<&Slice> = Vec::new();
    for slice in slices.iter() {
        let is_over = |inner: &&Slice| {
            (inner.group, inner.row) != (slice.group, slice.row) || inner.span.1 <= slice.span.0
        };
        while let Some(inner) = open.pop_if(|inner| is_over(inner)) {
            edges.push(Edge::End(inner));
        }
        edges.push(Edge::Begin(slice));
        open.push(slice);
    }
    edges.extend(open.into_iter().rev().map(Edge::End));
    edges.sort_by_key(Edge::at);
    edges
}
