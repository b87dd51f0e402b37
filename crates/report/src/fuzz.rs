//! The function of the fuzz target and of the short fuzz test: any text as run records.
//!
//! **Invariants**: none may panic but for a broken promise.

use crate::{ReportError, read_records, render};

/// Reads `data` as `leyden report` does and lays out what it holds; returns the page's length.
pub fn records(data: &[u8]) -> Result<usize, ReportError> {
    let records = read_records(&String::from_utf8_lossy(data))?;
    let page = render(&records, None)?;
    Ok(page.len())
}
