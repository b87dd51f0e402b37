//! A campaign as the subject of pages: how far it is, how fast, what has failed, and what it has reached.
//!
//! **Invariants**
//! - Nothing changes by a page of a campaign.
//! - The campaign makes a snapshot a second, however many clients there are; what is kept of them has a bound.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use super::metrics::{self, Measured, Point, ServedKind, ServedMetric, count, one};
use super::page::Page;
use super::reply::{NOTHING_NEW, SILENCE, Status, event};
use super::request::{Method, Refusal, Request, refuse};
use super::subject::{PageSubject, Route};
use crate::clock::wall;
use crate::owner::Handle;

/// Between two snapshots.
const EVERY: Duration = Duration::from_secs(1);
/// Samples that are kept: five minutes.
const KEPT: usize = 300;
/// No sample is longer.
const SAMPLE_MOST: usize = 2 << 10;
/// Nor is the list of failures, nor that of the coverage.
const LIST_MOST: usize = 128 << 10;
/// Nor are the facts.
const FACTS_MOST: usize = 16 << 10;
/// Characters of a text of a failure that are shown.
const TEXT_MOST: usize = 2_000;
/// New samples that a client receives at once.
const NEW_MOST: usize = 30;
/// The time that is left is a guess before so much of it is known.
const SURE_AFTER: Duration = Duration::from_secs(2);

/// The facts about a campaign that do not change.
#[derive(Clone, Debug, Serialize)]
pub struct CampaignFacts {
    /// The command's name.
    pub kind: &'static str,
    /// The subject, for the title.
    pub title: String,
    /// The command that makes the same campaign.
    pub command: String,
    /// The cases that it tries, as "seeds".
    pub cases: &'static str,
}

/// A case that failed.
#[derive(Clone, Debug, Serialize)]
pub struct CampaignFailure {
    /// The case.
    pub case: String,
    /// The problem.
    pub said: String,
    /// The command that repeats it.
    pub command: String,
}

/// A snapshot of a campaign.
#[derive(Clone, Debug, Default)]
pub struct CampaignNews {
    /// The phase, if it has several.
    pub phase: &'static str,
    /// The share of the phase that is done.
    pub share: f64,
    /// Cases that were tried.
    pub tried: u64,
    /// Cases that failed.
    pub failed: u64,
    /// Further counts, which grow, each with its name.
    pub counts: Vec<(&'static str, u64)>,
    /// Failures: the first ones, or one of each kind.
    pub failures: Vec<CampaignFailure>,
    /// Points of the coverage, and how often each was reached.
    pub coverage: Vec<(String, u64)>,
}

/// A second of a campaign, as the page receives it.
#[derive(Debug, Serialize)]
struct Sample<'a> {
    up_s: f64,
    phase: &'a str,
    share: f64,
    left_s: Option<f64>,
    tried: u64,
    per_s: f64,
    failed: u64,
    /// Names, counts, and counts per second.
    counts: Vec<(&'a str, u64, f64)>,
    /// Points that were reached, and all of them.
    coverage: (usize, usize),
}

/// A campaign that can be watched. It is told the news, and clients are told by it.
#[derive(Debug)]
pub struct Campaign {
    facts: CampaignFacts,
    began: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    news: CampaignNews,
    at: Instant,
    /// The phase began then, with this share.
    phase_began: (Instant, f64),
    left_s: Option<f64>,
    samples: VecDeque<Arc<str>>,
    /// Samples that were ever taken.
    taken: u64,
    failures: Arc<str>,
    coverage: Arc<str>,
    is_over: bool,
}

/// The last events that a client has.
#[derive(Default)]
pub(crate) struct Position {
    taken: u64,
    lists: Option<[Arc<str>; 2]>,
}

impl Campaign {
    /// A campaign that begins now.
    pub fn new(facts: CampaignFacts) -> Arc<Self> {
        let began = wall();
        let state = State {
            news: CampaignNews::default(),
            at: began,
            phase_began: (began, 0.0),
            left_s: None,
            samples: VecDeque::new(),
            taken: 0,
            failures: "[]".into(),
            coverage: "[]".into(),
            is_over: false,
        };
        Arc::new(Self { facts, began, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// True once a second: then [`Campaign::tell`] wants a snapshot.
    pub fn is_due(&self) -> bool {
        let state = self.lock();
        state.taken == 0 || state.at.elapsed() >= EVERY
    }

    /// Takes a snapshot.
    pub fn tell(&self, news: CampaignNews) {
        self.tell_at(news, wall());
        self.changed.notify_all();
    }

    // Each change leaves the state whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_at(&self, news: CampaignNews, now: Instant) {
        let mut state = self.lock();
        if state.taken == 0 || news.phase != state.news.phase {
            state.phase_began = (now, news.share);
        }
        let (began, first) = state.phase_began;
        state.left_s = left_s(now.saturating_duration_since(began), first, news.share);
        let sample = self.sample(&state, &news, now);
        debug_assert!(sample.len() <= SAMPLE_MOST, "{sample}");
        if state.samples.len() == KEPT {
            state.samples.pop_front();
        }
        state.samples.push_back(sample.into());
        state.taken += 1;
        state.failures = list(news.failures.iter().map(CampaignFailure::bounded));
        state.coverage = list(news.coverage.iter());
        (state.news, state.at) = (news, now);
    }

    fn sample(&self, before: &State, news: &CampaignNews, now: Instant) -> String {
        let span_s = now.saturating_duration_since(before.at).as_secs_f64();
        // A campaign that goes on from a file begins with what was done before.
        let per_s = |count: u64, old: u64| {
            if before.taken == 0 {
                0.0
            } else {
                count.saturating_sub(old) as f64 / span_s.max(1e-3)
            }
        };
        let old =
            |name: &str| before.news.counts.iter().find(|it| it.0 == name).map_or(0, |it| it.1);
        let counts =
            news.counts.iter().map(|&(name, count)| (name, count, per_s(count, old(name))));
        let sample = Sample {
            up_s: now.saturating_duration_since(self.began).as_secs_f64(),
            phase: news.phase,
            share: news.share,
            left_s: before.left_s,
            tried: news.tried,
            per_s: per_s(news.tried, before.news.tried),
            failed: news.failed,
            counts: counts.collect(),
            coverage: (news.reached(), news.coverage.len()),
        };
        serde_json::to_string(&sample).unwrap_or_default()
    }
}

/// The time that is left of a phase that began with the share `first`, at its mean rate.
fn left_s(gone: Duration, first: f64, share: f64) -> Option<f64> {
    let is_sure = gone >= SURE_AFTER && share > first;
    is_sure.then(|| gone.as_secs_f64() * (1.0 - share).max(0.0) / (share - first))
}

/// As much of a list as has room, as JSON.
fn list<T: Serialize>(items: impl Iterator<Item = T>) -> Arc<str> {
    let mut text = "[".to_owned();
    for item in items {
        let item = serde_json::to_string(&item).unwrap_or_default();
        if text.len() + item.len() + 2 > LIST_MOST {
            break;
        }
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text.push(']');
    text.into()
}

impl CampaignFailure {
    fn bounded(&self) -> Self {
        let bounded = |text: &str| text.chars().take(TEXT_MOST).collect();
        Self {
            case: bounded(&self.case),
            said: bounded(&self.said),
            command: bounded(&self.command),
        }
    }
}

impl CampaignNews {
    /// Points of the coverage that were reached.
    fn reached(&self) -> usize {
        self.coverage.iter().filter(|it| it.1 > 0).count()
    }
}

/// A snapshot as metrics show it.
struct Snapshot {
    kind: &'static str,
    news: CampaignNews,
    up_s: f64,
    left_s: Option<f64>,
}

const fn metric(
    name: &'static str,
    kind: ServedKind,
    unit: &'static str,
    help: &'static str,
    points: fn(&Snapshot) -> Vec<Point>,
) -> Measured<Snapshot> {
    Measured { metric: ServedMetric { name, kind, unit, help, key: "" }, points }
}

use ServedKind::{Counter, Gauge, Info};

/// Metrics of campaigns, in the order of the text.
#[rustfmt::skip] // one metric a line, so that the list reads as a table
static METRICS: &[Measured<Snapshot>] = &[
    metric("leyden_campaign", Info, "", "The campaign: its command.", |it| vec![("kind", it.kind, 1.0)]),
    metric("leyden_campaign_tried", Counter, "", "Cases that were tried: seeds of torture, states of a crash test.", |it| count(it.news.tried)),
    metric("leyden_campaign_failures", Counter, "", "Cases that failed.", |it| count(it.news.failed)),
    metric("leyden_campaign_events", Counter, "", "Further counts of the campaign, by name.", |it| it.news.counts.iter().map(|it| ("event", it.0, it.1 as f64)).collect()),
    metric("leyden_campaign_phase", Gauge, "", "1 for the phase that the campaign is in.", |it| if it.news.phase.is_empty() { Vec::new() } else { vec![("phase", it.news.phase, 1.0)] }),
    metric("leyden_campaign_done_ratio", Gauge, "ratio", "Share of the phase that is done.", |it| one(it.news.share)),
    metric("leyden_campaign_up_seconds", Gauge, "seconds", "Time since the campaign began.", |it| one(it.up_s)),
    metric("leyden_campaign_left_seconds", Gauge, "seconds", "Time until the phase ends, at its mean rate.", |it| it.left_s.map_or_else(Vec::new, one)),
    metric("leyden_campaign_coverage_points", Gauge, "points", "Points of the coverage, by whether they were reached.", |it| {
        let (all, reached) = (it.news.coverage.len(), it.news.reached());
        if all == 0 { Vec::new() } else { vec![("state", "reached", reached as f64), ("state", "missed", (all - reached) as f64)] }
    }),
];

/// Metrics of campaigns, in the order of the text.
pub fn campaign_metrics() -> impl Iterator<Item = &'static ServedMetric> {
    METRICS.iter().map(|it| &it.metric)
}

impl PageSubject for Campaign {
    type Change = Infallible;
    type Position = Position;

    const ANSWER_MOST: usize = 0;
    const PAGE: Page = Page {
        what: "campaign",
        tools: "",
        main: include_str!("../../assets/campaign.html"),
        script: include_str!("../../assets/campaign.js"),
    };

    fn route(&self, path: &str, request: &Request) -> Result<Route<Infallible>, Refusal> {
        match (path, request.method) {
            ("/events", Method::Get) => Ok(Route::Follow(0)),
            ("/events", _) => refuse(Status::MethodNotAllowed, "send GET"),
            _ => refuse(Status::NotFound, "there is only /, /metrics and /events"),
        }
    }

    fn wait(&self, _: usize, position: &Position) -> bool {
        let waits = |state: &mut State| {
            !state.is_over && state.taken == position.taken && position.lists.is_some()
        };
        let waited = self.changed.wait_timeout_while(self.lock(), SILENCE, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_over
    }

    fn events_most(is_first: bool) -> usize {
        FACTS_MOST + 2 * LIST_MOST + SAMPLE_MOST * if is_first { KEPT } else { NEW_MOST }
    }

    fn events(&self, _: usize, position: &mut Position) -> String {
        let mut text = String::new();
        let state = self.lock();
        let most = if position.lists.is_none() { KEPT } else { NEW_MOST };
        let new = state.samples.len().min((state.taken - position.taken) as usize).min(most);
        let samples: Vec<_> =
            state.samples.range(state.samples.len() - new..).map(Arc::clone).collect();
        let lists = [&state.failures, &state.coverage].map(Arc::clone);
        position.taken = state.taken;
        drop(state);
        let known = position.lists.replace(lists.clone());
        if known.is_none() {
            event(&mut text, "about", &json!(self.facts).to_string());
        }
        for (name, at) in [("failures", 0), ("coverage", 1)] {
            if known.as_ref().is_none_or(|known| known[at] != lists[at]) {
                event(&mut text, name, &lists[at]);
            }
        }
        for sample in &samples {
            event(&mut text, "sample", sample);
        }
        if text.is_empty() { NOTHING_NEW.to_owned() } else { text }
    }

    fn metrics_most(&self) -> usize {
        metrics::PART_MOST
    }

    fn metrics(&self) -> String {
        let state = self.lock();
        let up_s = self.began.elapsed().as_secs_f64();
        let (kind, news, left_s) = (self.facts.kind, state.news.clone(), state.left_s);
        drop(state);
        let snapshot = Snapshot { kind, news, up_s, left_s };
        let mut text = String::new();
        for Measured { metric, points } in METRICS {
            metrics::describe(&mut text, metric);
            for point in points(&snapshot) {
                metrics::value(&mut text, metric, "", point);
            }
        }
        text + metrics::END
    }

    fn change(&self, _: &[Handle], change: Infallible, _: &str) -> (Status, String) {
        match change {}
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign() -> Arc<Campaign> {
        let (title, command) = ("drives".to_owned(), "leyden torture".to_owned());
        Campaign::new(CampaignFacts { kind: "torture", title, command, cases: "seeds" })
    }

    fn news(tried: u64, share: f64) -> CampaignNews {
        let counts = vec![("power cuts", 10 * tried)];
        let coverage = vec![("idle".to_owned(), tried), ("never".to_owned(), 0)];
        CampaignNews { share, tried, counts, coverage, ..CampaignNews::default() }
    }

    fn last(campaign: &Campaign) -> serde_json::Value {
        serde_json::from_str(campaign.lock().samples.back().unwrap()).unwrap()
    }

    #[test]
    fn rates_are_of_the_last_snapshot_and_the_time_left_of_the_phase() {
        let campaign = campaign();
        assert!(campaign.is_due());
        let after = |s| campaign.began + Duration::from_secs(s);
        campaign.tell_at(news(1_000, 0.1), after(1)); // of which 900 were done before
        assert!(!campaign.is_due() || campaign.lock().at.elapsed() >= EVERY);
        assert_eq!(last(&campaign)["per_s"], 0.0);
        campaign.tell_at(news(1_100, 0.2), after(5));
        campaign.tell_at(news(1_300, 0.3), after(9));
        let sample = last(&campaign);
        assert_eq!((&sample["per_s"], &sample["coverage"]), (&50.0.into(), &json!([1, 2])));
        assert_eq!(sample["counts"], json!([["power cuts", 13_000, 500.0]]));
        assert_eq!(sample["left_s"], 28.0, "0.2 in 8 s, and 0.7 to go");
        campaign.tell_at(CampaignNews { phase: "why", ..news(1_300, 0.0) }, after(10));
        assert_eq!(last(&campaign)["left_s"], json!(null), "a new phase says nothing yet");
    }

    #[test]
    fn what_is_kept_and_sent_is_bounded() {
        let campaign = campaign();
        let long = "\"".repeat(10_000);
        let failure =
            CampaignFailure { case: long.clone(), said: long.clone(), command: long.clone() };
        let all = CampaignNews {
            failures: vec![failure; 1_000],
            coverage: (0..20_000).map(|number| (format!("{number} {}", &long[..100]), 1)).collect(),
            ..news(1, 0.5)
        };
        for s in 0..400 {
            campaign.tell_at(all.clone(), campaign.began + Duration::from_secs(s));
        }
        let mut position = Position::default();
        let text = campaign.events(0, &mut position);
        assert!(text.len() <= Campaign::events_most(true), "{}", text.len());
        assert_eq!(text.matches("event: sample\n").count(), KEPT);
        assert_eq!(campaign.events(0, &mut position), NOTHING_NEW);
        campaign.tell_at(all, campaign.began + Duration::from_secs(500));
        let text = campaign.events(0, &mut position);
        assert_eq!(
            (text.matches("event: sample\n").count(), text.matches("event: ").count()),
            (1, 1)
        );
        assert!(campaign.metrics().len() <= campaign.metrics_most());
    }
}
