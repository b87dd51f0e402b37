//! Whether a drive has room for what it must hold, as its flash shows it.

use leyden_device::Ssd;
use leyden_ftl::map::ProtectionConfig;
use leyden_nand::{BlockId, DieId, Health, PageKind};

use crate::Options;
use crate::witness::Witness;

/// True if so many blocks have gone bad that what the good ones have room for is less than what the host may
/// address. Of a drive whose blocks are all good this is never true.
pub(super) fn lacks_blocks<P: Witness>(options: &Options, ssd: &Ssd<P>) -> bool {
    let (medium, geometry) = (ssd.medium(), ssd.geometry());
    let config = &options.device.ftl;
    let map_pages = ssd.mapping_units().div_ceil(config.map.entries_per_page(geometry));
    let for_map = match &config.map.protection {
        ProtectionConfig::Full(_) => 0,
        _ => config.map.blocks_per_die(geometry, map_pages),
    };
    let kept = for_map
        + config.map.journal_blocks_per_die(geometry, map_pages)
        + 2 * ssd.dump_blocks_needed();
    let reserved = config.gc.hard_free_blocks.max(1) + u32::from(config.streams().count()) + kept;
    // A closed block with less than a page of garbage is not worth collecting.
    let least_valid = u64::from(geometry.units_per_block() + 1 - geometry.units_per_page());
    let valid = valid_units(ssd);
    let mut room = 0;
    for die in (0..geometry.dies()).map(DieId) {
        let of_die: Vec<BlockId> = blocks_of(ssd, die).collect();
        let is_good = |block: &BlockId| medium.health(*block) == Health::Good;
        let good = of_die.iter().copied().filter(is_good).count() as u32;
        let has_lost = good < geometry.blocks_per_die();
        if has_lost && good <= reserved {
            return true; // what the table or a dump needs may be on this die alone
        }
        let has_use = |kind: fn(PageKind) -> bool| {
            let used = of_die.iter().filter(|block| is_good(block));
            used.filter(|block| medium.used_for(**block).is_some_and(|it| kind(it.kind))).count()
        };
        let (data, other) =
            (has_use(|kind| kind == PageKind::Data), has_use(|kind| kind != PageKind::Data));
        let free = (good as usize - data - other) as u32;
        let is_free_for_data = free > kept.saturating_sub(other as u32);
        room += if has_lost && !is_free_for_data {
            // The block that failed was the one that copies go to: the die keeps what it holds, and no more.
            of_die.iter().map(|block| u64::from(valid[block.index()])).sum()
        } else {
            u64::from(good.saturating_sub(reserved)) * least_valid
        };
    }
    room <= u64::from(ssd.mapping_units())
}

/// True if some die has lost blocks, and of the good ones fewer hold nothing than a dump may need. A drive does
/// not collect garbage before it is ready, but it does erase what holds nothing.
pub(super) fn lacks_dump_room<P: Witness>(ssd: &Ssd<P>) -> bool {
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
fn valid_units<P: Witness>(ssd: &Ssd<P>) -> Vec<u32> {
    let mut valid = vec![0; ssd.geometry().blocks() as usize];
    for place in ssd.places().flatten() {
        valid[ssd.geometry().block_of(place).index()] += 1;
    }
    valid
}

fn blocks_of<P: Witness>(ssd: &Ssd<P>, die: DieId) -> impl Iterator<Item = BlockId> {
    let geometry = *ssd.geometry();
    (0..geometry.blocks()).map(BlockId).filter(move |&block| geometry.die_of(block) == die)
}
