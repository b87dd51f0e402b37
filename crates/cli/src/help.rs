//! The first screen: `leyden --help`, with its commands in groups.

use std::fmt::Write;

use clap::CommandFactory;

use crate::args::Args;

/// The groups of the first screen. A command that this build was made without is left out.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Simulate", &["run", "compare", "sweep", "timeline", "size", "lifetime", "check"]),
    ("Crash-test software", &["crashtest"]),
    (
        "Serve a drive",
        &["image", "serve", "mount", "cut", "restore", "fault", "status", "recording", "fs"],
    ),
    ("Traces and data", &["trace", "report", "plot", "schema", "policies"]),
    ("Research", &["reproduce", "torture"]),
    ("Set up", &["cache", "completions", "man"]),
];

/// The command line, with its first screen.
pub(crate) fn command() -> clap::Command {
    let command = Args::command();
    let groups = grouped(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// Each group's title, and a line for each of its commands.
fn grouped(command: &clap::Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let found: Vec<_> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if found.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{title}:");
        for command in found {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<12}{about}", command.get_name());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_stands_in_one_group() {
        let listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for below in Args::command().get_subcommands().filter(|below| !below.is_hide_set()) {
            let times = listed.iter().filter(|name| **name == below.get_name()).count();
            assert_eq!(times, 1, "leyden {} is listed {times} times", below.get_name());
        }
    }

    #[test]
    fn a_line_of_the_first_screen_fits_a_narrow_terminal() {
        for line in grouped(&Args::command()).lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
