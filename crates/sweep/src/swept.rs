//! A table of results, read back for figures.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use leyden_report::Dimension;
use leyden_report::figures::SweptRun;

use crate::error::SweepError;
use crate::merge::read_table;
use crate::part;
use crate::table::FIRST;

/// The runs of a table of results.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Those that have results, in the plan's order.
    pub runs: Vec<SweptRun>,
    /// Those that have none.
    pub failed: usize,
    /// The build that made them.
    pub build: String,
}

/// Reads the table of results at `path`, of a shard or merged.
///
/// # Errors
/// If it cannot be read, or is no table of results.
pub fn read_swept(path: &Path) -> Result<Swept, SweepError> {
    let origin = part::origin(path)?;
    let table = read_table(path)?;
    let columns = table.schema().fields().len();
    if columns <= origin.leading {
        let problem = "it is a table of series, which has no figures of runs";
        return Err(SweepError::part(path, problem, "name the table that was merged with it"));
    }
    let error = table.column_by_name("error");
    let is_failed = |row: usize| error.is_some_and(|column| column.is_valid(row));
    let (failed, made): (Vec<usize>, Vec<usize>) =
        (0..table.num_rows()).partition(|row| is_failed(*row));
    let varied = FIRST.len()..origin.leading;
    let runs = made.into_iter().map(|row| SweptRun {
        values: varied.clone().filter_map(|at| setting(&table, at, row)).collect(),
        figures: (origin.leading..columns)
            .filter_map(|at| Some((name(&table, at), number(table.column(at), row)?)))
            .collect(),
    });
    Ok(Swept { runs: runs.collect(), failed: failed.len(), build: origin.build })
}

fn name(table: &RecordBatch, at: usize) -> String {
    table.schema().field(at).name().clone()
}

fn number(column: &ArrayRef, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(row) as f64),
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        _ => None,
    }
}

/// A varied key and its value with the unit that its column is in: sizes in the largest unit that all of them reach.
fn setting(table: &RecordBatch, at: usize, row: usize) -> Option<(String, String)> {
    let column = table.column(at);
    let name = name(table, at);
    let name = name.strip_prefix("config.").unwrap_or(&name);
    let Some(value) = number(column, row) else {
        let texts = column.as_string_opt::<i32>()?;
        return texts.is_valid(row).then(|| (name.to_owned(), texts.value(row).to_owned()));
    };
    let (bytes, seconds) = (Dimension::Bytes.suffix(), Dimension::Seconds.suffix());
    if let Some(key) = name.strip_suffix(bytes) {
        let all = (0..table.num_rows()).filter_map(|row| number(column, row));
        let least = all.fold(f64::INFINITY, f64::min);
        let units = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
        let (unit, power) = units.into_iter().find(|(_, power)| least >= f64::from(1 << power))?;
        return Some((key.to_owned(), format!("{} {unit}", value / f64::from(1 << power))));
    }
    match name.strip_suffix(seconds) {
        Some(key) => Some((key.to_owned(), format!("{value} s"))),
        None => Some((name.to_owned(), value.to_string())),
    }
}
