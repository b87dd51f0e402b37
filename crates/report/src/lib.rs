//! One self-contained HTML file with plots, from one or several run records, or from a crash test.
//!
//! Here: reading records back from JSON ([`read_records`]) and laying them out as a page
//! ([`render`], [`render_to`]; [`render_crash_test`] for crash tests, [`render_answer`] for answers), and the [`figures`] that other pages are
//! made of. Not here: the papers' figures; running anything, or computing what a record does not already say; a figure shows recorded numbers, at most thinned out (`series.rs` says how).
//!
//! Rules of every page:
//! - it is one file that asks the network for nothing (its content security policy forbids it);
//! - same records, same bytes: no time stamps, no random ids;
//! - every text from a record is escaped, in the HTML by the template engine, in the embedded JSON
//!   by `html::json_for_script`;
//! - a chart never stands over nothing: if there is nothing to draw, a sentence says so;
//! - every chart has its table.

mod answer;
mod cards;
mod columns;
mod compare;
mod config;
mod crash;
mod csv;
mod error;
pub mod figures;
pub mod format;
pub mod fuzz;
mod html;
mod identity;
mod metrics;
mod page;
mod read;
mod replicates;
mod run;
mod series;
mod table;
mod timeline;

pub use answer::{AnswerPage, render_answer};
pub use cards::Card;
pub use columns::{Cell, Dimension, cells, quantity};
pub use crash::{CrashFinding, CrashModel, CrashRun, CrashShare, CrashTestPage, render_crash_test};
pub use csv::{CSV_HEAD, csv};
pub use error::ReportError;
pub use metrics::{
    Better, Metric, MetricGroup, PERCENTILES, Percentile, Unit, metric_at, metric_groups,
    metrics_of, record_schema,
};
pub use page::{
    Assets, FIGURE_SCRIPT, FigureData, MACROS, PACKED_VEGA, chart_data, render, render_to,
};
pub use read::{read_record, read_records};
pub use replicates::{Estimate, Replicates, replicates};
pub use timeline::{TIMELINE_MARK, described, slow_command, timeline_page, timeline_trace};
