//! The drive in a browser: a real [`Ssd`](leyden_device::Ssd) and its host behind one call with JSON.
//!
//! **What lives here**: the questions and answers ([`ask`]), the drive with its host ([`session`]), the record of
//! promises that a cut is judged by ([`ledger`]), and the border to WebAssembly ([`border`]). **What doesn't**: the
//! model, which is that of every other command; the page (`assets/`), and its assembly (`.ci/wasm`).
//!
//! **Invariants**
//! - Every question has an answer: bad input gets an error, and changes nothing.
//! - The same questions get the same answers, in a browser and here.
//! - Memory is bounded, however long a drive runs.

pub mod ask;
pub mod border;
mod face;
mod fill;
mod latencies;
mod ledger;
mod limits;
mod loss;
mod sample;
mod session;
mod stream;
#[cfg(test)]
mod tests;

pub use face::Face;
