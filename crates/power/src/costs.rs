//! The cost of one page of a dump on a drive's flash.

use leyden_nand::Geometry;
use leyden_sim::{Energy, Span};

use crate::Config;

/// Times and energies of a drive's programs, computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// The shape of the flash.
    pub geometry: Geometry,
    /// A page's time on its channel.
    pub transfer: Span,
    /// Array time of a program in the flash's own cell mode: what is in flight at a cut.
    pub program: Span,
    /// Array time of a program of the dump.
    pub dump_program: Span,
    /// Energy of a program in the flash's own cell mode, with its transfer.
    pub program_energy: Energy,
    /// Energy of a program of the dump, with its transfer.
    pub dump_energy: Energy,
    /// Time until a die is free whose erase or read is broken off.
    pub reset: Span,
}

impl Costs {
    /// The costs on the flash that `nand` describes, whose shape is `geometry`.
    pub fn new(config: &Config, nand: &leyden_nand::Config, geometry: Geometry) -> Self {
        let transfer = nand.channel_rate.time_for(u64::from(geometry.page_bytes()));
        let dump_program = config.dump.program(nand.program);
        // Data sheets give the current of one plane's program: n planes at once may take n times
        // that. While the page goes in, the die draws no more than when it programs.
        let planes = if nand.multi_plane { nand.planes_per_die } else { 1 };
        let energy = |program: Span| {
            config.program_power.during(transfer + program).saturating_mul(planes.into())
        };
        Self {
            geometry,
            transfer,
            program: nand.program,
            dump_program,
            program_energy: energy(nand.program),
            dump_energy: energy(dump_program),
            reset: config.reset,
        }
    }

    /// How long a page of the dump holds its die.
    pub fn dump_time(&self) -> Span {
        self.transfer + self.dump_program
    }

    /// The latest that a die is free without any dump: the program in flight has ended (it began
    /// before the cut), or the erase or read is broken off.
    pub fn latest_free(&self) -> Span {
        (self.transfer + self.program).max(self.reset)
    }

    /// Dies that share a channel.
    pub fn dies_per_channel(&self) -> u32 {
        self.geometry.dies() / self.geometry.channels()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DumpConfig;
    use leyden_sim::{Bytes, BytesPerSec};

    #[test]
    fn energy_is_power_times_time_times_planes() {
        let nand = leyden_nand::Config {
            channel_rate: BytesPerSec::new(819_200_000), // 10 us a page
            planes_per_die: 2,
            ..leyden_nand::Config::default()
        };
        let mut config = Config::default();
        let costs = |config: &Config, nand: &leyden_nand::Config| {
            Costs::new(config, nand, nand.geometry(Bytes::new(4096)).unwrap())
        };
        let one = costs(&config, &nand);
        // 165 mW for 710 us.
        assert_eq!(one.program_energy, Energy::from_nj(117_150));
        assert_eq!((one.dump_energy, one.dump_time()), (one.program_energy, Span::from_us(710)));
        assert_eq!((one.latest_free(), one.dies_per_channel()), (Span::from_us(710), 8));
        config.dump = DumpConfig::by_name("balanced_slc").unwrap();
        // 165 mW for 720 us and for 220 us, twice.
        let two = costs(&config, &leyden_nand::Config { multi_plane: true, ..nand });
        assert_eq!(two.program_energy, Energy::from_nj(237_600));
        assert_eq!(
            (two.dump_energy, two.dump_time()),
            (Energy::from_nj(72_600), Span::from_us(220))
        );
    }
}
