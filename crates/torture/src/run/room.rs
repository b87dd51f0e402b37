//! Whether a drive has room for what it must hold, as its flash shows it.

use leyden_device::Ssd;
use leyden_ftl::map::ProtectionConfig;
use leyden_nand::{BlockId, DieId, Health, PageKind};

use crate::Options;
use crate::witness::Witness;

/// True if so many blocks have gone bad that the drive may run out of room, or of room for a dump.
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
    let mut room = 0;
    for die in (0..geometry.dies()).map(DieId) {
        let is_good = |&block: &BlockId| medium.health(block) == Health::Good;
        let good = blocks_of(ssd, die).filter(is_good).count() as u32;
        if good < geometry.blocks_per_die() && good <= reserved {
            return true; // what the table or a dump needs may be on this die alone
        }
        room += u64::from(good.saturating_sub(reserved)) * least_valid;
    }
    room <= u64::from(ssd.mapping_units())
}

/// Whether each die can take no more data: it has no free block for data and no full one whose units would fit into
/// what is left of its open blocks, or else no garbage to gain by collecting.
///
/// Power cuts amid collections can bring small dies to this. Each wastes pages of the block that data is
/// moved to, which the die has only so many of.
pub(super) fn jammed_dies<P: Witness>(ssd: &Ssd<P>) -> Vec<bool> {
    let (medium, geometry) = (ssd.medium(), ssd.geometry());
    let mut valid = vec![0; geometry.blocks() as usize];
    for place in ssd.places().flatten() {
        valid[geometry.block_of(place).index()] += 1;
    }
    let free: Vec<u32> = ssd.free_blocks().collect();
    let is_jammed = |die: DieId| {
        let is_data = |&block: &BlockId| {
            medium.used_for(block).is_some_and(|used_for| used_for.kind == PageKind::Data)
        };
        let is_full = |block: BlockId| medium.next_page(block).is_none();
        let open = |stream| {
            let of_stream = |block: &BlockId| {
                let used_for = medium.used_for(*block);
                medium.health(*block) == Health::Good
                    && !is_full(*block)
                    && used_for.is_some_and(|used_for| used_for.stream == stream)
            };
            let open = blocks_of(ssd, die).filter(is_data).filter(of_stream);
            let left = |block| geometry.pages_per_block() - medium.written_pages(block);
            open.map(left).max().unwrap_or(0)
        };
        let garbage = |block: BlockId| geometry.units_per_block() - valid[block.index()];
        let mut full = blocks_of(ssd, die).filter(is_data).filter(|&block| is_full(block));
        if free[die.index()] > 0 {
            return full.all(|block| garbage(block) < 2 * geometry.units_per_page());
        }
        let left = open(0);
        full.all(|block| geometry.pages_for(valid[block.index()]) + 1 > left)
    };
    (0..geometry.dies()).map(DieId).map(is_jammed).collect()
}

/// True if some die has fewer erased good blocks than two dumps may need of it, and has lost one.
pub(super) fn lacks_dump_room<P: Witness>(ssd: &Ssd<P>) -> bool {
    let medium = ssd.medium();
    let needed = 2 * ssd.dump_blocks_needed() as usize;
    (0..ssd.geometry().dies()).map(DieId).any(|die| {
        let is_bad = |block| medium.health(block) != Health::Good;
        let is_free = |&block: &BlockId| !is_bad(block) && medium.used_for(block).is_none();
        // Of blocks that are free, some are for the table, and not for dumps.
        blocks_of(ssd, die).any(is_bad) && blocks_of(ssd, die).filter(is_free).count() < needed
    })
}

fn blocks_of<P: Witness>(ssd: &Ssd<P>, die: DieId) -> impl Iterator<Item = BlockId> {
    let geometry = *ssd.geometry();
    (0..geometry.blocks()).map(BlockId).filter(move |&block| geometry.die_of(block) == die)
}
