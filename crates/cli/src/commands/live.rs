//! `leyden reproduce --live`: Selective-PLP measured with RocksDB itself, on its plugin. The campaign that does it,
//! `papers/campaigns/selective_plp_live.py`, is of the checkout, as the plugin is.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};

use super::{make_folder, programs};
use crate::args::ReproduceArgs;
use crate::failure::Failure;

const CAMPAIGN: &str = "selective_plp_live.py";
/// Names the campaign if it is elsewhere.
const CAMPAIGN_VARIABLE: &str = "LEYDEN_LIVE_CAMPAIGN";

const PLUGIN: &str = "libleyden_rocksdb.so";
/// Names the plugin if it is elsewhere.
const VARIABLE: &str = "LEYDEN_ROCKSDB";

/// A campaign of a few minutes: each cell once.
const QUICK: [&str; 4] = ["--repeats", "1", "--cuts", "1"];

/// Becomes the campaign.
pub(super) fn main(args: &ReproduceArgs) -> Result<(), Failure> {
    let here = Path::new("build");
    let plugin = programs::file(PLUGIN, VARIABLE, &[here]);
    let libraries = programs::own_folder();
    let python = programs::in_path("python3");
    let campaign = programs::file(CAMPAIGN, CAMPAIGN_VARIABLE, &[Path::new("papers/campaigns")]);
    let mut missing = missing(plugin.as_deref(), libraries.as_deref(), python.as_deref());
    if campaign.is_none() {
        missing.push(format!(
            "papers/campaigns/{CAMPAIGN}: run this in a checkout of Leyden, or name the campaign with {CAMPAIGN_VARIABLE}"
        ));
    }
    if !missing.is_empty() {
        let list = missing.join("\n  ");
        return Err(Failure::usage(anyhow!(
            "Selective-PLP cannot be measured live here:\n  {list}"
        )));
    }
    let (plugin, libraries) = (plugin.expect("found"), libraries.expect("found"));
    let mut command = Command::new(python.expect("found"));
    command.arg(campaign.expect("found"));
    command.arg("--build").arg(plugin.parent().expect("a file has a folder"));
    command.arg("--libraries").arg(libraries);
    if args.quick {
        command.args(QUICK);
    }
    if let Some(folder) = &args.out {
        make_folder(folder)?;
        command.arg("--json").arg(folder.join("live.json"));
    }
    Err(command.exec()).context("cannot run python3").map_err(Failure::failed)
}

/// The missing parts, each with its remedy.
fn missing(plugin: Option<&Path>, libraries: Option<&Path>, python: Option<&Path>) -> Vec<String> {
    let beside = |name: &str| libraries.is_some_and(|folder| folder.join(name).is_file());
    let has_tool = plugin.and_then(Path::parent).is_some_and(|it| it.join("leyden-fs").is_file());
    let parts = [
        (python.is_some(), "python3: install it".to_owned()),
        (
            programs::in_path("db_bench").is_some(),
            "db_bench: install rocksdb-tools (Debian)".to_owned(),
        ),
        (
            beside("libleyden.so"),
            "libleyden.so beside this program: cargo build --release --package leyden-capi"
                .to_owned(),
        ),
        (
            plugin.is_some() && has_tool,
            format!(
                "{PLUGIN} and leyden-fs: build integrations/rocksdb into `build` (docs/rocksdb.md), or name the \
                 plugin with {VARIABLE}"
            ),
        ),
    ];
    parts.into_iter().filter(|(is_there, _)| !is_there).map(|(_, what)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_parts_are_named_with_their_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let all = missing(None, Some(folder.path()), None);
        assert!(all.iter().any(|what| what.contains("python3")), "{all:?}");
        assert!(all.iter().any(|what| what.contains("leyden-capi")), "{all:?}");
        assert!(all.iter().any(|what| what.contains("integrations/rocksdb")), "{all:?}");
        for name in ["libleyden.so", PLUGIN, "leyden-fs"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let plugin = folder.path().join(PLUGIN);
        let rest = missing(Some(&plugin), Some(folder.path()), Some(Path::new("python3")));
        assert!(rest.iter().all(|what| what.contains("db_bench")), "{rest:?}");
    }

    #[test]
    fn the_campaign_of_the_checkout_takes_what_it_is_given() {
        let Some(python) = programs::in_path("python3") else { return };
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let campaign = programs::file(
            CAMPAIGN,
            CAMPAIGN_VARIABLE,
            &[checkout.join("papers/campaigns").as_path()],
        )
        .unwrap();
        let output = Command::new(python).arg(campaign).arg("--help").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let help = String::from_utf8_lossy(&output.stdout);
        for option in ["--build", "--libraries", "--json", QUICK[0], QUICK[2]] {
            assert!(help.contains(option), "{option}: {help}");
        }
    }
}
