//! Where a scenario's text comes from: a file, a bundled scenario or standard input, and what it extends.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::diagnostic::{Base, Diagnostic, Source};
use super::explain::nearest;
use super::tree::{Node, Value};
use super::{bundled, saved};

/// The largest file that is read as a scenario.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The beginning of the identity of a text that is no file.
pub(super) const BUNDLED: &str = "bundled ";

/// Why a scenario could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file itself could not be read.
    #[error("cannot read {path}: {source}{}", help.as_deref().map(|h| format!("\n  help: {h}")).unwrap_or_default())]
    Read {
        /// Which file.
        path: String,
        /// The remedy, if there is one.
        help: Option<String>,
        /// The error of the system call.
        source: io::Error,
    },
    /// It is wrong.
    #[error(transparent)]
    Invalid(#[from] Box<Diagnostic>),
}

/// Finds what a user called `name`, and which run of it was meant.
pub(super) fn find_run(name: &str) -> Result<(Arc<Source>, Option<&str>), LoadError> {
    match name.rsplit_once('#') {
        Some((file, run)) if !Path::new(name).exists() => Ok((find(file)?, Some(run))),
        _ => Ok((find(name)?, None)),
    }
}

/// Finds what a user called `name`.
pub(super) fn find(name: &str) -> Result<Arc<Source>, LoadError> {
    if name == "-" {
        return standard_input();
    }
    let path = Path::new(name);
    let error = match read_text(path) {
        Ok(text) => return Ok(disk_source(path, text)),
        Err(error) => error,
    };
    if error.kind() == io::ErrorKind::NotFound {
        if let Some((name, text)) = bundled::find(name) {
            return Ok(bundled_source(name, text));
        }
        let help = match nearest(name, bundled::names()) {
            _ if name.contains("://") => {
                "a scenario is a file, or the name of a bundled one; download it first".into()
            }
            Some(near) => format!("there is a bundled scenario called `{near}`"),
            None => "`leyden run --list` names the bundled scenarios".into(),
        };
        return Err(LoadError::Read { path: name.to_owned(), help: Some(help), source: error });
    }
    let help = "name a scenario, which is TOML; a trace is named in one, as `workload.trace`";
    Err(LoadError::Read { path: name.to_owned(), help: Some(help.into()), source: error })
}

/// Standard input; paths in it are relative to the current folder.
pub(super) fn standard_input() -> Result<Arc<Source>, LoadError> {
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_FILE_BYTES).read_to_string(&mut text);
    read.map_err(|source| LoadError::Read {
        path: "standard input".into(),
        help: Some("it is read as a scenario, which is TOML".into()),
        source,
    })?;
    let (name, base) = ("<stdin>".to_owned(), Base::Disk(PathBuf::new()));
    Ok(Arc::new(Source { name, text, base }))
}

/// A file's text, if it can be a scenario's: a trace or a device named by mistake has no end.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    if file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        let problem = format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

pub(super) fn disk_source(path: &Path, text: String) -> Arc<Source> {
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let base = if saved::is_saved(&text) { Base::Saved(folder) } else { Base::Disk(folder) };
    Arc::new(Source { name: path.display().to_string(), text, base })
}

pub(super) fn bundled_source(path: &str, text: &str) -> Arc<Source> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    Arc::new(Source {
        name: format!("scenarios/{path}"),
        text: text.to_owned(),
        base: Base::Bundled(folder.to_owned()),
    })
}

/// `source` with everything it extends below it. `seen` holds the chain so far.
pub(super) fn chain(source: &Arc<Source>, seen: &mut Vec<String>) -> Result<Node, LoadError> {
    let mut node = Node::parse(source)?;
    seen.push(identity(source));
    let Value::Table(table) = &mut node.value else {
        return Ok(node);
    };
    let Some(extends) = table.remove("extends") else {
        return Ok(node);
    };
    let at = &extends.node.origin;
    let Value::Text(path) = &extends.node.value else {
        let problem = Diagnostic::new("`extends` is not a path");
        let help = "write the other file's path in double quotes, relative to this file";
        return Err(LoadError::Invalid(Box::new(problem.at(at).help(help))));
    };
    let base = extended(&source.base, path).map_err(|error| {
        let problem = Diagnostic::new(format!("`extends`: cannot read {path}: {}", plain(&error)));
        let help = match nearest(path, bundled::names()) {
            Some(near) => format!("the nearest bundled scenario is `{near}`"),
            None => "the path is relative to this file, or names a bundled scenario".to_owned(),
        };
        Box::new(problem.at(at).help(help))
    })?;
    if seen.contains(&identity(&base)) {
        let problem = Diagnostic::new(format!("`extends` goes round in circles through {path}"));
        let help = "remove one `extends` of the circle";
        return Err(LoadError::Invalid(Box::new(problem.at(at).help(help))));
    }
    Ok(chain(&base, seen)?.overlaid(node))
}

/// The text that `extends = "path"` names in a text with `base`.
pub(super) fn extended(base: &Base, path: &str) -> io::Result<Arc<Source>> {
    let inside = match base {
        Base::Disk(folder) | Base::Saved(folder) => {
            let file = folder.join(path);
            match read_text(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
                outcome => return outcome.map(|text| disk_source(&file, text)),
            }
        }
        Base::Bundled(folder) => normal(folder, path),
    };
    bundled::find(&inside)
        .map(|(path, text)| bundled_source(path, text))
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// The system's message, or a plainer one where that is short.
pub(super) fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}

/// Tells one text from another, however it was named.
pub(super) fn identity(source: &Source) -> String {
    match &source.base {
        Base::Disk(_) | Base::Saved(_) => std::fs::canonicalize(&source.name)
            .map_or_else(|_| source.name.clone(), |path| path.display().to_string()),
        Base::Bundled(_) => format!("{BUNDLED}{}", source.name),
    }
}

/// `folder/path` without `.` and `..`.
pub(super) fn normal(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
