#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("leyden-fuzz-log-{}", std::process::id()));
    let _ = leyden_image::fuzz::log(&path, data);
    let _ = std::fs::remove_file(path);
});
