//! A drive under load against arithmetic: queues before dies, throughput by the number of dies, the end of a new drive's
//! speed, and reads that come while a die programs or erases.

use super::*;

const READ_US: f64 = 50.0;
const PROGRAM_US: f64 = 500.0;
const ERASE_US: f64 = 3_000.0;

/// A drive of so many dies that wait for nothing but themselves. A page is a unit, and a channel, the link and a command
/// take next to no time.
fn dies(dies: u32, rest: &str) -> Scenario {
    let text = format!(
        "
        [device.nand]
        channels = {channels}
        dies_per_channel = {per_channel}
        planes_per_die = 1
        blocks_per_plane = 128
        pages_per_block = 32
        page_size = \"4 KiB\"
        read = \"50 us\"
        program = \"500 us\"
        erase = \"3 ms\"
        channel_rate = \"1000 GB/s\"
        [device.ftl]
        over_provisioning = \"28 %\"
        [device.buffer]
        size = \"{buffer} KiB\"
        [device.frontend]
        command = \"0 ns\"
        link_rate = \"1000 GB/s\"
        queues = 64
        queue_depth = 1024
        [run]
        stamps = false
        {rest}
        ",
        channels = dies.min(8),
        per_channel = dies.div_ceil(8),
        buffer = 16 * dies, // holds next to nothing of what is read
    );
    loaded(&text, &[])
}

fn within(name: &str, measured: f64, told: f64, share: f64) {
    assert!((measured / told - 1.0).abs() < share, "{name}: {measured} for {told}");
}

/// Random reads that come at equal intervals to 64 dies: to each die they come as a random thinning, whose intervals have a
/// squared coefficient of variation of 1 - 1/64. The mean wait before one server with constant service is then, by
/// Kingman's formula, that part of `rho S / (2 (1 - rho))`.
#[test]
fn reads_wait_before_dies_as_before_any_server() {
    for load in [0.3, 0.6, 0.8, 0.9] {
        let iops = load * 64.0 / (READ_US * 1e-6);
        let job = format!(
            "
            [[workload.job]]
            read_share = \"100 %\"
            threads = 4
            queue_depth = 1024
            iops_limit = {iops:.0}
            requests = 400_000
            [precondition]
            kind = \"fill\"
            "
        );
        let record = record(&dies(64, &job));
        within("pace", record.host.iops, iops, 0.01);
        let wait = load * READ_US / (2.0 * (1.0 - load)) * (1.0 - 1.0 / 64.0);
        within(&format!("at {load}"), record.host.read_latency_us.mean, READ_US + wait, 0.03);
    }
}

/// With sixteen reads outstanding for each die hardly one idles; writes in sequence take the dies in turn.
#[test]
fn throughput_grows_with_the_dies() {
    for count in [1_u32, 2, 8, 16, 64] {
        let depth = 16 * count;
        let reads = format!(
            "
            [[workload.job]]
            read_share = \"100 %\"
            queue_depth = {depth}
            requests = {requests}
            [precondition]
            kind = \"fill\"
            ",
            requests = 5_000 * count,
        );
        let of_dies = record(&dies(count, &reads)).host.iops * READ_US * 1e-6 / f64::from(count);
        assert!((0.95..=1.005).contains(&of_dies), "{count} dies read at {of_dies}");
        let writes = format!(
            "
            ramp.requests = {ramp}
            [[workload.job]]
            pattern = \"sequential\"
            queue_depth = {depth}
            requests = {requests}
            ",
            ramp = 400 + 10 * count, // the buffer
            requests = 1_500 * count,
        );
        let of_dies =
            record(&dies(count, &writes)).host.iops * PROGRAM_US * 1e-6 / f64::from(count);
        within(&format!("{count} dies write"), of_dies, 1.0, 0.02);
    }
}

/// A new drive writes at the speed of its programs until its blocks are used up; from then on each write takes its share of
/// copies and erases.
#[test]
fn a_new_drive_falls_off_a_cliff_where_its_blocks_are_used_up() {
    let count = 4_u32;
    let physical = f64::from(count) * 128.0 * 32.0;
    let job = "
        [[workload.job]]
        queue_depth = 32
        requests = 160_000
    ";
    let record = record(&dies(count, job));
    let (series, bare) = (&record.series, f64::from(count) / (PROGRAM_US * 1e-6));
    let rate = |at: usize| series.programs[at].user as f64; // a second
    // Where it falls: the requests until less than three quarters of the first speed is left.
    let fallen = (1..series.programs.len()).find(|&at| rate(at) < 0.75 * bare).unwrap();
    within("before the cliff", rate(fallen / 2), bare, 0.02);
    let written: f64 = (0..fallen).map(|at| rate(at) * series.interval_s).sum();
    // All blocks but the last free one of each die.
    let used_up = physical - f64::from(count) * 32.0;
    within("the cliff", written, used_up, 0.05);

    let last = series.programs.len() * 9 / 10;
    let tail = last..series.programs.len() - 1;
    let written: f64 = tail.clone().map(rate).sum::<f64>() / tail.len() as f64;
    let programs = tail.clone().map(|at| series.programs[at]);
    let (user, copied) = programs.fold((0, 0), |sum, it| (sum.0 + it.user, sum.1 + it.gc_user));
    let waf = (user + copied) as f64 / user as f64;
    let each_us = waf * PROGRAM_US + (waf - 1.0) * READ_US + waf / 32.0 * ERASE_US;
    within("behind the cliff", written, f64::from(count) / (each_us * 1e-6), 0.03);
    assert!(waf > 2.0 && written < 0.5 * bare, "{waf} {written}");
}

/// A read that finds its die programming waits for the rest of that; none waits for more, where nothing is erased. With
/// collection it may wait for an erase.
#[test]
fn reads_wait_for_the_rest_of_a_program_or_of_an_erase() {
    let busy = 0.4;
    let jobs = |dies: f64, writes: f64, requests: u64| {
        format!(
            "
            [[workload.job]]
            name = \"writes\"
            pattern = \"shuffled\"
            queue_depth = 64
            iops_limit = {writes:.0}
            time = \"20 s\"
            [[workload.job]]
            name = \"reads\"
            read_share = \"100 %\"
            queue_depth = 64
            iops_limit = {reads:.0}
            requests = {requests}
            ",
            reads = 0.01 * dies / (READ_US * 1e-6),
        )
    };
    let count = 16;
    // No multiple of the reads' pace: in step with them, they would always come at the same point of a program.
    let writes = 0.97 * busy * f64::from(count) / (PROGRAM_US * 1e-6);
    // Of the blocks that the filled drive has spare the run writes fewer than would make it collect.
    let spare = 0.15 * f64::from(count) * 128.0 * 32.0;
    let requests = (spare / writes * 0.01 * f64::from(count) / (READ_US * 1e-6)) as u64;
    let text =
        format!("{}[precondition]\nkind = \"fill\"\n", jobs(f64::from(count), writes, requests))
            .replace("20 s", &format!("{:.0} ms", 1e3 * spare / writes));
    let new = record(&dies(count, &text));
    assert_eq!(new.gc.collections, 0);
    let latency = new.host.read_latency_us;
    within("mean", latency.mean, READ_US + 0.97 * busy * PROGRAM_US / 2.0, 0.05);
    assert!(latency.max <= 2.0 * READ_US + PROGRAM_US + 1.0, "{latency:?}");

    let writes = 0.1 * f64::from(count) / (PROGRAM_US * 1e-6);
    let text =
        format!("{}[precondition]\nkind = \"steady\"\n", jobs(f64::from(count), writes, 60_000));
    let steady = record(&dies(count, &text));
    let latency = steady.host.read_latency_us;
    assert!(latency.p50 < READ_US + 1.0, "{latency:?}");
    assert!(latency.max > READ_US + PROGRAM_US, "{latency:?}");
    assert!(latency.max <= ERASE_US + 4.0 * PROGRAM_US, "{latency:?}");
    // A die erases once for every 32 programs. Who finds it at that waits for longer than a program, unless that has lasted
    // for all but this long.
    let erases_per_s = steady.flash.waf * writes / f64::from(count) / 32.0;
    let told = 100.0 * (1.0 - erases_per_s * (ERASE_US - PROGRAM_US) * 1e-6);
    let longer = |(_, us): &&(f64, f64)| *us > READ_US + PROGRAM_US;
    let measured = latency.distribution.iter().find(longer).unwrap().0;
    assert!((measured - told).abs() < 1.0, "{measured} for {told}: {latency:?}");
}
