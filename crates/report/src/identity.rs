//! The identity of a run, in words: the drive, the work, its history, and the varied keys. A reader
//! of a report has neither the scenario nor the one who wrote it.

use crate::format;
use leyden_record::{Drive, RunRecord, Settling, Steadiness};
use leyden_sim::Span;
use serde::Serialize;
use serde_json::Value;

/// More values of a key than these are counted in a title, not listed.
const MOST_IN_TITLE: usize = 4;

/// A fact and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Fact {
    label: &'static str,
    text: String,
}

/// The common name of the runs: the scenario, and the varied keys.
pub(crate) fn title(records: &[RunRecord]) -> String {
    if let [record] = records {
        return record.name.clone();
    }
    let mut names: Vec<String> = records.iter().map(scenario).collect();
    names.dedup();
    let names = match names.len() {
        0..=MOST_IN_TITLE => names.join(", "),
        n => format!("{n} scenarios"),
    };
    let keys = varied_keys(records);
    let varied = keys.iter().map(|key| {
        let short = short(key);
        let mut values: Vec<&str> = Vec::new();
        for value in records.iter().filter_map(|record| value_of(record, key)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        match values.len() {
            0..=MOST_IN_TITLE => format!("{short} = {}", values.join(", ")),
            n => format!("{n} values of {short}"),
        }
    });
    let varied: Vec<String> = varied.collect();
    if varied.is_empty() { names } else { format!("{names}: {}", varied.join("; ")) }
}

/// The scenario of a run, or its name if it has none.
fn scenario(record: &RunRecord) -> String {
    match record.scenario.as_str() {
        "" => record.name.clone(),
        scenario => scenario.to_owned(),
    }
}

/// The version of Leyden that made the record, with its commit.
pub(crate) fn build(record: &RunRecord) -> String {
    match record.commit.as_str() {
        "" => record.leyden_version.clone(),
        commit => format!("{} ({commit})", record.leyden_version),
    }
}

/// The line below a figure on paper: scenario, drive, seeds, digests and build.
pub(crate) fn caption(records: &[RunRecord]) -> String {
    let each = |of: &dyn Fn(&RunRecord) -> String| {
        let mut values: Vec<String> = Vec::new();
        for value in records.iter().map(of) {
            if !value.is_empty() && !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let several = |name: &str, names: &str, values: &[String]| match values {
        [] => String::new(),
        [value] => format!("{name} {value}"),
        values if values.len() <= MOST_IN_TITLE => format!("{names} {}", values.join(", ")),
        values => format!("{} {}", values.len(), names.trim_end_matches(':')),
    };
    let drive = |record: &RunRecord| {
        let drive = record.drive.as_ref();
        drive.map_or_else(String::new, |drive| geometry(drive, &record.config["device"]))
    };
    let parts = [
        several("Scenario", "scenarios", &each(&scenario)),
        match &varied_keys(records)[..] {
            [] => String::new(),
            keys => format!("varied: {}", keys.join(", ")),
        },
        several("drive:", "drives:", &each(&drive)),
        several("seed", "seeds", &each(&|record| record.seed.to_string())),
        several("digest", "digests", &each(&|record| record.sim.digest.clone())),
        several("Leyden", "builds of Leyden", &each(&build)),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) }
}

/// The keys that were varied, in order.
pub(crate) fn varied_keys(records: &[RunRecord]) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for varied in records.iter().flat_map(|record| &record.varied) {
        if !keys.contains(&varied.key.as_str()) {
            keys.push(&varied.key);
        }
    }
    keys
}

/// A run's value of a varied key.
pub(crate) fn value_of<'a>(record: &'a RunRecord, key: &str) -> Option<&'a str> {
    record.varied.iter().find(|varied| varied.key == key).map(|varied| varied.value.as_str())
}

/// The last part of a key, or the last two if one alone says little.
pub(crate) fn short(key: &str) -> &str {
    let vague =
        ["policy", "size", "kind", "time", "region", "capacity", "parts", "read", "program"];
    let last = key.rfind('.').map_or(0, |dot| dot + 1);
    if vague.contains(&&key[last..]) && last > 0 {
        let before = key[..last - 1].rfind('.').map_or(0, |dot| dot + 1);
        return &key[before..];
    }
    &key[last..]
}

/// The facts that all runs share.
pub(crate) fn facts(records: &[RunRecord]) -> Vec<Fact> {
    let mut each = records.iter().map(of);
    let Some(mut common) = each.next() else { return Vec::new() };
    for other in each {
        common.retain(|fact| other.contains(fact));
    }
    common
}

/// The facts of one run.
fn of(record: &RunRecord) -> Vec<Fact> {
    let config = &record.config;
    let device = &config["device"];
    let facts = [
        ("About", text(&config["description"])),
        ("Drive", record.drive.as_ref().map(|drive| geometry(drive, device))),
        ("Times", times(&device["nand"])),
        ("Spare", spare(record.drive.as_ref(), device)),
        ("Write buffer", buffer(&device["buffer"])),
        ("Garbage collection", policy(&device["ftl"]["gc"]["victim"])),
        ("Mapping table", policy(&device["ftl"]["map"]["protection"])),
        ("Capacitors", bank(record)),
        ("Page cache", text(&config["host"]["page_cache"]["size"])),
        ("Work", work(&config["workload"])),
        ("Before the run", before(&config["precondition"])),
        ("Steady state", settled(&record.steadiness)),
        ("Seed", (record.seed > 0).then(|| record.seed.to_string())),
    ];
    facts.into_iter().filter_map(|(label, text)| Some(Fact { label, text: text? })).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn geometry(drive: &Drive, device: &Value) -> String {
    let per_channel = drive.dies / drive.channels.max(1);
    let planes = device["nand"]["planes_per_die"].as_u64().filter(|planes| *planes > 1);
    let planes = planes.map_or_else(String::new, |planes| format!(" of {planes} planes"));
    format!(
        "{} for the host, {} of flash: {} channels × {per_channel} dies{planes}; pages of {}, blocks of \
         {}; mapped in units of {}",
        format::bytes(drive.capacity_bytes),
        format::bytes(drive.flash_bytes),
        drive.channels,
        format::bytes(u64::from(drive.page_bytes)),
        format::bytes(drive.block_bytes),
        format::bytes(u64::from(drive.unit_bytes)),
    )
}

fn times(nand: &Value) -> Option<String> {
    let part = |key: &str| {
        let span: Span = text(&nand[key])?.parse().ok()?;
        Some(format!("{key} {}", format::seconds(span.as_secs_f64())))
    };
    let bus = text(&nand["channel_rate"])?;
    Some(format!("{}, {}, {}; channel {bus}", part("read")?, part("program")?, part("erase")?))
}

fn spare(drive: Option<&Drive>, device: &Value) -> Option<String> {
    let drive = drive.filter(|drive| drive.capacity_bytes > 0)?;
    let more = drive.flash_bytes.saturating_sub(drive.capacity_bytes) as f64;
    let share = format::percent(more / drive.capacity_bytes as f64);
    let asked = text(&device["ftl"]["over_provisioning"]);
    let asked = asked.map_or_else(String::new, |asked| format!(" (over_provisioning {asked})"));
    Some(format!("{share} more flash than the host can address{asked}"))
}

fn buffer(buffer: &Value) -> Option<String> {
    let region = match buffer["region"].as_str()? {
        "full" => "kept over power loss",
        "none" => "lost with the power",
        other => other,
    };
    Some(format!(
        "{}, {region}, written out by {}",
        text(&buffer["size"])?,
        policy(&buffer["schedule"])?
    ))
}

/// A policy's name, and its parameters.
fn policy(value: &Value) -> Option<String> {
    if let Some(name) = text(value) {
        return Some(name);
    }
    let table = value.as_object()?;
    let name = text(table.get("policy")?)?;
    let parameters = table.iter().filter(|(key, _)| *key != "policy").map(|(key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{key} {value}")
    });
    let parameters: Vec<String> = parameters.collect();
    Some(if parameters.is_empty() { name } else { format!("{name} ({})", parameters.join(", ")) })
}

fn bank(record: &RunRecord) -> Option<String> {
    let bank = &record.power.as_ref()?.bank;
    Some(format!(
        "{} of {}: {}, {}",
        format::count(bank.parts),
        bank.part.replace('_', " "),
        format::capacitance(bank.capacitance_uf),
        format::energy(bank.energy_mj)
    ))
}

fn work(workload: &Value) -> Option<String> {
    if let Some(path) = text(&workload["trace"]["path"]) {
        let trace = &workload["trace"];
        let how = match trace["mode"].as_str() {
            Some("open") => match trace["speed"].as_str() {
                None | Some("100 %") => "at its recorded times".to_owned(),
                Some(speed) => format!("at {speed} of its recorded speed"),
            },
            _ => format!("at queue depth {}", trace["queue_depth"]),
        };
        let loops = trace["loops"].as_u64().filter(|loops| *loops > 1);
        let loops = loops.map_or_else(String::new, |loops| format!(", {loops} times over"));
        return Some(format!("the trace {path}, {how}{loops}"));
    }
    let jobs = workload["job"].as_array().filter(|jobs| !jobs.is_empty())?;
    Some(jobs.iter().map(job).collect::<Vec<_>>().join("; "))
}

/// A synthetic job, in half a line.
fn job(job: &Value) -> String {
    let threads = job["threads"].as_u64().filter(|threads| *threads > 1);
    let threads = threads.map_or_else(String::new, |threads| format!("{threads} threads, each "));
    let name = text(&job["name"]).map_or_else(String::new, |name| format!("{name}: "));
    let blocks = policy_or(&job["block_size"], "mixed sizes");
    let reads = match job["read_share"].as_str() {
        None | Some("0 %") => "writes".to_owned(),
        Some("100 %") => "reads".to_owned(),
        Some(share) => format!("{share} reads"),
    };
    let pattern = job["pattern"].as_str().unwrap_or("mixed");
    let place = match &job["distribution"] {
        Value::Object(table) => table
            .keys()
            .next()
            .map_or_else(String::new, |kind| format!(" ({})", kind.replace('_', "-"))),
        _ => String::new(),
    };
    let limit = job["iops_limit"].as_u64();
    let limit =
        limit.map_or_else(String::new, |iops| format!(", at most {} IOPS", format::count(iops)));
    let fsync = job["fsync_every"].as_u64().filter(|every| *every > 0);
    let fsync = fsync.map_or_else(String::new, |every| format!(", a flush after every {every}"));
    format!(
        "{name}{threads}{pattern} {blocks} {reads}{place} at queue depth {}{limit}{fsync}",
        job["queue_depth"]
    )
}

fn policy_or(value: &Value, otherwise: &str) -> String {
    text(value).unwrap_or_else(|| otherwise.to_owned())
}

fn before(precondition: &Value) -> Option<String> {
    let where_to = match precondition["distribution"].as_str() {
        Some("workload") => "as the workload writes",
        _ => "at random",
    };
    Some(match precondition["kind"].as_str()? {
        "none" => "nothing: a new drive".to_owned(),
        "fill" => "written once, in order".to_owned(),
        "steady" => {
            format!("filled, then overwritten {where_to} until write amplification settled")
        }
        "sampled" => "a state drawn from theory, then settled".to_owned(),
        other => other.to_owned(),
    })
}

/// How write amplification settled before the measurement.
fn settled(steadiness: &Steadiness) -> Option<String> {
    let each = [("preconditioned", steadiness.precondition), ("in the ramp", steadiness.ramp)];
    let parts = each.into_iter().filter_map(|(name, settling)| {
        let Settling { settled, passes, waf, .. } = settling?;
        let how = if settled { "settled at" } else { "did not settle; at the end" };
        let (waf, passes) = (format::number(waf), format::number(passes));
        Some(format!("{name}: {how} {waf} after {passes} times the capacity"))
    });
    let wafs: Vec<String> =
        steadiness.repetitions.iter().map(|run| format::number(run.waf)).collect();
    let runs = (!wafs.is_empty())
        .then(|| format!("write amplification of successive runs: {}", wafs.join(", ")));
    let parts: Vec<String> = parts.chain(runs).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{Repetition, Varied};
    use serde_json::json;

    fn run(policy: &str, op: &str) -> RunRecord {
        let varied = |key: &str, value: &str| Varied { key: key.into(), value: value.into() };
        RunRecord {
            name: format!("{policy} {op}"),
            scenario: "hot-cold".into(),
            varied: vec![varied("device.ftl.gc.victim", policy), varied("device.ftl.op", op)],
            config: json!({
                "description": "Hot and cold",
                "device": {"ftl": {"gc": {"victim": {"policy": policy}}}},
                "workload": {"job": [{"pattern": "random", "block_size": "4 KiB", "queue_depth": 32,
                    "read_share": "30 %", "distribution": {"hot_cold": {}}, "threads": 1}]},
                "precondition": {"kind": "steady", "distribution": "uniform"},
            }),
            ..RunRecord::default()
        }
    }

    #[test]
    fn a_title_names_the_scenario_and_what_was_varied() {
        let few = [run("greedy", "7 %"), run("fifo", "7 %")];
        assert_eq!(title(&few), "hot-cold: victim = greedy, fifo; op = 7 %");
        let many: Vec<_> = (1..=9).map(|op| run("greedy", &format!("{op} %"))).collect();
        assert_eq!(title(&many), "hot-cold: victim = greedy; 9 values of op");
        assert_eq!(title(&few[..1]), "greedy 7 %");
        assert_eq!(short("device.buffer.size"), "buffer.size");
    }

    #[test]
    fn a_caption_names_what_was_varied_and_counts_what_is_many() {
        let drive = |capacity_bytes| Drive { capacity_bytes, ..Drive::default() };
        let records = ["5 %", "7 %", "9 %", "11 %", "13 %"].into_iter().zip(1..);
        let records = records.map(|(op, capacity_bytes)| {
            let mut record = run("greedy", op);
            record.varied.remove(0);
            record.drive = Some(drive(capacity_bytes));
            record
        });
        let caption = caption(&records.collect::<Vec<_>>());
        assert!(
            caption.starts_with("Scenario hot-cold; varied: device.ftl.op; 5 drives; seed 0"),
            "{caption}"
        );
    }

    #[test]
    fn differences_are_no_common_facts() {
        let records = [run("greedy", "7 %"), run("fifo", "7 %")];
        let facts = facts(&records);
        let find = |label: &str| facts.iter().find(|fact| fact.label == label);
        assert_eq!(find("Garbage collection"), None);
        assert_eq!(find("About").unwrap().text, "Hot and cold");
        let work = "random 4 KiB 30 % reads (hot-cold) at queue depth 32";
        assert_eq!(find("Work").unwrap().text, work);
        assert!(find("Before the run").unwrap().text.contains("settled"));
        assert_eq!(find("Steady state"), None, "each has its own");
    }

    #[test]
    fn how_a_drive_settled_is_told() {
        let mut steadiness = Steadiness::default();
        assert_eq!(settled(&steadiness), None);
        let one = Settling { settled: true, passes: 3.25, chunks: 20, waf: 3.111_1 };
        steadiness.precondition = Some(one);
        steadiness.ramp = Some(Settling { settled: false, ..one });
        let told = "preconditioned: settled at 3.111 after 3.250 times the capacity; in the ramp: did not \
                    settle; at the end 3.111 after 3.250 times the capacity";
        assert_eq!(settled(&steadiness).unwrap(), told);
        let run = |waf| Repetition { waf, ..Repetition::default() };
        let repetitions = vec![run(2.5), run(2.625)];
        let told = settled(&Steadiness { repetitions, ..Steadiness::default() });
        assert_eq!(told.unwrap(), "write amplification of successive runs: 2.500, 2.625");
    }
}
