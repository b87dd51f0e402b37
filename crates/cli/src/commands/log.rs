//! The servers' log, on standard error.

use tracing_subscriber::filter::LevelFilter;

use crate::args::served::{LogArgs, LogFormat};

/// Logs from now on as `args` has it.
pub(crate) fn start(args: &LogArgs) {
    let level: LevelFilter = args.log_level.parse().unwrap_or(LevelFilter::INFO);
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        // The reader may be gone: that must not end the server.
        .log_internal_errors(false);
    match args.log {
        LogFormat::Off => {}
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
