//! Writing the buffer out before a drive is shut down.

use super::{Conventional, Ssd};
use crate::{BlockDevice, Payload};

impl<P: Payload> Ssd<P> {
    /// Writes out what is buffered, protected or not, and lets the time pass that this takes. What no die has room for
    /// stays buffered.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub fn write_out(&mut self) {
        assert!(self.is_idle(), "the drive is at work");
        self.set_writing_out(true);
        let mut ended = Vec::new();
        while !self.is_idle()
            && let Some(next) = self.next_event()
        {
            self.advance(next, &mut ended);
        }
        self.set_writing_out(false);
    }

    fn set_writing_out(&mut self, on: bool) {
        let now = self.now();
        let Conventional { writer, ftl, .. } = self.namespace_mut();
        writer.write_out(now, ftl, on);
    }
}

#[cfg(test)]
mod tests {
    use leyden_buffer::Region;

    use crate::{BlockDevice, Command, Config, Lba, Op, Ssd, Stamp};

    /// Nine units are two pages of 16 KiB and a quarter; of a protected buffer nothing is written so early.
    #[test]
    fn all_that_is_buffered_goes_to_flash_in_pages_that_are_not_full_too() {
        for region in [Region::None, Region::Full] {
            let mut config = Config::default();
            config.buffer.region = region;
            let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
            for unit in 0..9 {
                let now = ssd.now();
                let write = Command::new(Op::Write, Lba(unit * 8), 8, unit + 1).fua(unit == 0);
                ssd.submit(now, write);
                while let Some(next) = ssd.next_event() {
                    ssd.advance(next, &mut Vec::new());
                }
            }
            assert!(ssd.stats().buffered_units.get() > 0, "{region:?}: they are buffered");
            ssd.write_out();
            assert_eq!(ssd.stats().buffered_units.get(), 0, "{region:?}");
            let stored: Vec<_> =
                (0..9).map(|unit| ssd.stored(Lba(unit * 8)).map(|it| it.0)).collect();
            assert_eq!(stored, (1..10).map(Some).collect::<Vec<_>>(), "{region:?}");
            ssd.check();
            // It buffers as before.
            ssd.submit(ssd.now(), Command::new(Op::Write, Lba(0), 8, 20));
            while let Some(next) = ssd.next_event() {
                ssd.advance(next, &mut Vec::new());
            }
            assert_eq!(ssd.stats().buffered_units.get(), 1, "{region:?}");
        }
    }
}
