//! How many states of files are tried a second, by one core: the worked example of docs/crashtest-files.md, and a log of
//! 200 records.
//!
//!     cargo run --release --package leyden-crashtest --example states_per_second

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it measures time, and says it"
)]

use std::io::Write as _;
use std::time::Instant;

use leyden_crashtest::{CrashError, CrashTest, Fs, OpenOptions, Summary};

fn value(fs: &Fs) {
    for number in 1..=200 {
        fs.write("value.tmp", format!("{number}")).unwrap();
        fs.open("value.tmp").unwrap().sync_all().unwrap();
        fs.rename("value.tmp", "value").unwrap();
        fs.sync_dir("/").unwrap();
        fs.acknowledge(&number.to_string());
    }
}

fn check_value(fs: &Fs, acks: &[String]) -> Result<(), String> {
    let promised: u32 = acks.last().map_or(0, |ack| ack.parse().unwrap());
    let found = fs.read_to_string("value").unwrap_or_else(|_| "0".to_owned());
    let found: u32 = found.parse().map_err(|_| format!("damaged: {found:?}"))?;
    if found < promised { Err(format!("lost {promised}, found {found}")) } else { Ok(()) }
}

fn log(fs: &Fs) {
    let file = OpenOptions::new().append(true).create(true).open(fs, "log").unwrap();
    fs.sync_dir("/").unwrap();
    for number in 1..=200_u8 {
        (&file).write_all(&[number; 700]).unwrap();
        if number % 8 == 0 {
            file.sync_data().unwrap();
            fs.acknowledge(&number.to_string());
        }
    }
}

fn check_log(fs: &Fs, acks: &[String]) -> Result<(), String> {
    let promised: usize = acks.last().map_or(0, |ack| ack.parse().unwrap());
    let log = fs.read("log").unwrap_or_default();
    let records = log.chunks(700).zip(1_u8..);
    let there = records.take_while(|(record, number)| record.iter().all(|it| it == number)).count();
    if there < promised { Err(format!("lost {promised}, found {there}")) } else { Ok(()) }
}

fn told(name: &str, mut run: impl FnMut() -> Result<Summary, CrashError>) {
    for _ in 0..3 {
        let began = Instant::now();
        let summary = run().expect("software in memory lacks nothing");
        let seconds = began.elapsed().as_secs_f64();
        summary.assert_held();
        let states = summary.models[0].states;
        println!("{name}: {states} states, {:.0} a second", states as f64 / seconds);
    }
}

fn main() {
    told("value", || CrashTest::files(value, check_value).states(100_000).run());
    told("log", || CrashTest::files(log, check_log).states(20_000).run());
}
