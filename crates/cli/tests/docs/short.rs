//! The short form of a command: the same, with little work.

use std::process::Output;

use super::pages::has_extension;

/// Commands of a run, of a trace or of a job.
const FEW: &str = "500";

/// `args` of `leyden`, with what shortens them; `ask` runs `leyden`.
pub(crate) fn form(args: &[String], ask: &dyn Fn(&[String]) -> Output) -> Vec<String> {
    let mut short = args.to_vec();
    for word in &mut short {
        *word = word.replace("bench/NAME", "bench/random-write");
    }
    match short[0].as_str() {
        "run" | "compare" | "size" | "lifetime" | "timeline" => {
            if let Some(file) = short.get(1).filter(|file| !file.starts_with('-')) {
                let shorter = shorter_work(file, ask);
                short.extend(shorter);
            }
            if short[0] == "size" {
                short.extend(["--commands", FEW].map(str::to_owned));
            }
            // Two make a mean with an interval, as more do.
            if short[0] == "compare"
                && let Some(seeds) = short.iter().position(|word| word == "--seeds")
            {
                "2".clone_into(&mut short[seeds + 1]);
            }
        }
        // A small drive: all of it is read, exported and imported. A zoned one has as many zones as it allows to be active.
        "image" if short[1] == "create" && !short.iter().any(|word| ZONED.contains(&&**word)) => {
            for small in ["channels=2", "dies_per_channel=1", "blocks_per_plane=128"] {
                short.extend(["--set".to_owned(), format!("device.nand.{small}")]);
            }
        }
        // Nothing was asked of the drive for so long.
        "recording" => {
            if let Some(cut) = short.iter().position(|word| word == "--cut") {
                "1 ns".clone_into(&mut short[cut + 1]);
            }
        }
        "torture" => {
            if let Some(seeds) = short.iter().position(|word| word == "--seeds") {
                "2".clone_into(&mut short[seeds + 1]);
            } else if short.iter().any(|word| word == "--exhaustive") {
                short.extend(["--commands", "1"].map(str::to_owned));
            }
        }
        "reproduce" => {
            // Its shortest form takes minutes; which claims it would measure, no time.
            if let Some(out) = short.iter().position(|word| word == "--out") {
                short.drain(out..out + 2);
            }
            short.retain(|word| word != "--live" && word != "--list");
            short.push("--list".to_owned());
        }
        _ => {}
    }
    short
}

/// Drives with zones.
const ZONED: [&str; 2] = ["devices/zns", "devices/zoned-block"];

/// Settings that make the work of the scenario `file` short. A record or a report needs none: the
/// run that made it was short.
fn shorter_work(file: &str, ask: &dyn Fn(&[String]) -> Output) -> Vec<String> {
    if has_extension(file, "json") || file.contains(".html") {
        return Vec::new();
    }
    let checked = ask(&["check".to_owned(), file.to_owned()]);
    let scenario = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{file}: {}", String::from_utf8_lossy(&checked.stderr));
    let mut sets = vec!["run.ramp.time=0 s".to_owned(), "run.ramp.requests=0".to_owned()];
    if scenario.contains("[precondition") {
        sets.push("precondition.kind=none".to_owned());
    }
    if !scenario.contains("[device.zoned]") {
        sets.push("precondition.max_passes=1".to_owned()); // a ramp that settles gives up then
    }
    let jobs = scenario.matches("[[workload.job]]").count();
    sets.extend((0..jobs).map(|job| format!("workload.job.{job}.requests={FEW}")));
    let jobs = scenario.matches("[[workload.zone_job]]").count();
    sets.extend((0..jobs).map(|job| format!("workload.zone_job.{job}.requests={FEW}")));
    if scenario.contains("[workload.trace]") {
        sets.push(format!("workload.trace.limit={FEW}"));
    }
    if scenario.contains("[workload.recorded]") {
        sets.extend(["skip=0", "puts=30"].map(|set| format!("workload.recorded.{set}")));
    }
    if scenario.contains("[workload.lsm]") {
        sets.push("workload.lsm.puts=20000".to_owned());
    }
    sets.into_iter().flat_map(|set| ["--set".to_owned(), set]).collect()
}
