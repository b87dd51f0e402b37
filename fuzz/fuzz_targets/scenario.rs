#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = leyden_experiment::scenario::fuzz::scenario(data);
});
