//! A full buffer and a full flash: which commands wait for which.

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Ssd};
use leyden_sim::{Bytes, Ratio, Rng};

fn config() -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 32;
    config.nand.pages_per_block = 8;
    config.ftl.over_provisioning = Ratio::from_percent(60);
    config.buffer.size = Bytes::new(8 * 4096);
    config
}

/// A write that waits for room is not overtaken by a smaller one that would find some.
#[test]
fn writes_enter_a_full_buffer_in_order() {
    let mut ssd = Ssd::<NoData>::new(&config(), 1).unwrap();
    let mut lengths = Rng::new(1, "pressure");
    for tag in 0..200 {
        let units = if tag % 2 == 0 { 6 } else { 1 };
        let lba = Lba(lengths.below(200) * 8);
        let write = Command::write(lba, units * 8, ()).tag(tag);
        ssd.submit(ssd.now(), write);
    }
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    let order: Vec<u32> = done.iter().map(|completion| completion.tag).collect();
    assert_eq!(order, (0..200).collect::<Vec<_>>());
    assert!(ssd.stats().ssd.stalled.as_ns() > 0, "the buffer was full");
}

/// With many blocks kept free, garbage is collected ahead of a host that never pauses; with few, the
/// host's writes go first. Either way the same work is done.
#[test]
fn collection_goes_first_when_blocks_are_short() {
    let run = |hard_free_blocks, soft_free_blocks| {
        let mut config = config();
        config.ftl.gc.hard_free_blocks = hard_free_blocks;
        config.ftl.gc.soft_free_blocks = soft_free_blocks;
        let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
        let mut rng = Rng::new(1, "pressure");
        let mut done = Vec::new();
        let mut free = Vec::new();
        for i in 0..6_000_u64 {
            ssd.submit(ssd.now(), Command::write(Lba(rng.below(320) * 8), 8, ()));
            while done.len() as u64 + 8 < i {
                let time = ssd.next_event().expect("something happens next");
                ssd.advance(time, &mut done);
            }
            if i > 3_000 {
                free.push(ssd.free_blocks().min().expect("there are dies"));
            }
        }
        free.sort_unstable();
        (free[0], free[free.len() / 2])
    };
    let (least, median) = run(6, 7);
    assert!(least >= 5, "{least}: urgent collection keeps blocks free");
    assert!(median >= 6, "{median}");
    let (_, lazy) = run(1, 2);
    assert!(lazy <= 2, "{lazy}: without need nothing is collected");
}
