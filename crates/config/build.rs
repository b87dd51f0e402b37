//! With the feature `packed-traces`: the bundled traces, column by column, for builds that are downloads.

#[cfg(feature = "packed-traces")]
#[path = "src/packed.rs"]
mod packed;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "packed-traces")]
    pack();
}

/// Writes each `scenarios/traces/NAME.csv.zst` as `NAME.columns` and `NAME.origin` (the file's length and SHA-256).
#[cfg(feature = "packed-traces")]
fn pack() {
    use std::path::Path;

    use sha2::{Digest, Sha256};

    const LEVEL: i32 = 19;
    println!("cargo::rerun-if-changed=src/packed.rs");
    println!("cargo::rerun-if-changed=scenarios/traces");
    let to = std::env::var_os("OUT_DIR").expect("cargo sets it");
    for entry in std::fs::read_dir("scenarios/traces").expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let Some(stem) = name.strip_suffix(".csv.zst") else { continue };
        let whole = std::fs::read(&path).expect("a trace");
        let text = zstd::decode_all(&*whole).expect("zstd");
        let columns = packed::pack(&text).expect("a table of numbers and words");
        let small = zstd::encode_all(&*columns, LEVEL).expect("memory");
        std::fs::write(Path::new(&to).join(format!("{stem}.columns")), small).expect("OUT_DIR");
        let origin = format!("{} {:x}", whole.len(), Sha256::digest(&whole));
        std::fs::write(Path::new(&to).join(format!("{stem}.origin")), origin).expect("OUT_DIR");
    }
}
