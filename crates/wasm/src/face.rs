//! The face: a question in, an answer out.

use leyden_buffer::schedule::ScheduleConfig;
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_power::DumpConfig;
use leyden_sim::{PolicyInfo, Span};

use crate::ask::{Answer, Ask, Policies, Policy};
use crate::session::Session;

/// One drive with its host, once it has been opened.
#[derive(Debug, Default)]
pub struct Face {
    session: Option<Box<Session>>,
}

impl Face {
    /// The answer to `question`, which should be JSON of an [`Ask`]. Whatever it is, there is an answer.
    pub fn ask(&mut self, question: &[u8]) -> String {
        let answer = serde_json::from_slice::<Ask>(question)
            .map_err(|error| format!("the question cannot be read: {error}"))
            .and_then(|ask| self.answer(ask))
            .unwrap_or_else(|problem| Answer::Error { problem });
        serde_json::to_string(&answer).expect("numbers and text")
    }

    fn answer(&mut self, ask: Ask) -> Result<Answer, String> {
        match ask {
            Ask::Policies {} => Ok(Answer::Policies(policies())),
            Ask::Open(open) => {
                // The old drive stays if the new one is refused.
                let (session, opened) = Session::open(&open)?;
                self.session = Some(Box::new(session));
                Ok(Answer::Opened(opened))
            }
            Ask::Jobs { jobs } => {
                let session = self.session()?;
                session.set_jobs(&jobs)?;
                Ok(session.advanced())
            }
            Ask::Advance { span_ns, commands_most } => {
                let session = self.session()?;
                session.advance(Span::from_ns(span_ns), commands_most)?;
                Ok(session.advanced())
            }
            Ask::Look {} => Ok(Answer::Sample(self.session()?.sample())),
            Ask::Cut {} => self.session()?.cut().map(Answer::Cut),
            Ask::Restore {} => self.session()?.restore().map(Answer::Restored),
        }
    }

    fn session(&mut self) -> Result<&mut Session, String> {
        let session = self.session.as_deref_mut();
        session.ok_or_else(|| "there is no drive: ask for `open` first".to_owned())
    }
}

fn policies() -> Policies {
    let listed = |policies: &[PolicyInfo]| {
        let policy = |it: &PolicyInfo| Policy { name: it.name, summary: sentence(it.doc) };
        policies.iter().map(policy).collect()
    };
    Policies {
        schedules: listed(ScheduleConfig::POLICIES),
        map_protections: listed(ProtectionConfig::POLICIES),
        dumps: listed(DumpConfig::POLICIES),
        victims: listed(VictimConfig::POLICIES),
    }
}

/// The first sentence of a doc comment.
fn sentence(doc: &[&str]) -> String {
    let text: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    let text = text.join(" ");
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].to_owned()
}
