//! The page of a campaign while it runs.

use leyden_serve::{CampaignFacts, CampaignFailure, CampaignNews, Listen};
use leyden_torture::campaign::{Campaign, Failed, Progress};

use super::{command_of, command_of_all};
use crate::commands::campaign_page::{CampaignPage, FAILURES_MOST};
use crate::failure::Failure;

pub(super) fn page(listen: Option<&Listen>, campaign: &Campaign) -> Result<CampaignPage, Failure> {
    let title = format!("Torture of {} drives", campaign.subject.name());
    let command = command_of_all(campaign);
    CampaignPage::start(listen, CampaignFacts { kind: "torture", title, command, cases: "seeds" })
}

/// The campaign as the page shows it.
pub(super) fn news(campaign: &Campaign, progress: &Progress<'_>) -> CampaignNews {
    let failure = |Failed { seed, failure }: &Failed| CampaignFailure {
        case: format!("seed {seed}, after {} cuts", failure.cuts),
        said: failure.message.clone(),
        command: command_of(campaign, *seed),
    };
    CampaignNews {
        phase: "",
        share: progress.done as f64 / progress.seeds as f64,
        tried: progress.done,
        failed: progress.failed.len() as u64,
        counts: vec![("power cuts", progress.cuts), ("commands", progress.tally.commands)],
        failures: progress.failed.iter().take(FAILURES_MOST).map(failure).collect(),
        coverage: progress.coverage.all(campaign.subject.names()).collect(),
    }
}
