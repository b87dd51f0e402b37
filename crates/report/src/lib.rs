//! One self-contained HTML file with plots, from one or several run records, or from a reproduction
//! of the papers.
//!
//! Here: reading records back from JSON ([`read_records`]) and laying them out as a page
//! ([`render`], [`render_to`]; [`render_reproduction`] for claims and the papers' figures). Not here: running anything, or computing what a record does not
//! already say; a figure shows recorded numbers, at most thinned out (`series.rs` says how).
//!
//! What holds for every page:
//! - it is one file that asks the network for nothing (its content security policy forbids it);
//! - same records, same bytes: no time stamps, no random ids;
//! - every text from a record is escaped, in the HTML by the template engine, in the embedded JSON
//!   by `html::json_for_script`;
//! - a chart never stands over nothing: if there is nothing to draw, a sentence says so;
//! - every chart has its table.

mod cards;
mod compare;
mod config;
mod error;
mod figures;
mod format;
pub mod fuzz;
mod html;
mod page;
mod read;
mod reproduction;
mod run;
mod series;
mod table;

pub use error::ReportError;
pub use page::{render, render_to};
pub use read::read_records;
pub use reproduction::{
    Finished, FinishedDatabase, FinishedZombie, Reproduction, render_reproduction,
};
