//! How fast a trace is read: `cargo run --release -p leyden-workload --example trace_speed FILE`.
//!
//! Reads the file twice: from memory as it stands (with decompression, if it is compressed), and
//! from memory once more for a profile.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it prints, and reads the clock"
)]

use std::io::Cursor;
use std::path::Path;
use std::time::Instant;

use leyden_workload::trace::{self, Devices, OpenOptions, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: trace_speed FILE")?;
    let bytes = std::fs::read(&path)?;
    let options = OpenOptions { devices: Devices::Overlay, ..OpenOptions::default() };
    let open = || Reader::new(Path::new(&path), Box::new(Cursor::new(bytes.clone())), &options);

    let mut reader = open()?;
    let start = Instant::now();
    let (mut requests, mut sectors) = (0u64, 0u64);
    for request in &mut reader {
        let request = request?;
        requests += 1;
        sectors = sectors.wrapping_add(u64::from(request.sectors) ^ request.lba.0);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{path}: {} ({} bytes): {requests} requests in {seconds:.3} s = {:.2} million/s, {:.0} ns each (check {sectors:x})",
        reader.format(),
        bytes.len(),
        requests as f64 / seconds / 1e6,
        seconds * 1e9 / requests as f64,
    );
    for warning in reader.warnings() {
        println!("  {warning}");
    }

    let start = Instant::now();
    let profile = {
        let reader = open()?;
        let classes = reader.classes().clone();
        trace::profile(reader, &classes)?
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("  profiled in {seconds:.3} s: footprint {} MiB", profile.footprint_bytes >> 20);
    Ok(())
}
