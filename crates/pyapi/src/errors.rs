//! Exceptions. Their texts are the tool's own: problem, place and remedy; the Python side takes them apart.

use leyden_config::LoadError;
use leyden_run::RunError;
use leyden_sweep::SweepError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

create_exception!(_leyden, NativeConfigError, PyException);
create_exception!(_leyden, NativeRunError, PyException);

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("NativeConfigError", module.py().get_type::<NativeConfigError>())?;
    module.add("NativeRunError", module.py().get_type::<NativeRunError>())
}

/// Bad configuration or input.
pub(crate) fn config(text: impl ToString) -> PyErr {
    NativeConfigError::new_err(text.to_string())
}

pub(crate) fn load(error: &LoadError) -> PyErr {
    match error {
        LoadError::Read { .. } => PyOSError::new_err(error.to_string()),
        LoadError::Invalid(_) => config(error),
    }
}

pub(crate) fn run(error: &RunError) -> PyErr {
    match error {
        RunError::Interrupted => PyKeyboardInterrupt::new_err(error.to_string()),
        RunError::Config { .. } => config(error),
        error if error.is_input() => config(error),
        error => NativeRunError::new_err(error.to_string()),
    }
}

pub(crate) fn sweep(error: &SweepError) -> PyErr {
    match error {
        SweepError::Interrupted { .. } => PyKeyboardInterrupt::new_err(error.to_string()),
        SweepError::Load(error) => load(error),
        error if error.is_io() => PyOSError::new_err(error.to_string()),
        error => config(error),
    }
}
