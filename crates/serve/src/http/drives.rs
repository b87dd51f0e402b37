//! Served drives as the subject of pages: their paths, and their switch.

use super::metrics;
use super::page::Page;
use super::reply::Status;
use super::request::{Method, Refusal, Request, refuse};
use super::subject::{PageSubject, Route};
use super::watch::{EVENTS_MOST, NEWS_MOST, Position, Watch};
use crate::owner::Handle;
use crate::switch;

/// Bytes of the answer to the switch: lost ranges are many in the worst case, and their report is kept short.
const ANSWER_MOST: usize = 64 << 10;
/// Lost ranges in such an answer.
const RANGES_MOST: usize = 512;

/// A drive, and the question to its switch.
type Throw = (usize, switch::Ask);

impl PageSubject for Watch {
    type Change = Throw;
    type Position = Position;

    const ANSWER_MOST: usize = ANSWER_MOST;
    const PAGE: Page = Page {
        what: "served drive",
        tools: "<label id=\"drives\" hidden>Drive <select id=\"drive\"></select></label>",
        main: include_str!("../../assets/watch.html"),
        script: include_str!("../../assets/watch.js"),
    };

    fn route(&self, path: &str, request: &Request) -> Result<Route<Throw>, Refusal> {
        let Some(of_drive) = path.strip_prefix("/drives/") else {
            return refuse(Status::NotFound, "there is only /, /metrics and /drives/N");
        };
        let (number, rest) = of_drive.split_once('/').unwrap_or((of_drive, ""));
        let drive = number.parse().ok().filter(|&number| number < self.names.len());
        let Some(drive) = drive else { return refuse(Status::NotFound, "there is no such drive") };
        match (rest, request.method) {
            ("events", Method::Get) => Ok(Route::Follow(drive)),
            ("", Method::Post) => Ok(Route::Change((drive, question(&request.body)?))),
            ("events" | "", _) => {
                refuse(Status::MethodNotAllowed, "GET /drives/N/events, or POST /drives/N")
            }
            _ => refuse(Status::NotFound, "there is only /drives/N and /drives/N/events"),
        }
    }

    fn wait(&self, source: usize, position: &Position) -> bool {
        self.wait_for(source, position)
    }

    fn events_most(is_first: bool) -> usize {
        if is_first { EVENTS_MOST } else { NEWS_MOST }
    }

    fn events(&self, source: usize, position: &mut Position) -> String {
        self.events_since(source, position)
    }

    fn metrics_most(&self) -> usize {
        (1 + self.names.len()) * metrics::PART_MOST
    }

    fn metrics(&self) -> String {
        metrics::text(&self.names, &self.readings())
    }

    /// Throws a drive's switch, and answers as the control socket does.
    fn change(&self, drives: &[Handle], (drive, ask): Throw, peer: &str) -> (Status, String) {
        let name = &self.names[drive];
        tracing::info!(peer, drive = name, ?ask, "the switch is thrown from a page");
        let mut answer = drives[drive].control(ask);
        if let Some(switch::Answer::Cut(report)) = &mut answer {
            report.lost.truncate(RANGES_MOST);
            report.uncertain.truncate(RANGES_MOST);
        }
        self.look_now();
        let status = match answer {
            None => Status::Unavailable,
            Some(switch::Answer::Refused { .. }) => Status::Conflict,
            Some(_) => Status::Ok,
        };
        let why = || switch::Answer::Refused { why: "the drive is gone".to_owned() };
        (status, serde_json::to_string(&answer.unwrap_or_else(why)).unwrap_or_default())
    }

    fn end(&self) {
        self.stop();
    }
}

/// The question to the switch: a line as on the control socket, but a cut or a restore only.
fn question(body: &[u8]) -> Result<switch::Ask, Refusal> {
    match serde_json::from_slice(body) {
        Ok(ask @ (switch::Ask::Cut | switch::Ask::Restore { .. })) => Ok(ask),
        Ok(_) => refuse(
            Status::Forbidden,
            "a page may cut and restore; the rest is for the control socket",
        ),
        Err(_) => refuse(Status::BadRequest, "send {\"ask\":\"cut\"} or {\"ask\":\"restore\"}"),
    }
}
