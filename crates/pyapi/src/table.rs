//! Tables: columns that other libraries take over without a copy.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// Columns of one length.
#[pyclass(frozen, module = "leyden._leyden")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) const fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of a column; None where there is none.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column =
            self.batch.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        let values = (0..column.len()).map(|row| value(py, column, row));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }

    /// Arrow's PyCapsule interface: the table as a stream of one batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The consumer casts: the interface lets a producer give what it has.
        drop(requested_schema);
        let batches = [Ok(self.batch.clone())].into_iter();
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn value<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    if let Some(texts) = column.as_string_opt::<i32>() {
        return texts.value(row).into_bound_py_any(py);
    }
    if let Some(flags) = column.as_boolean_opt() {
        return flags.value(row).into_bound_py_any(py);
    }
    if let Some(counts) = column.as_primitive_opt::<Int64Type>() {
        return counts.value(row).into_bound_py_any(py);
    }
    if let Some(counts) = column.as_primitive_opt::<UInt64Type>() {
        return counts.value(row).into_bound_py_any(py);
    }
    column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py)
}
