//! Provenance of a crash test: drive, software, versions, date.

use std::time::{Duration, UNIX_EPOCH};

use leyden_crashtest::{SUMMARY, Session};
use leyden_device::Region;
use leyden_image::ImageConfig;
use leyden_report::format::{bytes, count};

use crate::version::VERSION;

/// The recorded drive.
pub(super) fn drive(config: &ImageConfig) -> String {
    let device = &config.device;
    let region = match device.buffer.region {
        Region::None => "volatile",
        Region::Full => "protected",
        Region::Selective => "partly protected",
    };
    format!(
        "{}: {} channels, {} dies, {region} buffer of {}",
        config.name,
        count(u64::from(device.nand.channels)),
        count(u64::from(device.nand.channels * device.nand.dies_per_channel)),
        bytes(device.buffer.size.get())
    )
}

/// By what and when the last run was made.
pub(super) fn made(session: &Session) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let written = session.folder().join(SUMMARY).metadata().and_then(|of| of.modified());
    let since = written.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let date = since.map_or_else(String::new, |since| format!(", {}", utc(since)));
    format!("Leyden {VERSION}, Linux {}{date}", kernel.trim())
}

/// The versions of software that the scripts have printed: lines that begin with `version `.
pub(super) fn software(session: &Session) -> Option<String> {
    let log = std::fs::read(session.work_log()).ok()?;
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("version ")).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// A time since 1970 as date and time of day.
fn utc(since: Duration) -> String {
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60)
}

/// The date of a day since 1970-01-01: years that begin in March have their leap day at their end.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_their_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!((date(11_016), date(11_017)), ((2000, 2, 29), (2000, 3, 1)));
        assert_eq!(date(20_782), (2026, 11, 25));
        assert_eq!(utc(Duration::from_secs(86_399)), "1970-01-01 23:59 UTC");
    }
}
