//! A drive as a namespace, and its health.

use leyden_device::Atomicity;
use leyden_image::Device;
use leyden_nvme::{Health, Namespace, ZoneSeen, Zones};
use leyden_sim::Digest;

use crate::about::{Identity, ZoneLine};
use crate::engine::Seen;
use crate::owner::Handle;

/// A drive as it is found when it is served.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) path: String,
    identity: Identity,
    atomic: Option<Atomicity>,
}

/// Looks at a drive; `None` if it is gone.
pub(super) fn look(drive: &Handle) -> Option<Found> {
    drive.look(|seen| {
        let path = std::path::absolute(seen.drive.path());
        let path = path.unwrap_or_else(|_| seen.drive.path().to_owned());
        Found {
            name: seen.drive.config().name.clone(),
            path: path.display().to_string(),
            identity: Identity::of(seen.drive),
            atomic: match seen.drive.device() {
                Device::Conventional(ssd) => ssd.atomicity(),
                Device::Zoned(_) | Device::Stack(_) => None,
            },
        }
    })
}

/// The name of a subsystem whose first drive is called `name`.
pub(super) fn subsystem_name(name: &str) -> String {
    let clean = |it: char| if it.is_ascii_graphic() { it } else { '-' };
    let name: String = name.chars().map(clean).take(180).collect();
    format!("nqn.2026-01.local.leyden:{name}")
}

/// A number of what these texts say.
fn number_of(parts: &[&str]) -> u64 {
    let mut digest = Digest::default();
    for part in parts {
        digest.add(part.len() as u64);
        for chunk in part.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest.add(u64::from_le_bytes(word));
        }
    }
    digest.value()
}

/// Twenty characters that say which subsystem it is.
pub(super) fn serial(name: &str, path: &str) -> String {
    format!("LEYD{:016x}", number_of(&[name, path]))
}

impl Found {
    /// The drive as a namespace of the subsystem called `name`. Its own name follows from where its image lies: the same
    /// after a restart, and another one's is another.
    pub(super) fn namespace(&self, name: &str) -> Namespace {
        let it = &self.identity;
        let block_bytes =
            if it.is_zoned { it.block_bytes } else { Namespace::block_of(it.unit_bytes) };
        let block = u64::from(block_bytes);
        let blocks = |bytes: u64| bytes / block;
        let zones = it.is_zoned.then(|| Zones {
            count: it.zone_count,
            size: blocks(it.zone_size_bytes),
            capacity: blocks(it.zone_capacity_bytes),
            open_most: it.open_max,
            active_most: it.active_max,
            append_bytes: it.append_max_bytes,
            area_size: blocks(it.zrwa_size_bytes) as u32,
            area_granularity: blocks(it.zrwa_granularity_bytes) as u32,
            areas: it.zrwa_max,
            reads_across: it.reads_across_zones,
        });
        let mut guid = [0; 16];
        guid[..8].copy_from_slice(&number_of(&[&self.path, name]).to_be_bytes());
        guid[8..].copy_from_slice(&number_of(&[name, &self.path, "namespace"]).to_be_bytes());
        let blocks = blocks(it.capacity_bytes);
        // A buffer that is not all protected is a cache whose data a power cut may take.
        let has_cache = it.region != 2;
        let (unit_bytes, atomic) = (it.unit_bytes, self.atomic);
        Namespace { block_bytes, blocks, unit_bytes, has_cache, guid, atomic, zones }
    }
}

/// Wear of blocks: how many, how many are bad, and all erases.
fn wear(blocks: impl Iterator<Item = Option<u32>>) -> (u64, u64, u64) {
    blocks.fold((0, 0, 0), |(all, bad, erases), block| match block {
        None => (all + 1, bad + 1, erases),
        Some(count) => (all + 1, bad, erases + u64::from(count)),
    })
}

/// How a drive is. Commands and bytes are counted since its image was opened, cuts since its bank was last changed.
pub(super) fn health(seen: &Seen<'_>) -> Health {
    let (drive, counts) = (seen.drive, seen.counts);
    let device = drive.device();
    let (stats, config) = (device.stats(), drive.config());
    let (blocks, bad, erases) = match device {
        Device::Conventional(ssd) => wear(ssd.wear()),
        Device::Zoned(ssd) => wear(ssd.wear()),
        Device::Stack(stack) => wear(stack.wear()),
    };
    let percent = |part: u64, whole: u64| (part.saturating_mul(100) / whole.max(1)).min(255) as u8;
    let endured = blocks * u64::from(config.device.nand.endurance_cycles);
    let busy = stats.die_busy.iter().map(|span| span.as_ns()).max().unwrap_or(0);
    let cuts = device.cuts();
    Health {
        spare_percent: 100 - percent(bad, blocks).min(100),
        used_percent: if endured == 0 { 0 } else { percent(erases, endured) },
        read_bytes: counts.read_bytes,
        written_bytes: counts.written_bytes,
        reads: counts.reads,
        writes: counts.writes,
        busy_ms: busy / 1_000_000,
        on_ms: drive.now().as_ns() / 1_000_000,
        cuts,
        media_errors: stats.ftl.program_failures + stats.ftl.erase_failures,
    }
}

/// A zone as the namespace tells of it.
pub(super) fn zone(line: &ZoneLine, block_bytes: u32) -> ZoneSeen {
    let blocks = |bytes: u64| bytes / u64::from(block_bytes);
    ZoneSeen {
        state: line.state,
        has_area: line.has_area,
        is_changed: line.is_changed,
        start: blocks(line.start),
        capacity: blocks(line.capacity),
        write_pointer: (line.write_pointer != u64::MAX).then(|| blocks(line.write_pointer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_from_where_an_image_lies() {
        assert_eq!(subsystem_name("disk"), "nqn.2026-01.local.leyden:disk");
        assert_eq!(subsystem_name("my disk\u{e9}"), "nqn.2026-01.local.leyden:my-disk-");
        assert_eq!(serial("a", "/b"), serial("a", "/b"));
        assert_ne!(serial("a", "/b"), serial("a", "/c"));
        assert_ne!(serial("a", "b"), serial("ab", ""));
        assert_eq!(serial("a", "/b").len(), 20);
    }
}
