//! The machine's limit: the random accesses that a drive of 16 GiB (or the GiB given) makes to its
//! arrays for each unit programmed, and for each unit read, and nothing else.
#![expect(clippy::print_stdout, reason = "an example reports on standard output")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the wall clock")]

use std::time::Instant;

use leyden_sim::Rng;

fn main() {
    let gib: u64 = std::env::args().nth(1).map_or(16, |text| text.parse().expect("GiB"));
    let physical = gib << 18;
    let logical = physical * 100 / 128;
    let mut map = vec![1_u32; logical as usize];
    let mut oob = vec![1_u32; physical as usize];
    let mut validity = vec![u64::MAX; (physical / 64) as usize];
    let mut counts = vec![512_u32; (physical / 512) as usize];
    let mut rng = Rng::new(1, "bare loop");

    let programs = 20_000_000;
    let start = Instant::now();
    for at in 0..programs {
        // The map entry changes; the unit it pointed to is invalid; its block counts one less; the
        // owner is written where the program goes, in order.
        let lpn = rng.below(logical);
        let old = std::mem::replace(&mut map[lpn as usize], at as u32 ^ (lpn as u32));
        let old = (u64::from(old) * 0x9e37_79b9) % physical;
        validity[(old / 64) as usize] &= !(1 << (old % 64));
        counts[(old / 512) as usize] = counts[(old / 512) as usize].wrapping_sub(1);
        oob[(at % physical) as usize] = lpn as u32;
    }
    let programmed = start.elapsed().as_nanos() as f64 / programs as f64;

    let reads = 50_000_000;
    let start = Instant::now();
    let sum = (0..reads).fold(0_u32, |sum, _| sum.wrapping_add(map[rng.below(logical) as usize]));
    let read = start.elapsed().as_nanos() as f64 / f64::from(reads);
    std::hint::black_box((sum, oob, validity, counts));
    println!("{programmed:.1} ns for each unit programmed, {read:.1} ns for each unit read");
}
