//! Whether a drive has enough good blocks for its data, judged by its flash alone.

use leyden_device::{Config, Payload, Ssd};
use leyden_ftl::map::ProtectionConfig;
use leyden_nand::{BlockId, DieId, Health, PageKind};

/// True if a drive has a reason to fail writes that can be seen on its flash.
pub(crate) fn may_fault<P: Payload>(config: &Config, ssd: &Ssd<P>) -> bool {
    lacks_blocks(config, ssd) || ssd.is_read_only() && lacks_dump_room(ssd)
}

/// True if so many blocks have gone bad that the good ones cannot hold all that the host may address. Never true of a
/// drive whose blocks are all good.
fn lacks_blocks<P: Payload>(config: &Config, ssd: &Ssd<P>) -> bool {
    let geometry = ssd.geometry();
    let config = &config.ftl;
    let map_pages = ssd.mapping_units().div_ceil(config.map.entries_per_page(geometry));
    // Kept back even where the table is never written, if the configuration says so.
    let for_map = config.map.blocks_per_die(geometry, map_pages);
    let writes_map = !matches!(config.map.protection, ProtectionConfig::Full(_));
    let for_dumps = 2 * ssd.dump_blocks_needed();
    let kept = for_map + config.map.journal_blocks_per_die(geometry, map_pages) + for_dumps;
    let reserved = config.gc.hard_free_blocks.max(1) + u32::from(config.streams().count()) + kept;
    // A closed block with less than a page of garbage is not worth collecting.
    let least_valid = u64::from(geometry.units_per_block() + 1 - geometry.units_per_page());
    let valid = valid_units(ssd);
    let mut room = 0;
    for die in (0..geometry.dies()).map(DieId) {
        let census = Census::of(ssd, die);
        let has_lost = census.good < geometry.blocks_per_die();
        if has_lost && census.good <= reserved {
            return true; // what the table or a dump needs may be on this die alone
        }
        if has_lost && writes_map && census.free() <= for_dumps && !census.has_page_for_map {
            return true; // its free blocks are a dump's, and its part of the table can't be written
        }
        let is_free_for_data = census.free() > kept.saturating_sub(census.other);
        room += if has_lost && !is_free_for_data {
            // The block that failed was the one that copies go to: the die keeps what it holds, and no more.
            blocks_of(ssd, die).map(|block| u64::from(valid[block.index()])).sum()
        } else {
            u64::from(census.good.saturating_sub(reserved)) * least_valid
        };
    }
    room <= u64::from(ssd.mapping_units())
}

/// The good blocks of a die, by what their flash holds.
#[derive(Default)]
struct Census {
    good: u32,
    data: u32,
    other: u32,
    has_page_for_map: bool,
}

impl Census {
    fn of<P: Payload>(ssd: &Ssd<P>, die: DieId) -> Self {
        let medium = ssd.medium();
        let is_good = |block: &BlockId| medium.health(*block) == Health::Good;
        let mut census = Self::default();
        for block in blocks_of(ssd, die).filter(is_good) {
            census.good += 1;
            match medium.used_for(block).map(|it| it.kind) {
                None => {}
                Some(PageKind::Data) => census.data += 1,
                Some(kind) => {
                    census.other += 1;
                    let has_page = medium.next_page(block).is_some();
                    census.has_page_for_map |= kind == PageKind::Mapping && has_page;
                }
            }
        }
        census
    }

    const fn free(&self) -> u32 {
        self.good - self.data - self.other
    }
}

/// True if some die has lost blocks, and of the good ones fewer hold nothing than a dump may need. A drive does
/// not collect garbage before it is ready, but it does erase what holds nothing.
pub(super) fn lacks_dump_room<P: Payload>(ssd: &Ssd<P>) -> bool {
    let medium = ssd.medium();
    let needed = ssd.dump_blocks_needed() as usize;
    let valid = valid_units(ssd);
    (0..ssd.geometry().dies()).map(DieId).any(|die| {
        let is_bad = |block| medium.health(block) != Health::Good;
        let is_empty = |&block: &BlockId| {
            let kind = medium.used_for(block).map(|used_for| used_for.kind);
            let holds_nothing = kind.is_none_or(|kind| kind == PageKind::Data);
            !is_bad(block) && holds_nothing && valid[block.index()] == 0
        };
        blocks_of(ssd, die).any(is_bad) && blocks_of(ssd, die).filter(is_empty).count() < needed
    })
}

/// For each block, how many mapping units it holds.
fn valid_units<P: Payload>(ssd: &Ssd<P>) -> Vec<u32> {
    let mut valid = vec![0; ssd.geometry().blocks() as usize];
    for place in ssd.places().flatten() {
        valid[ssd.geometry().block_of(place).index()] += 1;
    }
    valid
}

fn blocks_of<P: Payload>(ssd: &Ssd<P>, die: DieId) -> impl Iterator<Item = BlockId> {
    let geometry = *ssd.geometry();
    (0..geometry.blocks()).map(BlockId).filter(move |&block| geometry.die_of(block) == die)
}
