//! What `harvest` promises where data written in order is overwritten while it is buffered (docs/schedules.md).

use super::*;

/// IOPS of `schedule` with a log of `span`.
fn iops(schedule: &str, span: &str, protection: &str, seed: u64) -> f64 {
    let sets = [
        format!("device.buffer.schedule={schedule}"),
        format!("workload.job.1.span={span}"),
        format!("device.ftl.map.protection={protection}"),
        format!("seed={seed}"),
    ];
    let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
    record(&Loaded::new("hexa/cyclic-log", &sets).unwrap().scenario).host.iops
}

#[test]
fn harvest_is_at_most_2_percent_behind_on_a_cyclic_log() {
    let partial = r#"{ policy = "partial", protected = "10 %" }"#;
    for (seed, protection) in [(1, "full"), (2, "journal"), (3, partial)] {
        for span in ["2 MiB", "6 MiB", "24 MiB", "48 MiB"] {
            let of = |schedule| iops(schedule, span, protection, seed);
            let (fifo, hexa, harvest) = (of("fifo"), of("hexa"), of("harvest"));
            let least = 0.98 * fifo.max(hexa);
            assert!(harvest >= least, "{span}, {protection}: {harvest}, {fifo}, {hexa}");
        }
    }
}
