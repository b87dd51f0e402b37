//! From files and `--set` arguments to a [`Scenario`]: reads the chain of `extends`, lays the
//! overrides on top, and keeps the tree so that later complaints find their place too.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leyden_sim::ConfigError;
use toml::de::DeValue;

use super::blame::blame;
use super::diagnostic::{Base, Diagnostic, Origin, Source};
use super::explain::{explain, remedied};
use super::saved::{self, Saved};
use super::texts::{BUNDLED, LoadError, chain, disk_source, find, find_run, normal};
use super::tree::{Entry, Node, Value, join};
use super::{Scenario, TraceSource, bundled, de};

/// One override, `key=value`: the value is TOML, or else a bare text.
///
/// ```
/// use leyden_config::Set;
/// let set: Set = "device.nand.read=60 us".parse().unwrap();
/// assert_eq!(set.to_string(), "device.nand.read=60 us");
/// assert!("device..read=1".parse::<Set>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    text: String,
    tree: Node,
}

impl std::fmt::Display for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::str::FromStr for Set {
    type Err = Box<Diagnostic>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::of_option("--set", text)
    }
}

impl Set {
    /// `text` as it was given with `option`, which messages name.
    ///
    /// # Errors
    /// If it is not `key=value`.
    pub fn of_option(option: &str, text: &str) -> Result<Self, Box<Diagnostic>> {
        let source = Arc::new(Source {
            name: option.into(),
            text: text.to_owned(),
            base: Base::Disk(PathBuf::new()),
        });
        let origin = |span| Origin { source: Arc::clone(&source), span };
        let example = "write `key=value`, like device.ftl.over_provisioning=28%";
        let Some((key, value)) = text.split_once('=') else {
            let problem = format!("`{text}` sets nothing: there is no `=`");
            return Err(Box::new(Diagnostic::new(problem).help(example)));
        };
        let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if key.trim().split('.').any(|part| part.is_empty() || !part.chars().all(valid)) {
            let problem = format!("`{}` is not a key", key.trim());
            let at = origin(0..key.len());
            return Err(Box::new(Diagnostic::new(problem).at(&at).help(example)));
        }
        if key.trim().split('.').next() == Some("extends") {
            let at = origin(0..key.len());
            let problem = Diagnostic::new("`extends` means something in a file only").at(&at);
            return Err(Box::new(problem.help("write it into the scenario")));
        }
        let lead = key.len() + 1 + (value.len() - value.trim_start().len());
        let value = value.trim();
        let span = 0..value.len();
        let mut tree = match DeValue::parse(value) {
            Ok(parsed) => Node::from_toml(parsed.into_inner(), &source, lead, span)?,
            Err(error) if value.starts_with(['{', '[', '"', '\'']) => {
                let problem = format!("not a TOML value: {}", error.message());
                let at = error.span().unwrap_or(span);
                let at = origin(lead + at.start..lead + at.end);
                return Err(Box::new(Diagnostic::new(problem).at(&at).help(example)));
            }
            Err(_) => Node {
                value: Value::Text(value.to_owned()),
                origin: origin(lead..lead + value.len()),
            },
        };
        for part in key.trim().rsplit('.') {
            let entry = Entry { key: origin(0..key.trim_end().len()), node: tree };
            tree = Node {
                value: Value::Table([(part.to_owned(), entry)].into()),
                origin: origin(0..text.len()),
            };
        }
        let text = text.to_owned();
        Ok(Self { text, tree })
    }
}

/// A scenario as it was read, with what it extends, before overrides: for callers that load it many times.
#[derive(Clone, Debug)]
pub struct Template {
    name: String,
    tree: Node,
    files: Vec<PathBuf>,
}

impl Template {
    /// The scenario that [`Loaded::new`] would load. Records and reports are none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(name: &str) -> Result<Self, LoadError> {
        let (source, _) = find_run(name)?;
        Self::of(name, &source)
    }

    /// The scenario that `text` is, as [`Loaded::from_text`] has it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn from_text(name: &str, text: &str) -> Result<Self, LoadError> {
        Self::of(name, &disk_source(Path::new(name), text.to_owned()))
    }

    fn of(name: &str, source: &Arc<Source>) -> Result<Self, LoadError> {
        let mut seen = Vec::new();
        let tree = chain(source, &mut seen)?;
        Ok(Self::made_of(name, tree, &seen))
    }

    /// The scenario that [`Loaded::on_device`] would load.
    ///
    /// # Errors
    /// If one of the two cannot be read.
    pub fn on_device(name: &str, device: &str) -> Result<Self, LoadError> {
        let (mut seen, mut of_device) = (Vec::new(), Vec::new());
        let mut tree = chain(&find(name)?, &mut seen)?;
        let mut other = chain(&find(device)?, &mut of_device)?;
        seen.append(&mut of_device);
        if let Value::Table(table) = &mut tree.value {
            table.remove("device");
            table.remove("size");
        }
        if let Value::Table(table) = &mut other.value {
            table.retain(|key, _| key == "device" || key == "size");
        }
        Ok(Self::made_of(name, tree.overlaid(other), &seen))
    }

    fn made_of(name: &str, tree: Node, seen: &[String]) -> Self {
        let on_disk = seen.iter().filter(|identity| !identity.starts_with(BUNDLED));
        Self { name: name.to_owned(), tree, files: on_disk.map(PathBuf::from).collect() }
    }

    /// The scenario with `sets` on top.
    ///
    /// # Errors
    /// If there is no such configuration.
    pub fn load(&self, sets: &[Set]) -> Result<Loaded, LoadError> {
        let loaded = Loaded::finish(&self.name, self.tree.clone(), sets)?;
        Ok(Loaded { files: self.files.clone(), ..loaded })
    }
}

/// A scenario, and what is known of where it was written.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario, checked as far as it can be without building the drive.
    pub scenario: Scenario,
    /// Its name as it was loaded.
    name: String,
    /// The file's name as it was given.
    file: String,
    files: Vec<PathBuf>,
    /// The run that it is of, if it comes from a record or a report.
    saved: Option<Box<Saved>>,
    tree: Node,
}

impl Loaded {
    /// The scenario's name as it was loaded: a caller may call the run otherwise.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run that it is of, if it comes from a record or a report.
    pub fn saved(&self) -> Option<&Saved> {
        self.saved.as_deref()
    }

    /// Loads the file `name`, or the bundled scenario called so if there is no such file, with `sets` on
    /// top. `-` is standard input. A run record and a report hold a scenario too; `FILE#NAME` chooses one
    /// of several runs.
    pub fn new(name: &str, sets: &[Set]) -> Result<Self, LoadError> {
        let (source, wanted) = find_run(name)?;
        if saved::is_saved(&source.text) {
            let (saved, tree) = saved::read(&source, wanted).map_err(Box::new)?;
            let mut loaded = Self::finish(name, tree, sets)?;
            loaded.saved = Some(Box::new(saved));
            return Ok(loaded);
        }
        Template::of(name, &source)?.load(sets)
    }

    /// As [`Loaded::new`], with the drive of the file (or bundled one) `device` in place of its own.
    pub fn on_device(name: &str, device: &str, sets: &[Set]) -> Result<Self, LoadError> {
        Template::on_device(name, device)?.load(sets)
    }

    /// The files on disks that it was read from: the one that was named, and those that it extends.
    pub fn sources(&self) -> &[PathBuf] {
        &self.files
    }

    /// The scenario that `text` is, as if the file `name` held it. Files that it names are looked for beside
    /// that.
    pub fn from_text(name: &str, text: &str, sets: &[Set]) -> Result<Self, LoadError> {
        Template::from_text(name, text)?.load(sets)
    }

    fn finish(name: &str, mut tree: Node, sets: &[Set]) -> Result<Self, LoadError> {
        for set in sets {
            if let Some(diagnostic) = missing_item(&tree, &set.tree, "") {
                return Err(Box::new(diagnostic).into());
            }
            tree = tree.overlaid(set.tree.clone());
        }
        let mut scenario: Scenario = de::read(&tree).map_err(|error| {
            let defaults = serde_json::to_value(Scenario::default()).unwrap_or_default();
            Box::new(explain(error, &defaults))
        })?;
        if scenario.name.is_empty() {
            let stem = Path::new(name).file_stem().unwrap_or_default();
            scenario.name = stem.to_string_lossy().into_owned();
        }
        let (run, file) = (scenario.name.clone(), name.to_owned());
        let files = Vec::new();
        let mut loaded = Self { name: run, file, files, scenario, saved: None, tree };
        loaded.check_units()?;
        loaded.fit()?;
        loaded.resolve_paths();
        loaded.scenario.check().map_err(|ConfigError { key, problem }| {
            let fails = |scenario: &Scenario| scenario.check().is_err();
            LoadError::Invalid(Box::new(loaded.complaint_of(&key, &problem, &fails)))
        })?;
        Ok(loaded)
    }

    /// Shares may be bare numbers; of over-provisioning alone 7 could be meant as 7 and as 700 %.
    fn check_units(&self) -> Result<(), LoadError> {
        let key = "device.ftl.over_provisioning";
        match self.tree.nearest(key) {
            (Node { value: Value::Natural(share @ 1..), .. }, true) => {
                let problem = format!("{share} has no unit; write \"{share} %\", if that is meant");
                Err(LoadError::Invalid(Box::new(self.complaint(key, &problem))))
            }
            _ => Ok(()),
        }
    }

    /// Gives the drive the size that is asked for.
    fn fit(&mut self) -> Result<(), LoadError> {
        self.scenario.fit().map_err(|ConfigError { key, problem }| {
            let at = if self.tree.nearest(&key).1 { &key } else { "size" };
            LoadError::Invalid(Box::new(self.complaint(at, &problem)))
        })
    }

    /// A problem that a layer found with `key`, placed where that key was written; or, if it was not, where
    /// the key was written that is to blame: without it, the scenario no longer `fails` so.
    pub fn complaint_of(
        &self,
        key: &str,
        problem: &str,
        fails: &dyn Fn(&Scenario) -> bool,
    ) -> Diagnostic {
        let plain = self.complaint(key, problem);
        if self.tree.nearest(key).1 || !fails(&self.scenario) {
            return plain;
        }
        let Some((blamed, origin)) = blame(&self.tree, fails) else { return plain };
        let (problem, _) = remedied(problem);
        let message = format!("`{blamed}` does not fit: `{key}`: {problem}");
        let help = format!("change `{blamed}`, or say `{key}` beside it");
        Diagnostic::new(message).at(&origin).help(help)
    }

    /// A problem that a layer found with `key`, placed where that key was written.
    pub fn complaint(&self, key: &str, problem: &str) -> Diagnostic {
        let (node, exact) = self.tree.nearest(key);
        // A bare text is short for a table.
        let exact = exact || matches!(node.value, Value::Text(_));
        let (problem, remedy) = remedied(problem);
        let remedy = remedy.map(str::to_owned);
        if exact {
            let diagnostic = Diagnostic::new(format!("`{key}`: {problem}")).at(&node.origin);
            return match remedy {
                Some(remedy) => diagnostic.help(remedy),
                None => diagnostic.help(format!("change `{key}`, or override it with --set")),
            };
        }
        let remedy = remedy.unwrap_or_else(|| format!("say `{key}`, there or with --set"));
        Diagnostic::new(format!("`{key}`: {problem}")).within(&self.file).help(remedy)
    }

    /// Finds the files the scenario names, relative to the file that named them.
    fn resolve_paths(&mut self) {
        let base_of = |key: &str| match self.tree.nearest(key) {
            (node, true) => node.origin.source.base.clone(),
            _ => Base::Disk(PathBuf::new()),
        };
        let trace_base = match self.tree.nearest("workload.trace.path") {
            (_, true) => base_of("workload.trace.path"),
            _ => base_of("workload.trace"),
        };
        let hints_base = base_of("workload.trace.hints");
        if let Some(trace) = &mut self.scenario.workload.trace {
            trace.source = locate(&trace_base, trace.path());
            trace.hints_source = trace.hints_path().map(|path| locate(&hints_base, path));
        }
        let recorded_base = base_of("workload.recorded.path");
        if let Some(recorded) = &mut self.scenario.workload.recorded {
            recorded.path = locate(&recorded_base, &recorded.path).place();
        }
        let snapshot_base = base_of("precondition.snapshot");
        let precondition = &mut self.scenario.precondition;
        if let Some(snapshot) = &precondition.snapshot {
            precondition.snapshot_file = match snapshot_base {
                Base::Disk(folder) => Some(folder.join(snapshot)),
                Base::Bundled(_) | Base::Saved(_) => Some(PathBuf::from(snapshot)),
            };
        }
    }
}

/// The error if `over`, laid on `base`, numbers an item of a list that is not there.
fn missing_item(base: &Node, over: &Node, path: &str) -> Option<Diagnostic> {
    let Value::Table(entries) = &over.value else { return None };
    entries.iter().find_map(|(key, entry)| {
        let path_of_item = join(path, key);
        match (base.child(key), &base.value) {
            (Some(child), _) => missing_item(child, &entry.node, &path_of_item),
            (None, Value::Array(items)) if key.parse::<usize>().is_ok() => {
                let help = match items.len() {
                    0 => format!("the list is empty: write one, `{path} = [{{ ... }}]`"),
                    1 => format!("there is one, `{path}.0`"),
                    many => format!("there are {many}, from `{path}.0` to `{path}.{}`", many - 1),
                };
                let problem = format!("`{path_of_item}`: there is no such item");
                Some(Diagnostic::new(problem).at(&entry.key).help(help))
            }
            _ => None,
        }
    })
}

/// Where `path`, written in a text with `base`, is.
fn locate(base: &Base, path: &str) -> TraceSource {
    match base {
        Base::Disk(folder) => trace_at(folder.join(path)),
        Base::Saved(folder) => match folder.join(path) {
            file if file.exists() => TraceSource::Disk(file),
            _ => trace_at(PathBuf::from(path)),
        },
        Base::Bundled(folder) => match bundled::trace(&normal(folder, path)) {
            Some(trace) => TraceSource::bundled(trace),
            None => TraceSource::Disk(PathBuf::from(path)),
        },
    }
}

/// The trace at `file`, or the bundled one that is called so if there is no such file.
fn trace_at(file: PathBuf) -> TraceSource {
    if file.exists() {
        return TraceSource::Disk(file);
    }
    match TraceSource::called(Path::new(&normal("", &file.to_string_lossy()))) {
        TraceSource::Disk(_) => TraceSource::Disk(file),
        bundled @ TraceSource::Bundled { .. } => bundled,
    }
}
