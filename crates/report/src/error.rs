//! Errors on the way from JSON to a page.

use leyden_record::{RECORD_VERSION, RECORD_VERSION_LEAST};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The input is not JSON at all.
    #[error(
        "this is not JSON; a report is made from the output of `leyden run --json` or `leyden compare --json`"
    )]
    NotJson(#[source] serde_json::Error),
    /// The input is JSON, but something else's.
    #[error(
        "{place} is not a run record ({what}); a report is made from the output of `leyden run --json` or `leyden compare --json`"
    )]
    NotARecord {
        /// Which value: "the file", `runs[2]`.
        place: String,
        /// The evidence.
        what: String,
    },
    /// A record of a format this build does not know.
    #[error(
        "{place} is a run record of version {found}, but this build reads versions {RECORD_VERSION_LEAST} to {RECORD_VERSION}; \
         repeat the run with this build, or make the report with the build that wrote it{writer}"
    )]
    Version {
        /// Which value: "the file", `runs[2]`.
        place: String,
        /// Its `record_version`.
        found: u64,
        /// The program that wrote it, if it says so: " (Leyden 0.2.0)".
        writer: String,
    },
    /// A record of the right version with a part missing or of the wrong type.
    #[error(
        "{place} is a damaged run record ({source}); repeat the run, and do not edit records by hand"
    )]
    Damaged {
        /// Which value: "the file", `runs[2]`.
        place: String,
        /// The missing or wrong field.
        source: serde_json::Error,
    },
    /// The input is no page of Leyden's.
    #[error("this is no report of Leyden's with figures in it")]
    NotAPage,
    /// A timeline with more in it than a browser draws at ease.
    #[error(
        "{shown} commands and flash operations are too many for a page, which shows {most}\n  help: write a .pftrace for Perfetto, or show a moment of the run: --at TIME"
    )]
    TooMany {
        /// Commands and operations of the timeline.
        shown: usize,
        /// The most that a page shows.
        most: usize,
    },
    /// No records to report on.
    #[error("there is no run to report on; name at least one run record")]
    NoRuns,
    /// A bug in the page's template.
    #[error("the report's template is broken: {0}")]
    Template(#[from] minijinja::Error),
    /// The page could not be written.
    #[error("the report could not be written")]
    Write(#[from] std::io::Error),
}
