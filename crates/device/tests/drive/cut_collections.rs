//! Power cuts amid collections: a drive that is as full as one may be, and whose blocks are good, never runs out of
//! room.

use leyden_buffer::Region;
use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Op, Ssd, Status};
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Rng, Span, Time};

/// One die of 32 blocks of 4 pages of 4 KiB, with the largest capacity that there can be: any block holds little
/// garbage, and a page that a cut has wasted is missed.
fn config(protection: &str, region: Region) -> Config {
    let mut config = Config::default();
    (config.nand.channels, config.nand.dies_per_channel) = (1, 1);
    (config.nand.blocks_per_plane, config.nand.pages_per_block) = (32, 4);
    config.nand.page_size = Bytes::new(4096);
    config.buffer.size = Bytes::new(8 * 4096);
    config.buffer.region = region;
    config.ftl.map.protection = ProtectionConfig::by_name(protection).unwrap();
    config.ftl.map.entries_per_page = Some(8);
    config.power = Some(leyden_power::Config::default());
    let accepted = |units: &u64| {
        config.ftl.capacity = Some(Bytes::new(units * 4096));
        Ssd::<NoData>::new(&config, 0).is_ok()
    };
    let most = (1..128_u64).rev().find(accepted).expect("there is such a drive");
    config.ftl.capacity = Some(Bytes::new(most * 4096));
    config
}

fn run_until(ssd: &mut Ssd<NoData>, mut ends: impl FnMut(&Ssd<NoData>) -> bool) {
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event()
        && !ends(ssd)
    {
        ssd.advance(time, &mut done);
        for done in done.drain(..) {
            assert_eq!(
                done.status,
                Status::Success,
                "{:?} after {} cuts",
                done.op,
                ssd.stats().power_cuts
            );
        }
    }
}

#[test]
fn no_write_fails_for_want_of_room() {
    for (protection, region) in [
        ("full", Region::Full),
        ("full", Region::None),
        ("partial", Region::None),
        ("journal", Region::Full),
        ("none", Region::Full),
    ] {
        let config = config(protection, region);
        let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
        let mut rng = Rng::new(7, "cut collections");
        let units = u64::from(ssd.mapping_units());
        for unit in 0..units {
            let at = ssd.now();
            ssd.submit(at, Command::new(Op::Write, Lba(unit * 8), 8, ()));
            run_until(&mut ssd, |_| false);
        }
        for cut in 0..400 {
            // Cut when a page of copies has just begun to be programmed; every fourth run gets further.
            let begun = ssd.stats().ftl.gc.copied_units;
            let pages = 1 + rng.below(4);
            for _ in 0..60 {
                let at = ssd.now();
                ssd.submit(at, Command::new(Op::Write, Lba(rng.below(units) * 8), 8, ()));
                ssd.submit(at, Command::new(Op::Flush, Lba(0), 0, ()));
                run_until(&mut ssd, |ssd| ssd.stats().ftl.gc.copied_units >= begun + pages);
                if ssd.stats().ftl.gc.copied_units >= begun + pages {
                    break;
                }
            }
            let at = ssd.now();
            ssd.cut_power(at);
            let back = at + Span::from_ms(1_000);
            let ready = ssd.restore_power(back).ready_at;
            ssd.advance(ready, &mut Vec::new());
            assert!(ssd.is_ready(), "{protection}: not ready after {cut} cuts");
            ssd.check();
        }
        assert!(ssd.stats().power_cuts == 400 && ssd.now() > Time::ZERO);
    }
}
