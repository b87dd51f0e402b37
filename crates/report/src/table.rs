//! A plain table: the other form of every chart, for readers who cannot use the picture.

use serde::Serialize;

/// Cells are text; the template escapes them. The first cell of a row is its heading.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Column headings, the first one over the row headings.
    pub head: Vec<String>,
    /// Rows, each as long as `head`.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }
}
