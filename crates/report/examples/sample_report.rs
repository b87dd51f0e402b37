//! Writes a report on made-up runs, to look at the page without simulating anything:
//!
//! `cargo run -p leyden-report --example sample_report -- out.html [one|compare|bare|huge]`

#[path = "../tests/samples/mod.rs"]
mod samples;

use samples::Sample;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: sample_report FILE.html [one|compare|bare|huge]";
    let path = args.next().ok_or(usage)?;
    let (records, title) = match args.next().as_deref() {
        None | Some("one") => {
            let mut record = Sample::default().record();
            record.warnings =
                vec!["1,204 requests reached beyond the device and were clipped".into()];
            (vec![record], "Mixed 70/30, 4 KiB random, QD 128")
        }
        Some("compare") => (samples::comparison(), "GC policies under 70/30 random load"),
        Some("bare") => (vec![samples::nothing()], "A run in which nothing happened"),
        Some("huge") => {
            let sample = |intervals, reads| Sample {
                name: "a run with a rather long name that someone's script put together: qd=128",
                intervals,
                reads,
                channels: 16,
                dies_per_channel: 32,
                ..Sample::default()
            };
            let records = [(50_000, 0.0), (1, 1.0), (9, 0.5)].map(|(n, r)| sample(n, r).record());
            (records.into(), "Long, short and one-sided runs")
        }
        Some(_) => return Err(usage.into()),
    };
    let mut out = BufWriter::new(File::create(path)?);
    leyden_report::render_to(&mut out, &records, Some(title))?;
    out.flush()?;
    Ok(())
}
