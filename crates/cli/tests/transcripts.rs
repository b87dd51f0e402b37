//! The command line against its transcripts. To take new ones: `TRYCMD=overwrite cargo test -p
//! leyden --test transcripts`, then read the difference.

#[test]
fn transcripts() {
    let cache = tempfile::tempdir().unwrap(); // where `leyden reproduce` keeps finished runs
    trycmd::TestCases::new()
        .env("XDG_CACHE_HOME", cache.path().to_str().unwrap())
        .case("tests/cmd/*.trycmd")
        .insert_var("[VERSION]", env!("CARGO_PKG_VERSION"))
        .unwrap();
}
