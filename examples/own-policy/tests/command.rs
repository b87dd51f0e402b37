//! The command line with a policy of one's own.

use std::process::Command;

use serde_json::Value;

fn says(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_own-policy")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// A drive of 64 MiB that is full and written at random.
const RUN: [&str; 13] = [
    "run",
    "bench/random-write",
    "--json",
    "--set",
    "device.nand.blocks_per_plane=16",
    "--set",
    "device.nand.pages_per_block=64",
    "--set",
    "device.buffer.size=4 MiB",
    "--set",
    "workload.job.0.requests=20000",
    "--set",
    "precondition.kind=fill",
];

fn run(victim: &str) -> Value {
    let set = format!("device.ftl.gc.victim={victim}");
    let (ok, json, errors) = says(&[&RUN[..], &["--set", &set]].concat());
    assert!(ok, "{errors}");
    serde_json::from_str(&json).unwrap()
}

#[test]
fn it_is_listed_with_its_parameters_and_is_in_the_schema() {
    let (ok, list, _) = says(&["policies"]);
    assert!(ok && list.contains("mostly_greedy\n      The block with the fewest"), "{list}");
    assert!(list.contains("one_in = 10  One of this many choices"), "{list}");
    let (ok, schema, _) = says(&["schema", "scenario"]);
    assert!(ok && schema.contains("\"mostly_greedy\""));
}

#[test]
fn it_runs_by_name_and_with_parameters_and_decides() {
    let digest = |record: &Value| record["sim"]["digest"].as_str().unwrap().to_owned();
    let by_name = run("mostly_greedy");
    assert_eq!(by_name["gc"]["policy"], "mostly_greedy");
    assert_eq!(by_name["config"]["device"]["ftl"]["gc"]["victim"]["one_in"], 10);
    assert!(by_name["gc"]["collections"].as_u64().unwrap() > 0);
    let often = run("{ policy = \"mostly_greedy\", one_in = 2 }");
    let hardly = run("{ policy = \"mostly_greedy\", one_in = 1000000000 }");
    assert_ne!(digest(&by_name), digest(&often));
    assert_eq!(digest(&hardly), digest(&run("greedy")), "which it then is");
}

#[test]
fn wrong_parameters_are_refused_and_the_house_s_own_still_read() {
    let set = "device.ftl.gc.victim={ policy = \"mostly_greedy\", one_on = 2 }";
    let (ok, _, errors) = says(&[&RUN[..], &["--set", set]].concat());
    assert!(
        !ok && errors.contains("device.ftl.gc.victim") && errors.contains("one_on"),
        "{errors}"
    );
    let (ok, _, errors) =
        says(&["check", "tpcc", "--set", "device.ftl.gc.victim={ policy = \"d_choices\", d = 3 }"]);
    assert!(ok, "{errors}");
}

#[test]
fn torture_runs_with_it() {
    let (ok, out, errors) = says(&["torture", "--seeds", "40"]);
    assert!(ok, "{out}{errors}");
}
