#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = leyden_serve::fuzz::vfio_user(data);
});
