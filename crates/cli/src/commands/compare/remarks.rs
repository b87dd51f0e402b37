//! Remarks on the runs of a comparison together: a key without effect, or without occasion.

use leyden_record::RunRecord;

/// Events of the measured part that keys with these prefixes act on: the prefixes, the count of the
/// events, and the remark to make if it is zero.
type Effect = (&'static [&'static str], fn(&RunRecord) -> u64, &'static str);

const EFFECTS: [Effect; 3] = [
    (
        &[
            "device.ftl.gc.",
            "device.ftl.over_provisioning",
            "device.ftl.capacity",
            "device.ftl.placement",
            "host.conventional.ftl.gc.",
            "host.conventional.ftl.over_provisioning",
        ],
        |record| record.gc.collections,
        "the measured part collected no block: measure more of it, with run.repeat or a longer workload",
    ),
    (
        &["host.hints", "device.ftl.zombie_block"],
        |record| record.hints.as_ref().map_or(0, |hints| hints.heard_units),
        "no hint reached the drive: give the trace its hints, or the host a page cache, and a host.hints.channel",
    ),
    (
        &["device.buffer.region"],
        |record| record.host.flushes,
        "nothing was flushed: the region decides the work of a flush and the loss of a power cut",
    ),
];

/// Adds to the warnings of `records` what their comparison shows of the keys that were varied.
pub(super) fn add_remarks(records: &mut [RunRecord]) {
    for index in 1..records.len() {
        let (before, rest) = records.split_at_mut(index);
        let record = &mut rest[0];
        let digest = &record.sim.digest;
        let Some(same) = before.iter().find(|other| other.sim.digest == *digest) else { continue };
        let differ = |key: &str| value(same, key) != value(record, key);
        let keys: Vec<&str> =
            record.varied.iter().map(|it| it.key.as_str()).filter(|key| differ(key)).collect();
        if !keys.is_empty() {
            record.warnings.push(format!(
                "everything happened as in {}, to the bit: {} made no difference",
                same.name,
                keys.join(" and ")
            ));
        }
    }
    let Some(first) = records.first() else { return };
    let mut remarks = Vec::new();
    for key in first.varied.iter().map(|it| it.key.clone()) {
        if records.iter().all(|record| value(record, &key) == value(&records[0], &key)) {
            continue;
        }
        for (keys, happened, remark) in EFFECTS {
            let concerns = keys.iter().any(|begin| key.starts_with(begin));
            if concerns && records.iter().all(|record| happened(record) == 0) {
                remarks.push(format!("{key} had nothing to do in any of these runs: {remark}"));
            }
        }
    }
    if let Some(first) = records.first_mut() {
        first.warnings.extend(remarks);
    }
}

fn value<'a>(record: &'a RunRecord, key: &str) -> Option<&'a str> {
    record.varied.iter().find(|it| it.key == key).map(|it| it.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::Varied;

    fn run(key: &str, value: &str, digest: &str, collections: u64) -> RunRecord {
        let mut record = RunRecord { name: value.into(), ..RunRecord::default() };
        record.varied = vec![Varied { key: key.into(), value: value.into() }];
        digest.clone_into(&mut record.sim.digest);
        record.gc.collections = collections;
        record.host.flushes = 1;
        record
    }

    fn remarks(records: &mut [RunRecord]) -> Vec<String> {
        add_remarks(records);
        records.iter().flat_map(|record| &record.warnings).cloned().collect()
    }

    #[test]
    fn one_digest_for_several_values_is_said() {
        let key = "workload.job.0.threads";
        let mut records = [run(key, "1", "a", 9), run(key, "2", "b", 9), run(key, "4", "b", 9)];
        let said =
            ["everything happened as in 2, to the bit: workload.job.0.threads made no difference"];
        assert_eq!(remarks(&mut records), said);
        assert!(records[0].warnings.is_empty() && records[2].warnings.len() == 1);
        assert!(remarks(&mut [run(key, "1", "a", 0), run(key, "2", "b", 0)]).is_empty());
    }

    #[test]
    fn a_key_with_nothing_to_do_is_said_also_where_digests_differ() {
        let key = "device.ftl.gc.victim";
        let said = remarks(&mut [run(key, "greedy", "a", 0), run(key, "fifo", "b", 0)]);
        assert!(said.len() == 1 && said[0].contains("collected no block"), "{said:?}");
        assert!(remarks(&mut [run(key, "greedy", "a", 0), run(key, "fifo", "b", 1)]).is_empty());
        let key = "device.ftl.over_provisioning";
        assert_eq!(remarks(&mut [run(key, "7 %", "a", 0), run(key, "28 %", "b", 0)]).len(), 1);
        // Seeds are no key that hopes for collections.
        assert!(remarks(&mut [run("seed", "1", "a", 0), run("seed", "2", "b", 0)]).is_empty());
    }
}
