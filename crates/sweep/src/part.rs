//! The files of a shard: its part of the results, and its journal until that is whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use leyden_report::Cell;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::plan::Plan;
use crate::row::Row;
use crate::table::{self, GROUP_ROWS};

/// The most shards of a sweep.
const MOST_SHARDS: u32 = 1_000_000;
/// Columns of a table of series.
const SERIES_COLUMNS: usize = 4;
/// The format of parts; a part of another is refused.
const FORMAT: u32 = 1;

/// One of the equal parts that a plan's points are made in.
///
/// ```
/// let shard: leyden_sweep::Shard = "17/1000".parse()?;
/// assert_eq!(shard.points(10_000), 160..170);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// All points.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Shard `number`, from 1, of `of`.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of }).filter(|_| of <= MOST_SHARDS)
    }

    /// Its points, of so many: shards of neighbouring numbers have neighbouring points.
    pub fn points(self, all: u64) -> std::ops::Range<u64> {
        let end = |number: u32| (u128::from(all) * u128::from(number) / u128::from(self.of)) as u64;
        end(self.number - 1)..end(self.number)
    }

    fn file(self, kind: &str, ending: &str) -> String {
        format!("{kind}-{:05}-of-{:05}.{ending}", self.number, self.of)
    }

    pub(crate) fn part(self, folder: &Path) -> PathBuf {
        folder.join(self.file("part", "parquet"))
    }

    pub(crate) fn series(self, folder: &Path) -> PathBuf {
        folder.join(self.file("series", "parquet"))
    }

    pub(crate) fn journal(self, folder: &Path) -> PathBuf {
        folder.join(self.file("part", "rows"))
    }

    /// The shard whose file is called so.
    pub(crate) fn of_file(name: &str, kind: &str, ending: &str) -> Option<Self> {
        let inner = name.strip_prefix(kind)?.strip_prefix('-')?;
        let inner = inner.strip_suffix(ending)?.strip_suffix('.')?;
        let (number, of) = inner.split_once("-of-")?;
        Self::new(number.parse().ok()?, of.parse().ok()?)
    }

    pub(crate) const fn number(self) -> u32 {
        self.number
    }

    pub(crate) const fn of(self) -> u32 {
        self.of
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(number, of)| (number.parse(), of.parse()));
        let shard = match parts {
            Some((Ok(number), Ok(of))) => Self::new(number, of),
            _ => None,
        };
        shard.ok_or_else(|| {
            format!("`{text}` is no shard; write K/N with K from 1 to N, like 17/1000")
        })
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// The origin that a part states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) format: u32,
    pub(crate) plan: String,
    pub(crate) build: String,
    /// Combinations of the plan.
    pub(crate) points: u64,
    /// Columns before the figures.
    pub(crate) leading: usize,
    pub(crate) with_series: bool,
    /// None of a merged table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shard: Option<Shard>,
}

impl Origin {
    pub(crate) fn new(
        plan: &Plan,
        shard: Shard,
        id: String,
        build: &str,
        with_series: bool,
    ) -> Self {
        let (points, leading) = (plan.len(), table::leading(plan));
        let (build, shard) = (build.to_owned(), Some(shard));
        Self { format: FORMAT, plan: id, build, points, leading, with_series, shard }
    }

    /// That of all shards together.
    pub(crate) fn merged(&self) -> Self {
        Self { shard: None, ..self.clone() }
    }

    pub(crate) fn metadata(&self) -> Vec<(&'static str, String)> {
        vec![("leyden.sweep", serde_json::to_string(self).unwrap_or_default())]
    }

    /// Refuses the file at `path`, which is of `other`.
    pub(crate) fn check(&self, path: &Path, other: &Self) -> Result<(), SweepError> {
        let problem = if other.format != self.format {
            "it is of another version's format".to_owned()
        } else if other.build != self.build {
            format!("it was made by another build, {}; this is {}", other.build, self.build)
        } else if (&other.plan, other.points, other.leading)
            != (&self.plan, self.points, self.leading)
        {
            "it is of another plan, or the scenario or an input has changed since".to_owned()
        } else if other.with_series != self.with_series {
            "it was made with another choice of --series".to_owned()
        } else {
            return Ok(());
        };
        Err(SweepError::part(path, problem, "choose another folder, or delete that file"))
    }
}

/// The origin that a finished part states.
pub(crate) fn origin(path: &Path) -> Result<Origin, SweepError> {
    let reader = reader(path)?;
    let pairs = reader.metadata().file_metadata().key_value_metadata();
    let own = pairs.into_iter().flatten().find(|pair| pair.key == "leyden.sweep");
    let json = own.and_then(|pair| pair.value.as_deref()).unwrap_or_default();
    let columns = reader.schema().fields().len();
    match serde_json::from_str::<Origin>(json) {
        // Before the figures and after them there are columns.
        Ok(origin)
            if origin.format == FORMAT
                && (columns > origin.leading || columns == SERIES_COLUMNS) =>
        {
            Ok(origin)
        }
        _ => {
            let problem = "it is no part of a sweep that this version knows";
            Err(SweepError::part(path, problem, "delete it, and run its shard again"))
        }
    }
}

pub(crate) fn reader(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, SweepError> {
    let file = File::open(path).map_err(|source| SweepError::read(path, source))?;
    ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| {
        let problem = format!("it is no whole Parquet file ({error})");
        SweepError::part(path, problem, "delete it, and run its shard again")
    })
}

/// The rows that a shard has so far, on disk: one line each. Its owner alone writes it.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    end: u64,
    /// Where each point's line is.
    lines: BTreeMap<u64, Line>,
    /// The figures of all rows, and what they are.
    kinds: BTreeMap<String, DataType>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    start: u64,
    bytes: usize,
    has_failed: bool,
}

impl Journal {
    /// The journal of `shard`, with what an earlier process left of it.
    pub(crate) fn open(folder: &Path, shard: Shard, origin: &Origin) -> Result<Self, SweepError> {
        let path = shard.journal(folder);
        let failed = |source| SweepError::read(&path, source);
        let mut file = locked(&path)?;
        let mut journal = Self {
            file: file.try_clone().map_err(failed)?,
            path: path.clone(),
            end: 0,
            lines: BTreeMap::new(),
            kinds: BTreeMap::new(),
        };
        let mut from = BufReader::new(&mut file);
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line).map_err(failed)?;
        // A head that was cut off is none.
        if line.last() != Some(&b'\n') {
            drop(from);
            let head = serde_json::to_string(origin).unwrap_or_default() + "\n";
            file.set_len(0).map_err(failed)?;
            file.write_all(head.as_bytes()).map_err(failed)?;
            journal.end = head.len() as u64;
            return Ok(journal);
        }
        let Ok(other) = serde_json::from_slice::<Origin>(&line) else {
            let problem = "it is no journal of a sweep that this version knows";
            return Err(SweepError::part(&path, problem, "delete it"));
        };
        origin.check(&path, &other)?;
        journal.end = line.len() as u64;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = from.read_until(b'\n', &mut bytes).map_err(failed)?;
            // A line that was cut off is not there.
            let Some(row) = bytes.strip_suffix(b"\n") else { break };
            let Ok(row) = serde_json::from_slice::<Row>(row) else { break };
            journal.learn(&row, read);
        }
        drop(from);
        journal.file.set_len(journal.end).map_err(failed)?;
        Ok(journal)
    }

    /// Removes it: there is nothing to keep.
    pub(crate) fn forget(self) -> Result<(), SweepError> {
        std::fs::remove_file(&self.path).map_err(|source| SweepError::read(&self.path, source))
    }

    /// Whether point `index` is done. One that failed is not, if it is to be tried again.
    pub(crate) fn has(&self, index: u64, retry_failed: bool) -> bool {
        self.lines.get(&index).is_some_and(|line| !(retry_failed && line.has_failed))
    }

    pub(crate) fn len(&self) -> u64 {
        self.lines.len() as u64
    }

    pub(crate) fn failed(&self) -> u64 {
        self.lines.values().filter(|line| line.has_failed).count() as u64
    }

    /// Keeps a row; a later one of the same point counts.
    pub(crate) fn add(&mut self, row: &Row) -> Result<(), SweepError> {
        let mut line = serde_json::to_vec(row).unwrap_or_default();
        line.push(b'\n');
        self.file.write_all(&line).map_err(|source| {
            SweepError::Write(leyden_files::WriteError::Io { path: self.path.clone(), source })
        })?;
        self.learn(row, line.len());
        Ok(())
    }

    fn learn(&mut self, row: &Row, bytes: usize) {
        let line = Line { start: self.end, bytes, has_failed: row.error.is_some() };
        self.lines.insert(row.point, line);
        self.end += bytes as u64;
        for (key, cell) in &row.figures {
            let kind = match cell {
                Cell::Flag(_) => DataType::Boolean,
                Cell::Integer(_) => DataType::Int64,
                Cell::Number(_) => DataType::Float64,
            };
            match self.kinds.get_mut(key) {
                None => drop(self.kinds.insert(key.clone(), kind)),
                Some(known) if *known != kind => *known = DataType::Float64,
                Some(_) => {}
            }
        }
    }

    /// Rows in the order of their points, a group at a time.
    fn groups(&self) -> impl Iterator<Item = std::io::Result<Vec<Row>>> {
        let lines: Vec<Line> = self.lines.values().copied().collect();
        let groups = lines.len().div_ceil(GROUP_ROWS);
        (0..groups).map(move |group| {
            let of_group = lines.iter().skip(group * GROUP_ROWS).take(GROUP_ROWS);
            of_group.map(|line| self.row(line)).collect()
        })
    }

    fn row(&self, line: &Line) -> std::io::Result<Row> {
        let mut bytes = vec![0; line.bytes];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(line.start))?;
        file.read_exact(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Writes the part, and the series if they are kept, and removes the journal.
    pub(crate) fn finish(
        self,
        plan: &Plan,
        folder: &Path,
        shard: Shard,
        origin: &Origin,
    ) -> Result<(), SweepError> {
        let metadata = origin.metadata();
        if origin.with_series {
            let schema = table::series_table(&[]).schema();
            let batches = self.groups().map(|rows| Ok(table::series_table(&rows?)));
            write(&shard.series(folder), &schema, &metadata, batches)?;
        }
        let empty = table::table(plan, &[]).schema();
        let last = empty.fields().len() - 1;
        let mut fields: Vec<_> = empty.fields()[..last].to_vec();
        let figures = self.kinds.iter().map(|(key, kind)| Arc::new(table::field(key, kind)));
        fields.extend(figures.chain([Arc::clone(&empty.fields()[last])]));
        let schema = Arc::new(Schema::new(fields));
        let batches =
            self.groups().map(|rows| Ok(table::fitted(&table::table(plan, &rows?), &schema)));
        write(&shard.part(folder), &schema, &metadata, batches)?;
        self.forget()
    }
}

/// The journal's file, which no other process writes.
fn locked(path: &Path) -> Result<File, SweepError> {
    let failed = |source| SweepError::read(path, source);
    loop {
        let file = File::options().read(true).append(true).create(true).open(path);
        let file = file.map_err(failed)?;
        let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        // Some file systems of clusters have no locks: their batch systems run each task once.
        if lock == Err(rustix::io::Errno::WOULDBLOCK) {
            let help = "wait for it, or run another shard";
            return Err(SweepError::part(path, "another process runs this shard", help));
        }
        // A process that has finished meanwhile has removed the file.
        let own = file.metadata().map_err(failed)?;
        match std::fs::metadata(path) {
            Ok(now) if (now.dev(), now.ino()) == (own.dev(), own.ino()) => return Ok(file),
            _ => {}
        }
    }
}

/// Refuses a folder with parts of another number of shards.
pub(crate) fn check_folder(folder: &Path, shard: Shard) -> Result<(), SweepError> {
    let (whole, begun) = shards_in(folder)?;
    let Some(other) = whole.iter().chain(&begun).find(|other| other.of != shard.of) else {
        return Ok(());
    };
    let problem = format!("it has parts of {} shards, and this is shard {shard}", other.of);
    Err(SweepError::part(folder, problem, "choose another folder, or the same number of shards"))
}

/// Shards whose part is in a folder, and those whose journal is.
pub(crate) fn shards_in(folder: &Path) -> Result<(Vec<Shard>, Vec<Shard>), SweepError> {
    let (mut whole, mut begun) = (Vec::new(), Vec::new());
    let failed = |error| SweepError::read(folder, error);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        whole.extend(Shard::of_file(&name, "part", "parquet"));
        begun.extend(Shard::of_file(&name, "part", "rows"));
    }
    whole.sort_unstable();
    begun.sort_unstable();
    Ok((whole, begun))
}

/// The rows of a part, and those without results.
pub(crate) fn counted(path: &Path) -> Result<(u64, u64), SweepError> {
    let (mut points, mut failed) = (0, 0);
    for batch in batches(path)? {
        let batch = batch?;
        points += batch.num_rows() as u64;
        let errors = batch.column_by_name("error");
        failed += errors.map_or(0, |column| column.len() - column.null_count()) as u64;
    }
    Ok((points, failed))
}

/// Rows of a finished part, with their series.
pub(crate) fn rows(
    plan: &Plan,
    folder: &Path,
    shard: Shard,
    origin: &Origin,
) -> Result<Vec<Row>, SweepError> {
    let mut rows = Vec::new();
    for batch in batches(&shard.part(folder))? {
        rows.extend(table::rows(plan, &batch?));
    }
    if !origin.with_series {
        return Ok(rows);
    }
    let mut series: BTreeMap<u64, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    for batch in batches(&shard.series(folder))? {
        table::add_series(&batch?, &mut series);
    }
    for row in &mut rows {
        row.series = series.remove(&row.point).unwrap_or_default();
    }
    Ok(rows)
}

/// The batches of a finished file.
pub(crate) fn batches(
    path: &Path,
) -> Result<impl Iterator<Item = Result<RecordBatch, SweepError>>, SweepError> {
    let broken = |error: &dyn std::fmt::Display| {
        let help = "delete it, and run its shard again";
        SweepError::part(path, format!("it is damaged ({error})"), help)
    };
    let batches = reader(path)?.build().map_err(|error| broken(&error))?;
    Ok(batches.map(move |batch| batch.map_err(|error| broken(&error))))
}

/// Writes a file of results, whole or not at all.
pub(crate) fn write(
    path: &Path,
    schema: &Arc<Schema>,
    metadata: &[(&str, String)],
    batches: impl Iterator<Item = std::io::Result<RecordBatch>>,
) -> Result<(), SweepError> {
    Ok(leyden_files::write_with(path, |file| {
        let to = std::io::BufWriter::with_capacity(1 << 20, file);
        table::write(to, Arc::clone(schema), metadata, batches)
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_cover_all_points_once() {
        for (all, of) in [(0, 3), (10, 3), (10_000_000, 1_000_000), (7, 7), (3, 8)] {
            let mut next = 0;
            for number in 1..=of {
                let points = Shard::new(number, of).unwrap().points(all);
                assert_eq!(points.start, next);
                next = points.end;
            }
            assert_eq!(next, all);
        }
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0", "-1/2", "1/2000000"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
        let shard: Shard = "17/1000".parse().unwrap();
        let name = shard.file("part", "rows");
        assert_eq!(Shard::of_file(&name, "part", "rows"), Some(shard));
    }
}
