//! Draws places by a distribution.

use leyden_sim::{Ratio, Rng};

use super::permute::Permutation;
use super::zipf::ZipfRanks;
use super::{Distribution, Zone};

/// Draws places `0..places` of a region.
#[derive(Clone, Debug)]
pub(super) struct Places {
    law: Law,
    scatter: Option<Permutation>,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum Law {
    Uniform { places: u64 },
    Zipf(ZipfRanks),
    SelfSimilar { places: u64, power: f64 },
    Zones(Vec<Part>),
}

/// A part of the space in which all places are alike.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u64,
    len: u64,
    /// Share of the requests up to and including this part, in parts per million.
    until_ppm: u64,
}

/// A part of the space that gets requests but has no place.
pub(super) struct EmptyPart {
    /// Its index.
    pub(super) index: usize,
}

impl Places {
    /// A sampler of `distribution` over `places > 0`; the parameters are checked already.
    /// `scatter_rng` draws the permutation: the same for reads and writes, so that they agree on
    /// which places are hot.
    pub(super) fn new(
        distribution: &Distribution,
        places: u64,
        rng: Rng,
        scatter_rng: Rng,
    ) -> Result<Self, EmptyPart> {
        let law = match distribution {
            Distribution::Uniform => Law::Uniform { places },
            Distribution::Zipf(zipf) => Law::Zipf(ZipfRanks::new(places, zipf.theta)),
            Distribution::SelfSimilar(law) => {
                let h = law.h.as_f64();
                Law::SelfSimilar { places, power: libm::log(h) / libm::log(1.0 - h) }
            }
            zoned => Law::Zones(parts(&zones_of(zoned), places)?),
        };
        let scatter = scattered(distribution).then(|| {
            let mut rng = scatter_rng;
            Permutation::new(places, &mut rng)
        });
        Ok(Self { law, scatter, rng })
    }

    /// A place.
    #[inline]
    pub(super) fn draw(&mut self) -> u64 {
        let rank = match &self.law {
            Law::Uniform { places } => self.rng.below(*places),
            Law::Zipf(ranks) => ranks.draw(&mut self.rng),
            Law::SelfSimilar { places, power } => {
                let rank = *places as f64 * libm::pow(self.rng.unit_f64(), *power);
                // The product may round up to the whole.
                (rank as u64).min(places - 1)
            }
            Law::Zones(parts) => {
                let point = self.rng.below(Ratio::ONE.as_ppm());
                let found = parts.iter().find(|part| point < part.until_ppm);
                let part = found.unwrap_or(&parts[0]);
                part.first + self.rng.below(part.len)
            }
        };
        match &self.scatter {
            Some(permutation) => permutation.apply(rank),
            None => rank,
        }
    }
}

fn scattered(distribution: &Distribution) -> bool {
    match distribution {
        Distribution::Uniform => false,
        Distribution::Zipf(law) => law.scatter,
        Distribution::Pareto(law) => law.scatter,
        Distribution::SelfSimilar(law) => law.scatter,
        Distribution::HotCold(law) => law.scatter,
        Distribution::Zones(law) => law.scatter,
    }
}

/// The distribution as zones; empty if it is none of the zoned ones.
pub(super) fn zones_of(distribution: &Distribution) -> Vec<Zone> {
    let two = |space: Ratio, accesses: Ratio| {
        let rest =
            |share: Ratio| Ratio::from_ppm(Ratio::ONE.as_ppm().saturating_sub(share.as_ppm()));
        vec![Zone { space, accesses }, Zone { space: rest(space), accesses: rest(accesses) }]
    };
    match distribution {
        Distribution::Pareto(law) => {
            let others = Ratio::ONE.as_ppm().saturating_sub(law.h.as_ppm());
            two(law.h, Ratio::from_ppm(others))
        }
        Distribution::HotCold(law) => two(law.hot_share_of_space, law.hot_share_of_accesses),
        Distribution::Zones(law) => law.zones.clone(),
        Distribution::Uniform | Distribution::Zipf(_) | Distribution::SelfSimilar(_) => Vec::new(),
    }
}

/// Where the zones lie in a space of `places`.
fn parts(zones: &[Zone], places: u64) -> Result<Vec<Part>, EmptyPart> {
    let (mut space_ppm, mut until_ppm, mut first) = (0, 0, 0);
    let mut parts = Vec::with_capacity(zones.len());
    for (index, zone) in zones.iter().enumerate() {
        space_ppm += zone.space.as_ppm();
        until_ppm += zone.accesses.as_ppm();
        let end = Ratio::from_ppm(space_ppm).of(places);
        if zone.accesses != Ratio::ZERO {
            if end == first {
                return Err(EmptyPart { index });
            }
            parts.push(Part { first, len: end - first, until_ppm });
        }
        first = end;
    }
    Ok(parts)
}
