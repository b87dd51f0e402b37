//! Prints, and makes small, one seed. For work on the drive.
//!
//! `cargo run --release -p leyden-torture --example torture_one SEED`
use leyden_torture::{Options, SeedFile, run, shrink};

#[expect(clippy::print_stdout, reason = "prints")]
fn main() {
    let seed = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    match shrink(&Options::draw(seed), 3000, run) {
        None => println!("clean"),
        Some(s) => {
            println!("{}", s.failure);
            println!("{}", SeedFile::new(s.options, Some(s.failure)).to_json());
        }
    }
}
