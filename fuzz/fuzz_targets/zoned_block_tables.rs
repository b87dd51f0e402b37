#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = leyden_host::zoned_block::fuzz::tables(data);
});
