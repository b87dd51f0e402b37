//! Joining the parts of a sweep into one table, and saying how far it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;

use crate::error::SweepError;
use crate::part::{self, Origin, Shard};
use crate::table::{self, GROUP_ROWS};

/// How far a sweep is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Its shards.
    pub shards: u32,
    /// Those whose part is whole.
    pub whole: u32,
    /// Those that have been begun.
    pub begun: u32,
    /// Combinations of the plan.
    pub points: u64,
    /// Rows in the parts that are whole.
    pub rows: u64,
    /// Shards without a part, by number.
    pub missing: Vec<u32>,
}

/// The size of a merged table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Rows written.
    pub rows: u64,
    /// Rows of the series, if they were written.
    pub series_rows: Option<u64>,
    /// Bytes of the table.
    pub bytes: u64,
}

/// The parts in a folder.
struct Parts {
    shards: Vec<Shard>,
    begun: u32,
    of: u32,
    origin: Option<Origin>,
}

impl Parts {
    fn find(folder: &Path) -> Result<Self, SweepError> {
        let (shards, mut begun) = part::shards_in(folder)?;
        let Some(of) = shards.iter().chain(&begun).map(|shard| shard.of()).next() else {
            let help = "name the folder that was given to `leyden sweep` with --out";
            return Err(SweepError::part(folder, "there is no part of a sweep in it", help));
        };
        if let Some(other) = shards.iter().chain(&begun).find(|shard| shard.of() != of) {
            let problem = format!("it has parts of {of} and of {} shards", other.of());
            return Err(SweepError::part(folder, problem, "delete those that are not wanted"));
        }
        let mut origin: Option<Origin> = None;
        for shard in &shards {
            let path = shard.part(folder);
            let own = part::origin(&path)?;
            if own.shard != Some(*shard) {
                let problem = "its content is that of another shard";
                let help = "delete it, and run its shard again";
                return Err(SweepError::part(&path, problem, help));
            }
            match &origin {
                Some(first) => first.check(&path, &own)?,
                None => origin = Some(own),
            }
        }
        begun.retain(|shard| !shards.contains(shard));
        Ok(Self { shards, begun: begun.len() as u32, of, origin })
    }

    fn missing(&self) -> Vec<u32> {
        let mut whole = self.shards.iter().map(|shard| shard.number()).peekable();
        (1..=self.of).filter(|number| whole.next_if_eq(number).is_none()).collect()
    }
}

/// How far the sweep in `folder` is.
///
/// # Errors
/// If there is none, or its parts do not belong together.
pub fn status(folder: &Path) -> Result<Status, SweepError> {
    let parts = Parts::find(folder)?;
    let mut rows = 0;
    for shard in &parts.shards {
        let reader = part::reader(&shard.part(folder))?;
        rows += reader.metadata().file_metadata().num_rows() as u64;
    }
    Ok(Status {
        shards: parts.of,
        whole: parts.shards.len() as u32,
        begun: parts.begun,
        points: parts.origin.as_ref().map_or(0, |origin| origin.points),
        rows,
        missing: parts.missing(),
    })
}

/// Joins the parts in `folder` into the table `to`, and their series into `series` if that is named. The bytes do not depend
/// on how many shards there were, nor on who ran them.
///
/// # Errors
/// If a shard is missing and `is_partial` is not set, if parts do not belong together, or files cannot be read or written.
pub fn merge(
    folder: &Path,
    to: &Path,
    series: Option<&Path>,
    is_partial: bool,
) -> Result<Merged, SweepError> {
    let parts = Parts::find(folder)?;
    check_outputs(&parts, folder, to, series)?;
    let missing = parts.missing();
    if !missing.is_empty() && !is_partial {
        let mut numbers: Vec<String> = missing.iter().take(8).map(u32::to_string).collect();
        if missing.len() > numbers.len() {
            numbers.push("...".to_owned());
        }
        let of = parts.of;
        let problem =
            format!("{} of {of} shards are missing: {}", missing.len(), numbers.join(", "));
        return Err(SweepError::part(
            folder,
            problem,
            "run them, or merge the others with --partial",
        ));
    }
    let Some(origin) = &parts.origin else {
        let help = "wait until a shard is whole";
        return Err(SweepError::part(folder, "no shard of it is whole yet", help));
    };
    let files: Vec<PathBuf> = parts.shards.iter().map(|shard| shard.part(folder)).collect();
    let leading = Some(origin.leading);
    if series.is_some() && !origin.with_series {
        let help = "run the sweep with --series, in another folder";
        return Err(SweepError::part(folder, "it has no series", help));
    }
    let rows = joined(&files, to, leading, origin)?;
    let series_rows = match series {
        None => None,
        Some(series) => {
            let files: Vec<PathBuf> =
                parts.shards.iter().map(|shard| shard.series(folder)).collect();
            Some(joined(&files, series, None, origin)?)
        }
    };
    let bytes = std::fs::metadata(to).map_or(0, |found| found.len());
    Ok(Merged { rows, series_rows, bytes })
}

/// A file of results as one table.
///
/// # Errors
/// If it cannot be read, or is no such file.
pub fn read_table(path: &Path) -> Result<RecordBatch, SweepError> {
    part::origin(path)?;
    let schema = Arc::clone(part::reader(path)?.schema());
    let batches = part::batches(path)?.collect::<Result<Vec<_>, _>>()?;
    concat_batches(&schema, &batches).map_err(|error| {
        SweepError::part(path, format!("it is damaged ({error})"), "make it again")
    })
}

/// Refuses outputs that would replace a part, or each other.
fn check_outputs(
    parts: &Parts,
    folder: &Path,
    to: &Path,
    series: Option<&Path>,
) -> Result<(), SweepError> {
    let outputs = std::iter::once(to).chain(series);
    let place = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    for output in outputs {
        let inputs =
            parts.shards.iter().flat_map(|shard| [shard.part(folder), shard.series(folder)]);
        if inputs.map(|input| place(&input)).any(|input| input == place(output)) {
            let help = "name another file";
            return Err(SweepError::part(output, "it is a part of the sweep", help));
        }
    }
    if series == Some(to) {
        let problem = "the table and the series cannot be one file";
        return Err(SweepError::part(to, problem, "name two files"));
    }
    Ok(())
}

/// Writes the rows of all files, in their order, in groups of one size.
fn joined(
    files: &[PathBuf],
    to: &Path,
    leading: Option<usize>,
    origin: &Origin,
) -> Result<u64, SweepError> {
    let schemas: Vec<Arc<Schema>> = files
        .iter()
        .map(|path| part::reader(path).map(|reader| Arc::clone(reader.schema())))
        .collect::<Result<_, _>>()?;
    let schema = match (leading, schemas.first()) {
        (Some(leading), _) => Arc::new(table::union(&schemas, leading)),
        (None, Some(first)) => Arc::clone(first),
        (None, None) => Arc::new(Schema::empty()),
    };
    // Without metadata of the schema: a file's own would stand in the merged one.
    let schema = Arc::new(Schema::new(schema.fields().clone()));
    let mut rows = 0;
    let batches = Regrouped::new(files, &schema).inspect(|batch| {
        rows += batch.as_ref().map_or(0, RecordBatch::num_rows) as u64;
    });
    part::write(to, &schema, &origin.merged().metadata(), batches)?;
    Ok(rows)
}

/// The rows of some files in groups of [`GROUP_ROWS`].
struct Regrouped<'a> {
    files: std::slice::Iter<'a, PathBuf>,
    schema: &'a Arc<Schema>,
    current: Option<parquet::arrow::arrow_reader::ParquetRecordBatchReader>,
    held: Vec<RecordBatch>,
    held_rows: usize,
}

impl<'a> Regrouped<'a> {
    fn new(files: &'a [PathBuf], schema: &'a Arc<Schema>) -> Self {
        Self { files: files.iter(), schema, current: None, held: Vec::new(), held_rows: 0 }
    }

    /// The next batch of any file.
    fn read(&mut self) -> std::io::Result<Option<RecordBatch>> {
        loop {
            if let Some(reader) = &mut self.current {
                match reader.next() {
                    Some(batch) => {
                        let batch = batch.map_err(std::io::Error::other)?;
                        return Ok(Some(table::fitted(&batch, self.schema)));
                    }
                    None => self.current = None,
                }
            }
            let Some(path) = self.files.next() else { return Ok(None) };
            let reader = part::reader(path).map_err(std::io::Error::other)?;
            self.current = Some(reader.build().map_err(std::io::Error::other)?);
        }
    }

    fn group(&mut self) -> std::io::Result<Option<RecordBatch>> {
        while self.held_rows < GROUP_ROWS {
            let Some(batch) = self.read()? else { break };
            self.held_rows += batch.num_rows();
            self.held.push(batch);
        }
        if self.held_rows == 0 {
            return Ok(None);
        }
        let all = concat_batches(self.schema, &self.held).map_err(std::io::Error::other)?;
        let taken = all.num_rows().min(GROUP_ROWS);
        let rest = all.slice(taken, all.num_rows() - taken);
        self.held_rows = rest.num_rows();
        self.held = if self.held_rows > 0 { vec![rest] } else { Vec::new() };
        Ok(Some(all.slice(0, taken)))
    }
}

impl Iterator for Regrouped<'_> {
    type Item = std::io::Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.group().transpose()
    }
}
