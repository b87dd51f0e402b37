//! Rows as a table: columns of Arrow, and files of Parquet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use leyden_report::{Cell, quantity};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::plan::Plan;
use crate::row::Row;
use crate::settings::Varied;

/// Rows that are written together. Their number decides the bytes of a file, so it is the same everywhere.
pub(crate) const GROUP_ROWS: usize = 16_384;
/// Columns before those of the plan's keys.
pub(crate) const FIRST: [&str; 7] = ["point", "id", "name", "device", "seed", "error", "digest"];
/// The last column.
const LAST: &str = "warnings";

/// The columns that stand before the figures: those of every sweep, and the plan's.
pub(crate) fn leading(plan: &Plan) -> usize {
    FIRST.len() + plan.varied.len()
}

/// The rows as a table: a line for each point, a column for each varied key (as a number in the unit that its name ends
/// with, if its values are quantities), for each figure, and for warnings. What a point has no value for is null.
///
/// # Panics
/// Never: all columns are as long as there are rows.
pub fn table(plan: &Plan, rows: &[Row]) -> RecordBatch {
    let mut columns: Vec<(String, ArrayRef)> = vec![
        (
            FIRST[0].into(),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.point as i64))),
        ),
        (FIRST[1].into(), texts(rows, |row| Some(row.id.clone()).filter(|id| !id.is_empty()))),
        (FIRST[2].into(), texts(rows, |row| Some(row.name.clone()))),
        (FIRST[3].into(), texts(rows, |row| row.device.clone())),
        (FIRST[4].into(), Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.seed)))),
        (FIRST[5].into(), texts(rows, |row| row.error.clone())),
        (FIRST[6].into(), texts(rows, |row| row.digest.clone())),
    ];
    for (at, varied) in plan.varied.iter().enumerate() {
        columns.push((varied.column(), varied_column(varied, at, rows)));
    }
    let keys: BTreeSet<&String> = rows.iter().flat_map(|row| row.figures.keys()).collect();
    for key in keys {
        columns.push((key.clone(), figure(key, rows)));
    }
    columns.push((LAST.into(), texts(rows, |row| Some(row.warnings.join("; ")))));
    batch(columns)
}

/// Tables of plans that vary the same keys, one after another.
///
/// # Panics
/// Never: all columns are as long as there are rows.
pub fn stacked(plans: &[Plan], tables: &[RecordBatch]) -> RecordBatch {
    let schemas: Vec<_> = tables.iter().map(RecordBatch::schema).collect();
    let schema = Arc::new(union(&schemas, plans.first().map_or(0, leading)));
    let fitting: Vec<_> = tables.iter().map(|table| fitted(table, &schema)).collect();
    concat_batches(&schema, &fitting).expect("columns of one kind")
}

/// The rows of a table, but for their series; what `table` is the other way round.
pub(crate) fn rows(plan: &Plan, batch: &RecordBatch) -> Vec<Row> {
    let schema = batch.schema();
    let text = |name: &str, row: usize| {
        let column = batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let cell = |column: &ArrayRef, row: usize| {
        if column.is_null(row) {
            return None;
        }
        match column.data_type() {
            DataType::Boolean => Some(Cell::Flag(column.as_boolean().value(row))),
            DataType::Int64 => {
                Some(Cell::Integer(column.as_primitive::<Int64Type>().value(row) as u64))
            }
            DataType::Float64 => {
                Some(Cell::Number(column.as_primitive::<Float64Type>().value(row)))
            }
            _ => None,
        }
    };
    let figures = leading(plan)..schema.fields().len() - 1;
    let row = |row: usize| {
        let point = batch.column(0).as_primitive::<Int64Type>().value(row) as u64;
        let cells = figures
            .clone()
            .filter_map(|at| Some((schema.field(at).name().clone(), cell(batch.column(at), row)?)));
        let warnings = text(LAST, row).filter(|text| !text.is_empty());
        Row {
            point,
            id: text("id", row).unwrap_or_default(),
            name: text("name", row).unwrap_or_default(),
            device: text("device", row),
            seed: batch.column(4).as_primitive::<UInt64Type>().value(row),
            values: plan.point(point).map_or_else(Vec::new, |point| point.values),
            error: text("error", row),
            digest: text("digest", row),
            warnings: warnings.into_iter().collect(),
            figures: cells.collect(),
            series: BTreeMap::new(),
        }
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The series of the rows, one line for each point, series and interval: `point`, `series`, `time_s`, `value`.
///
/// # Panics
/// Never: all columns are as long as there are lines.
pub fn series_table(rows: &[Row]) -> RecordBatch {
    let mut lines: Vec<(i64, &str, f64, f64)> = Vec::new();
    for row in rows {
        let Some(times) = row.series.get("time_s") else { continue };
        for (key, values) in row.series.iter().filter(|(key, _)| *key != "time_s") {
            let each = times.iter().zip(values);
            lines.extend(each.map(|(time, value)| (row.point as i64, key.as_str(), *time, *value)));
        }
    }
    let number = |get: fn(&(i64, &str, f64, f64)) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(lines.iter().map(get)))
    };
    batch(vec![
        ("point".into(), Arc::new(Int64Array::from_iter_values(lines.iter().map(|line| line.0)))),
        ("series".into(), Arc::new(StringArray::from_iter_values(lines.iter().map(|line| line.1)))),
        ("time_s".into(), number(|line| line.2)),
        ("value".into(), number(|line| line.3)),
    ])
}

/// Adds the lines of a table of series to those of their points.
pub(crate) fn add_series(batch: &RecordBatch, to: &mut BTreeMap<u64, BTreeMap<String, Vec<f64>>>) {
    let point = batch.column(0).as_primitive::<Int64Type>();
    let name = batch.column(1).as_string::<i32>();
    let (time, value) = (
        batch.column(2).as_primitive::<Float64Type>(),
        batch.column(3).as_primitive::<Float64Type>(),
    );
    for line in 0..batch.num_rows() {
        let of_point = to.entry(point.value(line) as u64).or_default();
        // Each series has the same times: those of the first stand for all.
        let is_first = of_point.keys().all(|key| key == "time_s" || key == name.value(line));
        if is_first {
            of_point.entry("time_s".to_owned()).or_default().push(time.value(line));
        }
        of_point.entry(name.value(line).to_owned()).or_default().push(value.value(line));
    }
}

fn batch(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    let fields = columns.iter().map(|(name, array)| field(name, array.data_type()));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(schema, arrays).expect("columns of one length")
}

pub(crate) fn field(name: &str, kind: &DataType) -> Field {
    Field::new(name, kind.clone(), true)
}

fn texts(rows: &[Row], get: impl Fn(&Row) -> Option<String>) -> ArrayRef {
    Arc::new(rows.iter().map(get).collect::<StringArray>())
}

fn varied_column(varied: &Varied, at: usize, rows: &[Row]) -> ArrayRef {
    if varied.dimension.is_none() {
        return texts(rows, |row| row.values.get(at).cloned());
    }
    let number =
        |row: &Row| row.values.get(at).and_then(|value| quantity(value)).map(|found| found.0);
    Arc::new(rows.iter().map(number).collect::<Float64Array>())
}

/// A figure as whole numbers or flags where all of its values are, else as numbers.
fn figure(key: &str, rows: &[Row]) -> ArrayRef {
    let cells: Vec<Option<Cell>> = rows.iter().map(|row| row.figures.get(key).copied()).collect();
    let are = |kind: fn(&Cell) -> bool| cells.iter().flatten().all(kind);
    if are(|cell| matches!(cell, Cell::Flag(_))) {
        let flag = |cell: &Option<Cell>| cell.map(|cell| cell == Cell::Flag(true));
        Arc::new(cells.iter().map(flag).collect::<BooleanArray>())
    } else if are(|cell| matches!(cell, Cell::Integer(_))) {
        let count = |cell: &Option<Cell>| match cell {
            Some(Cell::Integer(count)) => Some(*count as i64),
            _ => None,
        };
        Arc::new(cells.iter().map(count).collect::<Int64Array>())
    } else {
        let number = |cell: &Option<Cell>| match cell {
            Some(Cell::Integer(count)) => Some(*count as f64),
            Some(Cell::Number(value)) => Some(*value),
            Some(Cell::Flag(is)) => Some(f64::from(u8::from(*is))),
            None => None,
        };
        Arc::new(cells.iter().map(number).collect::<Float64Array>())
    }
}

/// Columns of two tables as one list: what stands before the figures, the figures of both in alphabetical order, and
/// warnings. A figure that is whole in one and not in the other is a number.
pub(crate) fn union(schemas: &[Arc<Schema>], leading: usize) -> Schema {
    let Some(first) = schemas.first() else { return Schema::empty() };
    let mut figures: BTreeMap<&str, DataType> = BTreeMap::new();
    for schema in schemas {
        let all = schema.fields();
        for field in &all[leading..all.len() - 1] {
            let kind = figures.entry(field.name()).or_insert_with(|| field.data_type().clone());
            if kind != field.data_type() {
                *kind = DataType::Float64;
            }
        }
    }
    let mut fields: Vec<Field> =
        first.fields()[..leading].iter().map(|one| (**one).clone()).collect();
    fields.extend(figures.iter().map(|(name, kind)| field(name, kind)));
    fields.extend(first.fields().last().map(|last| (**last).clone()));
    Schema::new(fields)
}

/// `batch` with the columns of `schema`.
pub(crate) fn fitted(batch: &RecordBatch, schema: &Arc<Schema>) -> RecordBatch {
    let column = |field: &Arc<Field>| -> ArrayRef {
        match batch.column_by_name(field.name()) {
            None => arrow_array::new_null_array(field.data_type(), batch.num_rows()),
            Some(column) if column.data_type() == field.data_type() => Arc::clone(column),
            Some(column) => Arc::new(numbers(column)),
        }
    };
    let columns = schema.fields().iter().map(column).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).expect("columns of one length")
}

fn numbers(column: &ArrayRef) -> Float64Array {
    match column.data_type() {
        DataType::Int64 => {
            let counts = column.as_primitive::<Int64Type>().iter();
            counts.map(|count| count.map(|count| count as f64)).collect()
        }
        DataType::Boolean => {
            column.as_boolean().iter().map(|flag| flag.map(|is| f64::from(u8::from(is)))).collect()
        }
        _ => Float64Array::new_null(column.len()),
    }
}

/// Writes batches of at most [`GROUP_ROWS`] rows, each as a group of rows of its own. Same rows, same bytes.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn write<W: std::io::Write + Send>(
    to: W,
    schema: Arc<Schema>,
    metadata: &[(&str, String)],
    batches: impl Iterator<Item = std::io::Result<RecordBatch>>,
) -> std::io::Result<()> {
    let pairs = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(std::io::Error::other)?))
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by("leyden".to_owned())
        .set_key_value_metadata(Some(pairs.collect()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut writer =
        ArrowWriter::try_new(to, schema, Some(properties)).map_err(std::io::Error::other)?;
    for batch in batches {
        writer.write(&batch?).map_err(std::io::Error::other)?;
        writer.flush().map_err(std::io::Error::other)?;
    }
    writer.close().map_err(std::io::Error::other)?;
    Ok(())
}
