//! Write amplification of uniform random writes against the published closed forms.
//!
//! Both forms take the ratio of physical to logical pages, with free blocks and open blocks left
//! out of the physical ones: they hold no garbage to be collected.

#![expect(clippy::print_stdout, reason = "shows what was measured, with --nocapture")]

use std::num::NonZeroU32;

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd, Stats};
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::gc::d_choices::DChoices;
use leyden_sim::{Bytes, Ratio, Rng};

/// Writes `count` units uniformly at random, without time.
fn write(ssd: &mut Ssd<NoData>, count: u64, rng: &mut Rng) {
    let units = u64::from(ssd.mapping_units());
    let mut done = Vec::new();
    for _ in 0..count {
        ssd.submit(ssd.now(), Command::write(Lba(rng.below(units) * 8), 8, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    }
}

struct Measured {
    waf: f64,
    /// Physical over logical units, the free and open blocks left out.
    alpha: f64,
    units_per_block: f64,
}

/// Steady-state write amplification of a drive of `dies` dies with `blocks` blocks each.
fn measure(victim: &VictimConfig, over_provisioning: u64, dies: u32, blocks: u32) -> Measured {
    let mut config = Config::default();
    config.nand.channels = dies;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = blocks;
    config.nand.pages_per_block = 64;
    config.nand.page_size = Bytes::new(4096);
    config.ftl.over_provisioning = Ratio::from_percent(over_provisioning);
    config.ftl.gc.victim = victim.clone();
    config.buffer.size = Bytes::new(256 << 10);
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    ssd.set_untimed(true);
    let mut rng = Rng::new(1, "theory");
    let units = u64::from(ssd.mapping_units());
    write(&mut ssd, units * 6, &mut rng);
    let before = ssd.stats();
    write(&mut ssd, units * 3, &mut rng);
    let after = ssd.stats();
    ssd.check();

    let total =
        |stats: &Stats| stats.ftl.user_units + stats.ftl.gc.copied_units + stats.ftl.padded_units;
    let waf = (total(&after) - total(&before)) as f64
        / (after.ftl.user_units - before.ftl.user_units) as f64;
    // Collections run at the soft threshold: two blocks are free, and on average half of the open
    // one is too.
    let reserved = f64::from(dies) * 2.5 * 64.0;
    let physical = f64::from(ssd.geometry().units()) - reserved;
    Measured { waf, alpha: physical / units as f64, units_per_block: 64.0 }
}

/// Lambert's W (the principal branch) by Newton's method.
fn lambert_w(x: f64) -> f64 {
    let mut w: f64 = -0.3;
    for _ in 0..100 {
        let e = w.exp();
        w -= (w * e - x) / (e * (w + 1.0));
    }
    w
}

/// Cleaning in the order of filling (Desnoyers, "Analytic modeling of SSD write performance",
/// SYSTOR 2012, LRU cleaning; the limit of Hu & Haas 2010 for a window of one block): a block comes
/// round with the share `u` of its data still valid such that `u = exp(-alpha (1 - u))`, and
/// WAF = 1 / (1 - u).
fn fifo_waf(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w(-alpha * (-alpha).exp()))
}

/// Greedy cleaning (Desnoyers 2012, greedy cleaning; Hu & Haas 2010): a block with `k` of `n` units
/// valid loses the next one at a rate proportional to `k`, so it stays at `k` for a time
/// proportional to `1 / k`. Blocks start full and are collected at `x0` valid units; the `x0` at
/// which the mean over that time is the drive's utilisation, `n / alpha`, gives WAF = n / (n - x0).
fn greedy_waf(alpha: f64, n: f64) -> f64 {
    // Blocks spend time 1/k at each count k from n down to x0: their mean utilisation must be
    // n / alpha. Mean of k weighted by 1/k = (n - x0) / (H(n) - H(x0)).
    let mean = |x0: f64| (n - x0) / (harmonic(n) - harmonic(x0));
    let (mut low, mut high) = (0.001, n - 0.001);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < n / alpha { low = middle } else { high = middle }
    }
    n / (n - low)
}

/// Harmonic numbers for any positive argument (the digamma function's expansion).
fn harmonic(x: f64) -> f64 {
    if x < 10.0 {
        return harmonic(x + 1.0) - 1.0 / (x + 1.0);
    }
    x.ln() + 0.577_215_664_901_532_9 + 1.0 / (2.0 * x) - 1.0 / (12.0 * x * x)
}

/// The least utilised of `d` random blocks (Van Houdt, "A mean field model for a class of garbage
/// collection algorithms in flash-based solid state drives", SIGMETRICS 2013): the fixed point of the
/// ordinary differential equations for the shares `m_i` of blocks with `i` of `n` units valid.
///
/// Let `M_i` be the share with `i` or fewer. A collection takes such a block with probability
/// `1 - (1 - M_i)^d`, as one of `d` draws is enough, and it comes back full. Between two collections each
/// valid unit is overwritten with the same probability, so `v (i + 1) m_(i+1)` blocks go from `i + 1` down
/// to `i`. At the fixed point both are equal for each `i` below `n`: from `M_n = 1` on, that gives
/// `M_(n-1)`, and so on down to `M_0`. The mean must be the drive's utilisation `n / alpha`, which
/// determines `v`. The sum of all those flows is the number of units that a collection frees.
fn d_choices_waf(d: u32, alpha: f64, n: f64) -> f64 {
    let collected = |share: f64| 1.0 - (1.0 - share).powi(d as i32);
    // The mean number of valid units, and of those a collection frees.
    let fixed_point = |v: f64| {
        let (mut share, mut mean, mut freed) = (1.0, 0.0, 0.0);
        for i in (0..n as u32).rev() {
            let come = |below: f64| v * f64::from(i + 1) * (share - below);
            let below = root(0.0, share, |below| collected(below) - come(below));
            mean += f64::from(i + 1) * (share - below);
            freed += collected(below);
            share = below;
        }
        (mean, freed)
    };
    // The more often units are overwritten, the fewer are valid.
    let v = root(1e-6, 1e3, |v| n / alpha - fixed_point(v).0);
    n / fixed_point(v).1
}

/// Where `f`, which ascends from below zero, is zero.
fn root(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    low
}

fn within_5_percent(victim: &VictimConfig, theory: impl Fn(f64, f64) -> f64) {
    for over_provisioning in [7, 12, 20, 28, 50] {
        let measured = measure(victim, over_provisioning, 2, 1024);
        let expected = theory(measured.alpha, measured.units_per_block);
        let error = measured.waf / expected - 1.0;
        println!(
            "{victim:?} {over_provisioning} %: {:.3}, theory {expected:.3}, {:+.1} %",
            measured.waf,
            error * 100.0
        );
        assert!(
            error.abs() < 0.05,
            "{victim:?} at {over_provisioning} %: {} against {expected}",
            measured.waf
        );
    }
}

fn victim(name: &str) -> VictimConfig {
    VictimConfig::by_name(name).unwrap()
}

fn d_choices(d: u32) -> VictimConfig {
    VictimConfig::DChoices(DChoices { d: NonZeroU32::new(d).unwrap() })
}

#[test]
fn greedy_matches_the_closed_form() {
    within_5_percent(&victim("greedy"), greedy_waf);
}

#[test]
fn fifo_matches_the_closed_form() {
    within_5_percent(&victim("fifo"), |alpha, _| fifo_waf(alpha));
}

#[test]
fn two_choices_match_the_mean_field() {
    within_5_percent(&d_choices(2), |alpha, n| d_choices_waf(2, alpha, n));
}

#[test]
fn ten_choices_match_the_mean_field() {
    within_5_percent(&d_choices(10), |alpha, n| d_choices_waf(10, alpha, n));
}

/// One choice is collection at random, whose fixed point has a closed form: a block is collected after a
/// geometric number of collections, and WAF = alpha / (alpha - 1), whatever `n` is.
#[test]
fn the_mean_field_has_the_known_limits() {
    for alpha in [1.05, 1.2, 1.5] {
        let random = d_choices_waf(1, alpha, 64.0);
        assert!((random / (alpha / (alpha - 1.0)) - 1.0).abs() < 1e-6, "{random} at {alpha}");
        let (all, greedy) = (d_choices_waf(100_000, alpha, 64.0), greedy_waf(alpha, 64.0));
        assert!((all / greedy - 1.0).abs() < 0.01, "{all} at {alpha}, greedy {greedy}");
    }
}

/// With more draws than blocks the least utilised one is nearly always among them.
#[test]
fn many_choices_are_greedy() {
    let (many, greedy) =
        (measure(&d_choices(2_000), 12, 1, 256), measure(&victim("greedy"), 12, 1, 256));
    println!("2,000 choices {:.3}, greedy {:.3}", many.waf, greedy.waf);
    assert!((many.waf / greedy.waf - 1.0).abs() < 0.01, "{} and {}", many.waf, greedy.waf);
}
