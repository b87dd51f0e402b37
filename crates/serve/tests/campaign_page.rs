//! A campaign as browsers and Prometheus find it: news that are known before, and nothing that changes anything.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use leyden_serve::{
    Campaign, CampaignFacts, CampaignFailure, CampaignNews, Http, HttpOptions, Listen,
};
use serde_json::{Value, json};

fn campaign() -> (Arc<Campaign>, Http) {
    let (title, command) = ("Torture of drives".to_owned(), "leyden torture".to_owned());
    let campaign = Campaign::new(CampaignFacts { kind: "torture", title, command, cases: "seeds" });
    let options = HttpOptions { listen: Listen::Tcp("127.0.0.1:0".to_owned()), token: None };
    let http = Http::of_campaign(Arc::clone(&campaign), &options).unwrap();
    (campaign, http)
}

fn news(tried: u64) -> CampaignNews {
    let failure = CampaignFailure {
        case: "seed 7".to_owned(),
        said: "<b>unit 3</b> is older than promised".to_owned(),
        command: "leyden torture --seed 7".to_owned(),
    };
    CampaignNews {
        phase: "adversarial",
        share: 0.25,
        tried,
        failed: 1,
        counts: vec![("power cuts", 60 * tried)],
        failures: vec![failure],
        coverage: vec![("cut: idle".to_owned(), tried), ("cut: in a dump".to_owned(), 0)],
    }
}

fn connect(http: &Http, request: &str) -> TcpStream {
    let url = http.url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nHost: {at}\r\nContent-Length: 0\r\n\r\n").unwrap();
    stream
}

fn ask(http: &Http, request: &str) -> String {
    let mut reply = String::new();
    connect(http, request).read_to_string(&mut reply).unwrap();
    reply
}

/// The next event of a stream: its name and its data.
fn next(stream: &mut impl BufRead) -> (String, Value) {
    let mut name = String::new();
    for line in stream.lines() {
        let line = line.unwrap();
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(data).unwrap());
        }
    }
    panic!("the stream has ended");
}

#[test]
fn metrics_are_those_of_the_last_snapshot() {
    let (campaign, http) = campaign();
    campaign.tell(news(40));
    campaign.tell(news(100));
    let text = ask(&http, "GET /metrics");
    for line in [
        "leyden_campaign_info{kind=\"torture\"} 1",
        "leyden_campaign_tried_total 100",
        "leyden_campaign_failures_total 1",
        "leyden_campaign_events_total{event=\"power cuts\"} 6000",
        "leyden_campaign_phase{phase=\"adversarial\"} 1",
        "leyden_campaign_done_ratio 0.25",
        "leyden_campaign_coverage_points{state=\"reached\"} 1",
        "leyden_campaign_coverage_points{state=\"missed\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n") && text.contains("application/openmetrics-text"), "{text}");
}

#[test]
fn events_come_as_the_campaign_tells_them_and_end_with_its_page() {
    let (campaign, http) = campaign();
    campaign.tell(news(40));
    let mut stream = BufReader::new(connect(&http, "GET /events"));
    let (name, about) = next(&mut stream);
    assert_eq!((name.as_str(), &about["title"]), ("about", &"Torture of drives".into()));
    let (name, failures) = next(&mut stream);
    assert_eq!(name, "failures");
    assert_eq!(failures[0]["command"], "leyden torture --seed 7");
    let (name, coverage) = next(&mut stream);
    assert_eq!(
        (name.as_str(), coverage),
        ("coverage", json!([["cut: idle", 40], ["cut: in a dump", 0]]))
    );
    let (name, sample) = next(&mut stream);
    assert_eq!((name.as_str(), &sample["tried"]), ("sample", &40.into()));
    campaign.tell(news(41));
    assert_eq!(next(&mut stream).0, "coverage");
    let (name, sample) = next(&mut stream);
    assert_eq!((name.as_str(), &sample["tried"]), ("sample", &41.into()));
    assert_eq!(sample["counts"][0][1], 2_460);
    drop(http);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("event:"), "{rest}");
}

#[test]
fn the_page_has_no_switch_and_nothing_changes_by_it() {
    let (_campaign, http) = campaign();
    let page = ask(&http, "GET /");
    assert!(page.contains("<title>Leyden: campaign</title>"), "{}", &page[..2_000]);
    assert!(!page.contains("id=\"cut\"") && !page.contains("id=\"token\""));
    for mark in ["@main@", "@frame@", "@tools@", "@kind@", "@script@"] {
        assert!(!page.contains(mark), "{mark}");
    }
    for (request, status) in [
        ("POST /", "405"),
        ("POST /events", "405"),
        ("POST /drives/0", "404"),
        ("GET /drives/0/events", "404"),
        ("HEAD /metrics", "200"),
    ] {
        let reply = ask(&http, request);
        assert_eq!(reply.split(' ').nth(1), Some(status), "{request}: {reply}");
    }
    // The Host of another site is refused, as at a drive's page.
    let url = http.url();
    let at = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 421 "), "{reply}");
}
