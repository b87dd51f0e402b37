//! The host's work for the drive: synthetic jobs, or a trace.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use leyden_device::SECTOR_BYTES;
use leyden_sim::{Bytes, ConfigError, Ratio, Span, Time};
use leyden_workload::ClassNames;
use leyden_workload::synth::JobConfig;
use leyden_workload::trace::{
    BlkAction, Columns, Cut, CutIter, Devices, Format, Merged, OpenOptions, Packed, Packing,
    TraceError, Unsorted,
};
use leyden_workload::zoned::{LsmConfig, RecordedConfig, ZoneJobConfig};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::replay::{BeyondEnd, Pace, Replay};
use super::source::TraceSource;

/// The most requests outstanding in open-loop replay; later arrivals wait in the host.
const MAX_OUTSTANDING: u32 = 65_536;

/// The workload: one or more jobs, or a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadConfig {
    /// Synthetic jobs, one `[[workload.job]]` each; they run at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub job: Vec<JobConfig>,
    /// A recorded trace: `trace = "path"`, or a table with the path under `path` and options beside
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceConfig>,
    /// Synthetic jobs for zoned drives, one `[[workload.zone_job]]` each; they run at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zone_job: Vec<ZoneJobConfig>,
    /// A key-value store on a zoned drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lsm: Option<LsmConfig>,
    /// A recorded key-value store on a zoned drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedConfig>,
}

/// A recorded trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceConfig {
    #[serde(flatten)]
    table: Table,
    /// Where it is.
    #[serde(skip)]
    pub(super) source: TraceSource,
    /// Where its hints are, if they are in a file of their own.
    #[serde(skip)]
    pub(super) hints_source: Option<TraceSource>,
    /// Where its addresses move to, once that is known.
    #[serde(skip)]
    packing: PackingOnce,
}

/// A value that follows from the trace alone, and so has no part in comparing configurations.
#[derive(Clone, Debug, Default)]
struct PackingOnce(Arc<OnceLock<Arc<Packing>>>);

impl PartialEq for PackingOnce {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A trace's requests as they are replayed.
pub type Requests = Packed<CutIter<Merged>>;

/// The most records that can be kept back to be sorted.
pub const MAX_WINDOW: u32 = 100_000_000;

/// The meaning of several devices in a trace: at most one of the rules is given.
pub fn devices(only: Option<&str>, overlay: bool, stack: Option<Bytes>) -> Devices {
    match (only, stack) {
        (Some(only), _) => Devices::Only(only.to_owned()),
        (None, Some(room)) => Devices::Stack { stride_sectors: room.get() / SECTOR_BYTES },
        (None, None) if overlay => Devices::Overlay,
        (None, None) => Devices::One,
    }
}

/// When the requests of a trace are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplayMode {
    /// Each when the trace says so, however long the drive takes.
    #[default]
    Open,
    /// Each as soon as fewer than `queue_depth` requests are outstanding; times of the trace are ignored.
    Closed,
}

/// The table form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    /// The trace, relative to the file that says so, plain or compressed with gzip or zstd.
    path: String,
    /// A file of hints (op `H`) that was captured beside it, found like `path`, and merged into it by
    /// time: both must tell the time of the same clock. Needs a way to the drive: `host.hints`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hints: Option<String>,
    /// Its format, as `leyden trace info` names it; detected from its content if not given.
    #[serde(default)]
    format: Option<String>,
    /// The columns of text in another format, in their order and with their separator:
    /// `time:ns lba:4096 len:4096 op:r/w`. docs/traces.md has the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<String>,
    /// Lines at the beginning of a text that are not read.
    #[serde(default, skip_serializing_if = "is_zero")]
    skip_lines: u32,
    /// Of a trace of several devices, the one whose requests are taken; named as in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    /// Leave out requests of these classes, as if they went to another drive: `without = ["wal"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    /// Take the requests of all devices as if their addresses were one device's.
    #[serde(default, skip_serializing_if = "is_false")]
    overlay: bool,
    /// Take the requests of all devices, one device after another in order of first appearance, each with
    /// this much room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack: Option<Bytes>,
    /// Of a trace of the block layer, which event of a request stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<BlkAction>,
    /// How many records are kept back to be sorted by time; with 0 a record that comes late is an error.
    /// 65,536 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 100_000_000))]
    window: Option<u32>,
    /// When requests are made.
    #[serde(default)]
    mode: ReplayMode,
    /// Requests kept outstanding in closed-loop replay.
    #[serde(default = "default_queue_depth")]
    queue_depth: u32,
    /// In closed-loop replay a flush and a write with FUA wait for all requests before them, and all that follow wait
    /// for them, as a thread waits for its fsync. Otherwise nothing waits but for room.
    #[serde(default, skip_serializing_if = "is_false")]
    barriers: bool,
    /// Requests pass `host.page_cache` by (`O_DIRECT`); without one it changes nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    direct: bool,
    /// How much faster than recorded open-loop replay runs: `2` is twice as fast, `"50 %"` half.
    #[serde(default = "default_speed")]
    speed: Ratio,
    /// How often the trace is replayed, each after the other's last arrival.
    #[serde(default = "default_loops")]
    loops: u32,
    /// Requests beyond the drive's end.
    #[serde(default)]
    beyond_end: BeyondEnd,
    /// Move the touched addresses together, so that the trace fills a drive of the size of its footprint.
    #[serde(default)]
    pack: bool,
    /// Leave out requests recorded before this time of the trace.
    #[serde(default)]
    from: Option<Span>,
    /// Leave out requests recorded at this time of the trace or later.
    #[serde(default)]
    until: Option<Span>,
    /// Replay at most this number of requests of the trace.
    #[serde(default)]
    limit: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(value: &bool) -> bool {
    !*value
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}
const fn default_queue_depth() -> u32 {
    32
}
const fn default_speed() -> Ratio {
    Ratio::ONE
}
const fn default_loops() -> u32 {
    1
}

impl From<Table> for TraceConfig {
    fn from(table: Table) -> Self {
        let source = TraceSource::default();
        Self { table, source, hints_source: None, packing: PackingOnce::default() }
    }
}

impl From<&str> for TraceConfig {
    fn from(path: &str) -> Self {
        // The other keys have their defaults.
        let path =
            de::value::MapDeserializer::<_, de::value::Error>::new([("path", path)].into_iter());
        Self::from(Table::deserialize(path).expect("a path is all that a trace needs"))
    }
}

// By hand, because serde's untagged enums forget what was wrong.
impl<'de> Deserialize<'de> for TraceConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathOrTable;
        impl<'de> de::Visitor<'de> for PathOrTable {
            type Value = TraceConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a trace, or a table with it under `path`")
            }
            fn visit_str<E: de::Error>(self, path: &str) -> Result<TraceConfig, E> {
                Ok(TraceConfig::from(path))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TraceConfig, A::Error> {
                Table::deserialize(de::value::MapAccessDeserializer::new(map)).map(Into::into)
            }
        }
        deserializer.deserialize_any(PathOrTable)
    }
}

impl JsonSchema for TraceConfig {
    fn schema_name() -> Cow<'static, str> {
        "TraceConfig".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = Table::json_schema(generator);
        schemars::json_schema!({
            "description": "A recorded trace: its path, or a table.",
            "anyOf": [{ "type": "string" }, table],
        })
    }
}

impl WorkloadConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !self.job.is_empty() && self.trace.is_some() {
            let problem = "there are both jobs and a trace: keep one kind";
            return Err(ConfigError::new("workload.trace", problem));
        }
        if self.trace.is_some() && !(self.zone_job.is_empty() && self.lsm.is_none()) {
            let problem = "there are jobs for zones, or a store, too: keep one kind";
            return Err(ConfigError::new("workload.trace", problem));
        }
        if let Some(recorded) = &self.recorded {
            if !(WorkloadConfig { recorded: None, ..self.clone() }).is_empty() {
                let problem = "there are jobs, a trace or another store, too: keep one kind";
                return Err(ConfigError::new("workload.recorded", problem));
            }
            recorded.check().map_err(|error| error.within("workload.recorded"))?;
        }
        if self.lsm.is_some() && !(self.zone_job.is_empty() && self.job.is_empty()) {
            let problem = "there are jobs, too: keep one kind";
            return Err(ConfigError::new("workload.lsm", problem));
        }
        match &self.trace {
            Some(trace) => trace.check(),
            None => Ok(()),
        }
    }

    /// Whether it is jobs for a conventional drive: what asks for the same from beginning to end.
    pub fn is_of_jobs(&self) -> bool {
        !self.job.is_empty() && self.trace.is_none()
    }

    /// Whether there is anything to do: device files on their own say nothing of work.
    pub fn is_empty(&self) -> bool {
        self.job.is_empty()
            && self.trace.is_none()
            && self.zone_job.is_empty()
            && self.lsm.is_none()
            && self.recorded.is_none()
    }
}

impl TraceConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let table = &self.table;
        let wrong = |key: &str, problem: String| {
            Err(ConfigError::new(key, problem).within("workload.trace"))
        };
        if table.path.is_empty() {
            return wrong("path", "the path is empty; name a trace".into());
        }
        if table.hints.as_deref() == Some("") {
            return wrong(
                "hints",
                "the path is empty; name a file of hints, or leave it out".into(),
            );
        }
        if let Some(Err(error)) = table.format.as_deref().map(str::parse::<Format>) {
            return wrong("format", error.to_string());
        }
        if let Some(Err(error)) = table.columns.as_deref().map(str::parse::<Columns>) {
            return wrong("columns", error.to_string());
        }
        if table.columns.is_some() && table.format.as_deref().is_some_and(|name| name != "columns")
        {
            let problem = "of columns and format only one can hold; leave out the other";
            return wrong("columns", problem.into());
        }
        let rules = [table.device.is_some(), table.overlay, table.stack.is_some()];
        if rules.into_iter().filter(|is_given| *is_given).count() > 1 {
            let problem = "of device, overlay and stack only one can hold; leave out the others";
            return wrong("device", problem.into());
        }
        if let Some(name) = table.without.iter().find(|it| ClassNames::default().class(it).is_err())
        {
            return wrong(
                "without",
                format!("`{name}` is no class's name; give one as the trace has it"),
            );
        }
        if table.stack.is_some_and(|room| room.get() < SECTOR_BYTES) {
            return wrong("stack", "that is less than a sector; give each device some room".into());
        }
        if table.window.is_some_and(|window| window > MAX_WINDOW) {
            return wrong("window", format!("more than {MAX_WINDOW}; sort the trace by time"));
        }
        if !(1..=1 << 20).contains(&table.queue_depth) {
            return wrong("queue_depth", format!("{} is not in 1..=1048576", table.queue_depth));
        }
        if table.speed == Ratio::ZERO {
            return wrong("speed", "at 0 nothing would ever happen; use 1 for as recorded".into());
        }
        if table.loops == 0 {
            return wrong("loops", "0 is not in 1..=4294967295".into());
        }
        if let (Some(from), Some(until)) = (table.from, table.until)
            && from >= until
        {
            return wrong(
                "until",
                format!("{until} leaves nothing after {from}; use a later time"),
            );
        }
        if table.limit == Some(0) {
            return wrong("limit", "0 requests are no work; leave it out for all".into());
        }
        Ok(())
    }

    /// How the driver is to replay it.
    pub fn replay(&self) -> Replay {
        let table = &self.table;
        let pace = match table.mode {
            ReplayMode::Closed => Pace::QueueDepth(table.queue_depth),
            ReplayMode::Open => {
                Pace::Timestamps { speed: table.speed, max_outstanding: MAX_OUTSTANDING }
            }
        };
        Replay {
            pace,
            barriers: table.barriers,
            beyond_end: table.beyond_end,
            loops: table.loops,
            zones: None,
            classes: ClassNames::default(),
        }
    }

    /// Whether its requests pass a page cache by.
    pub const fn is_direct(&self) -> bool {
        self.table.direct
    }

    /// Whether it is replayed as fast as the drive lets it.
    pub fn is_closed_loop(&self) -> bool {
        self.table.mode == ReplayMode::Closed
    }

    /// Keys that say something which this kind of replay does not ask for.
    pub fn warnings(&self) -> Vec<String> {
        let idle = |key: &str, mode: &str, other: &str| {
            format!(
                "workload.trace.{key} does nothing in {mode} replay: leave it out, or set \
                 workload.trace.mode = \"{other}\""
            )
        };
        let table = &self.table;
        match table.mode {
            ReplayMode::Open if table.queue_depth != default_queue_depth() => {
                vec![idle("queue_depth", "open-loop", "closed")]
            }
            ReplayMode::Open if table.barriers => vec![idle("barriers", "open-loop", "closed")],
            ReplayMode::Closed if table.speed != default_speed() => {
                vec![idle("speed", "closed-loop", "open")]
            }
            _ => Vec::new(),
        }
    }

    /// Writes its paths as where its files are; a bundled trace keeps its name.
    pub(super) fn name_by_place(&mut self) {
        self.table.path = self.source.place();
        self.table.hints = self.hints_source.as_ref().map(TraceSource::place);
    }

    /// The path as it was written.
    pub fn path(&self) -> &str {
        &self.table.path
    }

    /// The path of its hints as it was written.
    pub fn hints_path(&self) -> Option<&str> {
        self.table.hints.as_deref()
    }

    /// Its files: each path as it was written, and where that is.
    pub fn files(&self) -> impl Iterator<Item = (&str, &TraceSource)> {
        let hints = self.hints_path().zip(self.hints_source.as_ref());
        std::iter::once((self.path(), &self.source)).chain(hints)
    }

    /// Opens the trace with its hints, cut to what is to be replayed.
    pub fn open(&self) -> Result<Requests, TraceError> {
        self.open_naming(&ClassNames::default())
    }

    /// As [`open`](Self::open), and puts the names of its classes into `classes`.
    pub fn open_naming(&self, classes: &ClassNames) -> Result<Requests, TraceError> {
        self.open_with(self.hints_source.as_ref(), classes)
    }

    /// Opens the trace, cut likewise, without the file of hints. Hints in the trace itself remain.
    pub fn open_without_hints(&self) -> Result<Requests, TraceError> {
        self.open_with(None, &ClassNames::default())
    }

    /// Where the trace's addresses move to; `None` if they stay.
    fn packing(&self) -> Result<Option<Arc<Packing>>, TraceError> {
        if !self.table.pack {
            return Ok(None);
        }
        if let Some(packing) = self.packing.0.get() {
            return Ok(Some(Arc::clone(packing)));
        }
        let packing = Arc::new({
            let whole = self.merged(self.hints_source.as_ref(), &ClassNames::default())?;
            Packing::of(whole)?
        });
        Ok(Some(Arc::clone(self.packing.0.get_or_init(|| packing))))
    }

    /// The whole trace, with `hints`.
    fn merged(
        &self,
        hints: Option<&TraceSource>,
        classes: &ClassNames,
    ) -> Result<Merged, TraceError> {
        let table = &self.table;
        let options = OpenOptions {
            format: table.format.as_deref().and_then(|name| name.parse().ok()),
            columns: table.columns.as_deref().and_then(|columns| columns.parse().ok()),
            skip_lines: table.skip_lines,
            blkparse_action: table.action.unwrap_or_default(),
            devices: devices(table.device.as_deref(), table.overlay, table.stack),
            unsorted: table.window.map_or_else(Unsorted::default, Unsorted::within),
            without: table.without.clone(),
            classes: classes.clone(),
        };
        let reader = self.source.open(&table.path, &options)?;
        Ok(match (hints, &table.hints) {
            (Some(source), Some(name)) => {
                Merged::new(reader, source.open(name, &OpenOptions::default())?)
            }
            _ => Merged::from(reader),
        })
    }

    fn open_with(
        &self,
        hints: Option<&TraceSource>,
        classes: &ClassNames,
    ) -> Result<Requests, TraceError> {
        let table = &self.table;
        let at = |span: Span| Time::ZERO + span;
        let cut = Cut {
            max_requests: table.limit,
            from: table.from.map(at),
            until: table.until.map(at),
            ..Cut::default()
        };
        let requests = cut.apply(self.merged(hints, classes)?);
        Ok(match self.packing()? {
            Some(packing) => packing.apply(requests),
            None => Packed::not(requests),
        })
    }
}
