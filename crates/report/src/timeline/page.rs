//! A timeline as a page that opens offline: host commands, channels, dies and levels over the same time.

use std::fmt::Write as _;

use leyden_device::ActivityKind;
use leyden_record::{FollowedOperation, Levels, RunRecord, Timeline};
use leyden_sim::Span;
use minijinja::Environment;
use serde::Serialize;

use super::rows::{command_name, described, operation_name, packed, slow_command};
use crate::figures::Key;
use crate::page::{Assets, MACROS};
use crate::table::Table;
use crate::{ReportError, format, html, identity};

const TEMPLATE: &str = "timeline.html";
const SOURCE: &str = include_str!("../../assets/timeline.html");

/// The drawing's size, in its own units.
const WIDTH: f64 = 1_180.0;
const LEFT: f64 = 130.0;
const HOST_ROW: f64 = 7.0;
const FLASH_ROW: f64 = 12.0;
const LEVEL_ROW: f64 = 44.0;
const GAP: f64 = 22.0;
const FOOT: f64 = 26.0;
/// Most commands and operations of a page: it has some 7 MB then.
const MOST_SHOWN: usize = 20_000;
/// Rows of the table of commands.
const MOST_COMMANDS: usize = 20;

/// Kinds of flash operations and their colours, which are those of reports: reads blue, writes orange.
const KINDS: [(ActivityKind, usize); 6] = [
    (ActivityKind::HostRead, 0),
    (ActivityKind::HostProgram, 1),
    (ActivityKind::OwnRead, 5),
    (ActivityKind::CopyProgram, 3),
    (ActivityKind::MappingProgram, 4),
    (ActivityKind::Erase, 7),
];

#[derive(Serialize)]
struct Page<'a> {
    title: String,
    facts: Vec<(&'static str, String)>,
    keys: Vec<Key>,
    drawing: String,
    operations: Table,
    commands: Table,
    reproduce: &'a str,
    #[serde(flatten)]
    assets: Assets,
}

/// The timeline of a run as one HTML file.
///
/// # Errors
/// [`ReportError::TooMany`] if a browser would take long to draw it; [`ReportError::Template`] is a bug in here.
pub fn timeline_page(record: &RunRecord, timeline: &Timeline) -> Result<String, ReportError> {
    let shown = timeline.commands.len() + timeline.operations.len();
    if shown > MOST_SHOWN {
        return Err(ReportError::TooMany { shown, most: MOST_SHOWN });
    }
    let slow = slow_command(timeline);
    let about = slow.map_or_else(|| "a moment".to_owned(), |_| "the slowest command".to_owned());
    let used =
        KINDS.iter().filter(|(kind, _)| timeline.operations.iter().any(|it| it.kind == *kind));
    let keys = used.map(|(kind, colour)| Key {
        label: operation_name(*kind).to_owned(),
        colour: *colour,
        thin: false,
        dashed: false,
    });
    let page = Page {
        title: format!("{}: timeline of {about}", record.name),
        facts: facts(record, timeline),
        keys: keys.collect(),
        drawing: Drawing::of(timeline).finished(),
        operations: operations(timeline),
        commands: commands(timeline),
        reproduce: &record.reproduce,
        assets: Assets::ALL,
    };
    let source = format!("{MACROS}{SOURCE}");
    let mut environment = Environment::new();
    environment.add_template(TEMPLATE, &source)?;
    Ok(environment.get_template(TEMPLATE)?.render(&page)?)
}

fn length(from: Span, until: Span) -> String {
    format::seconds(until.as_ns().saturating_sub(from.as_ns()) as f64 / 1e9)
}

fn facts(record: &RunRecord, timeline: &Timeline) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(command) = slow_command(timeline) {
        let ended = command.ended.unwrap_or(timeline.window.1);
        facts.push(("Command", described(command)));
        facts.push(("Took", length(command.arrived, ended)));
        facts.push(("Waited in the host", length(command.arrived, command.submitted)));
        facts.push((
            "Arrived",
            format!("{} after the run began", format::seconds(command.arrived.as_secs_f64())),
        ));
    }
    let (from, until) = timeline.window;
    facts.push(("Shown", format!("{} of the run", length(from, until))));
    facts.push(("Seed", record.seed.to_string()));
    facts.push(("Digest", record.sim.digest.clone()));
    facts.push(("Leyden", identity::build(record)));
    facts
}

/// Operations by kind: all, and those while the slow command was under way.
fn operations(timeline: &Timeline) -> Table {
    let slow = slow_command(timeline).map(|it| (it.arrived, it.ended.unwrap_or(timeline.window.1)));
    let mut table =
        Table::new(["Operation", "Shown", "While the command waited", "Time of dies, in all"]);
    for (kind, _) in KINDS {
        let all: Vec<&FollowedOperation> =
            timeline.operations.iter().filter(|it| it.kind == kind).collect();
        if all.is_empty() {
            continue;
        }
        let overlaps = |it: &&&FollowedOperation| {
            slow.is_some_and(|(from, until)| it.begin() < until && it.end() > from)
        };
        let busy: u64 = all.iter().map(|it| it.end().as_ns() - it.begin().as_ns()).sum();
        table.rows.push(vec![
            operation_name(kind).to_owned(),
            format::count(all.len() as f64),
            slow.map_or_else(
                || format::DASH.to_owned(),
                |_| format::count(all.iter().filter(overlaps).count() as f64),
            ),
            format::seconds(busy as f64 / 1e9),
        ]);
    }
    table
}

/// The longest commands.
fn commands(timeline: &Timeline) -> Table {
    let mut all: Vec<_> = timeline.commands.iter().collect();
    let end = |it: &leyden_record::FollowedCommand| it.ended.unwrap_or(timeline.window.1);
    all.sort_by_key(|it| std::cmp::Reverse(end(it).as_ns() - it.arrived.as_ns()));
    let mut table = Table::new(["Command", "Arrived", "Waited in the host", "Took"]);
    for it in all.into_iter().take(MOST_COMMANDS) {
        let took = length(it.arrived, end(it));
        table.rows.push(vec![
            described(it),
            format!("{} after the first shown", length(timeline.window.0, it.arrived)),
            length(it.arrived, it.submitted),
            if it.ended.is_some() { took } else { format!("more than {took}") },
        ]);
    }
    table
}

/// The drawing on its way down the page.
struct Drawing<'a> {
    timeline: &'a Timeline,
    svg: String,
    top: f64,
}

impl<'a> Drawing<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let mut drawing = Self { timeline, svg: String::new(), top: 0.0 };
        drawing.host();
        drawing.flash();
        drawing.levels();
        drawing
    }

    /// The place of a moment.
    fn x(&self, at: Span) -> f64 {
        let (from, until) = self.timeline.window;
        let length = until.as_ns().saturating_sub(from.as_ns()).max(1) as f64;
        let into = at.as_ns().clamp(from.as_ns(), until.as_ns()) - from.as_ns();
        LEFT + (WIDTH - LEFT) * into as f64 / length
    }

    fn heading(&mut self, text: &str) {
        self.top += GAP;
        let y = self.top - 7.0;
        let _ = write!(
            self.svg,
            "<text x=\"0\" y=\"{y}\" class=\"head\">{}</text>",
            html::escape(text)
        );
    }

    fn name(&mut self, text: &str, height: f64) {
        let y = self.top + height / 2.0 + 4.0;
        let _ = write!(
            self.svg,
            "<text x=\"0\" y=\"{y}\" class=\"tick\">{}</text>",
            html::escape(text)
        );
    }

    fn block(&mut self, (from, until): (Span, Span), height: f64, class: &str, title: &str) {
        let (x, end) = (self.x(from), self.x(until));
        let width = (end - x).max(0.6);
        let _ = write!(
            self.svg,
            "<rect x=\"{x:.2}\" y=\"{:.2}\" width=\"{width:.2}\" height=\"{:.2}\" class=\"{class}\"><title>{}</title></rect>",
            self.top,
            height - 1.5,
            html::escape(title)
        );
    }

    fn host(&mut self) {
        self.heading("Host commands");
        let placed = packed(self.timeline);
        let rows = placed.iter().map(|it| it.row).max().unwrap_or(0);
        let first = self.top;
        for it in placed {
            let ended = it.command.ended.unwrap_or(self.timeline.window.1);
            let title = format!("{}: {}", described(it.command), length(it.command.arrived, ended));
            let colour = match command_name(it.command.op) {
                "read" => 0,
                "write" | "zone append" => 1,
                "flush" => 2,
                _ => 6,
            };
            let class = if it.is_slow { format!("c{colour} slow") } else { format!("c{colour}") };
            self.top = first + f64::from(it.row) * HOST_ROW;
            self.block((it.command.arrived, ended), HOST_ROW, &class, &title);
        }
        self.top = first;
        if self.timeline.slow.is_some() {
            self.name("slow command", HOST_ROW);
        }
        self.top = first + f64::from(rows + 1) * HOST_ROW;
    }

    /// Channels, and below each its dies.
    fn flash(&mut self) {
        let operations = &self.timeline.operations;
        let mut dies: Vec<(u32, u32)> = operations.iter().map(|it| (it.channel, it.die)).collect();
        dies.sort_unstable();
        dies.dedup();
        self.heading("Channels, and their dies");
        let mut channel = None;
        for (of, die) in dies {
            if channel.replace(of) != Some(of) {
                self.name(&format!("channel {of}"), FLASH_ROW);
                for it in operations.iter().filter(|it| it.channel == of) {
                    let title = format!("{}, transfer", operation_name(it.kind));
                    if let Some(span) = it.transfer {
                        self.block(span, FLASH_ROW, &class_of(it.kind), &title);
                    }
                }
                self.top += FLASH_ROW;
            }
            self.name(&format!("    die {die}"), FLASH_ROW);
            for it in operations.iter().filter(|it| it.die == die) {
                self.operation(it);
            }
            self.top += FLASH_ROW;
        }
    }

    fn operation(&mut self, it: &FollowedOperation) {
        let address = if it.kind == ActivityKind::Erase { "block" } else { "page" };
        let title = format!("{}, {address} {}", operation_name(it.kind), it.address);
        let parts = [
            (it.waited, " waits", "waits for its channel"),
            (it.transfer, " moves", "transfer"),
            (it.array, "", "array"),
        ];
        for (span, class, part) in parts {
            if let Some(span) = span {
                let class = format!("{}{class}", class_of(it.kind));
                self.block(
                    span,
                    FLASH_ROW,
                    &class,
                    &format!("{title}: {part}, {}", length(span.0, span.1)),
                );
            }
        }
    }

    fn levels(&mut self) {
        self.heading("Drive");
        self.level("write buffer", |it| it.buffered_bytes, format::bytes);
        self.level("free blocks", |it| it.free_blocks, |value| format::count(value as f64));
        self.level("programs at the gate", |it| it.at_gate, |value| format::count(value as f64));
    }

    fn level(&mut self, name: &str, of: fn(&Levels) -> u64, show: fn(u64) -> String) {
        let most = self.timeline.levels.iter().map(of).max().unwrap_or(0);
        self.name(name, LEVEL_ROW - 16.0);
        let y = self.top + LEVEL_ROW / 2.0 + 10.0;
        let most_shown = show(most);
        let _ =
            write!(self.svg, "<text x=\"0\" y=\"{y}\" class=\"tick\">up to {most_shown}</text>");
        self.steps(of, most);
        self.top += LEVEL_ROW;
    }

    /// A level as steps: it holds until the next.
    fn steps(&mut self, of: fn(&Levels) -> u64, most: u64) {
        let foot = self.top + LEVEL_ROW - 6.0;
        let y = |value: u64| foot - (LEVEL_ROW - 10.0) * value as f64 / most.max(1) as f64;
        let mut path = String::new();
        for level in &self.timeline.levels {
            let (x, y) = (self.x(level.at), y(of(level)));
            let _ = if path.is_empty() {
                write!(path, "M{x:.2},{y:.2}")
            } else {
                write!(path, "H{x:.2}V{y:.2}")
            };
        }
        if !path.is_empty() {
            let _ = write!(path, "H{WIDTH}");
            let _ = write!(self.svg, "<path d=\"{path}\" class=\"level\"/>");
        }
        let _ = write!(
            self.svg,
            "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{foot}\" y2=\"{foot}\" class=\"rule\"/>"
        );
    }

    /// The axis, and the slow command's time behind everything.
    fn finished(mut self) -> String {
        let (from, until) = self.timeline.window;
        let foot = self.top + 4.0;
        let shade = self.timeline.slow.map_or_else(String::new, |slow| {
            let (x, end) = (self.x(slow.arrived), self.x(slow.completed));
            let width = end - x;
            format!("<rect x=\"{x:.2}\" y=\"0\" width=\"{width:.2}\" height=\"{foot}\" class=\"shade\"><title>the slow command is under way</title></rect>")
        });
        let length_ns = until.as_ns().saturating_sub(from.as_ns());
        for ns in crate::crash::ticks(length_ns) {
            let x = LEFT + (WIDTH - LEFT) * ns as f64 / length_ns.max(1) as f64;
            let anchor = if x > WIDTH - 30.0 { "end" } else { "start" };
            let _ = write!(
                self.svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{foot}\" y2=\"{}\" class=\"rule\"/><text x=\"{x:.1}\" y=\"{}\" class=\"tick\" text-anchor=\"{anchor}\">{}</text>",
                foot + 5.0,
                foot + 18.0,
                format::seconds(ns as f64 / 1e9)
            );
        }
        let height = foot + FOOT;
        format!(
            "<svg class=\"lanes timeline\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"Host commands, channels, dies and levels over time; the tables below have the figures\">{shade}{}</svg>",
            self.svg
        )
    }
}

fn class_of(kind: ActivityKind) -> String {
    let colour = KINDS.iter().find(|(known, _)| *known == kind).map_or(7, |(_, colour)| *colour);
    format!("c{colour}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_so_many_operations_and_no_more() {
        let operation = FollowedOperation {
            die: 0,
            channel: 0,
            kind: ActivityKind::Erase,
            address: 7,
            waited: None,
            transfer: None,
            array: Some((Span::from_ns(1), Span::from_ns(2))),
        };
        let page = |operations| {
            let operations = vec![operation; operations];
            let timeline = Timeline { operations, ..Timeline::default() };
            timeline_page(&RunRecord::default(), &timeline)
        };
        assert!(page(MOST_SHOWN).unwrap().contains("erase, block 7"));
        let refused = page(MOST_SHOWN + 1).unwrap_err().to_string();
        assert!(refused.contains("20001 commands") && refused.contains("--at"), "{refused}");
    }
}
