//! The command line against its transcripts. To take new ones: `TRYCMD=overwrite cargo test -p
//! leyden-cli --test transcripts`, then read the difference.

#[test]
fn transcripts() {
    trycmd::TestCases::new()
        .case("tests/cmd/*.trycmd")
        .insert_var("[VERSION]", env!("CARGO_PKG_VERSION"))
        .unwrap();
}
