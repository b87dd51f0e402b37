//! Zoned drives: the command set, the buffer, power cuts.

mod buffer;
mod cells;
mod commands;
mod copies;
mod cuts;
mod refused;
mod resources;
mod saved;
mod zrwa;

use leyden_buffer::Region;
use leyden_device::{
    BlockDevice, Command, Completion, Config, Lba, Stamp, Status, ZnsSsd, ZoneAction,
    ZoneDescriptor, ZoneId,
};
use leyden_ftl::zoned::ZrwaConfig;
use leyden_sim::Bytes;

/// Sectors of a logical block.
const BLOCK: u32 = 8;
/// Logical blocks from a zone to the next, and of what can be written of it.
const SIZE: u64 = 64;
const CAPACITY: u64 = 32;

/// Four dies with pages of two logical blocks and blocks of 8 pages; zones of two blocks on two dies.
fn config() -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 2;
    config.nand.blocks_per_plane = 24;
    config.nand.pages_per_block = 8;
    config.nand.page_size = Bytes::new(8 << 10);
    config.buffer.size = Bytes::new(512 << 10);
    config.zoned = Some(leyden_ftl::zoned::Config {
        zone_size: Bytes::new(SIZE * 4096),
        zone_capacity: Some(Bytes::new(CAPACITY * 4096)),
        dies_per_zone: 2,
        max_open: 3,
        max_active: 5,
        zrwa: Some(ZrwaConfig {
            size: Bytes::new(8 * 4096),
            granularity: Bytes::new(2 * 4096),
            count: 2,
        }),
        descriptor_extension: Bytes::new(64),
        append_limit: Bytes::new(16 * 4096),
        ..leyden_ftl::zoned::Config::default()
    });
    config.power = Some(leyden_power::Config::default());
    config
}

/// With the region `selective`: half of the buffer protected.
fn selective() -> Config {
    let mut config = config();
    config.buffer.region = Region::Selective;
    config.buffer.protected_size = Bytes::new(256 << 10);
    config
}

struct Drive {
    ssd: ZnsSsd<Stamp>,
    stamp: u64,
}

impl Drive {
    fn new(config: &Config) -> Self {
        Self { ssd: ZnsSsd::new(config, 1).unwrap(), stamp: 0 }
    }

    /// Runs `command` to its end.
    fn run(&mut self, command: Command<Stamp>) -> Completion<Stamp> {
        let id = self.ssd.submit(self.ssd.now(), command);
        let mut done = Vec::new();
        loop {
            if let Some(at) = done.iter().position(|end: &Completion<Stamp>| end.id == id) {
                return done.swap_remove(at);
            }
            let time = self.ssd.next_event().expect("the command ends");
            self.ssd.advance(time, &mut done);
        }
    }

    /// Lets everything under way end.
    fn settle(&mut self) {
        while let Some(time) = self.ssd.next_event() {
            self.ssd.advance(time, &mut Vec::new());
        }
        self.ssd.check();
    }

    fn zone(&self, zone: u32) -> ZoneDescriptor {
        self.ssd.zone(ZoneId(zone))
    }

    /// The write pointer, in logical blocks from the zone's beginning.
    fn wp(&self, zone: u32) -> Option<u64> {
        let pointer = self.zone(zone).write_pointer?;
        Some(pointer.0 / u64::from(BLOCK) - u64::from(zone) * SIZE)
    }

    fn lba(zone: u32, block: u64) -> Lba {
        Lba((u64::from(zone) * SIZE + block) * u64::from(BLOCK))
    }

    /// A write of `blocks` blocks; each command has its own stamp.
    fn write_at(&mut self, zone: u32, block: u64, blocks: u32) -> Command<Stamp> {
        self.stamp += 1;
        Command::write(Self::lba(zone, block), blocks * BLOCK, self.stamp)
    }

    /// Writes at the write pointer.
    fn write(&mut self, zone: u32, blocks: u32) -> Status {
        let at = self.wp(zone).unwrap();
        let command = self.write_at(zone, at, blocks);
        self.run(command).status
    }

    fn append(&mut self, zone: u32, blocks: u32) -> Completion<Stamp> {
        self.stamp += 1;
        self.run(Command::zone_append(Self::lba(zone, 0), blocks * BLOCK, self.stamp))
    }

    fn act(&mut self, action: ZoneAction, zone: u32) -> Status {
        self.run(Command::zone(action, Self::lba(zone, 0))).status
    }

    fn read(&mut self, zone: u32, block: u64, blocks: u32) -> Vec<u64> {
        let end = self.run(Command::read(Self::lba(zone, block), blocks * BLOCK));
        assert_eq!(end.status, Status::Success);
        end.data().unwrap().iter().map(|stamp| stamp.0).collect()
    }

    /// The last stamp that was written.
    const fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Cuts the power and brings it back.
    fn cut(&mut self) {
        self.ssd.cut_power(self.ssd.now());
        let ready = self.ssd.restore_power(self.ssd.now()).ready_at;
        self.ssd.advance(ready, &mut Vec::new());
        self.ssd.check();
    }
}
