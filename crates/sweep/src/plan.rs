//! The plan of a sweep: a base scenario, and what is varied.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use leyden_report::{Dimension, quantity};
use serde::Deserialize;
use toml::{Table, Value};

use crate::error::SweepError;
use crate::require::Require;
use crate::sample::Sample;
use crate::settings::{Setting, Varied, flatten};

/// The most points of a plan: their results are one table.
const MOST_POINTS: u64 = 10_000_000;
/// The largest file that is read as a plan.
const MAX_PLAN_BYTES: u64 = 64 << 20;

/// The content of a plan's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    base: String,
    #[serde(default)]
    device: Vec<String>,
    #[serde(default)]
    seeds: Option<Seeds>,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    grid: Table,
    #[serde(default)]
    points: Vec<Table>,
    #[serde(default)]
    sample: Option<crate::sample::Text>,
    #[serde(default)]
    require: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a number of seeds, or a list of them")]
enum Seeds {
    Number(u64),
    List(Vec<u64>),
}

/// Which seeds each point is run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SeedAxis {
    /// The scenario's own.
    Own,
    /// So many, from the scenario's own on.
    From(u64),
    /// These.
    List(Vec<u64>),
}

impl SeedAxis {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Own => 1,
            Self::From(seeds) => *seeds,
            Self::List(seeds) => seeds.len() as u64,
        }
    }
}

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) key: String,
    pub(crate) values: Vec<Setting>,
}

/// A plan: its points are every combination of its devices, its listed points, its grid's values, its sample and its seeds, in
/// that order, the last varying fastest; keys of the grid in alphabetical order. Points that a `require` denies are left out.
///
/// ```
/// let text = r#"
///     base = "bench/random-write"
///     seeds = 3
///     [grid]
///     device.ftl.over_provisioning = ["7 %", "12 %", "28 %"]
///     device.ftl.gc.victim = ["greedy", "cost_benefit"]
/// "#;
/// let plan = leyden_sweep::Plan::parse("plan.toml".as_ref(), text)?;
/// assert_eq!(plan.len(), 18);
/// assert_eq!(plan.columns(), ["config.device.ftl.gc.victim", "config.device.ftl.over_provisioning"]);
/// # Ok::<(), leyden_sweep::SweepError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plan {
    /// For messages.
    pub(crate) name: String,
    /// The scenario, as it is loaded.
    pub(crate) base: String,
    /// Its text, if it is no file.
    pub(crate) base_text: Option<String>,
    /// Each as the plan names it, and as it is loaded.
    pub(crate) devices: Vec<(String, String)>,
    /// Paths of settings count from here.
    pub(crate) folder: PathBuf,
    pub(crate) seeds: SeedAxis,
    pub(crate) set: Vec<Setting>,
    pub(crate) grid: Vec<Axis>,
    pub(crate) listed: Vec<Vec<Setting>>,
    pub(crate) sample: Option<Sample>,
    pub(crate) require: Vec<Require>,
    pub(crate) varied: Vec<Varied>,
    points: u64,
}

impl Plan {
    /// The plan in the file `path`; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read, or is no plan.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        use std::io::Read;
        let mut text = String::new();
        let read = if path == Path::new("-") {
            std::io::stdin().lock().take(MAX_PLAN_BYTES + 1).read_to_string(&mut text)
        } else {
            std::fs::File::open(path)
                .and_then(|file| file.take(MAX_PLAN_BYTES + 1).read_to_string(&mut text))
        };
        let bytes = read.map_err(|source| SweepError::read(path, source))?;
        if bytes as u64 > MAX_PLAN_BYTES {
            let problem = format!("it is larger than {} MiB", MAX_PLAN_BYTES >> 20);
            return Err(SweepError::plan(path.display().to_string(), problem, "name a plan"));
        }
        Self::parse(path, &text)
    }

    /// The plan that `text` is, as if it stood in the file `path`: scenarios are looked for beside that, and among the bundled
    /// ones.
    ///
    /// # Errors
    /// If it is no plan, with the key and what would be right.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SweepError> {
        let name = path.display().to_string();
        let read: Text = toml::from_str(text).map_err(|error| unreadable(&name, &error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut plan = Self {
            base: beside(folder, &read.base),
            base_text: None,
            devices: read.device.iter().map(|name| (name.clone(), beside(folder, name))).collect(),
            folder: folder.to_owned(),
            seeds: seeds(&name, read.seeds)?,
            set: settings(&name, "set", &read.set, &|_, _| false)?,
            grid: grid(&name, &read.grid)?,
            listed: listed(&name, &read.points)?,
            sample: read.sample.map(|sample| Sample::new(&name, &sample)).transpose()?,
            require: Vec::new(),
            varied: Vec::new(),
            points: 0,
            name,
        };
        plan.check_keys()?;
        plan.varied = plan.varied_keys();
        let require =
            read.require.iter().map(|text| Require::parse(&plan.name, text, &plan.varied));
        plan.require = require.collect::<Result<_, _>>()?;
        plan.points = plan.count()?;
        if !plan.require.is_empty() && !(0..plan.points).any(|index| plan.point(index).is_some()) {
            let place = format!("{}: `require`", plan.name);
            let problem = "no point satisfies it";
            return Err(SweepError::plan(place, problem, "relax a rule, or vary other values"));
        }
        Ok(plan)
    }

    /// The plan with a base scenario that is `text`, as if a file in the current folder held it.
    #[must_use]
    pub fn on_text(self, text: String) -> Self {
        Self { base_text: Some(text), ..self }
    }

    /// Combinations, those that a `require` denies among them.
    pub fn len(&self) -> u64 {
        self.points
    }

    /// Never: a plan has at least the point that its base is.
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// The columns of what is varied, in their order in the results.
    pub fn columns(&self) -> Vec<String> {
        self.varied.iter().map(Varied::column).collect()
    }

    fn count(&self) -> Result<u64, SweepError> {
        let sizes = self.sizes();
        let all = sizes.iter().map(|&size| u128::from(size)).product::<u128>();
        match u64::try_from(all) {
            Ok(points) if points <= MOST_POINTS => Ok(points),
            _ => {
                let problem = format!(
                    "the plan has {} points, and at most {} fit into one table",
                    grouped(all),
                    grouped(MOST_POINTS.into())
                );
                let help = "draw some with [sample], or make several plans";
                Err(SweepError::plan(&self.name, problem, help))
            }
        }
    }

    /// How many values each part of a point has, from the one that varies slowest.
    pub(crate) fn sizes(&self) -> Vec<u64> {
        let mut sizes = vec![self.devices.len().max(1) as u64, self.listed.len().max(1) as u64];
        sizes.extend(self.grid.iter().map(|axis| axis.values.len() as u64));
        sizes.push(self.sample.as_ref().map_or(1, |sample| sample.points));
        sizes.push(self.seeds.len());
        sizes
    }

    /// No key stands in two places.
    fn check_keys(&self) -> Result<(), SweepError> {
        let listed =
            self.listed.first().into_iter().flatten().map(|setting| ("points", &setting.key));
        let grid = self.grid.iter().map(|axis| ("grid", &axis.key));
        let sampled = self.sample.iter().flat_map(|sample| &sample.ranges);
        let sampled = sampled.map(|range| ("sample.range", &range.key));
        let mut seen: Vec<(&str, &String)> = Vec::new();
        for (place, key) in listed.chain(grid).chain(sampled) {
            let twice = seen.iter().find(|(_, other)| *other == key).map(|(other, _)| *other);
            let problem = match twice {
                Some(other) => format!("`{key}` is in [{other}] too"),
                None if key == "seed" => "seeds are varied by `seeds`".to_owned(),
                None => {
                    seen.push((place, key));
                    continue;
                }
            };
            let place = format!("{}: `{place}.{key}`", self.name);
            return Err(SweepError::plan(place, problem, "leave one of them out"));
        }
        Ok(())
    }

    fn varied_keys(&self) -> Vec<Varied> {
        let of = |key: &String, values: &mut dyn Iterator<Item = &str>| Varied {
            key: key.clone(),
            dimension: dimension_of(values),
        };
        let mut varied = Vec::new();
        for (at, setting) in self.listed.first().into_iter().flatten().enumerate() {
            let mut values = self.listed.iter().map(|point| point[at].value.as_str());
            varied.push(of(&setting.key, &mut values));
        }
        for axis in &self.grid {
            varied
                .push(of(&axis.key, &mut axis.values.iter().map(|setting| setting.value.as_str())));
        }
        for range in self.sample.iter().flat_map(|sample| &sample.ranges) {
            varied.push(Varied { key: range.key.clone(), dimension: Some(range.dimension) });
        }
        varied
    }
}

/// The unit that all values have; `None` if one is a name, or if there are two.
fn dimension_of(values: &mut dyn Iterator<Item = &str>) -> Option<Dimension> {
    let mut found = Dimension::Plain;
    for value in values {
        let (_, dimension) = quantity(value)?;
        match (found, dimension) {
            (_, Dimension::Plain) => {}
            (Dimension::Plain, other) => found = other,
            (known, other) if known == other => {}
            _ => return None,
        }
    }
    Some(found)
}

fn unreadable(name: &str, error: &toml::de::Error) -> SweepError {
    const KEYS: [&str; 8] =
        ["base", "device", "seeds", "set", "grid", "points", "sample", "require"];
    let message = error.to_string();
    let wrong = error.message().strip_prefix("unknown field `");
    let wrong = wrong.and_then(|rest| rest.split('`').next()).unwrap_or_default();
    let help = match leyden_config::nearest(wrong, KEYS.into_iter()) {
        Some(near) if !wrong.is_empty() => format!("the nearest key of a plan is `{near}`"),
        _ => format!("the keys of a plan are {}", KEYS.join(", ")),
    };
    SweepError::plan(name, message.trim_end(), help)
}

/// The file `name` beside the plan if there is one; else the name, which may be a bundled scenario's.
pub(crate) fn beside(folder: &Path, name: &str) -> String {
    let file = folder.join(name);
    if file.exists() { file.display().to_string() } else { name.to_owned() }
}

fn seeds(name: &str, seeds: Option<Seeds>) -> Result<SeedAxis, SweepError> {
    let wrong = |problem: &str| {
        let help = "write how many, like 5, or which, like [1, 2, 9]";
        Err(SweepError::plan(format!("{name}: `seeds`"), problem, help))
    };
    match seeds {
        None => Ok(SeedAxis::Own),
        Some(Seeds::Number(0)) => wrong("there are no runs with 0 seeds"),
        Some(Seeds::Number(seeds)) => Ok(SeedAxis::From(seeds)),
        Some(Seeds::List(list)) if list.is_empty() => wrong("the list is empty"),
        Some(Seeds::List(list)) => {
            let mut sorted = list.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() == list.len() {
                Ok(SeedAxis::List(list))
            } else {
                wrong("a seed is there twice")
            }
        }
    }
}

fn settings(
    name: &str,
    place: &str,
    table: &Table,
    is_value: &dyn Fn(&str, &Table) -> bool,
) -> Result<Vec<Setting>, SweepError> {
    let found = flatten(table, is_value).into_iter().map(|(key, value)| {
        check_key(name, place, &key)?;
        Ok(Setting::new(key, &value))
    });
    found.collect()
}

fn check_key(name: &str, place: &str, key: &str) -> Result<(), SweepError> {
    if key == "name" || key == "extends" {
        let place = format!("{name}: `{place}.{key}`");
        let help = "vary keys of the drive, the workload or the run";
        return Err(SweepError::plan(place, "it decides no result", help));
    }
    Ok(())
}

fn grid(name: &str, table: &Table) -> Result<Vec<Axis>, SweepError> {
    let axis = |(key, value): (String, Value)| {
        let place = || format!("{name}: `grid.{key}`");
        check_key(name, "grid", &key)?;
        let help = "write its values as a list: [\"7 %\", \"28 %\"]";
        let Value::Array(values) = &value else {
            return Err(SweepError::plan(place(), "it is no list", help));
        };
        let values: Vec<Setting> =
            values.iter().map(|value| Setting::new(key.clone(), value)).collect();
        if values.is_empty() {
            return Err(SweepError::plan(place(), "the list is empty", help));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = values.iter().find(|setting| !seen.insert(&setting.literal)) {
            let problem = format!("`{}` is there twice", twice.value);
            return Err(SweepError::plan(place(), problem, "name each value once"));
        }
        Ok(Axis { key, values })
    };
    flatten(table, &|_, _| false).into_iter().map(axis).collect()
}

fn listed(name: &str, points: &[Table]) -> Result<Vec<Vec<Setting>>, SweepError> {
    let place = |index: usize| format!("points.{index}");
    // A policy with parameters in one point may be a mere name in another.
    let is_whole = |key: &str, _: &Table| key.contains('.');
    let read =
        points.iter().enumerate().map(|(at, table)| settings(name, &place(at), table, &is_whole));
    let listed: Vec<Vec<Setting>> = read.collect::<Result<_, _>>()?;
    let keys = |point: &[Setting]| point.iter().map(|one| one.key.clone()).collect::<Vec<_>>();
    let first = listed.first().map(|point| keys(point)).unwrap_or_default();
    let mut seen = BTreeSet::new();
    for (at, point) in listed.iter().enumerate() {
        let place = || format!("{name}: `{}`", place(at));
        if point.is_empty() {
            return Err(SweepError::plan(
                place(),
                "it sets no key",
                "give it one, or leave it out",
            ));
        }
        if keys(point) != first {
            let problem = "it has other keys than the first of [[points]]";
            let help = format!("give each a value for {}", first.join(", "));
            return Err(SweepError::plan(place(), problem, help));
        }
        if !seen.insert(point.iter().map(|setting| &setting.literal).collect::<Vec<_>>()) {
            let problem = "it is the same as one before";
            return Err(SweepError::plan(place(), problem, "leave one of them out"));
        }
    }
    Ok(listed)
}

/// A number with a comma between thousands.
pub(crate) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
