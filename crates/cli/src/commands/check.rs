//! `leyden check`: a scenario with every default filled in, and nothing run.

use std::io::Write;

use leyden_config::Loaded;
use leyden_run::{check_inputs, validate};

use super::{explain, print_json, warn};
use crate::args::CheckArgs;
use crate::failure::Failure;

pub(crate) fn main(args: &CheckArgs) -> Result<(), Failure> {
    let loaded = Loaded::new(&args.file, &args.set)?;
    let scenario = &loaded.scenario;
    if scenario.workload.is_empty() {
        warn("there is nothing to do in it: a run needs a [[workload.job]] or a [workload.trace]");
    }
    validate(scenario).map_err(|error| explain(&loaded, error))?;
    check_inputs(scenario).map_err(|error| explain(&loaded, error))?;
    if args.json {
        return print_json(scenario);
    }
    std::io::stdout().lock().write_all(scenario.to_toml().as_bytes())?;
    Ok(())
}
