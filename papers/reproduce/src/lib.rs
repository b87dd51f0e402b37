//! The papers' claims, measured on our drive.
//!
//! **What lives here**: the claims ([`ClaimsFile`]), which runs each needs and how it becomes a figure
//! ([`Measure`]), making the runs on several threads and keeping them ([`Runner`], [`Cache`]),
//! the verdicts ([`ClaimResult`]), and the page with the papers' figures ([`render_reproduction`]). **What doesn't**: policies, which know nothing
//! of claims.
//!
//! **Invariants**: nothing of a run serves one claim alone: every claim is measured on cells of its
//! paper's matrix ([`hexa::cells`], [`zombie::cells`], [`selective::cells`],
//! [`journal::cells`]) or on the paper's worked example; a claim that
//! could not be measured says why.

mod cache;
mod figures;
mod file;
mod footprint;
pub mod frontier;
pub mod hexa;
pub mod journal;
mod measure;
mod page;
mod runner;
pub mod selective;
mod spec;
mod verdict;
pub mod zombie;

use std::collections::BTreeSet;

pub use cache::{Cache, Found, digest_of};
pub use file::{Claim, ClaimsError, ClaimsFile, Value};
pub use footprint::{WorkloadFacts, WorkloadRow, workload_facts, workload_rows};
pub use hexa::{Cell, Scale};
pub use measure::{Fold, Group, Measure, Quantity};
pub use page::{
    Finished, FinishedDatabase, FinishedStore, FinishedZombie, Reproduction, render_reproduction,
};
pub use runner::{Runner, Step};
pub use spec::{Results, RunSpec};
pub use verdict::{ClaimResult, ClaimResults, Spread, Verdict};

use leyden_config::nearest;

/// A paper whose claims are on file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its name on the command line and in `docs/papers`.
    pub name: &'static str,
    /// The prefixes of its claims' ids.
    prefixes: &'static [&'static str],
}

/// Every paper, in the order of the claims file.
pub const PAPERS: [Paper; 5] = [
    Paper { name: "hexa", prefixes: &["hexa.", "fifo."] },
    Paper { name: "dawid", prefixes: &["dawid."] },
    Paper { name: "selective-plp", prefixes: &["selective_plp."] },
    Paper { name: "journal-zones", prefixes: &["journal_zones."] },
    Paper { name: "zombie-chasing", prefixes: &["zombie."] },
];

impl Paper {
    /// No paper: the frontier of designs ([`frontier`]), which is asked for like one and makes no claims.
    pub const FRONTIER: Self = Self { name: "frontier", prefixes: &[] };

    /// The paper called `name`, or whose name begins with that word, or [`Paper::FRONTIER`].
    pub fn by_name(name: &str) -> Option<Self> {
        let begins = |paper: &Self| {
            paper
                .name
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        PAPERS.into_iter().chain([Self::FRONTIER]).find(begins)
    }

    /// Whether `claim` is this paper's.
    pub fn makes(&self, claim: &Claim) -> bool {
        self.is_paper_of(&claim.id)
    }

    fn is_paper_of(&self, id: &str) -> bool {
        self.prefixes.iter().any(|prefix| id.starts_with(prefix))
    }

    /// Whether Hexa's and Dawid's figures are drawn with it: they share theirs.
    pub fn is_of_protection(&self) -> bool {
        matches!(self.name, "hexa" | "dawid")
    }

    /// Whether Selective-PLP's figures are drawn with it.
    pub fn is_of_stores(&self) -> bool {
        self.name == "selective-plp"
    }

    /// Whether Zombie Chasing's figures are drawn with it.
    pub fn is_of_zombies(&self) -> bool {
        self.name == "zombie-chasing"
    }
}

/// The claims that are asked for: those of `papers` (all of them if empty), or those in `only` if
/// that names any.
pub fn select(claims: &[Claim], papers: &[Paper], only: &[String]) -> Result<Vec<Claim>, String> {
    for id in only {
        if !claims.iter().any(|claim| claim.id == *id) {
            let known = claims.iter().map(|claim| claim.id.as_str());
            let help = match nearest(id, known) {
                Some(near) => format!("there is `{near}`"),
                None => "`leyden reproduce --list` names all".to_owned(),
            };
            return Err(format!("there is no claim `{id}`\n  help: {help}"));
        }
    }
    let of_paper = |claim: &Claim| papers.is_empty() || papers.iter().any(|p| p.makes(claim));
    let selected: Vec<Claim> = claims
        .iter()
        .filter(|claim| of_paper(claim) && (only.is_empty() || only.contains(&claim.id)))
        .cloned()
        .collect();
    if selected.is_empty() {
        return Err("none of these claims is of these papers\n  help: leave out the papers".into());
    }
    Ok(selected)
}

/// How to measure the claim `id`, if this version can.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    hexa::measure(id, scale)
        .or_else(|| zombie::measure(id, scale))
        .or_else(|| selective::measure(id, scale))
        .or_else(|| journal::measure(id, scale))
}

/// Every run that `claims` need with so many seeds.
pub fn needs(claims: &[Claim], scale: Scale, seeds: u16) -> BTreeSet<RunSpec> {
    let measures = claims.iter().filter_map(|claim| measure(&claim.id, scale));
    measures
        .flat_map(|measure| (0..seeds).flat_map(move |n| measure.replicate(n).needs()))
        .collect()
}

/// Every claim beside what was measured with so many seeds.
pub fn judge(claims: &[Claim], results: &Results, scale: Scale, seeds: u16) -> ClaimResults {
    let one = |claim: &Claim| {
        let Some(measure) = measure(&claim.id, scale) else {
            let note = "this version of Leyden cannot measure it";
            return ClaimResult::not_run(claim, note.to_owned());
        };
        match measure.over_seeds(results, seeds) {
            Err(why) => ClaimResult::not_run(claim, why),
            Ok((value, spread, mut note)) => {
                if scale == Scale::Quick && !measure.is_worked_example() {
                    note.push_str(" (quick: a smaller drive and fewer requests)");
                }
                let mut result = ClaimResult { spread, ..ClaimResult::judged(claim, value, note) };
                let reason = zombie::reason(&claim.id)
                    .or_else(|| selective::reason(&claim.id))
                    .or_else(|| journal::reason(&claim.id));
                if let (Verdict::Differs, Some(reason)) = (result.verdict, reason) {
                    result.note = format!("{reason}. {}", result.note);
                }
                result
            }
        }
    };
    ClaimResults { claims: claims.iter().map(one).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_of_one_paper_and_is_measured() {
        for claim in ClaimsFile::bundled().unwrap().claims {
            let papers = PAPERS.into_iter().filter(|paper| paper.makes(&claim)).count();
            assert_eq!(papers, 1, "{}", claim.id);
            assert!(measure(&claim.id, Scale::Full).is_some(), "{}", claim.id);
        }
        assert!(measure("hexa.unheard_of", Scale::Full).is_none());
    }

    #[test]
    fn claims_are_selected_by_paper_and_by_name() {
        let claims = ClaimsFile::bundled().unwrap().claims;
        let ids = |papers: &[&str], only: &[&str]| {
            let papers: Vec<Paper> = papers.iter().filter_map(|p| Paper::by_name(p)).collect();
            let only: Vec<String> = only.iter().map(|id| (*id).to_owned()).collect();
            select(&claims, &papers, &only).map(|claims| claims.len())
        };
        assert_eq!(ids(&[], &[]), Ok(32));
        assert_eq!(ids(&["hexa"], &[]), Ok(7));
        assert_eq!(ids(&["hexa", "dawid"], &[]), Ok(11));
        assert_eq!(ids(&[], &["dawid.iops_vs_fifo.10pct"]), Ok(1));
        let error = ids(&[], &["dawid.iops_vs_fif.10pct"]).unwrap_err();
        assert!(error.contains("there is `dawid.iops_vs_fifo.10pct`"), "{error}");
        assert!(ids(&["hexa"], &["dawid.iops_vs_fifo.10pct"]).is_err());
    }

    #[test]
    fn every_seed_of_a_claim_is_a_run_of_its_own() {
        let claims = ClaimsFile::bundled().unwrap().claims;
        let measured = claims.iter().filter_map(|claim| measure(&claim.id, Scale::Full));
        let (mut random, mut exact) = (BTreeSet::new(), BTreeSet::new());
        for measure in measured {
            let runs = if measure.is_worked_example() { &mut exact } else { &mut random };
            runs.extend(measure.needs());
        }
        assert_eq!(needs(&claims, Scale::Full, 3).len(), 3 * random.len() + exact.len());
        for spec in &random {
            let seed = spec.load().unwrap().scenario.seed;
            assert_ne!(spec.replicate(1).load().unwrap().scenario.seed, seed);
            let is_named = spec.sets.iter().any(|set| set.starts_with("seed="));
            assert!(is_named || seed == 1, "{}: replicates count from 1 on", spec.command());
        }
    }

    #[test]
    fn claims_without_a_run_say_why() {
        let claims = ClaimsFile::bundled().unwrap().claims;
        let judged = judge(&claims, &Results::default(), Scale::Full, 1).claims;
        assert!(judged.iter().all(|result| result.verdict == Verdict::NotRun));
        assert!(judged[0].note.contains("leyden run hexa/figure1"), "{}", judged[0].note);
        let unheard_of = Claim { id: "hexa.unheard_of".to_owned(), ..claims[0].clone() };
        let judged = judge(&[unheard_of], &Results::default(), Scale::Full, 1).claims;
        assert!(judged[0].note.contains("cannot"), "{}", judged[0].note);
    }
}
