//! Bundled drives under uniform random writes, at a tenth of their load and at all of it, against the closed form of
//! cleaning in the order of filling, to which greedy cleaning comes close as blocks grow long (Desnoyers, "Analytic
//! modeling of SSD write performance", SYSTOR 2012).

use super::*;

/// Write amplification with `alpha` physical blocks a logical one: a victim's share `u` of valid data is such that
/// `(1 - u) / ln(1 / u) = 1 / alpha`.
fn closed_form(alpha: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..100 {
        let u = f64::midpoint(low, high);
        if (1.0 - u) / (1.0 / u).ln() < 1.0 / alpha {
            low = u;
        } else {
            high = u;
        }
    }
    1.0 / (1.0 - low)
}

/// A bundled drive with fewer dies and shorter blocks: neither changes write amplification.
struct Slice {
    device: &'static str,
    /// Blocks of a die.
    blocks: f64,
    /// Physical blocks a logical one.
    provisioned: f64,
    /// Blocks of a die that are written at once.
    streams: f64,
    pages_per_block: u32,
    block_size: &'static str,
    /// A tenth of what it can do.
    tenth_iops: u64,
}

const TLC: Slice = Slice {
    device: "tlc-datacenter",
    blocks: 640.0,
    provisioned: 1.145,
    streams: 1.0,
    pages_per_block: 12,
    block_size: "4 KiB",
    tenth_iops: 2_900,
};
const QLC: Slice =
    Slice { device: "qlc", pages_per_block: 24, block_size: "16 KiB", tenth_iops: 215, ..TLC };
const HEXA: Slice = Slice {
    device: "hexa",
    blocks: 128.0,
    provisioned: 1.07,
    pages_per_block: 64,
    tenth_iops: 103,
    ..TLC
};
const ZOMBIE: Slice = Slice {
    device: "zombie-16bank",
    blocks: 1024.0,
    provisioned: 1.0738,
    streams: 3.0,
    pages_per_block: 64,
    block_size: "16 KiB",
    tenth_iops: 45,
};

impl Slice {
    /// Write amplification, flat out or at a tenth.
    fn waf(&self, is_busy: bool) -> f64 {
        let Self { device, pages_per_block, block_size, tenth_iops, .. } = self;
        let limit = if is_busy { String::new() } else { format!("iops_limit = {tenth_iops}") };
        let scenario = loaded(
            &format!(
                "
                extends = \"devices/{device}\"
                precondition.kind = \"steady\"
                run = {{ stamps = false, ramp.requests = 150000 }}
                device.buffer.size = \"2 MiB\"
                device.nand = {{ channels = 2, dies_per_channel = 2, pages_per_block = {pages_per_block} }}
                [[workload.job]]
                block_size = \"{block_size}\"
                queue_depth = 64
                requests = 450000
                {limit}
                "
            ),
            &[],
        );
        record(&scenario).flash.waf
    }
}

#[expect(clippy::print_stdout, reason = "shows what was measured, with --nocapture")]
fn compare(slice: &Slice, is_busy: bool, told: f64) {
    let waf = slice.waf(is_busy);
    let load = if is_busy { "flat out" } else { "at a tenth" };
    println!("{}, {load}: {waf:.2}, closed form {told:.2}", slice.device);
    assert!((waf / told - 1.0).abs() < 0.1, "{}, {load}: {waf} for {told}", slice.device);
}

#[test]
fn drives_that_stand_for_present_ones_write_what_whole_ones_would() {
    for slice in [TLC, QLC] {
        // All that is not addressed is spare.
        let told = closed_form(slice.provisioned);
        compare(&slice, true, told);
        compare(&slice, false, told);
    }
}

/// The papers name their numbers of blocks: of these drives as they are, one free block for each die is missing when
/// all dies are busy, and two at rest; and half of each open one.
#[test]
fn drives_of_papers_write_what_their_blocks_let_them() {
    for slice in [HEXA, ZOMBIE] {
        for (is_busy, free) in [(true, 1.0), (false, 2.0)] {
            let usable = (slice.blocks - free - 0.5 * slice.streams) / slice.blocks;
            compare(&slice, is_busy, closed_form(slice.provisioned * usable));
        }
    }
}
