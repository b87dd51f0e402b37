#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    leyden_host::zoned_block::superblock::fuzz::search(data);
});
