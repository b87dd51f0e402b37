//! Tests of whole conventional drives, one subject a file: one program, since each would compile the drive again.

mod atomic;
mod bad_blocks;
mod content;
mod cut_collections;
mod durable;
mod forced;
mod hexa_figure1;
mod hints;
mod late_driver;
mod latency;
mod map_journal;
mod medium_alone;
mod pace;
mod policies;
mod power_cut;
mod pressure;
mod readings;
mod sectors;
mod selective;
mod skew;
mod snapshot;
mod untimed;
mod zombie_figures;
