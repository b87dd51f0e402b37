//! The points of a plan, by number.

use std::path::{Path, PathBuf};

use leyden_config::{LoadError, Loaded, Set, Template};

use crate::plan::{Plan, SeedAxis, beside};
use crate::settings::Setting;

/// A point of a plan: which device, values and seed its run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its number, from 0.
    pub index: u64,
    /// The values of what is varied, in the order of [`Plan::columns`].
    pub values: Vec<String>,
    device: Option<usize>,
    settings: Vec<Setting>,
    seed: PointSeed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PointSeed {
    Own,
    /// So many after the scenario's own.
    After(u64),
    Is(u64),
}

impl Plan {
    /// Point `index`; `None` if a `require` denies it.
    ///
    /// # Panics
    /// If the plan has no such point.
    pub fn point(&self, index: u64) -> Option<Point> {
        assert!(index < self.len(), "a point of the plan");
        let sizes = self.sizes();
        let mut rest = index;
        let mut digits: Vec<u64> = sizes
            .iter()
            .rev()
            .map(|size| {
                let digit = rest % size;
                rest /= size;
                digit
            })
            .collect();
        digits.reverse();
        let mut settings: Vec<Setting> = Vec::new();
        if let Some(listed) = self.listed.get(digits[1] as usize) {
            settings.extend(listed.iter().cloned());
        }
        for (axis, &digit) in self.grid.iter().zip(&digits[2..]) {
            settings.push(axis.values[digit as usize].clone());
        }
        if let Some(sample) = &self.sample {
            let values = sample.values(digits[digits.len() - 2]);
            let keys = sample.ranges.iter().map(|range| range.key.clone());
            settings.extend(keys.zip(values).map(|(key, value)| Setting::of_quantity(key, value)));
        }
        let values: Vec<String> = settings.iter().map(|setting| setting.value.clone()).collect();
        if !self.require.iter().all(|require| require.holds(&values)) {
            return None;
        }
        let last = digits[digits.len() - 1];
        let seed = match &self.seeds {
            SeedAxis::Own => PointSeed::Own,
            SeedAxis::From(_) => PointSeed::After(last),
            SeedAxis::List(seeds) => PointSeed::Is(seeds[last as usize]),
        };
        let device = (!self.devices.is_empty()).then_some(digits[0] as usize);
        Some(Point { index, values, device, settings, seed })
    }

    /// The scenarios that its points are made of, read once.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn templates(&self) -> Result<Templates, LoadError> {
        let of_devices = if self.devices.is_empty() {
            vec![match &self.base_text {
                Some(text) => Template::from_text(&self.base, text)?,
                None => Template::new(&self.base)?,
            }]
        } else {
            let on = |(_, place): &(String, String)| Template::on_device(&self.base, place);
            self.devices.iter().map(on).collect::<Result<_, _>>()?
        };
        let folder = self.folder.clone();
        let set = self.set.iter().map(|setting| set_of(&folder, setting));
        let set = set.collect::<Result<Vec<_>, _>>()?;
        let own_seed = of_devices[0].load(&set)?.scenario.seed;
        Ok(Templates { of_devices, folder, set, own_seed })
    }

    /// Finds out, before anything runs, whether its scenario, its devices and each of its keys exist.
    ///
    /// # Errors
    /// If the scenario cannot be loaded, or if the first point cannot, whichever value one of its keys has. What single points
    /// lack, their rows say.
    pub fn check(&self) -> Result<(), LoadError> {
        let templates = self.templates()?;
        let Some(first) = (0..self.len()).find_map(|index| self.point(index)) else {
            return Ok(());
        };
        for axis in &self.grid {
            let with = |value: &Setting| {
                let mut point = first.clone();
                for setting in point.settings.iter_mut().filter(|one| one.key == value.key) {
                    setting.clone_from(value);
                }
                templates.load(&point).map(drop)
            };
            let mut failures = axis.values.iter().map(with);
            let Some(Err(failure)) = failures.next() else { continue };
            if failures.all(|one| one.is_err()) {
                return Err(failure);
            }
        }
        Ok(())
    }

    /// The files on disks that its points are made of: scenarios with what they extend, devices, and files of workloads.
    ///
    /// # Errors
    /// If a scenario cannot be loaded.
    pub fn files(&self) -> Result<Vec<PathBuf>, LoadError> {
        let templates = self.templates()?;
        let mut files = Vec::new();
        for template in &templates.of_devices {
            let loaded = template.load(&templates.set)?;
            files.extend_from_slice(loaded.sources());
            let workload = &loaded.scenario.workload;
            let traces = workload.trace.iter().flat_map(leyden_config::TraceConfig::files);
            files.extend(traces.map(|(_, source)| PathBuf::from(source.place())));
            files.extend(workload.recorded.iter().map(|recorded| recorded.path.clone().into()));
        }
        let of_points = self.grid.iter().flat_map(|axis| &axis.values);
        let of_points = of_points.chain(self.listed.iter().flatten());
        let paths = of_points.filter(|setting| PATHS.contains(&setting.key.as_str()));
        files.extend(paths.map(|setting| PathBuf::from(beside(&self.folder, &setting.value))));
        files.retain(|file| file.is_file());
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The device of a point, as the plan names it.
    pub fn device(&self, point: &Point) -> Option<&str> {
        point.device.map(|device| self.devices[device].0.as_str())
    }
}

/// The scenarios of a plan, one for each of its devices.
#[derive(Clone, Debug)]
pub struct Templates {
    of_devices: Vec<Template>,
    folder: PathBuf,
    /// Overrides of all points.
    set: Vec<Set>,
    own_seed: u64,
}

impl Templates {
    /// The scenario of `point`.
    ///
    /// # Errors
    /// If there is no such configuration.
    pub fn load(&self, point: &Point) -> Result<Loaded, LoadError> {
        let mut sets = self.set.clone();
        for setting in &point.settings {
            sets.push(set_of(&self.folder, setting)?);
        }
        let seed = match point.seed {
            PointSeed::Own => None,
            PointSeed::Is(seed) => Some(seed),
            PointSeed::After(after) => Some(self.own_seed.wrapping_add(after)),
        };
        if let Some(seed) = seed {
            sets.push(Set::of_option("plan", &format!("seed={seed}"))?);
        }
        self.of_devices[point.device.unwrap_or(0)].load(&sets)
    }
}

/// Keys whose values are paths. In a plan they count from its folder.
pub(crate) const PATHS: [&str; 4] = [
    "workload.trace.path",
    "workload.trace.hints",
    "workload.recorded.path",
    "precondition.snapshot",
];

fn set_of(folder: &Path, setting: &Setting) -> Result<Set, LoadError> {
    let Setting { key, value, literal } = setting;
    let text = if PATHS.contains(&key.as_str()) {
        format!("{key}={}", toml::Value::String(beside(folder, value)))
    } else {
        format!("{key}={literal}")
    };
    Ok(Set::of_option("plan", &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        Plan::parse("plan.toml".as_ref(), text).unwrap()
    }

    /// A policy with parameters beside a mere name: a quoted key holds a value, whatever that is.
    #[test]
    fn a_listed_value_may_be_a_table_in_some_points() {
        let plan = plan(
            "base = 'hot-cold'\n[[points]]\n'device.ftl.map.protection' = 'full'\n\
             [[points]]\n'device.ftl.map.protection' = { policy = 'partial', protected = '50 %' }",
        );
        let values = |index| plan.point(index).unwrap().values.join("");
        assert_eq!(plan.columns(), ["config.device.ftl.map.protection"]);
        assert_eq!(values(0), "full");
        assert!(values(1).contains("policy") && values(1).contains("50 %"), "{}", values(1));
        // Bare keys are parts of keys, as everywhere.
        let parts = "base = 'x'\n[[points]]\na.b = { c = 1 }\n[[points]]\na.b.c = 2";
        assert_eq!(Plan::parse("plan.toml".as_ref(), parts).unwrap().len(), 2);
    }

    #[test]
    fn the_last_part_varies_fastest_and_points_are_all_different() {
        let plan = plan(
            "base = 'bench/random-write'\nseeds = [4, 2]\n[grid]\nb = [1, 2, 3]\na = ['x', 'y']\n\
             [[points]]\nc = 1\n[[points]]\nc = 5",
        );
        assert_eq!(plan.len(), 24);
        let points: Vec<Point> = (0..24).map(|index| plan.point(index).unwrap()).collect();
        assert_eq!(points[0].values, ["1", "x", "1"]);
        assert_eq!((&points[1].values, points[1].seed), (&points[0].values, PointSeed::Is(2)));
        assert_eq!(points[2].values, ["1", "x", "2"]);
        assert_eq!(points[12].values, ["5", "x", "1"]);
        let told = |point: &Point| (point.values.clone(), format!("{:?}", point.seed));
        let mut all: Vec<_> = points.iter().map(told).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 24);
    }

    #[test]
    fn denied_points_are_left_out() {
        let plan = plan("base = 'x'\nrequire = ['a < b']\n[grid]\na = [1, 2, 3]\nb = [1, 2, 3]");
        let left = (0..9).filter_map(|index| plan.point(index)).count();
        assert_eq!((plan.len(), left), (9, 3));
    }

    #[test]
    fn a_point_is_the_scenario_that_its_settings_make() {
        let plan = plan(
            "base = 'bench/random-write'\nseeds = 2\n[set]\nrun.check = 'never'\n[grid]\n\
             device.ftl.over_provisioning = ['7 %', '28 %']",
        );
        let loaded = plan.templates().unwrap().load(&plan.point(3).unwrap()).unwrap();
        let sets = ["run.check=never", "device.ftl.over_provisioning=28 %", "seed=2"];
        let sets: Vec<Set> = sets.iter().map(|set| set.parse().unwrap()).collect();
        assert_eq!(loaded.scenario, Loaded::new("bench/random-write", &sets).unwrap().scenario);
    }

    #[test]
    fn impossible_plans_are_refused_with_key_and_remedy() {
        for (text, problem) in [
            ("bas = 'x'", "nearest key of a plan is `base`"),
            ("base = 'x'\n[grid]\na = 1", "`grid.a`: it is no list"),
            ("base = 'x'\n[grid]\na = []", "the list is empty"),
            ("base = 'x'\n[grid]\na = [1, 1]", "`1` is there twice"),
            ("base = 'x'\nseeds = 0", "0 seeds"),
            ("base = 'x'\nseeds = [1, 1]", "twice"),
            ("base = 'x'\n[grid]\nseed = [1, 2]", "varied by `seeds`"),
            ("base = 'x'\n[grid]\na = [1]\n[[points]]\na = 2", "`a` is in [points] too"),
            ("base = 'x'\n[[points]]\na = 2\n[[points]]\nb = 2", "other keys"),
            ("base = 'x'\nseeds = 1000000000", "1,000,000,000 points"),
            ("base = 'x'\n[grid]\nname = ['a']", "decides no result"),
            ("base = 'x'\nseeds = 'many'", "a number of seeds"),
        ] {
            let error = Plan::parse("plan.toml".as_ref(), text).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("plan.toml"), "{text}: {error}");
        }
    }
}
