#![no_main]

use leyden_workload::trace::fuzz;
use libfuzzer_sys::fuzz_target;

// Detection and decompression, which the targets of the formats skip.
fuzz_target!(|data: &[u8]| {
    let _ = fuzz::read_all(None, data);
});
