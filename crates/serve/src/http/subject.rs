//! The interface between the server and its subject: served drives ([`super::drives`]) or a campaign ([`super::campaign`]).

use super::page::Page;
use super::reply::Status;
use super::request::{Method, Refusal, Request, refuse};
use crate::owner::Handle;

/// The aim of a request; `C` is a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route<C> {
    Page,
    Metrics,
    /// The events of a source.
    Follow(usize),
    Change(C),
}

/// A subject of pages: events for those that follow it, metrics, and the changes that a page may ask for.
pub(crate) trait PageSubject: Send + Sync + 'static {
    /// A change, which takes the token.
    type Change: Copy + Send + 'static;
    /// The last events that a client has.
    type Position: Default;

    /// Bytes of the answer to a change, at most.
    const ANSWER_MOST: usize;
    const PAGE: Page;

    /// The aim of a request for none of the paths that every subject has.
    fn route(&self, path: &str, request: &Request) -> Result<Route<Self::Change>, Refusal>;
    /// Waits until a client at `position` can be told something; false if there will be nothing more.
    fn wait(&self, source: usize, position: &Self::Position) -> bool;
    /// Bytes of the events of one call, at most.
    fn events_most(is_first: bool) -> usize;
    /// The events that a client at `position` has not got; a comment if there are none.
    fn events(&self, source: usize, position: &mut Self::Position) -> String;
    /// Bytes of the metrics, at most.
    fn metrics_most(&self) -> usize;
    /// The metrics as OpenMetrics.
    fn metrics(&self) -> String;
    /// Makes a change for a client at `peer`, and answers in JSON.
    fn change(&self, drives: &[Handle], change: Self::Change, peer: &str) -> (Status, String);
    /// Ends the connections of all who follow it.
    fn end(&self);
}

/// The aim of a request.
pub(super) fn route<S: PageSubject>(
    subject: &S,
    request: &Request,
) -> Result<Route<S::Change>, Refusal> {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        "/" | "/metrics" if request.method == Method::Post => {
            refuse(Status::MethodNotAllowed, "send GET")
        }
        "/" => Ok(Route::Page),
        "/metrics" => Ok(Route::Metrics),
        _ => subject.route(path, request),
    }
}
