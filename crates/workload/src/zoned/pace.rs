//! How fast a store's writer goes: the processor time of its puts, and how RocksDB slows it down while tables wait
//! to be compacted.

use leyden_sim::{BytesPerSec, Rng, Span};

use super::lsm_config::rocksdb;

/// The least that the writer is slowed down to, in bytes a second, as RocksDB has it.
const LEAST_RATE: u64 = 16 << 10;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rng: Rng,
    /// Mean processor time of the puts of an append.
    work_ns: u64,
    /// Their pairs.
    bytes: u64,
    /// How many bytes a second may be put; `None` if as many as the writer can.
    rate: Option<u64>,
    most_rate: u64,
    /// Tables that may wait before the writer is slowed down.
    slowdown_at: u64,
    /// Bytes that waited when the rate was set.
    waited: u64,
    /// How long puts took beyond their processor time.
    delayed: Span,
}

impl Pace {
    /// A writer whose puts take `put_time`; one that is slowed down may put at `most_rate`, as soon as so many tables
    /// wait.
    pub(super) fn new(put_time: Span, most_rate: BytesPerSec, slowdown_at: u32, seed: u64) -> Self {
        let puts = rocksdb::PUTS_PER_APPEND;
        Self {
            rng: Rng::new(seed, "lsm"),
            work_ns: put_time.saturating_mul(puts.into()).as_ns(),
            bytes: rocksdb::PAIR * u64::from(puts),
            rate: None,
            most_rate: most_rate.get(),
            slowdown_at: slowdown_at.into(),
            waited: 0,
            delayed: Span::ZERO,
        }
    }

    /// A table has been flushed or compacted, and so many tables, or bytes, wait to be compacted now.
    pub(super) fn set(&mut self, tables: u64, bytes: u64) {
        let before = std::mem::replace(&mut self.waited, bytes);
        self.rate = match self.rate {
            _ if tables < self.slowdown_at => None,
            None => Some(self.most_rate),
            Some(rate) if bytes > before => Some((rate * 4 / 5).max(LEAST_RATE)),
            Some(rate) => Some((rate * 5 / 4).min(self.most_rate)),
        };
    }

    /// How long the puts of the next append take: their processor time is drawn from half of the mean to half as
    /// much again.
    pub(super) fn puts(&mut self) -> Span {
        let work = self.work_ns / 2 + self.rng.below(self.work_ns + 1);
        self.takes(Span::from_ns(work), self.bytes)
    }

    /// How long puts of so many bytes take that are so much work.
    pub(super) fn takes(&mut self, work: Span, bytes: u64) -> Span {
        let paced = self.rate.map_or(0, |rate| bytes * 1_000_000_000 / rate);
        self.delayed += Span::from_ns(paced.saturating_sub(work.as_ns()));
        work.max(Span::from_ns(paced))
    }

    pub(super) const fn delayed(&self) -> Span {
        self.delayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_slows_down_while_tables_wait_to_be_compacted() {
        let mut pace =
            Pace::new(Span::from_ns(3_200), rocksdb::DELAYED_WRITE_RATE, rocksdb::SLOWDOWN_AT, 1);
        let mut rates = Vec::new();
        for tables in [19, 20, 21, 22, 21, 20, 19] {
            pace.set(tables, tables << 23);
            rates.push(pace.rate);
        }
        let most = 16 << 20;
        let falls = [most, most * 4 / 5, most * 4 / 5 * 4 / 5];
        let grows = [falls[2] * 5 / 4, falls[2] * 5 / 4 * 5 / 4];
        let slowed = falls.into_iter().chain(grows).map(Some);
        assert_eq!(rates, [None].into_iter().chain(slowed).chain([None]).collect::<Vec<_>>());
        assert!(pace.puts() < Span::from_us(20), "as fast as it can");
        assert_eq!(pace.delayed(), Span::ZERO);
        pace.set(20, 20 << 23);
        // Four pairs of 900 bytes at 16 MiB/s.
        assert_eq!(pace.puts(), Span::from_ns(214_576));
        assert!(pace.delayed() > Span::from_us(190));
    }
}
