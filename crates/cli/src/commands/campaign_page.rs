//! The page of a campaign, while it runs: `--http` of `torture` and `crashtest`.

use std::io::Write;
use std::sync::Arc;

use leyden_serve::{Campaign, CampaignFacts, CampaignNews, Http, HttpError, HttpOptions, Listen};

use crate::failure::Failure;

/// Failures that the page lists.
pub(super) const FAILURES_MOST: usize = 50;

/// A page that is there until this is dropped; or none.
pub(super) struct CampaignPage(Option<(Arc<Campaign>, Http)>);

impl CampaignPage {
    /// Begins to listen, and says where.
    pub(super) fn start(listen: Option<&Listen>, facts: CampaignFacts) -> Result<Self, Failure> {
        let Some(listen) = listen else { return Ok(Self(None)) };
        if listen.is_beyond_this_machine() {
            super::warn(&format!(
                "{listen} shows the campaign to other machines, unencrypted; \
                 `ssh -L 7070:localhost:7070 HOST` reaches a page at the loopback interface"
            ));
        }
        let campaign = Campaign::new(facts);
        let options = HttpOptions { listen: listen.clone(), token: None };
        let http = Http::of_campaign(Arc::clone(&campaign), &options).map_err(failure)?;
        writeln!(anstream::stderr().lock(), "page at {}", http.url())?;
        Ok(Self(Some((campaign, http))))
    }

    /// Shows the news, if there is a page and the last ones are a second old.
    pub(super) fn tell(&self, news: impl FnOnce() -> CampaignNews) {
        if let Some((campaign, _)) = self.0.as_ref().filter(|(campaign, _)| campaign.is_due()) {
            campaign.tell(news());
        }
    }
}

fn failure(error: HttpError) -> Failure {
    Failure::io(error)
}
