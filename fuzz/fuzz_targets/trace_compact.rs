#![no_main]

use leyden_workload::trace::{Format, fuzz};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = fuzz::read_all(Some(Format::Compact), data);
    let mut sealed = data.to_vec();
    fuzz::reseal(&mut sealed);
    let _ = fuzz::read_all(Some(Format::Compact), &sealed);
    fuzz::write_back(Format::Compact, &sealed);
});
