//! Builds what stands on a drive.
//!
//! **What lives here**: which layers there are and in which order: software, then a [`PageCache`], then a
//! [`HintChannel`], then the drive. **What doesn't**: what is done with a stack, which is its visitor's.
//!
//! **Invariants**: the visitor gets the stack as the type that it is, so that no command is dispatched at
//! run time, and a bare drive is driven by code in which no layer is asked about.

use leyden_device::{Payload, SECTOR_BYTES};
use leyden_sim::ConfigError;

use crate::{Channel, HintChannel, HintChannelConfig, PageCache, PageCacheConfig, Powered};

/// The layers on a drive; none, if both are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct StackConfig<'a> {
    /// How hints get to the drive. A page cache without one announces into a channel that is off.
    pub hints: Option<&'a HintChannelConfig>,
    /// A cache that all commands go through.
    pub page_cache: Option<&'a PageCacheConfig>,
}

/// An operation on a stack on a drive of type `T`.
pub trait Visitor<P: Payload, T> {
    /// The result of the visit.
    type Output;

    /// Takes the stack.
    fn visit<S: Powered<P, Drive = T>>(self, stack: S) -> Self::Output;
}

/// Builds the stack of `config` on `drive` and hands it to `visitor`. Everything random in the layers
/// comes from `seed`. What `below_cache` returns stands between a page cache and the channel: the channel
/// itself, or a layer of the caller's on top of it.
///
/// # Errors
/// If a layer cannot be; the key begins with the layer's name, `hints` or `page_cache`.
pub fn build<P, T, B, V>(
    config: StackConfig<'_>,
    drive: T,
    seed: u64,
    below_cache: impl FnOnce(HintChannel<T>) -> B,
    visitor: V,
) -> Result<V::Output, ConfigError>
where
    P: Payload,
    T: Powered<P, Drive = T>,
    B: Powered<P, Drive = T>,
    V: Visitor<P, T>,
{
    let StackConfig { hints, page_cache } = config;
    if hints.is_none() && page_cache.is_none() {
        return Ok(visitor.visit(drive));
    }
    let off = HintChannelConfig { channel: Channel::Off, ..HintChannelConfig::default() };
    let unit_bytes = unit_bytes(&drive);
    let channel = HintChannel::new(hints.unwrap_or(&off), drive, seed)
        .map_err(|error| error.within("hints"))?;
    let Some(page_cache) = page_cache else { return Ok(visitor.visit(channel)) };
    let cache = PageCache::new(page_cache, below_cache(channel), unit_bytes)
        .map_err(|error| error.within("page_cache"))?;
    Ok(visitor.visit(cache))
}

/// Bytes of a mapping unit.
fn unit_bytes<P: Payload>(drive: &impl Powered<P>) -> u32 {
    let units = u64::from(drive.mapping_units()).max(1);
    (drive.capacity_sectors() * SECTOR_BYTES / units) as u32
}

#[cfg(test)]
mod tests {
    use leyden_device::{Config, Region, Ssd, Stamp};
    use leyden_sim::{Bytes, Time};

    use super::*;

    /// Cuts the power. Says which layers there are, and whether all that is acknowledged is kept.
    struct CutOnce;

    impl Visitor<Stamp, Ssd<Stamp>> for CutOnce {
        type Output = (bool, bool, bool);

        fn visit<S: Powered<Stamp, Drive = Ssd<Stamp>>>(self, mut stack: S) -> Self::Output {
            let layers = stack.layers();
            let kept = stack.region() == Region::Full;
            let cut = stack.cut_power(Time::from_ns(1));
            assert_eq!(cut.dirty_units, layers.cache.map(|_| 0));
            assert_eq!(cut.waiting_hint_units, layers.hints.map(|_| 0));
            assert_eq!((cut.lost_units(), cut.uncertain_units()), (vec![], vec![]));
            let recovery = stack.restore_power(Time::from_ns(1));
            stack.advance(recovery.ready_at, &mut Vec::new());
            stack.check();
            assert_eq!(stack.now(), recovery.ready_at);
            (layers.hints.is_some(), layers.cache.is_some(), kept)
        }
    }

    fn built(config: StackConfig<'_>) -> Result<(bool, bool, bool), ConfigError> {
        let mut device = Config::default();
        device.power.get_or_insert_default();
        build(config, Ssd::<Stamp>::new(&device, 1).unwrap(), 1, |channel| channel, CutOnce)
    }

    #[test]
    fn every_stack_is_cut_from_the_top_down() {
        let hints = HintChannelConfig::default();
        let size = Bytes::new(1 << 20);
        let cache = PageCacheConfig { size, ..PageCacheConfig::default() };
        let bare = StackConfig::default();
        assert_eq!(built(bare).unwrap(), (false, false, true));
        let hinted = StackConfig { hints: Some(&hints), ..bare };
        assert_eq!(built(hinted).unwrap(), (true, false, true));
        // A cache acknowledges what the drive has not got.
        let cached = StackConfig { page_cache: Some(&cache), ..bare };
        assert_eq!(built(cached).unwrap(), (true, true, false));
    }

    #[test]
    fn an_error_names_its_layer() {
        let hints = HintChannelConfig { batch: 0, ..HintChannelConfig::default() };
        let error = built(StackConfig { hints: Some(&hints), page_cache: None }).unwrap_err();
        assert_eq!(error.key, "hints.batch");
        let cache = PageCacheConfig { size: Bytes::new(1 << 50), ..PageCacheConfig::default() };
        let error = built(StackConfig { hints: None, page_cache: Some(&cache) }).unwrap_err();
        assert_eq!(error.key, "page_cache.size");
    }
}
