//! Where results go, and what they must not replace: a result takes the place of an older result of its
//! kind, and of nothing else. A scenario or a trace that is named as a report by mistake stays what it is.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

#[cfg(feature = "plot")]
use leyden_plot::Format;
use leyden_record::RunRecord;

use super::atomic;
use crate::failure::Failure;

/// Bytes that tell what a file is.
const HEAD_BYTES: u64 = 4096;
/// The longest name of a record's file, in bytes, before its number and ending.
const MAX_STEM_BYTES: usize = 200;
/// The largest file that is read as a record.
const MAX_RECORD_BYTES: u64 = 1 << 30;

/// The kinds of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page with plots.
    Report,
    /// Runs as a table, one a line.
    Csv,
    /// Banks as a table, one a line.
    Banks,
    /// A timeline for Perfetto.
    Timeline,
    /// A figure for print.
    #[cfg(feature = "plot")]
    Figure(Format),
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Report => "a report of Leyden's",
            Self::Csv => "a table of runs",
            Self::Banks => "a table of banks",
            Self::Timeline => "a timeline of Leyden's",
            #[cfg(feature = "plot")]
            Self::Figure(_) => "a figure of Leyden's",
        }
    }

    /// The part of a file that tells whether it is one: of a PDF the end, of all others the beginning.
    #[cfg_attr(
        not(feature = "plot"),
        expect(clippy::unused_self, reason = "only a figure's end tells")
    )]
    fn telling_part(self, path: &Path) -> io::Result<String> {
        #[cfg(feature = "plot")]
        if self == Self::Figure(Format::Pdf) {
            return tail(path);
        }
        head(path)
    }

    /// Whether a file that begins so is one.
    fn is_head_of(self, head: &str) -> bool {
        match self {
            Self::Report => {
                head.trim_start().starts_with("<!doctype html>")
                    && head.contains("name=\"generator\" content=\"Leyden\"")
            }
            Self::Csv => head.starts_with(leyden_report::CSV_HEAD),
            Self::Banks => head.starts_with(crate::commands::size::BANKS_HEAD),
            // The first byte says that a packet follows.
            Self::Timeline => head.starts_with('\n') && head.contains(leyden_report::TIMELINE_MARK),
            #[cfg(feature = "plot")]
            Self::Figure(_) => head.contains(leyden_plot::MADE_BY),
        }
    }
}

/// Finds out before the work is done whether a result of this kind may be written to `path`.
pub(crate) fn check(path: &Path, kind: Kind) -> Result<(), Failure> {
    atomic::check_writable(path)?;
    let is_in_the_way = match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() > 0 => {
            kind.telling_part(path).map_or(true, |part| !kind.is_head_of(&part))
        }
        _ => false, // nothing there, an empty file, or a device
    };
    if !is_in_the_way {
        return Ok(());
    }
    Err(Failure::usage(anyhow::anyhow!(
        "{} exists and is not {}: it is left alone\n  help: name another file, or remove that one",
        path.display(),
        kind.name()
    )))
}

fn head(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(HEAD_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a file: a PDF says there who made it.
#[cfg(feature = "plot")]
fn tail(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(HEAD_BYTES);
    io::Seek::seek(&mut file, io::SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file in `folder` for each record, named after it. A file that is there already is replaced if it
/// holds a record of the very same configuration; else the name gets a number.
pub(crate) fn of_records(folder: &Path, records: &[RunRecord]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for record in records {
        let stem = stem(record);
        let numbered = (2..).map(|n| folder.join(format!("{stem}-{n}.json")));
        let path = std::iter::once(folder.join(format!("{stem}.json")))
            .chain(numbered)
            .find(|path| !paths.contains(path) && may_hold(path, record));
        paths.extend(path);
    }
    paths
}

/// Whether `record` may be written to `path`.
fn may_hold(path: &Path, record: &RunRecord) -> bool {
    match std::fs::metadata(path) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(found) if found.is_file() && found.len() <= MAX_RECORD_BYTES => {
            let there = std::fs::read(path).ok();
            let there = there.and_then(|json| serde_json::from_slice::<RunRecord>(&json).ok());
            there.is_some_and(|there| there.config == record.config && there.seed == record.seed)
        }
        Ok(_) => false,
    }
}

/// The name of a record's file: of a sweep's run, with the keys that were varied.
fn stem(record: &RunRecord) -> String {
    let mut name = record.name.clone();
    if !record.varied.is_empty() {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let varied = record.varied.iter().map(|it| format!("{}={}", last(&it.key), it.value));
        name = std::iter::once(record.scenario.clone()).chain(varied).collect::<Vec<_>>().join(" ");
    }
    let name = name.replace('%', "pct");
    let is_safe = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
    let mut text: String = name.chars().map(|c| if is_safe(c) { c } else { '-' }).collect();
    text.truncate(text.floor_char_boundary(MAX_STEM_BYTES));
    let text = text.trim_matches(|c| c == '.' || c == '-');
    if text.is_empty() { "run".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::Varied;

    fn named(name: &str) -> RunRecord {
        RunRecord { name: name.into(), ..RunRecord::default() }
    }

    fn names(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect()
    }

    #[test]
    fn records_get_files_of_their_own() {
        let mut swept = named("15%");
        swept.scenario = "tiny".into();
        swept.varied = vec![Varied { key: "device.ftl.op".into(), value: "15%".into() }];
        let records = vec![named("a"), named("a"), named("../x, y=1"), named(""), swept];
        let paths = of_records(Path::new("out"), &records);
        assert_eq!(
            names(&paths),
            ["a.json", "a-2.json", "x--y=1.json", "run.json", "tiny-op=15pct.json"]
        );
    }

    #[test]
    fn only_a_record_of_the_same_configuration_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let first = RunRecord { config: serde_json::json!({ "x": 1 }), ..named("a") };
        let other = RunRecord { config: serde_json::json!({ "x": 2 }), ..named("a") };
        std::fs::write(folder.path().join("a.json"), serde_json::to_vec(&first).unwrap()).unwrap();
        std::fs::write(folder.path().join("b.json"), "precious").unwrap();
        let paths = |record: &RunRecord| of_records(folder.path(), std::slice::from_ref(record));
        assert_eq!(names(&paths(&first)), ["a.json"]);
        assert_eq!(names(&paths(&other)), ["a-2.json"]);
        assert_eq!(names(&paths(&named("b"))), ["b-2.json"]);
    }

    #[test]
    fn a_result_replaces_nothing_of_another_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for kind in [Kind::Report, Kind::Csv, Kind::Timeline] {
            std::fs::write(&path, "[[workload.job]]\n").unwrap();
            assert!(check(&path, kind).is_err(), "{kind:?}");
            std::fs::write(&path, "").unwrap();
            assert!(check(&path, kind).is_ok(), "{kind:?}");
            std::fs::remove_file(&path).unwrap();
            assert!(check(&path, kind).is_ok(), "{kind:?}");
        }
        let page = leyden_report::render(&[named("a")], None).unwrap();
        std::fs::write(&path, page).unwrap();
        assert!(check(&path, Kind::Report).is_ok() && check(&path, Kind::Csv).is_err());
        std::fs::write(&path, leyden_report::csv(&[named("a")])).unwrap();
        assert!(check(&path, Kind::Csv).is_ok() && check(&path, Kind::Report).is_err());
    }
}
