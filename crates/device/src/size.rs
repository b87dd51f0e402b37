//! The size of a drive: its flash made smaller or larger until it holds what is asked for.

use leyden_sim::{Bytes, ConfigError, Ratio};

use crate::{Config, provision_of, provision_of_zones};

/// Addresses on flash have 31 bits.
const UNITS_MOST: u128 = (1 << 31) - 1;
/// The fewest pages of a block, and the most blocks of a plane, that are looked at while a drive shrinks.
const PAGES_LEAST: u32 = 8;
const SMALL_BLOCKS_MOST: u32 = 128;
/// A plane has no more blocks.
const BLOCKS_MOST: u32 = 1 << 20;

/// Bytes that a host can address.
///
/// # Errors
/// If there can be no such drive.
pub fn capacity_bytes(device: &Config) -> Result<u64, ConfigError> {
    let units = if device.zoned.is_some() {
        let zones = provision_of_zones(device)?.zones;
        u64::from(zones.zones) * u64::from(zones.capacity)
    } else {
        u64::from(provision_of(device)?.mapping_units)
    };
    Ok(units * device.ftl.mapping_unit.get())
}

/// Gives `device` the least flash that holds `size_bytes`. Channels, dies, planes, page size, times, the buffer and the
/// capacitors stay as they are, and with them what a cut takes. A block of a conventional drive may become shorter; one of
/// a zoned drive does not, as zones are made of whole blocks. A conventional drive has exactly this capacity then, and at
/// least its over-provisioning: more where each of many dies needs its spare blocks.
///
/// # Errors
/// If no number of blocks does.
pub fn fit(device: &mut Config, size_bytes: u64) -> Result<(), ConfigError> {
    let size_bytes = size_bytes.next_multiple_of(device.ftl.mapping_unit.get().max(1));
    let has_capacity = device.ftl.capacity.is_some();
    if device.zoned.is_none() {
        device.ftl.capacity = Some(Bytes::new(size_bytes));
    }
    // A capacity that the drive names is kept to whatever the over-provisioning is.
    let provisioned = u128::from(1_000_000 + device.ftl.over_provisioning.as_ppm());
    let flash_least = u128::from(size_bytes) * if has_capacity { 0 } else { provisioned };
    let unit = device.ftl.mapping_unit.get().max(1);
    let kept = if has_capacity || device.zoned.is_some() { 1_000_000 } else { provisioned };
    let units = u128::from(size_bytes) * kept / 1_000_000 / u128::from(unit);
    if units > UNITS_MOST {
        let larger = (units * u128::from(unit) / UNITS_MOST + 1).next_power_of_two() >> 10;
        let problem = format!(
            "a drive of this size has {units} mapping units with its spare, and {UNITS_MOST} have addresses: set a \
             larger unit, as with --set device.ftl.mapping_unit=\"{larger} KiB\", or less spare"
        );
        return Err(ConfigError::new("ftl.mapping_unit", problem));
    }
    let with = |pages: u32, blocks: u32| {
        let mut other = device.clone();
        (other.nand.pages_per_block, other.nand.blocks_per_plane) = (pages, blocks);
        other
    };
    let holds = |pages: u32, blocks: u32| {
        let other = with(pages, blocks);
        let is_spared =
            other.zoned.is_some() || u128::from(flash_bytes(&other)) * 1_000_000 >= flash_least;
        is_spared && capacity_bytes(&other).is_ok_and(|bytes| bytes >= size_bytes)
    };
    let pages = device.nand.pages_per_block;
    let large = least(1, BLOCKS_MOST, |blocks| holds(pages, blocks));
    let halves = std::iter::successors(Some(pages), |pages| Some(pages / 2));
    let halves = halves.take_while(|&half| half == pages || half >= PAGES_LEAST);
    let kinds = if device.zoned.is_some() { 1 } else { usize::MAX };
    let small = halves.take(kinds).filter_map(|pages| {
        let blocks = (1..=SMALL_BLOCKS_MOST).find(|&blocks| holds(pages, blocks))?;
        Some((pages, blocks))
    });
    let flash = |&(pages, blocks): &(u32, u32)| u64::from(pages) * u64::from(blocks);
    let best = small.chain(large.map(|blocks| (pages, blocks))).min_by_key(flash);
    let Some((pages, blocks)) = best else {
        // A fault of the drive at any size is a fault of this one.
        let most = capacity_bytes(&with(pages, BLOCKS_MOST))?;
        let problem =
            format!("with all blocks that a plane can have the drive holds {} GiB", most >> 30);
        return Err(ConfigError::new("nand.blocks_per_plane", problem));
    };
    (device.nand.pages_per_block, device.nand.blocks_per_plane) = (pages, blocks);
    if device.zoned.is_none() && !has_capacity {
        device.ftl.over_provisioning =
            spare_of(flash_bytes(device), size_bytes).max(device.ftl.over_provisioning);
    }
    Ok(())
}

/// Bytes of flash; none of a drive that cannot be.
fn flash_bytes(device: &Config) -> u64 {
    device.geometry().map_or(0, |geometry| geometry.flash_bytes())
}

/// The over-provisioning of so much flash that holds so much, in tenths of a percent.
fn spare_of(flash_bytes: u64, size_bytes: u64) -> Ratio {
    let spare = u128::from(flash_bytes.saturating_sub(size_bytes)) * 1_000;
    let tenths = spare.div_ceil(u128::from(size_bytes.max(1)));
    Ratio::from_ppm(u64::try_from(tenths).unwrap_or(u64::MAX / 1_000).saturating_mul(1_000))
}

/// The least of a range for which `is` holds; from there on it does.
fn least(first: u32, last: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
    let mut upper = first;
    while !is(upper) {
        if upper == last {
            return None;
        }
        upper = upper.saturating_mul(2).min(last);
    }
    let mut lower = (upper / 2).max(first);
    while lower < upper {
        let middle = lower + (upper - lower) / 2;
        if is(middle) {
            upper = middle;
        } else {
            lower = middle + 1;
        }
    }
    Some(upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power() -> Config {
        Config { power: Some(leyden_power::Config::default()), ..Config::default() }
    }

    #[test]
    fn a_drive_has_the_size_that_is_asked_for_and_keeps_its_parallelism() {
        for size in [64 << 20, 256 << 20, 2 << 30, 100 << 30, 2 << 40] {
            let mut device = power();
            fit(&mut device, size).unwrap();
            let made = capacity_bytes(&device).unwrap();
            assert_eq!(made, size);
            // The least flash: without its last blocks it is no drive, or has less to spare than was asked for.
            let mut smaller = device.clone();
            smaller.nand.blocks_per_plane -= 1;
            let spare = spare_of(flash_bytes(&smaller), size);
            assert!(capacity_bytes(&smaller).is_err() || spare <= power().ftl.over_provisioning);
            // The over-provisioning that is named makes a drive without a capacity, too.
            assert!(device.ftl.over_provisioning >= power().ftl.over_provisioning);
            let mut named = device.clone();
            named.ftl.capacity = None;
            let made = capacity_bytes(&named).unwrap();
            assert!(made <= size && made > size - size / 500, "{size}: {made}");
            let (nand, before) = (&device.nand, power().nand);
            assert_eq!(nand.channels, before.channels);
            assert_eq!(nand.dies_per_channel, before.dies_per_channel);
            assert_eq!(nand.planes_per_die, before.planes_per_die);
        }
    }

    #[test]
    fn a_capacity_that_is_named_is_kept_to() {
        let mut device = power();
        device.ftl.capacity = Some(Bytes::new(1 << 30));
        fit(&mut device, 3 << 30).unwrap();
        assert_eq!(capacity_bytes(&device).unwrap(), 3 << 30);
    }

    #[test]
    fn zones_stay_as_they_are() {
        let mut device = power();
        let zoned = device.zoned.get_or_insert_default();
        (zoned.zone_size, zoned.dies_per_zone) = (Bytes::new(64 << 20), 4);
        device.nand.pages_per_block = 256;
        let before = capacity_bytes(&device);
        fit(&mut device, 4 << 30).unwrap_or_else(|error| panic!("{error}; before: {before:?}"));
        assert!(capacity_bytes(&device).unwrap() >= 4 << 30);
        assert_eq!(device.nand.pages_per_block, 256);
    }

    #[test]
    fn a_drive_that_can_have_no_size_says_why() {
        let mut device = power();
        device.nand.page_size = Bytes::new(3);
        assert!(fit(&mut device, 1 << 30).is_err());
        assert_eq!(least(1, 1_000, |it| it >= 77), Some(77));
        assert_eq!(least(1, 1_000, |it| it >= 1), Some(1));
        assert_eq!(least(1, 1_000, |it| it > 1_000), None);
    }
}
