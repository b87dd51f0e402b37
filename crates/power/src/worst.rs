//! The most that a dump can need: the bound by which a drive is accepted or refused.
//!
//! Notation: `P` pages, `D` dies, `n` of them on a channel; a page takes `x` on its channel and
//! holds its die for `T` (transfer and program). At the cut every die may have a program in flight
//! or an operation to break off, so all dies and channels are free at `A` ([`Costs::latest_free`]).
//!
//! **Balanced.** On a channel, dies take turns: the `j`-th program (from 0) of a die starts by
//! `A + j M + (n - 1) x` with `M = max(T, n x)`, by induction over the turns; a die that is full
//! drops out, which makes the others no later. The die that takes the last page is the one that is
//! free first. Some die with room has taken at most `q = (P - 1) / D` pages before that, so the last
//! page is taken by `A + q M + (n - 1) x`, waits for at most `n - 1` transfers, and has ended by
//! `A + q M + 2 (n - 1) x + T`. That needs room for `q + 1` pages on each die.
//!
//! **In place.** At worst `J` pages name the same die. After `A` that die programs, or waits while
//! its channel carries another page, so it has ended by `A + J T + min(P - J, (n - 1) J) x`. That
//! needs room for `J` pages on each die, or else pages of other dies may spill to it.
//!
//! A program that fails is done again on the same die: each such page makes `P` one larger, and may
//! come when everything else has ended: `T + (n - 1) x` each.

use leyden_sim::{Bytes, Energy, Span};

use crate::{Config, Costs};

/// The most that a drive may have to save at a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// User data promised that is not on flash, in whole mapping units. Units share pages; one page
    /// is partly filled in all, or one for each die if pages are dumped in place.
    pub buffer: Bytes,
    /// Pages of the mapping table.
    pub mapping_pages: u64,
    /// Pages of journals, and whatever else is dumped.
    pub journal_pages: u64,
    /// If known, how many of all these pages can name the same die. Matters to `in_place` only.
    pub most_on_one_die: Option<u64>,
}

/// The needs of a dump at worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Pages that are dumped, and programs of them that fail.
    pub pages: u64,
    /// Pages that every die must keep free for the dump, for this bound to hold.
    pub room_per_die: u64,
    /// From the cut until all is on flash.
    pub time: Span,
    /// Its energy: base power all the time, a program in flight on every die, and the pages.
    pub energy: Energy,
}

impl Demand {
    /// Pages that are dumped.
    pub fn pages(&self, config: &Config, costs: &Costs) -> u64 {
        let geometry = &costs.geometry;
        let per_page = u64::from(geometry.units_per_page());
        let units = self.buffer.get().div_ceil(u64::from(geometry.unit_bytes()));
        // Units of the same home share a page.
        let homes = if config.dump.is_in_place() { u64::from(geometry.dies()) } else { 1 };
        let partial = homes.min(units);
        let buffer = units.saturating_add(partial.saturating_mul(per_page - 1)) / per_page;
        buffer.saturating_add(self.mapping_pages).saturating_add(self.journal_pages)
    }
}

/// The most that a dump of `demand` takes, whatever is in flight and wherever its pages belong.
///
/// ```
/// use leyden_power::{Config, Costs, Demand, worst_case};
/// use leyden_sim::{Bytes, BytesPerSec, Span};
/// let nand = leyden_nand::Config {
///     channel_rate: BytesPerSec::new(819_200_000), // 10 us a page
///     ..leyden_nand::Config::default()
/// };
/// let config = Config::default();
/// let costs = Costs::new(&config, &nand, nand.geometry(Bytes::new(4096)).unwrap());
/// // 128 pages on 64 dies: what is in flight, two pages each, and waits for 2 x 7 transfers.
/// let need = worst_case(&Demand { mapping_pages: 128, ..Demand::default() }, &costs, &config);
/// assert_eq!(need.time, Span::from_us(710 + 2 * 710 + 14 * 10));
/// ```
pub fn worst_case(demand: &Demand, costs: &Costs, config: &Config) -> Need {
    let pages = demand.pages(config, costs);
    let dies = u64::from(costs.geometry.dies());
    let others = u64::from(costs.dies_per_channel()) - 1;
    let (transfer, turn) = (costs.transfer, costs.dump_time());

    // Where nothing is dumped, nothing fails.
    let failed = if pages == 0 { 0 } else { u64::from(config.failed_programs) };
    let wanted = pages;
    let pages = wanted.saturating_add(failed);

    let (room_per_die, mut time) = if config.dump.is_in_place() {
        let most = demand.most_on_one_die.map_or(wanted, |most| most.min(wanted));
        let on_one = most.saturating_add(failed);
        let beside = (pages - most).min(others.saturating_mul(on_one));
        let time = turn.saturating_mul(on_one) + transfer.saturating_mul(beside);
        (on_one, time)
    } else if pages == 0 {
        (0, Span::ZERO)
    } else {
        let rounds = (pages - 1) / dies;
        let round = turn.max(transfer.saturating_mul(others + 1));
        let time = round.saturating_mul(rounds) + transfer.saturating_mul(2 * others) + turn;
        (rounds + 1, time)
    };
    time += (turn + transfer.saturating_mul(others)).saturating_mul(failed);
    time += costs.latest_free();
    let energy = config.base_power.during(time)
        + costs.program_energy.saturating_mul(dies)
        + costs.dump_energy.saturating_mul(pages);
    Need { pages, room_per_die, time, energy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DumpConfig;
    use leyden_sim::BytesPerSec;

    /// 64 dies on 8 channels, 8 KiB pages, 10 us a transfer, 700 us a program.
    fn need(policy: &str, demand: &Demand) -> Need {
        let nand = leyden_nand::Config {
            channel_rate: BytesPerSec::new(819_200_000),
            ..leyden_nand::Config::default()
        };
        let dump = DumpConfig::by_name(policy).unwrap();
        let config = Config { dump, ..Config::default() };
        let costs = Costs::new(&config, &nand, nand.geometry(Bytes::new(4096)).unwrap());
        worst_case(demand, &costs, &config)
    }

    #[test]
    fn nothing_promised_costs_what_is_in_flight() {
        let need = need("balanced", &Demand::default());
        assert_eq!((need.pages, need.room_per_die, need.time), (0, 0, Span::from_us(710)));
        // 2.5 W for 710 us, and 64 programs at 165 mW for 710 us.
        assert_eq!(need.energy, Energy::from_nj(1_775_000 + 64 * 117_150));
    }

    #[test]
    fn one_page_more_than_the_dies_takes_a_round_more() {
        let demand = Demand { mapping_pages: 64, journal_pages: 1, ..Demand::default() };
        let need = need("balanced", &demand);
        assert_eq!((need.pages, need.room_per_die), (65, 2));
        assert_eq!(need.time, Span::from_us(710 + 710 + 2 * 7 * 10 + 710));
        assert_eq!(need.energy, Energy::from_nj(2_270 * 2_500 + (64 + 65) * 117_150));
    }

    #[test]
    fn in_place_all_pages_may_belong_to_one_die() {
        let demand = Demand { mapping_pages: 65, ..Demand::default() };
        let all = need("in_place", &demand);
        assert_eq!((all.room_per_die, all.time), (65, Span::from_us(710 + 65 * 710)));
        // Two of them at most: the other 7 dies of the channel transfer 14 pages in between.
        let spread = need("in_place", &Demand { most_on_one_die: Some(2), ..demand });
        assert_eq!((spread.room_per_die, spread.time), (2, Span::from_us(710 + 2 * 710 + 14 * 10)));
    }

    #[test]
    fn slc_programs_faster_but_waits_for_what_is_in_flight() {
        let demand = Demand { mapping_pages: 640, ..Demand::default() };
        let need = need("balanced_slc", &demand);
        assert_eq!(need.time, Span::from_us(710 + 9 * 210 + 2 * 7 * 10 + 210));
        assert_eq!(need.energy, Energy::from_nj(2_950 * 2_500 + 64 * 117_150 + 640 * 34_650));
    }

    #[test]
    fn units_share_pages_but_not_homes() {
        let pages = |policy, buffer| {
            need(policy, &Demand { buffer: Bytes::new(buffer), ..Demand::default() }).pages
        };
        // Two units to a page.
        assert_eq!((pages("balanced", 4_096), pages("balanced", 5 * 4_096)), (1, 3));
        assert_eq!((pages("in_place", 5 * 4_096), pages("in_place", 640 * 4_096)), (5, 352));
        assert_eq!(pages("balanced", 1), 1, "a part of a unit takes all of it");
    }

    #[test]
    fn absurd_demands_stop_at_the_largest_need() {
        let demand =
            Demand { buffer: Bytes::new(u64::MAX), mapping_pages: u64::MAX, ..Demand::default() };
        for policy in ["balanced", "balanced_slc", "in_place"] {
            assert_eq!(need(policy, &demand).energy, Energy::MAX);
        }
    }
}
