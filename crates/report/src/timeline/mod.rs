//! A part of a run as a trace that Perfetto opens (ui.perfetto.dev), and as a page of its own.
//!
//! The trace is a `Trace` of Perfetto's protocol buffers (`protos/perfetto/trace` there, whose field numbers stand
//! below): tracks in groups, slices that begin and end on them, counters, and an arrow from each flash operation to
//! its transfer on the channel. Names are interned: each is written once. Times are nanoseconds of the run.

mod events;
mod page;
mod proto;
mod rows;

use std::collections::BTreeMap;

use leyden_record::{RunRecord, Timeline};
use leyden_sim::Span;

use events::{Counter, Edge, Slice};
pub use page::timeline_page;
use proto::Message;
pub use rows::{described, slow_command};

/// A text near the beginning of every such file.
pub const TIMELINE_MARK: &str = "Made by Leyden";

/// Groups of tracks, in their order.
const GROUPS: [(u64, &str); 4] =
    [(HOST, "Host commands"), (CHANNELS, "Channels"), (DIES, "Dies"), (LEVELS, "Drive")];
const HOST: u64 = 1;
const CHANNELS: u64 = 2;
const DIES: u64 = 3;
const LEVELS: u64 = 4;
/// More than a group has tracks.
const ROWS: u64 = 10_000;
/// The track above all groups.
const ROOT: u64 = 1;

// Fields of `Trace` and `TracePacket`.
const PACKET: u32 = 1;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const INTERNED: u32 = 12;
const SEQUENCE_FLAGS: u32 = 13;
const TRACK: u32 = 60;
/// Interned names are forgotten, or needed.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// Of `TrackEvent.type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// The timeline as a trace.
pub fn timeline_trace(record: &RunRecord, timeline: &Timeline) -> Vec<u8> {
    let mut trace = Trace::default();
    trace.tracks(record, timeline);
    trace.about(record, timeline);
    for edge in events::edges(&mut events::slices(timeline)) {
        trace.edge(&edge);
    }
    for counter in events::counters() {
        trace.levels(&counter, timeline);
    }
    trace.bytes.finished()
}

/// The number of a track, which no other has.
fn uuid(group: u64, row: u64) -> u64 {
    group * ROWS + row
}

/// Names that are written once each: a kind of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    Events = 2,
    Annotations = 3,
}

/// A trace on its way.
#[derive(Default)]
struct Trace {
    bytes: Message,
    names: BTreeMap<(Names, &'static str), u64>,
    /// Names for the next packet.
    fresh: Option<Message>,
}

impl Trace {
    /// The number of a name; a new one travels in the next packet.
    fn name(&mut self, kind: Names, name: &'static str) -> u64 {
        let next = self.names.len() as u64 + 1;
        if let Some(number) = self.names.get(&(kind, name)) {
            return *number;
        }
        self.names.insert((kind, name), next);
        let entry = Message::default().number(1, next).text(2, name);
        self.fresh = Some(self.fresh.take().unwrap_or_default().message(kind as u32, &entry));
        next
    }

    fn packet(&mut self, packet: Message) {
        let packet = packet.number(SEQUENCE, 1);
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = bytes.message(PACKET, &packet);
    }

    fn event(&mut self, at: Span, event: &Message) {
        let mut packet = Message::default()
            .number(TIMESTAMP, at.as_ns())
            .number(SEQUENCE_FLAGS, NEEDED)
            .message(TRACK_EVENT, event);
        if let Some(names) = self.fresh.take() {
            packet = packet.message(INTERNED, &names);
        }
        self.packet(packet);
    }

    /// Every track has its name before anything stands on it.
    fn tracks(&mut self, record: &RunRecord, timeline: &Timeline) {
        const EXPLICIT: u64 = 3;
        let root = Message::default()
            .number(1, ROOT)
            .text(2, &record.name)
            .text(14, &format!("{TIMELINE_MARK} {}", record.leyden_version))
            .number(11, EXPLICIT);
        let first = Message::default().number(SEQUENCE_FLAGS, CLEARED).message(TRACK, &root);
        self.packet(first);
        let child = |number: u64, name: &str, parent: u64, rank: u64| {
            let track = Message::default().number(1, number).text(2, name).number(5, parent);
            track.number(11, EXPLICIT).number(12, rank)
        };
        for (group, name) in GROUPS {
            let track = child(uuid(group, 0), name, ROOT, group);
            self.packet(Message::default().message(TRACK, &track));
        }
        for row in events::rows(timeline) {
            let track = child(uuid(row.group, row.row), &row.name, uuid(row.group, 0), row.row);
            self.packet(Message::default().message(TRACK, &track));
        }
        for counter in events::counters() {
            let track =
                child(uuid(LEVELS, counter.row), counter.name, uuid(LEVELS, 0), counter.row);
            let track = track.message(8, &Message::default().number(3, counter.unit as u64));
            self.packet(Message::default().message(TRACK, &track));
        }
    }

    /// The run, at the beginning of the root's track.
    fn about(&mut self, record: &RunRecord, timeline: &Timeline) {
        let mut texts = vec![
            ("run", record.name.clone()),
            ("seed", record.seed.to_string()),
            ("digest", record.sim.digest.clone()),
            ("reproduce", record.reproduce.clone()),
        ];
        if let Some(slow) = timeline.slow {
            let ns = slow.completed.as_ns() - slow.arrived.as_ns();
            texts.push(("slow command, ns", ns.to_string()));
        }
        let name = self.name(Names::Events, "run");
        let mut event = Message::default().number(9, INSTANT).number(11, ROOT).number(10, name);
        for (label, text) in texts {
            let label = self.name(Names::Annotations, label);
            event = event.message(4, &Message::default().number(1, label).text(6, &text));
        }
        self.event(timeline.window.0, &event);
    }

    fn edge(&mut self, edge: &Edge<'_>) {
        let (kind, slice) = match edge {
            Edge::Begin(slice) => (BEGIN, slice),
            Edge::End(slice) => (END, slice),
        };
        let track = uuid(slice.group, slice.row);
        let mut event = Message::default().number(9, kind).number(11, track);
        if kind == BEGIN {
            event = self.described(event, slice);
        }
        self.event(edge.at(), &event);
    }

    /// Name, figures and arrow of a slice.
    fn described(&mut self, event: Message, slice: &Slice) -> Message {
        let mut event = event.number(10, self.name(Names::Events, slice.name));
        for (label, value) in &slice.figures {
            let label = self.name(Names::Annotations, label);
            event = event.message(4, &Message::default().number(1, label).number(3, *value));
        }
        match slice.flow {
            // An arrow begins in the dies' group.
            Some(flow) if slice.group == DIES => event.fixed(47, flow),
            Some(flow) => event.fixed(48, flow),
            None => event,
        }
    }

    fn levels(&mut self, counter: &Counter, timeline: &Timeline) {
        let mut last = None;
        for level in &timeline.levels {
            let value = (counter.of)(level);
            if last.replace(value) != Some(value) {
                let track = uuid(LEVELS, counter.row);
                let event = Message::default().number(9, COUNTER).number(11, track);
                self.event(level.at, &event.number(30, value));
            }
        }
    }
}
