#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = leyden_crashtest::fuzz::files(data);
});
