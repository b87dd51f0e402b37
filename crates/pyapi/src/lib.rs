//! The native module of the Python package: `leyden._leyden`.
//!
//! **What lives here**: calls of the simulator that take and return texts, bytes and tables; they release the interpreter's lock
//! and heed Ctrl-C. **What doesn't**: what Python programs see, with its documentation and its types: `python/leyden`.

#![expect(clippy::needless_pass_by_value, reason = "arguments are made from Python's objects")]

mod crashtest;
mod drive;
mod errors;
mod interrupt;
mod runs;
mod sweeps;
mod table;
mod torture;

use pyo3::prelude::*;

/// The build that results are told apart by: the version, and the commit if it is known.
fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match env!("LEYDEN_COMMIT") {
        "" => version.to_owned(),
        commit => format!("{version} ({commit})"),
    }
}

#[pymodule(gil_used = false)]
fn _leyden(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("build", build())?;
    errors::add_to(module)?;
    module.add_class::<drive::Drive>()?;
    module.add_class::<table::Table>()?;
    runs::add_to(module)?;
    sweeps::add_to(module)?;
    crashtest::add_to(module)?;
    module.add_function(wrap_pyfunction!(torture::torture, module)?)
}
