//! The page of a crash test while it runs.

use leyden_config::quote;
use leyden_crashtest::{Model, Session, TrialProgress, Verdict};
use leyden_serve::{CampaignFacts, CampaignFailure, CampaignNews};

use crate::args::crashtest::RunOptions;
use crate::commands::campaign_page::{CampaignPage, FAILURES_MOST};
use crate::failure::Failure;

/// The states so far, as the page shows them.
pub(super) struct Watched<'a> {
    page: CampaignPage,
    folder: String,
    options: &'a RunOptions,
    tried: u64,
    failed: u64,
    /// States by verdict. A drive that lies is the control: what breaks there is expected.
    counts: Vec<(&'static str, u64)>,
    groups: Vec<Group>,
}

/// States that broke in the same way.
struct Group {
    model: Model,
    verdict: Verdict,
    cause: String,
    count: u64,
    /// The least number of such a state.
    first: usize,
    /// The check's words about that one.
    said: String,
}

impl<'a> Watched<'a> {
    pub(super) fn start(session: &Session, options: &'a RunOptions) -> Result<Self, Failure> {
        let folder = quote(&session.folder().to_string_lossy());
        let name = session.folder().file_name().unwrap_or_default().to_string_lossy();
        let models: Vec<&str> = options.model.iter().map(|&it| Model::from(it).name()).collect();
        let command = command(&folder, options, &models.join(","), options.states);
        let title = format!("Crash test of {name}");
        let facts = CampaignFacts { kind: "crashtest", title, command, cases: "states" };
        let page = CampaignPage::start(options.http.as_ref(), facts)?;
        let (counts, groups) = (Vec::new(), Vec::new());
        Ok(Self { page, folder, options, tried: 0, failed: 0, counts, groups })
    }

    /// Takes a state that was tried.
    pub(super) fn take(&mut self, told: &TrialProgress<'_>) {
        self.tried += 1;
        let verdict = told.outcome.verdict;
        let name = match (told.model, verdict.is_broken()) {
            (Model::Lying, true) => "broken on a drive that lies",
            _ => verdict.name(),
        };
        match self.counts.iter_mut().find(|it| it.0 == name) {
            Some(it) => it.1 += 1,
            None => self.counts.push((name, 1)),
        }
        if verdict.is_broken() && told.model != Model::Lying {
            self.failed += 1;
            self.group(told);
        }
        self.page.tell(|| CampaignNews {
            phase: told.model.name(),
            share: told.share.min(1.0),
            tried: self.tried,
            failed: self.failed,
            counts: self.counts.clone(),
            failures: self.groups.iter().map(|group| self.failure(group)).collect(),
            coverage: Vec::new(),
        });
    }

    fn group(&mut self, told: &TrialProgress<'_>) {
        let (model, verdict, cause) = (told.model, told.outcome.verdict, told.outcome.cause());
        let said = || told.outcome.said.clone();
        let is_same =
            |it: &&mut Group| it.model == model && it.verdict == verdict && it.cause == cause;
        let has_room = self.groups.len() < FAILURES_MOST;
        match self.groups.iter_mut().find(is_same) {
            Some(group) => {
                group.count += 1;
                if told.number < group.first {
                    (group.first, group.said) = (told.number, said());
                }
            }
            None if has_room => {
                let (count, first, said) = (1, told.number, said());
                self.groups.push(Group { model, verdict, cause, count, first, said });
            }
            None => {} // it is counted as a failure all the same
        }
    }

    fn failure(&self, group: &Group) -> CampaignFailure {
        let Group { model, verdict, count, first, .. } = group;
        // States of the recorded drive are spread over the run by how many there are.
        let states = if *model == Model::Realistic { self.options.states } else { *first as u64 };
        CampaignFailure {
            case: format!("{} state {first}, {}, {count} like it", model.name(), verdict.name()),
            said: group.said.clone(),
            command: command(&self.folder, self.options, model.name(), states),
        }
    }
}

/// The command that tries so many states of `models`. The model `recovery` tries those of `adversarial` before.
fn command(folder: &str, options: &RunOptions, models: &str, states: u64) -> String {
    let model = if models == Model::Recovery.name() { Model::Adversarial.name() } else { models };
    let mut command = format!(
        "leyden crashtest run {folder} --model {model} --seed {} --states {states}",
        options.common.seed
    );
    let numbers = [
        ("--again", (options.again > 0).then(|| options.again.into())),
        ("--capacitance-uf", options.capacitance_uf),
        ("--atom", options.common.atom.map(u64::from)),
    ];
    for (name, value) in numbers {
        command.extend(value.map(|value| format!(" {name} {value}")));
    }
    for (name, is_given) in
        [("--try-all", options.try_all), ("--extract", options.common.ground.extract)]
    {
        command.extend(is_given.then(|| format!(" {name}")));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use leyden_crashtest::Outcome;

    use super::*;
    use crate::args::crashtest::CrashtestCommand;
    use crate::args::{Args, Command};

    #[test]
    fn states_that_break_alike_are_one_failure_with_the_command_that_repeats_it() {
        let words = "leyden crashtest run DIR --states 50 --again 3 --atom 512";
        let args = Args::try_parse_from(words.split(' ').collect::<Vec<_>>()).unwrap();
        let Command::Crashtest(args) = args.command else { panic!("another command") };
        let Some(CrashtestCommand::Run { options, .. }) = args.command else {
            panic!("another command of it")
        };
        let (title, command) = (String::new(), String::new());
        let facts = CampaignFacts { kind: "crashtest", title, command, cases: "states" };
        let page = CampaignPage::start(None, facts).unwrap();
        let (folder, options) = ("'a b'".to_owned(), &options);
        let (counts, groups) = (Vec::new(), Vec::new());
        let mut watched = Watched { page, folder, options, tried: 0, failed: 0, counts, groups };
        for (model, number, verdict, said) in [
            (Model::Lying, 1, Verdict::Lost, "lost row 1"),
            (Model::Adversarial, 9, Verdict::Lost, "lost row 9"),
            (Model::Adversarial, 4, Verdict::Lost, "lost row 4"),
            (Model::Adversarial, 5, Verdict::Failed, "no such table"),
            (Model::Adversarial, 6, Verdict::Held, ""),
            (Model::Recovery, 2, Verdict::Lost, "lost row 2"),
        ] {
            let outcome = &Outcome { verdict, said: said.to_owned() };
            let (states, broken, share) = (1, 1, 0.5);
            watched.take(&TrialProgress { model, states, broken, share, number, outcome });
        }
        assert_eq!((watched.tried, watched.failed), (6, 4));
        let lost = ("acknowledged lost", 3);
        let lies = ("broken on a drive that lies", 1);
        assert_eq!(watched.counts, [lies, lost, ("check failed", 1), ("held", 1)]);
        let failures: Vec<_> = watched.groups.iter().map(|it| watched.failure(it)).collect();
        assert_eq!(failures.len(), 3);
        let CampaignFailure { case, said, command } = &failures[0];
        assert_eq!(case, "adversarial state 4, acknowledged lost, 2 like it");
        assert_eq!(said, "lost row 4");
        let begins = "leyden crashtest run 'a b' --model adversarial --seed 1 --states";
        assert_eq!(*command, format!("{begins} 4 --again 3 --atom 512"));
        assert_eq!(failures[2].command, format!("{begins} 2 --again 3 --atom 512"));
    }
}
