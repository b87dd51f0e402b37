//! Distributions against theory, golden requests, refusals, and the invariants.

use leyden_device::{Op, SECTOR_BYTES};
use leyden_sim::{Bytes, Ratio};
use proptest::prelude::*;

use super::*;
use crate::Request;

/// 8 GiB.
const CAPACITY_SECTORS: u64 = 1 << 24;

fn job(text: &str) -> JobConfig {
    let mut config: JobConfig = serde_json::from_str(text).unwrap();
    config.requests = config.requests.or(Some(1));
    config
}

fn requests(config: &JobConfig, count: usize) -> Vec<Request> {
    let mut job = config.build(7, 0, CAPACITY_SECTORS).unwrap();
    (0..count).map(|_| job.next_request(0)).collect()
}

/// Share of `requests` for which `predicate` holds.
fn share(requests: &[Request], predicate: impl Fn(&Request) -> bool) -> f64 {
    let hits = requests.iter().filter(|request| predicate(request)).count();
    hits as f64 / requests.len() as f64
}

/// Within five standard deviations of a binomial.
fn assert_share(found: f64, expected: f64, draws: usize) {
    let bound = 5.0 * (expected * (1.0 - expected) / draws as f64).sqrt() + 1e-9;
    assert!((found - expected).abs() < bound, "{found} is not {expected} +- {bound}");
}

fn below(percent: u64) -> impl Fn(&Request) -> bool {
    move |request| request.lba.0 < CAPACITY_SECTORS * percent / 100
}

#[test]
fn uniform_requests_spread_evenly() {
    let requests = requests(&job("{}"), 200_000);
    let mut counts = [0_u32; 64];
    for request in &requests {
        counts[(request.lba.0 * 64 / CAPACITY_SECTORS) as usize] += 1;
    }
    // Chi-square with 63 degrees of freedom: above 120 once in 10^5 times.
    let expected = requests.len() as f64 / 64.0;
    let chi_square: f64 =
        counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
    assert!(chi_square < 120.0, "{chi_square}");
}

#[test]
fn zipf_hits_its_hottest_place_as_often_scattered_or_not() {
    for scatter in [false, true] {
        let config = job(&format!(
            r#"{{"distribution": {{"zipf": {{"theta": 0.9, "scatter": {scatter}}}}}, "span": "4 MiB"}}"#
        ));
        let requests = requests(&config, 200_000);
        let mut counts = vec![0_usize; 1024];
        for request in &requests {
            counts[(request.lba.0 / 8) as usize] += 1;
        }
        let norm: f64 = (1..=1024).map(|k| f64::from(k).powf(-0.9)).sum();
        let hottest = counts.iter().max().copied().unwrap();
        assert_share(hottest as f64 / 200_000.0, 1.0 / norm, 200_000);
        assert_eq!(counts[0] == hottest, !scatter);
    }
}

#[test]
fn pareto_is_zombie_chasings_rule_for_writes_and_leaves_reads_alone() {
    let config =
        job(r#"{"distribution": {"pareto": {"h": "20 %"}}, "read_distribution": "uniform",
            "read_share": "50 %", "block_size": "16 KiB"}"#);
    let requests = requests(&config, 200_000);
    let (reads, writes): (Vec<_>, Vec<_>) = requests.iter().partition(|r| r.op == Op::Read);
    assert_share(reads.len() as f64 / 200_000.0, 0.5, 200_000);
    assert_share(share(&writes, below(20)), 0.8, writes.len());
    // Uniform within: half of the hot ones in the first half of the hot part.
    assert_share(share(&writes, below(10)), 0.4, writes.len());
    assert_share(share(&reads, below(20)), 0.2, reads.len());
}

#[test]
fn self_similar_repeats_the_rule_within() {
    let config = job(r#"{"distribution": {"self_similar": {"h": "20 %", "scatter": false}}}"#);
    let requests = requests(&config, 200_000);
    assert_share(share(&requests, below(20)), 0.8, 200_000);
    assert_share(share(&requests, below(4)), 0.64, 200_000);
}

#[test]
fn hot_cold_and_zones_get_their_shares() {
    let config = job(
        r#"{"distribution": {"hot_cold": {"hot_share_of_space": "10 %", "hot_share_of_accesses": "90 %"}}}"#,
    );
    assert_share(share(&requests(&config, 100_000), below(10)), 0.9, 100_000);
    let config =
        job(r#"{"distribution": {"zones": {"zones": [{"space": "60 %", "accesses": "0 %"},
            {"space": "40 %", "accesses": "100 %"}]}}}"#);
    assert_share(share(&requests(&config, 10_000), below(60)), 0.0, 10_000);
}

#[test]
fn jesd219_has_the_standards_shares() {
    let requests = requests(&job(r#"{"pattern": "jesd219"}"#), 400_000);
    let n = requests.len();
    assert_share(share(&requests, |r| r.op == Op::Read), 0.4, n);
    assert_share(share(&requests, |r| r.op == Op::Write), 0.6, n);
    for (bytes, percent) in [(512, 4), (3584, 1), (4096, 67), (8192, 10), (65_536, 3)] {
        let found = share(&requests, |r| u64::from(r.sectors) * SECTOR_BYTES == bytes);
        assert_share(found, f64::from(percent) / 100.0, n);
    }
    assert_share(share(&requests, below(5)), 0.5, n);
    assert_share(share(&requests, below(20)), 0.8, n);
    assert!(requests.iter().all(|r| r.lba.0.is_multiple_of(8)));
}

#[test]
fn mixes_keep_their_shares() {
    let config = job(r#"{"read_share": "20 %", "trim_share": "5 %", "fua_share": "10 %"}"#);
    let requests = requests(&config, 200_000);
    assert_share(share(&requests, |r| r.op == Op::Trim), 0.05, 200_000);
    assert_share(share(&requests, |r| r.fua), 0.075, 200_000);
    assert!(requests.iter().all(|r| !r.fua || r.op == Op::Write));
}

#[test]
fn a_sequential_pass_covers_every_sector_once() {
    let config = job(
        r#"{"pattern": "sequential", "block_size": "24 KiB", "offset": "1 MiB", "span": "100 KiB"}"#,
    );
    let mut next = 2048;
    for request in requests(&config, 5) {
        assert_eq!(request.lba.0, next);
        next += u64::from(request.sectors);
    }
    assert_eq!(next, 2048 + 200);
    assert_eq!(requests(&config, 6)[5].lba.0, 2048, "and starts over");
}

#[test]
fn sequential_threads_divide_the_region() {
    let config = job(r#"{"pattern": "sequential", "span": "64 KiB", "threads": 2}"#);
    let mut job = config.build(7, 0, CAPACITY_SECTORS).unwrap();
    let lbas: Vec<_> = (0..4).map(|n| job.next_request(n % 2).lba.0).collect();
    assert_eq!(lbas, [0, 64, 8, 72]);
}

/// Recorded once; a change here changes the digest of every run with these jobs.
#[test]
fn golden_requests() {
    let first = |text: &str| -> String {
        let requests = requests(&job(text), 4);
        let texts = requests.iter().map(|r| format!("{:?} {}+{}", r.op, r.lba.0, r.sectors));
        texts.collect::<Vec<_>>().join(", ")
    };
    let found = [
        first(r#"{"read_share": "50 %"}"#),
        first(r#"{"distribution": {"zipf": {"theta": 0.99}}}"#),
        first(r#"{"distribution": {"zipf": {"theta": 1, "scatter": false}}}"#),
        first(r#"{"distribution": {"pareto": {"h": "20 %"}}}"#),
        first(r#"{"distribution": {"self_similar": {"h": "20 %"}}}"#),
        first(r#"{"pattern": "jesd219"}"#),
    ];
    assert_eq!(found, GOLDEN);
}

const GOLDEN: [&str; 6] = [
    "Write 15635560+8, Write 11467152+8, Write 9884408+8, Read 4418296+8",
    "Write 10344576+8, Write 10987752+8, Write 12950208+8, Write 1391720+8",
    "Write 8+8, Write 528+8, Write 2224+8, Write 88+8",
    "Write 12529168+8, Write 2668304+8, Write 5601056+8, Write 16199680+8",
    "Write 10945536+8, Write 14208024+8, Write 15547824+8, Write 1250576+8",
    "Write 12529072+32, Write 2840064+8, Write 5601016+8, Read 156632+32",
];

#[test]
fn looking_ahead_changes_nothing() {
    let config = job(r#"{"read_share": "50 %", "trim_share": "10 %", "fua_share": "10 %"}"#);
    let expected = requests(&config, 1_000);
    let mut job = config.build(7, 0, CAPACITY_SECTORS).unwrap();
    let mut ahead = Vec::new();
    for (i, expected) in expected.iter().enumerate() {
        // Not before every request: some are drawn ahead, and some are not.
        if i % 7 == 3 {
            ahead.extend_from_slice(job.look_ahead());
        }
        let request = job.next_request(0);
        assert_eq!(request, *expected);
        if ahead.first() == Some(&request) {
            ahead.remove(0);
        }
    }
    assert!(ahead.len() <= 16, "{} requests foretold that never came", ahead.len());
}

#[test]
fn seeds_and_jobs_differ_and_repeat() {
    let config = job(r#"{"distribution": {"zipf": {"theta": 0.99}}, "read_share": "30 %"}"#);
    let first = |seed, index| {
        let mut job = config.build(seed, index, CAPACITY_SECTORS).unwrap();
        (0..50).map(|_| job.next_request(0)).collect::<Vec<_>>()
    };
    assert_eq!(first(1, 0), first(1, 0));
    assert_ne!(first(1, 0), first(2, 0));
    assert_ne!(first(1, 0), first(1, 1));
}

#[test]
fn changing_reads_does_not_move_writes() {
    let writes = |text: &str| -> Vec<u64> {
        let requests = requests(&job(text), 400);
        let writes = requests.iter().filter(|r| r.op == Op::Write);
        writes.map(|r| r.lba.0).take(50).collect()
    };
    assert_eq!(
        writes(r#"{"read_share": "30 %"}"#),
        writes(r#"{"read_share": "60 %", "read_distribution": {"pareto": {"h": "10 %"}}}"#)
    );
}

#[test]
fn refusals_name_the_key_and_the_remedy() {
    for (text, key, remedy) in [
        (r#"{"block_size": "0 B"}"#, "block_size", "multiple of 512"),
        (r#"{"block_size": "1000 B"}"#, "block_size", "multiple of 512"),
        (r#"{"block_size": []}"#, "block_size", "at least one"),
        (r#"{"block_size": [{"size": "4 KiB", "weight": 0}]}"#, "block_size", "weight"),
        (r#"{"block_size": "16 GiB"}"#, "block_size", "span"),
        (r#"{"align": "100 B"}"#, "align", "multiple of 512"),
        (r#"{"read_share": "101 %"}"#, "read_share", "at most 100 %"),
        (r#"{"read_share": "60 %", "trim_share": "50 %"}"#, "trim_share", "lower"),
        (r#"{"threads": 0}"#, "threads", "at least 1"),
        (r#"{"queue_depth": 0}"#, "queue_depth", "at least 1"),
        (r#"{"queue_depth": 2000000}"#, "queue_depth", "at most"),
        (r#"{"think_every": 0}"#, "think_every", "at least 1"),
        (r#"{"iops_limit": 0}"#, "iops_limit", "at least 1"),
        (r#"{"rate_limit": "0 B/s"}"#, "rate_limit", "remove"),
        (r#"{"requests": 0}"#, "requests", "raise"),
        (r#"{"offset": "8 GiB"}"#, "offset", "lower"),
        (r#"{"offset": "1 GiB", "span": "8 GiB"}"#, "span", "at most 7 GiB"),
        (r#"{"distribution": {"zipf": {"theta": -1}}}"#, "distribution.zipf.theta", "0.99"),
        (r#"{"distribution": {"pareto": {"h": "100 %"}}}"#, "distribution.pareto.h", "less"),
        (
            r#"{"distribution": {"self_similar": {"h": "60 %"}}}"#,
            "distribution.self_similar.h",
            "lower",
        ),
        (
            r#"{"read_distribution": {"hot_cold": {"hot_share_of_space": "0 %", "hot_share_of_accesses": "50 %"}}}"#,
            "read_distribution.hot_cold.hot_share_of_space",
            "more than 0 %",
        ),
        (
            r#"{"distribution": {"zones": {"zones": [{"space": "50 %", "accesses": "100 %"}]}}}"#,
            "distribution.zones.zones",
            "100 %",
        ),
        (
            r#"{"span": "64 KiB", "distribution": {"pareto": {"h": "1 %"}}}"#,
            "distribution",
            "larger",
        ),
        (
            r#"{"pattern": "sequential", "distribution": {"pareto": {"h": "1 %"}}}"#,
            "distribution",
            "remove",
        ),
        (r#"{"pattern": "jesd219", "read_share": "50 %"}"#, "read_share", "remove"),
        (r#"{"pattern": "sequential", "span": "8 KiB", "threads": 3}"#, "threads", "fewer"),
    ] {
        let error = job(text).build(1, 0, CAPACITY_SECTORS).expect_err(text);
        assert_eq!(error.key, key, "{text}: {error}");
        assert!(error.problem.contains(remedy), "{text}: {error}");
    }
    let endless = JobConfig::default().build(1, 0, CAPACITY_SECTORS);
    assert_eq!(endless.unwrap_err().key, "time");
    let nan = Distribution::Zipf(Zipf { theta: f64::NAN, scatter: true });
    let nan = JobConfig { distribution: nan, ..job("{}") }.build(1, 0, CAPACITY_SECTORS);
    assert_eq!(nan.unwrap_err().key, "distribution.zipf.theta");
}

#[test]
fn configurations_read_back_and_misspellings_are_refused() {
    let config = job(
        r#"{"distribution": {"zipf": {"theta": 1.2}}, "block_size": [{"size": "4 KiB", "weight": 2}],
            "bytes": "1 GiB", "rate_limit": "100 MB/s", "think_time": "5 us"}"#,
    );
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<JobConfig>(&text).unwrap(), config);
    for bad in [
        r#"{"blocksize": "4 KiB"}"#,
        r#"{"block_size": 4096}"#,
        r#"{"distribution": {"zipf": {"theta": 1, "x": 2}}}"#,
        r#"{"distribution": "normal"}"#,
    ] {
        assert!(serde_json::from_str::<JobConfig>(bad).is_err(), "{bad}");
    }
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    let h = (1_u64..100).prop_map(Ratio::from_percent);
    prop_oneof![
        Just(Distribution::Uniform),
        (0.01_f64..3.0, any::<bool>())
            .prop_map(|(theta, scatter)| Distribution::Zipf(Zipf { theta, scatter })),
        (h.clone(), any::<bool>())
            .prop_map(|(h, scatter)| Distribution::Pareto(Pareto { h, scatter })),
        ((1_u64..=50).prop_map(Ratio::from_percent), any::<bool>())
            .prop_map(|(h, scatter)| Distribution::SelfSimilar(SelfSimilar { h, scatter })),
        (h, (0_u64..=100).prop_map(Ratio::from_percent)).prop_map(|(space, accesses)| {
            Distribution::HotCold(HotCold {
                hot_share_of_space: space,
                hot_share_of_accesses: accesses,
                scatter: true,
            })
        }),
    ]
}

proptest! {
    #[test]
    fn requests_lie_inside_the_region_and_are_aligned(
        distribution in any_distribution(),
        sequential: bool,
        sizes in prop::collection::vec((1_u64..64, 1_u32..5), 1..4),
        align in 1_u64..20,
        offset in 0_u64..1000,
        span in 4_000_u64..60_000,
        threads in 1_u32..4,
        seed: u64,
    ) {
        let sectors = |count: u64| Bytes::new(count * SECTOR_BYTES);
        let mix = sizes.iter().map(|&(size, weight)| WeightedSize { size: sectors(size), weight });
        let pattern = if sequential { Pattern::Sequential } else { Pattern::Random };
        let config = JobConfig {
            pattern,
            distribution: if sequential { Distribution::Uniform } else { distribution },
            block_size: BlockSize::Mix(mix.collect()),
            align: Some(sectors(align)),
            offset: sectors(offset),
            span: Some(sectors(span)),
            threads,
            read_share: Ratio::from_percent(30),
            requests: Some(1),
            ..JobConfig::default()
        };
        let mut job = config.build(seed, 0, 1 << 17).unwrap();
        for n in 0..300 {
            let request = job.next_request(n % threads);
            let at = request.lba.0 - offset;
            prop_assert!(request.lba.0 >= offset);
            prop_assert!(at.is_multiple_of(align));
            prop_assert!(request.sectors > 0);
            prop_assert!(at + u64::from(request.sectors) <= span);
        }
    }
}

/// Every block once before any twice, whatever is asked for there; a new order each pass, or the same.
#[test]
fn shuffled_jobs_take_every_block_once_a_pass() {
    for (pattern, is_same) in [("shuffled", false), ("shuffled_same", true)] {
        let config = job(&format!(
            r#"{{"pattern": "{pattern}", "offset": "1 MiB", "span": "4000 KiB", "block_size": "16 KiB",
                "read_share": "30 %", "trim_share": "10 %", "threads": 3}}"#
        ));
        let mut job = config.build(7, 0, CAPACITY_SECTORS).unwrap();
        let mut passes: Vec<Vec<u64>> = Vec::new();
        for pass in 0..3 {
            let mut places = Vec::new();
            for n in 0..250 {
                if n == 9 {
                    assert_eq!(job.look_ahead().len(), 16, "threads share the order");
                }
                let request = job.next_request((n + pass) % 3);
                assert_eq!(request.sectors, 32);
                places.push(request.lba.0);
            }
            let mut sorted = places.clone();
            sorted.sort_unstable();
            let all: Vec<u64> = (0..250).map(|place| 2048 + place * 32).collect();
            assert_eq!(sorted, all, "{pattern}, pass {pass}");
            assert_ne!(places, all, "shuffled");
            passes.push(places);
        }
        assert_eq!(passes[0] == passes[1] && passes[1] == passes[2], is_same, "{pattern}");
    }
    for text in [
        r#"{"pattern": "shuffled", "align": "4 KiB"}"#,
        r#"{"pattern": "shuffled", "distribution": {"zipf": {"theta": 0.9}}}"#,
        r#"{"pattern": "shuffled", "block_size": [{"size": "4 KiB", "weight": 1}, {"size": "8 KiB", "weight": 1}]}"#,
    ] {
        let error = job(text).build(7, 0, CAPACITY_SECTORS).unwrap_err();
        assert!(error.to_string().contains("shuffled"), "{error}");
    }
}
