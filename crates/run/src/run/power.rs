//! The costs of power cuts at moments of a run.

use std::collections::BTreeSet;

use leyden_device::{Controller, CutCost, CutLoss, Namespace, Payload};
use leyden_power::{Part, Supply};
use leyden_sim::{Capacitance, Energy, Rng, Span, Time};

use leyden_record::{self as record, Spread, WithLess};

/// The most moments kept. A look costs a walk through the buffer and a dump plan, as much as some
/// thousand requests.
const MOST: usize = 128;
/// Of these, how many are kept when there are too many: one in so many.
const THINNING: usize = 4;
/// One moment is drawn from each stretch of this length, at first.
const FIRST_STRETCH: Span = Span::from_ms(1);

/// Looks at a drive at moments drawn from the run's seed: one in each of some stretches of equal length.
/// How long the run will be is not known. When the moments are too many, one in four stays, drawn at
/// random, and stretches are four times as long from there on.
pub(super) struct Sampler {
    rng: Rng,
    start: Time,
    stretch: Span,
    /// `Time::MAX` if the power is never cut.
    next: Time,
    /// Smaller banks to ask about.
    banks: Vec<Energy>,
    /// Of each stretch; `None` if the drive had no power then, or recovered.
    kept: Vec<Option<Moment>>,
    looks: u64,
    peak: CutCost,
    peak_bytes: u64,
    page_bytes: u64,
}

/// The cost of a cut at one moment, and its losses with each of the smaller banks.
#[derive(Clone)]
struct Moment {
    at: Time,
    cost: CutCost,
    losses: Vec<CutLoss>,
}

impl Sampler {
    pub(super) fn new<P: Payload, N: Namespace<P>>(
        ssd: &Controller<P, N>,
        seed: u64,
        banks: &[Energy],
    ) -> Self {
        let mut banks: BTreeSet<Energy> = banks.iter().copied().collect();
        if let Some(supply) = ssd.power_supply().filter(|supply| supply.shortfall.is_some()) {
            banks.insert(supply.bank.energy());
        }
        let mut sampler = Self {
            rng: Rng::new(seed, "power cuts"),
            start: ssd.now(),
            stretch: FIRST_STRETCH,
            next: Time::MAX,
            banks: banks.into_iter().rev().collect(),
            kept: Vec::new(),
            looks: 0,
            peak: CutCost::default(),
            peak_bytes: 0,
            page_bytes: u64::from(ssd.geometry().page_bytes()),
        };
        if ssd.power_supply().is_some() {
            sampler.draw();
        }
        sampler
    }

    /// Draws a moment from the stretch after those that have one.
    fn draw(&mut self) {
        let length = self.stretch.as_ns();
        let begin = self.start + self.stretch.saturating_mul(self.kept.len() as u64);
        self.next = begin + Span::from_ns(self.rng.below(length));
    }

    fn thin_out(&mut self) {
        let (rng, mut kept) = (&mut self.rng, Vec::with_capacity(MOST));
        for group in self.kept.chunks(THINNING) {
            kept.push(group[rng.below(group.len() as u64) as usize].clone());
        }
        self.kept = kept;
        self.stretch = self.stretch.saturating_mul(THINNING as u64);
    }

    fn take(&mut self, at: Time, cost: CutCost, losses: Vec<CutLoss>) {
        let bytes = cost.promised.get() + cost.map_pages * self.page_bytes;
        self.peak_bytes = self.peak_bytes.max(bytes);
        let peak = &mut self.peak;
        peak.promised = peak.promised.max(cost.promised);
        peak.map_pages = peak.map_pages.max(cost.map_pages);
        peak.time = peak.time.max(cost.time);
        peak.energy = peak.energy.max(cost.energy);
        peak.capacitance = peak.capacitance.max(cost.capacitance);
        self.looks += 1;
        self.kept.push(Some(Moment { at, cost, losses }));
    }

    fn moments(&self) -> impl Iterator<Item = &Moment> {
        self.kept.iter().flatten()
    }

    /// The samples as a record has them. `cuts`, `lost_promised_writes` and the list of cuts are
    /// filled in where the cuts are made.
    pub(super) fn record(&self, supply: &Supply, part: Part) -> record::Power {
        let spread = |value: fn(&CutCost) -> f64, peak: f64| {
            let spread = Spread::of(self.moments().map(|moment| value(&moment.cost)).collect());
            Spread { max: peak, ..spread }
        };
        let with_less = self.banks.iter().enumerate();
        record::Power {
            moments: self.looks,
            protected_bytes_peak: self.peak_bytes,
            promised_bytes_peak: self.peak.promised.get(),
            map_pages_peak: self.peak.map_pages,
            dump_ms: spread(|cost| milliseconds(cost.time), milliseconds(self.peak.time)),
            energy_mj: spread(|cost| millijoules(cost.energy), millijoules(self.peak.energy)),
            capacitance_uf: self.peak.capacitance.as_uf_f64(),
            parts: supply.bank.parts_for(self.peak.energy),
            worst: worst(supply),
            bank: bank(supply, part),
            at: self.moments().map(|moment| self.moment(moment)).collect(),
            with_less: with_less.map(|(index, &energy)| self.with(index, energy, supply)).collect(),
            ..record::Power::default()
        }
    }

    fn moment(&self, Moment { at, cost, .. }: &Moment) -> record::PowerMoment {
        record::PowerMoment {
            at_s: at.since(self.start).as_secs_f64(),
            energy_mj: millijoules(cost.energy),
            promised_bytes: cost.promised.get(),
            map_pages: cost.map_pages,
        }
    }

    fn with(&self, index: usize, energy: Energy, supply: &Supply) -> WithLess {
        let losses = || self.moments().map(|moment| moment.losses[index]);
        let moments = self.moments().count();
        let of = |count: f64| if moments == 0 { 0.0 } else { count / moments as f64 };
        let lost = || losses().map(|loss| loss.promised.get());
        WithLess {
            share: energy.as_pj() as f64 / supply.need.energy.as_pj() as f64,
            energy_mj: millijoules(energy),
            capacitance_uf: supply.bank.capacitance_for(energy).as_uf_f64(),
            parts: supply.bank.parts_for(energy),
            losing: of(lost().filter(|&bytes| bytes > 0).count() as f64),
            lost_bytes_mean: of(lost().sum::<u64>() as f64),
            lost_bytes_max: lost().max().unwrap_or(0),
            unsaved_map_pages_max: losses().map(|loss| loss.map_pages).max().unwrap_or(0),
        }
    }
}

impl Sampler {
    /// When to look next.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// Looks at a drive that has capacitors.
    pub(super) fn look<P: Payload, N: Namespace<P>>(&mut self, ssd: &Controller<P, N>) {
        match ssd.cut_cost() {
            Some(cost) => {
                let losses = self.banks.iter().filter_map(|&energy| ssd.cut_loss(energy)).collect();
                self.take(ssd.now(), cost, losses);
            }
            // Just cut: there is nothing to save.
            None => self.kept.push(None),
        }
        if self.kept.len() == MOST {
            self.thin_out();
        }
        self.draw();
    }
}

/// The need of a drive, as a record says it.
pub(crate) fn worst(supply: &Supply) -> record::Worst {
    record::Worst {
        pages: supply.need.pages,
        dump_ms: milliseconds(supply.need.time),
        energy_mj: millijoules(supply.need.energy),
        capacitance_uf: supply.capacitance.as_uf_f64(),
        parts: supply.bank.parts_for(supply.need.energy),
    }
}

/// The bank of a drive, as a record says it.
pub(crate) fn bank(supply: &Supply, part: Part) -> record::Bank {
    let (energy, capacitance) = supply
        .shortfall
        .map_or((Energy::ZERO, Capacitance::default()), |s| (s.energy, s.capacitance));
    record::Bank {
        part: serde_json::to_value(part)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .unwrap_or_default(),
        parts: supply.bank.parts(),
        capacitance_uf: supply.bank.capacitance().as_uf_f64(),
        energy_mj: millijoules(supply.bank.energy()),
        shortfall_mj: millijoules(energy),
        shortfall_uf: capacitance.as_uf_f64(),
    }
}

pub(super) fn milliseconds(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

pub(crate) fn millijoules(energy: Energy) -> f64 {
    energy.as_joules_f64() * 1e3
}
