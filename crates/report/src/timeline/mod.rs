//! A part of a run in the format of Chrome's trace events, which Perfetto opens (ui.perfetto.dev): the
//! "Trace Event Format" document, JSON object format. Times there are microseconds with a fraction.
//!
//! The format's processes and threads are groups of rows and rows. A thread's number is its own
//! over all processes: Perfetto takes two of one number for one row, and drops overlapping events
//! there.

mod page;
mod rows;

use leyden_device::ActivityKind;
use leyden_record::{FollowedOperation, RunRecord, Timeline};
use leyden_sim::Span;
use serde_json::{Value, json};

pub use page::timeline_page;
pub use rows::{described, slow_command};

/// The beginning of every such file.
pub const TIMELINE_HEAD: &str = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"tool\":\"Leyden\"";

/// Processes of the trace, which is what its viewer calls groups of rows.
const HOST: u32 = 1;
const CHANNELS: u32 = 2;
const DIES: u32 = 3;
const LEVELS: u32 = 4;
/// More than a group has rows.
const ROWS: u32 = 10_000;

/// The timeline as JSON, one event a line.
pub fn timeline_json(record: &RunRecord, timeline: &Timeline) -> String {
    let groups =
        [(HOST, "Host commands"), (CHANNELS, "Channels"), (DIES, "Dies"), (LEVELS, "Drive")];
    let mut events: Vec<Value> =
        groups.into_iter().flat_map(|(process, name)| group(process, name)).collect();
    events.extend(host(timeline));
    events.extend(flash(&timeline.operations));
    events.extend(levels(timeline));
    let mut other = json!({
        "run": record.name, "seed": record.seed.to_string(), "digest": record.sim.digest,
        "reproduce": record.reproduce, "version": record.leyden_version,
    });
    if let Some(slow) = timeline.slow {
        other["slow_command_us"] = json!(between_us(slow.arrived, slow.completed));
    }
    let other = other.to_string();
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    // `other` without its opening brace goes on where the head ends.
    format!(
        "{TIMELINE_HEAD},{}}},\"traceEvents\":[\n{}\n]}}\n",
        &other[1..other.len() - 1],
        lines.join(",\n")
    )
}

fn us(span: Span) -> f64 {
    span.as_ns() as f64 / 1e3
}

/// The length of a slice: exact to the nanosecond, which a difference of microseconds is not.
fn between_us(from: Span, until: Span) -> f64 {
    (until.as_ns() - from.as_ns()) as f64 / 1e3
}

/// A group of rows; groups stand in the order of their numbers.
fn group(process: u32, name: &str) -> [Value; 2] {
    [
        json!({"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}),
        json!({
            "ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process},
        }),
    ]
}

fn row(process: u32, row: u32, name: &str) -> Value {
    json!({
        "ph": "M", "name": "thread_name", "pid": process, "tid": thread(process, row),
        "args": {"name": name},
    })
}

fn thread(process: u32, row: u32) -> u32 {
    process * ROWS + row
}

/// A slice of a row.
fn slice(process: u32, row: u32, name: &str, (from, until): (Span, Span), args: &Value) -> Value {
    json!({
        "ph": "X", "name": name, "pid": process, "tid": thread(process, row), "ts": us(from),
        "dur": between_us(from, until), "args": args,
    })
}

fn host(timeline: &Timeline) -> Vec<Value> {
    let mut events = Vec::new();
    let mut named = 0;
    for it in rows::packed(timeline) {
        if it.is_slow {
            events.push(row(HOST, 0, "the slow command"));
        }
        for place in named + 1..=it.row {
            events.push(row(HOST, place, &format!("row {place}")));
        }
        named = named.max(it.row);
        let command = it.command;
        let args = json!({
            "lba": command.lba, "sectors": command.sectors,
            "waited in the host, us": between_us(command.arrived, command.submitted),
        });
        let span = (command.arrived, command.ended.unwrap_or(timeline.window.1));
        events.push(slice(HOST, it.row, rows::command_name(command.op), span, &args));
    }
    events
}

fn flash(operations: &[FollowedOperation]) -> Vec<Value> {
    let mut events = Vec::new();
    let numbers = |of: fn(&FollowedOperation) -> u32| {
        let mut all: Vec<u32> = operations.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    events
        .extend(numbers(|it| it.die).into_iter().map(|die| row(DIES, die, &format!("die {die}"))));
    let channels = numbers(|it| it.channel).into_iter();
    events.extend(channels.map(|channel| row(CHANNELS, channel, &format!("channel {channel}"))));
    for it in operations {
        let name = rows::operation_name(it.kind);
        let address = if it.kind == ActivityKind::Erase { "block" } else { "page" };
        let args = json!({address: it.address, "die": it.die});
        events.push(slice(DIES, it.die, name, (it.begin(), it.end()), &args));
        let parts =
            [("waits for its channel", it.waited), ("transfer", it.transfer), ("array", it.array)];
        for (part, span) in parts {
            events.extend(span.map(|span| slice(DIES, it.die, part, span, &json!({}))));
        }
        events.extend(it.transfer.map(|span| slice(CHANNELS, it.channel, name, span, &args)));
    }
    events
}

fn levels(timeline: &Timeline) -> Vec<Value> {
    type Of = fn(&leyden_record::Levels) -> u64;
    let counters: [(&str, Of); 3] = [
        ("write buffer, bytes", |it| it.buffered_bytes),
        ("free blocks", |it| it.free_blocks),
        ("programs waiting at the gate", |it| it.at_gate),
    ];
    let mut events = Vec::new();
    for (name, of) in counters {
        let mut last = None;
        for level in &timeline.levels {
            let value = of(level);
            if last.replace(value) != Some(value) {
                events.push(json!({
                    "ph": "C", "name": name, "pid": LEVELS, "ts": us(level.at), "args": {"value": value},
                }));
            }
        }
    }
    events
}
