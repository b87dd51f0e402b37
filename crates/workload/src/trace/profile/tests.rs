//! The profile against a slow, obvious twin that keeps every unit's history.

#![allow(clippy::float_cmp, reason = "the same sums of the same numbers")]

use super::super::Packing;
use super::*;
use leyden_device::Lba;
use proptest::prelude::*;

fn request() -> impl Strategy<Value = Request> {
    let op = prop_oneof![
        3 => Just(Op::Read),
        6 => Just(Op::Write),
        1 => Just(Op::Flush),
        1 => Just(Op::Trim),
        1 => Just(Op::WriteZeroes),
        1 => Just(Op::WritePrepare),
    ];
    let lba = prop_oneof![0u64..400, (0u64..50).prop_map(|unit| unit * 8)];
    let sectors = prop_oneof![1u32..60, Just(8)];
    (op, lba, sectors, any::<bool>(), 0u64..2_000).prop_map(|(op, lba, sectors, fua, gap_ns)| {
        let (lba, sectors) = if op == Op::Flush { (0, 0) } else { (lba, sectors) };
        Request {
            at: Time::from_ns(gap_ns),
            op,
            lba: Lba(lba),
            sectors,
            fua,
            class: if fua { Class::Wal } else { Class::Data },
        }
    })
}

/// Distances in units, footprints in units: written, read, either, touched by anything.
fn twin(requests: &[Request]) -> (Vec<u64>, [u64; 4]) {
    let mut touched: Vec<u64> = Vec::new();
    let mut writes: Vec<u64> = Vec::new();
    let mut reads: Vec<u64> = Vec::new();
    let mut distances = Vec::new();
    for request in requests {
        let begin = request.lba.0 * SECTOR_BYTES / UNIT_BYTES;
        let end = (request.lba.0 + u64::from(request.sectors)).div_ceil(8);
        for unit in begin..end {
            touched.push(unit);
            match request.op {
                Op::Read => reads.push(unit),
                Op::Write => {
                    if let Some(then) = writes.iter().rposition(|&other| other == unit) {
                        distances.push((writes.len() - then - 1) as u64);
                    }
                    writes.push(unit);
                }
                _ => {}
            }
        }
    }
    let distinct = |mut units: Vec<u64>| {
        units.sort_unstable();
        units.dedup();
        units.len() as u64
    };
    let either = [writes.clone(), reads.clone()].concat();
    distances.sort_unstable();
    (distances, [distinct(writes), distinct(reads), distinct(either), distinct(touched)])
}

proptest! {
    #[test]
    fn footprints_and_distances_are_the_twins(
        mut requests in proptest::collection::vec(request(), 1..120)
    ) {
        let mut now = 0;
        for request in &mut requests {
            now += request.at.as_ns();
            request.at = Time::from_ns(now);
        }
        let profile = profile(requests.iter().copied().map(Ok), &ClassNames::default()).unwrap();
        let (distances, [written, read, either, touched]) = twin(&requests);
        prop_assert_eq!(profile.footprint_written_bytes, written * UNIT_BYTES);
        prop_assert_eq!(profile.footprint_read_bytes, read * UNIT_BYTES);
        prop_assert_eq!(profile.footprint_bytes, either * UNIT_BYTES);
        prop_assert_eq!(profile.packed_bytes, touched * UNIT_BYTES);
        let packing = Packing::of(requests.iter().copied().map(Ok)).unwrap();
        prop_assert_eq!(packing.sectors() * SECTOR_BYTES, profile.packed_bytes);
        let measured = &profile.overwrite_distances;
        prop_assert_eq!(measured.count, distances.len() as u64);
        prop_assert_eq!(measured.histogram.values().sum::<u64>(), distances.len() as u64);
        if let Some(max) = distances.last() {
            prop_assert_eq!(measured.max_bytes, max * UNIT_BYTES);
            for (percent, bytes) in
                [(5, measured.p5_bytes), (50, measured.p50_bytes), (95, measured.p95_bytes)]
            {
                let rank = (distances.len() * percent).div_ceil(100).max(1);
                let exact = distances[rank - 1] * UNIT_BYTES;
                prop_assert!(bytes >= exact && bytes <= exact + exact / 64);
            }
        }
        let by_class: u64 = profile.bytes_written_by_class.values().sum();
        prop_assert_eq!(by_class, profile.bytes_written);
        prop_assert_eq!(profile.duration_s, now as f64 / 1e9);
    }
}

#[test]
fn buckets_are_at_most_a_64th_too_high() {
    for units in (0..2_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX >> 12, u64::MAX]) {
        let upper = bucket_end(bucket(units));
        assert!(upper >= units && upper - units <= units / 64, "{units} -> {upper}");
    }
}

#[test]
fn octaves_end_at_powers_of_two() {
    for (bytes, end) in [(1, 1), (2, 2), (512, 512), (513, 1024), (4096, 4096), (1 << 41, 1 << 41)]
    {
        let mut counts = [0; 65];
        counts[octave(bytes)] += 1;
        assert_eq!(octaves(&counts), BTreeMap::from([(end, 1)]));
    }
}

#[test]
fn sequential_streams_are_seen_through_each_other() {
    let mut requests = Vec::new();
    for step in 0..10 {
        for stream in 0..4u64 {
            requests.push(Request {
                at: Time::ZERO,
                op: Op::Write,
                lba: Lba(8 + stream * 10_000 + step * 8),
                sectors: 8,
                fua: false,
                class: Class::Unknown,
            });
        }
    }
    let profile = profile(requests.into_iter().map(Ok), &ClassNames::default()).unwrap();
    assert_eq!(profile.sequential_share, 36.0 / 40.0);
    assert_eq!(profile.aligned_share, 1.0);
    assert_eq!(profile.mean_iops, 0.0);
    assert_eq!(profile.write_sizes, BTreeMap::from([(4096, 40)]));
}

/// A profile of more places than are kept stays small, and is near the exact one.
#[test]
fn memory_has_a_bound_and_estimates_are_near() {
    let mut rng = leyden_sim::Rng::new(7, "profile");
    let requests: Vec<Request> = (0..300_000)
        .map(|number| Request {
            at: Time::from_ns(number),
            op: [Op::Read, Op::Write, Op::Write, Op::WritePrepare][rng.below(4) as usize],
            lba: Lba(rng.below(1_600_000) * 8),
            sectors: 8 * (1 + rng.below(3) as u32),
            fua: false,
            class: Class::Data,
        })
        .collect();
    let classes = ClassNames::default();
    let exact = profile(requests.iter().copied().map(Ok), &classes).unwrap();
    let mut profiler = Profiler { most_extents: 120_000, ..Profiler::default() };
    for request in &requests {
        profiler.take(request);
        assert!(profiler.extents() <= 120_000 + 8, "{}", profiler.extents());
    }
    let estimated = profiler.finish(&classes);
    assert_eq!((exact.one_address_in, estimated.one_address_in > 2), (1, true));
    assert_eq!(
        (exact.requests, exact.bytes_written),
        (estimated.requests, estimated.bytes_written)
    );
    let values = |p: &Profile| {
        let bytes = [
            p.footprint_bytes,
            p.footprint_written_bytes,
            p.footprint_read_bytes,
            p.packed_bytes,
            p.overwrite_distances.count,
            p.overwrite_distances.p50_bytes,
        ];
        bytes.map(|value| value as f64).into_iter().chain([
            p.overwrite_share,
            p.announced_share,
            p.announced_overwrite_share,
        ])
    };
    for (at, (exact, estimated)) in values(&exact).zip(values(&estimated)).enumerate() {
        assert!((estimated / exact - 1.0).abs() < 0.06, "{at}: {estimated} for {exact}");
    }
}
