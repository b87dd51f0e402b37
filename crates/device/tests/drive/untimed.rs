//! Without time, operations end one after another at one instant; the drive must not notice.

use leyden_device::{BlockDevice, Command, Config, Lba, Op, Ssd, Stamp, Status};
use leyden_sim::{Bytes, Ratio, Rng};

/// Reads and writes in part read flash pages of dies that are also programmed at the same instant.
#[test]
fn mixed_commands_without_time() {
    for seed in 0..40 {
        let mut config = Config::default();
        config.nand.channels = 2;
        config.nand.dies_per_channel = 1;
        config.nand.blocks_per_plane = 16;
        config.nand.pages_per_block = 4;
        config.nand.faults.program_failures = Ratio::from_ppm(seed % 2 * 500);
        config.ftl.over_provisioning = Ratio::from_percent(80);
        config.buffer.size = Bytes::new(64 << 10);
        let mut ssd = Ssd::<Stamp>::new(&config, seed).unwrap();
        ssd.set_untimed(true);
        let sectors = u64::from(ssd.mapping_units()) * 8;
        let mut rng = Rng::new(seed, "untimed");
        let mut done = Vec::new();
        for stamp in 0..2_000 {
            let lba = rng.below(sectors - 40);
            let op = [Op::Read, Op::Write, Op::Write][rng.below(3) as usize];
            let length = 1 + rng.below(40) as u32;
            let command = Command::new(op, Lba(lba), length, stamp);
            ssd.submit(ssd.now(), command);
            if rng.below(4) > 0 {
                continue; // several at once
            }
            while let Some(time) = ssd.next_event() {
                ssd.advance(time, &mut done);
            }
            for completion in done.drain(..) {
                assert_eq!(completion.status, Status::Success);
            }
        }
        ssd.check();
    }
}
