//! Running a shard.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use leyden_config::Loaded;
use leyden_run::{Outcome, RunError};

use crate::error::SweepError;
use crate::identity::{plan_id, point_id};
use crate::part::{self, Journal, Origin, Shard};
use crate::plan::Plan;
use crate::points::{Point, Templates};
use crate::row::Row;

/// Points whose scenarios are in memory at once; those that begin with the same drive are run one after another among them.
const WINDOW: usize = 2_048;

/// How a shard is run, and how a caller watches and stops it.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Runs made at once; they change no result.
    pub jobs: usize,
    /// The build of this program: results of another are refused.
    pub build: &'a str,
    /// Keep what happened in each interval of each run, too.
    pub with_series: bool,
    /// Run points again that failed.
    pub retry_failed: bool,
    /// Drives of earlier commands.
    pub cache: Option<&'a leyden_run::DriveCache>,
    /// Once true, no further run is begun, and those under way end soon.
    pub cancel: &'a AtomicBool,
    /// Told from any thread which share of the points is done.
    pub progress: &'a (dyn Fn(f64) + Sync),
    /// Told from any thread what is worth knowing and is not of the results.
    pub note: &'a (dyn Fn(&str) + Sync),
}

/// The outcome of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its points; those that a `require` denies are none.
    pub points: u64,
    /// Those run now.
    pub made: u64,
    /// Those that have no results: a row says why.
    pub failed: u64,
}

/// Runs the points of `shard` that are not done yet, and writes its part of the results into `folder`, whole or not at all.
/// A point that fails is a row that says so; the others go on.
///
/// # Errors
/// If the folder's files are of another plan, inputs or build; if they cannot be read or written; if it was interrupted, and
/// then what was done is kept.
pub fn run_shard(
    plan: &Plan,
    shard: Shard,
    folder: &Path,
    options: &Options<'_>,
) -> Result<Done, SweepError> {
    let templates = plan.templates()?;
    let id = plan_id(plan, options.build)?;
    let origin = Origin::new(plan, shard, id, options.build, options.with_series);
    std::fs::create_dir_all(folder).map_err(|source| SweepError::read(folder, source))?;
    part::check_folder(folder, shard)?;
    if let Some(done) = finished(folder, shard, &origin, options)? {
        return Ok(done);
    }
    let mut journal = Journal::open(folder, shard, &origin)?;
    // Another process may have finished it before the journal was this one's.
    if let Some(done) = finished(folder, shard, &origin, options)? {
        journal.forget()?;
        return Ok(done);
    }
    let is_there = shard.part(folder).exists();
    let made = if is_there { part::rows(plan, folder, shard, &origin)? } else { Vec::new() };
    for row in made.iter().filter(|row| !journal.has(row.point, false)).collect::<Vec<_>>() {
        journal.add(row)?;
    }
    let points: Vec<Point> =
        shard.points(plan.len()).filter_map(|index| plan.point(index)).collect();
    let open: Vec<&Point> =
        points.iter().filter(|point| !journal.has(point.index, options.retry_failed)).collect();
    let work = Work {
        plan,
        templates: &templates,
        options,
        all: points.len() as u64,
        done: AtomicU64::new((points.len() - open.len()) as u64),
        journal: Mutex::new(journal),
        broken: Mutex::new(None),
        stop: AtomicBool::new(false),
    };
    for window in open.chunks(WINDOW) {
        work.window(window);
        if work.ends() {
            break;
        }
    }
    let journal = work.journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = work.broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let (all, kept) = (points.len() as u64, journal.len());
    if kept < all {
        return Err(SweepError::Interrupted { kept, points: all });
    }
    let done = Done { points: all, made: open.len() as u64, failed: journal.failed() };
    journal.finish(plan, folder, shard, &origin)?;
    Ok(done)
}

/// The result of a shard whose part is whole; none if its points are to be run.
fn finished(
    folder: &Path,
    shard: Shard,
    origin: &Origin,
    options: &Options<'_>,
) -> Result<Option<Done>, SweepError> {
    let path = shard.part(folder);
    if !path.exists() {
        return Ok(None);
    }
    origin.check(&path, &part::origin(&path)?)?;
    let (points, failed) = part::counted(&path)?;
    let is_done = failed == 0 || !options.retry_failed;
    Ok(is_done.then_some(Done { points, made: 0, failed }))
}

/// The problem without its place: the same wherever the plan stands.
fn problem(error: &dyn std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// A shard under way.
struct Work<'a> {
    plan: &'a Plan,
    templates: &'a Templates,
    options: &'a Options<'a>,
    all: u64,
    done: AtomicU64,
    journal: Mutex<Journal>,
    /// The journal could not be written: nothing goes on.
    broken: Mutex<Option<SweepError>>,
    stop: AtomicBool,
}

/// A point that can be run.
struct Ready {
    row: Row,
    loaded: Loaded,
    /// Its drive's key: points with the same key begin with the same drive.
    drive: String,
}

impl Work<'_> {
    fn ends(&self) -> bool {
        self.options.cancel.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed)
    }

    fn window(&self, points: &[&Point]) {
        let mut ready = self.load(points);
        // Runs that begin with the same drive stand beside each other: few drives are in memory at once.
        ready.sort_by(|left, right| {
            (&left.drive, left.row.point).cmp(&(&right.drive, right.row.point))
        });
        let scenarios: Vec<_> = ready.iter().map(|one| &one.loaded.scenario).collect();
        let note = |run: usize, text: &str| {
            (self.options.note)(&format!("point {}: {text}", ready[run].row.point));
        };
        let plan = leyden_run::Plan {
            jobs: self.options.jobs,
            cancel: self.options.cancel,
            progress: &|_, _| {},
            note: &note,
            cache: self.options.cache,
        };
        leyden_run::run_each(&scenarios, &plan, &|run, outcome| {
            self.ended(&ready[run], outcome);
            !self.ends()
        });
    }

    /// The points' scenarios; those without one are rows already. An edge: each thread loads whole scenarios.
    fn load(&self, points: &[&Point]) -> Vec<Ready> {
        let jobs = self.options.jobs.clamp(1, points.len().max(1));
        let pieces = points.chunks(points.len().div_ceil(jobs).max(1));
        std::thread::scope(|scope| {
            let threads: Vec<_> = pieces
                .map(|piece| {
                    scope.spawn(|| {
                        let each = piece.iter().filter_map(|point| self.ready_or_row(point));
                        each.collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }

    /// As [`Self::ready`]; a point whose loading panics is a row.
    fn ready_or_row(&self, point: &Point) -> Option<Ready> {
        let ready = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.ready(point)));
        ready.unwrap_or_else(|_| {
            let mut row = self.row(point);
            row.error = Some("Leyden itself failed while it loaded the point".to_owned());
            self.keep(&row);
            None
        })
    }

    /// The row of a point, without results.
    fn row(&self, point: &Point) -> Row {
        Row {
            point: point.index,
            device: self.plan.device(point).map(str::to_owned),
            values: point.values.clone(),
            ..Row::default()
        }
    }

    fn ready(&self, point: &Point) -> Option<Ready> {
        if self.ends() {
            return None;
        }
        let mut row = self.row(point);
        match self.templates.load(point) {
            Ok(loaded) => {
                row.id = point_id(&loaded.scenario, self.options.build);
                (row.name, row.seed) = (loaded.scenario.name.clone(), loaded.scenario.seed);
                if let Err(error) = leyden_run::validate(&loaded.scenario) {
                    row.error = Some(problem(&error));
                    self.keep(&row);
                    return None;
                }
                let drive = leyden_run::drive_key(&loaded.scenario);
                Some(Ready { row, loaded, drive })
            }
            Err(error) => {
                row.error = Some(problem(&error));
                self.keep(&row);
                None
            }
        }
    }

    fn ended(&self, ready: &Ready, outcome: Result<Outcome, RunError>) {
        let mut row = ready.row.clone();
        match outcome {
            Ok(outcome) if outcome.interrupted => return,
            Err(RunError::Interrupted) => return,
            Ok(outcome) => row.fill(&outcome.record, self.options.with_series),
            Err(error) => row.error = Some(problem(&error)),
        }
        self.keep(&row);
    }

    fn keep(&self, row: &Row) {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = journal.add(row) {
            self.stop.store(true, Ordering::Relaxed);
            *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            return;
        }
        drop(journal);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.options.progress)(done as f64 / self.all.max(1) as f64);
    }
}
