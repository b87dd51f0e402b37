#![no_main]

use leyden_workload::trace::{Format, fuzz};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = fuzz::read_all(Some(Format::Biosnoop), data);
});
