//! The papers' figures, each made of the runs of its matrix.

pub(crate) mod beside;
pub(crate) mod frontier;
pub(crate) mod protection;
pub(crate) mod selective;
pub(crate) mod zombie;
