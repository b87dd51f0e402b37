//! The bound that `harvest` keeps on cyclic data that is overwritten while it is buffered (docs/schedules.md).

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

/// Logs that `harvest` was not made with: other sizes of log and of write, several at once, and other data beside them,
/// much of which is collected meanwhile. papers/campaigns/schedules.py --cyclic has the same work.
const UNSEEN: [(&str, &str); 6] = [
    (
        "a doublewrite buffer beside pages of 16 KiB",
        r#"
        { pattern = "random", distribution = { zipf = { theta = 0.9 } }, block_size = "16 KiB", span = "1 GiB", threads = 4,
          queue_depth = 16, requests = 120_000 },
        { pattern = "sequential", block_size = "16 KiB", span = "5 MiB", offset = "1 GiB", queue_depth = 16,
          requests = 120_000 },
        "#,
    ),
    (
        "two logs beside hot and cold data that is read, too",
        r#"
        { pattern = "random", distribution = { hot_cold = { hot_share_of_space = "10 %", hot_share_of_accesses = "90 %" } },
          read_share = "50 %", span = "1 GiB", threads = 4, queue_depth = 16, requests = 300_000 },
        { pattern = "sequential", span = "4 MiB", offset = "1 GiB", queue_depth = 16, requests = 180_000 },
        { pattern = "sequential", block_size = "64 KiB", span = "32 MiB", offset = "1100 MiB", queue_depth = 16,
          requests = 18_000 },
        "#,
    ),
    (
        "a short and a long log beside random writes",
        r#"
        { pattern = "random", span = "1 GiB", threads = 4, queue_depth = 16, requests = 180_000 },
        { pattern = "sequential", span = "12 MiB", offset = "1 GiB", queue_depth = 16, requests = 180_000 },
        { pattern = "sequential", block_size = "128 KiB", span = "800 MiB", offset = "1200 MiB", queue_depth = 16,
          requests = 9_000 },
        "#,
    ),
    (
        "a log of 20 MiB beside zipf 1.2",
        r#"
        { pattern = "random", distribution = { zipf = { theta = 1.2 } }, span = "1 GiB", threads = 4, queue_depth = 16,
          requests = 300_000 },
        { pattern = "sequential", block_size = "8 KiB", span = "20 MiB", offset = "1 GiB", queue_depth = 16,
          requests = 150_000 },
        "#,
    ),
    (
        "a log of 40 MiB beside self-similar writes",
        r#"
        { pattern = "random", distribution = { self_similar = { h = "20 %" } }, span = "1 GiB", threads = 4,
          queue_depth = 16, requests = 300_000 },
        { pattern = "sequential", span = "40 MiB", offset = "1 GiB", queue_depth = 16, requests = 300_000 },
        "#,
    ),
    (
        "two logs and nothing else",
        r#"
        { pattern = "sequential", span = "16 MiB", offset = "1 GiB", queue_depth = 16, requests = 300_000 },
        { pattern = "sequential", block_size = "32 KiB", span = "60 MiB", offset = "1200 MiB", queue_depth = 16,
          requests = 36_000 },
        "#,
    ),
];

#[test]
fn harvest_is_at_most_2_percent_behind_on_logs_it_was_not_made_with() {
    for (seed, protection) in [(4, "full"), (5, "journal")] {
        for (name, jobs) in UNSEEN {
            // A table in line stands in one line.
            let jobs = jobs.replace('\n', " ");
            let text =
                format!("extends = \"hexa/cyclic-log\"\nseed = {seed}\nworkload.job = [{jobs}]");
            let iops = |schedule: &&str| {
                let schedule = format!("device.buffer.schedule={schedule}");
                let protection = format!("device.ftl.map.protection={protection}");
                record(&loaded(&text, &[&schedule, &protection])).host.iops
            };
            let [fifo, hexa, harvest] = ["fifo", "hexa", "harvest"].map(|it| iops(&it));
            let least = 0.98 * fifo.max(hexa);
            assert!(harvest >= least, "{name}, {protection}: {harvest}, {fifo}, {hexa}");
        }
    }
}
