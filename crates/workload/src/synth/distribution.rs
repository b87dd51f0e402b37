//! Where random requests go: the distributions as a configuration writes them.
//!
//! A distribution is over the region's *places*: the multiples of the alignment at which even the
//! largest request still fits. "The first" places are those at the region's start.

use leyden_sim::Ratio;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where random requests go.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Everywhere alike.
    #[default]
    Uniform,
    /// `{ zipf = { theta = 0.99 } }`: the place of rank k is asked for in proportion to k^-theta
    /// (fio's `zipf:theta`, YCSB's zipfian).
    Zipf(Zipf),
    /// `{ pareto = { h = "20 %" } }`: the first h % of the space get (100 - h) % of the requests,
    /// the rest of the space the rest, uniformly within each: the micro-benchmark of Zombie
    /// Chasing (section 5.2.1).
    Pareto(Pareto),
    /// `{ self_similar = { h = "20 %" } }`: as `pareto`, but the same again within the first h %,
    /// and so on (Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994): fio's
    /// `pareto:h`.
    SelfSimilar(SelfSimilar),
    /// `{ hot_cold = { hot_share_of_space = "10 %", hot_share_of_accesses = "90 %" } }`: two
    /// uniform regions.
    HotCold(HotCold),
    /// `{ zones = { zones = [{ space = "5 %", accesses = "50 %" }, ...] } }`: consecutive parts
    /// of the space, each uniform; both columns sum to 100 % (fio's `zoned`).
    Zones(Zones),
}

/// Parameters of [`Distribution::Zipf`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zipf {
    /// The exponent, above 0; larger is more skewed.
    pub theta: f64,
    /// Spread the ranks over the space by a permutation drawn from the seed, so that hot places
    /// are not neighbours. Else the hottest place is the first.
    #[serde(default = "yes")]
    pub scatter: bool,
}

/// Parameters of [`Distribution::Pareto`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pareto {
    /// Share of the space that gets the remaining share of the requests; above 0 % and below
    /// 100 %. 50 % is uniform, less is more skewed.
    pub h: Ratio,
    /// Spread the hot places over the space, as for `zipf`.
    #[serde(default)]
    pub scatter: bool,
}

/// Parameters of [`Distribution::SelfSimilar`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelfSimilar {
    /// Share of the space that gets the remaining share of the requests; above 0 %, at most 50 %.
    pub h: Ratio,
    /// Spread the ranks over the space, as for `zipf`.
    #[serde(default = "yes")]
    pub scatter: bool,
}

/// Parameters of [`Distribution::HotCold`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotCold {
    /// Share of the space that is hot; above 0 % and below 100 %.
    pub hot_share_of_space: Ratio,
    /// Share of the requests that go there.
    pub hot_share_of_accesses: Ratio,
    /// Spread the hot places over the space, as for `zipf`.
    #[serde(default)]
    pub scatter: bool,
}

/// Parameters of [`Distribution::Zones`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zones {
    /// The parts, from the region's start.
    pub zones: Vec<Zone>,
    /// Spread the places over the space, as for `zipf`.
    #[serde(default)]
    pub scatter: bool,
}

/// A part of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Its share of the space.
    pub space: Ratio,
    /// Its share of the requests.
    pub accesses: Ratio,
}

fn yes() -> bool {
    true
}
