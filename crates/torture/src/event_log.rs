//! The story of a run: what a failure says of the moment, and the timeline that `--explain` shows.

use std::fmt::Write;

use leyden_device::{PowerLoss, Recovery, Status};
use leyden_oracle::{Id, Op, Request};
use leyden_sim::{Span, Time};

/// The most lines of a timeline: the last ones.
const MOST_LINES: usize = 400;

/// The last events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    tells: bool,
    round: u64,
    last: Option<(Id, Request)>,
    cut: Option<(Time, PowerLoss)>,
    recovery: Option<(Time, Recovery)>,
    lines: std::collections::VecDeque<String>,
}

impl EventLog {
    /// One that keeps the timeline, if it `tells`.
    pub(crate) fn new(tells: bool) -> Self {
        Self { tells, ..Self::default() }
    }

    fn line(&mut self, at: Time, what: impl FnOnce() -> String) {
        if !self.tells {
            return;
        }
        if self.lines.len() == MOST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>14} ns  {}", at.as_ns(), what()));
    }

    /// Something that happened at `at`.
    pub(crate) fn note(&mut self, at: Time, what: impl FnOnce() -> String) {
        self.line(at, what);
    }

    pub(crate) fn round(&mut self, number: u64) {
        self.round = number;
        if self.tells {
            self.lines.push_back(format!("round {number}"));
        }
    }

    pub(crate) fn submitted(&mut self, at: Time, id: Id, request: &Request) {
        self.last = Some((id, *request));
        self.line(at, || format!("#{} {}", id.0, command(request)));
    }

    pub(crate) fn completed(&mut self, at: Time, id: Id, status: Status) {
        self.line(at, || match status {
            Status::Success => format!("#{} has ended", id.0),
            status => format!("#{} has ended: {status:?}", id.0),
        });
    }

    pub(crate) fn cut(&mut self, at: Time, loss: &PowerLoss) {
        self.line(at, || dump(loss));
        self.cut = Some((at, loss.clone()));
        self.recovery = None;
    }

    pub(crate) fn restored(&mut self, at: Time, recovery: &Recovery) {
        self.line(at, || way_back(recovery));
        self.recovery = Some((at, recovery.clone()));
    }

    /// How long each step of the last recovery takes.
    pub(crate) fn recovery_steps(&self) -> Vec<Span> {
        let steps = self.recovery.iter().flat_map(|(_, recovery)| &recovery.steps);
        steps.map(|step| step.time).collect()
    }

    /// `message`, and where in the run that was.
    pub(crate) fn with_context(&self, message: &str) -> String {
        let mut text = message.to_owned();
        let _ = write!(text, "\n  in round {}", self.round);
        if let Some((id, request)) = &self.last {
            let _ = write!(text, "; the last command was #{} {}", id.0, command(request));
        }
        if let Some((at, loss)) = &self.cut {
            let _ = write!(text, "\n  last power cut, at {} ns: {}", at.as_ns(), dump(loss));
        }
        if let Some((at, recovery)) = &self.recovery {
            let _ = write!(text, "\n  power back at {} ns: {}", at.as_ns(), way_back(recovery));
        }
        text
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}

fn command(request: &Request) -> String {
    let fua = if request.fua { " FUA" } else { "" };
    match request.op {
        Op::Flush => "Flush".to_owned(),
        op => format!("{op:?}{fua} of sectors {} + {}", request.lba, request.sectors),
    }
}

fn dump(loss: &PowerLoss) -> String {
    if loss.during_recovery {
        return "POWER CUT, and nothing to save".to_owned();
    }
    let mut text = format!(
        "POWER CUT; dump of {} pages ({} B promised, {} of the table) in {} ns with {} pJ, {} pJ left; {} \
         operations broken off",
        loss.cost.pages,
        loss.cost.promised.get(),
        loss.cost.map_pages,
        loss.cost.time.as_ns(),
        loss.cost.energy.as_pj(),
        loss.energy_left.as_pj(),
        loss.torn_pages
    );
    if !loss.lost.is_empty() {
        let units: Vec<u32> = loss.lost.iter().map(|lpn| lpn.0).collect();
        let _ = write!(text, "; lost units {units:?}");
    }
    if !loss.uncertain.is_empty() {
        let ranges: Vec<_> = loss.uncertain.iter().map(|(first, end)| first.0..end.0).collect();
        let _ = write!(text, "; does not know where {ranges:?} lie");
    }
    text
}

fn way_back(recovery: &Recovery) -> String {
    let steps: Vec<String> =
        recovery.steps.iter().map(|step| format!("{:?} {} pages", step.name, step.pages)).collect();
    format!("POWER BACK; {}; ready at {} ns", steps.join(", "), recovery.ready_at.as_ns())
}
