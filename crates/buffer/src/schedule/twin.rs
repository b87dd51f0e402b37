//! The slow twin of every schedule: a list of writes, whose costs are computed at each step.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;

use leyden_nand::Lpn;
use proptest::prelude::*;

use super::{Schedule, ScheduleConfig, Shape};
use crate::SlotId;

#[derive(Clone, Copy, Debug)]
struct Write {
    slot: u32,
    map_page: u32,
    arrival: usize,
}

/// Does what a schedule of the same policy does, slowly.
pub(crate) struct SlowSchedule {
    config: ScheduleConfig,
    shape: Shape,
    /// In order of arrival.
    waiting: Vec<Write>,
    /// Hexa's batch.
    batch: Vec<Write>,
    /// Mapping pages of writes taken and not settled, with repetition.
    taken: Vec<u32>,
    dirty: BTreeSet<u32>,
    /// Mapping pages that cost nothing and have waiting writes, in the order in which they came to.
    zero_cost: Vec<u32>,
    /// Slots that are left of the harvest under way.
    harvest: Vec<u32>,
    /// The mapping page whose stream is being written out.
    stream: Option<u32>,
    /// The last addresses that came in order, by mapping page.
    runs: Vec<Range<u32>>,
    /// When a run came to a mapping page, or a cyclic one was overwritten there; and whether it had come back soon.
    entered: Vec<(Option<usize>, bool)>,
    /// Mapping pages of writes that were overwritten since the page's last turn, with repetition.
    hits: Vec<u32>,
    /// When a mapping page was passed over, by mapping page.
    passed: Vec<usize>,
    /// Writes and pages passed over so far.
    arrivals: usize,
    /// Slots whose data was replaced, with repetition.
    overwritten: Vec<u32>,
}

impl SlowSchedule {
    pub(crate) fn new(config: &ScheduleConfig, shape: Shape) -> Self {
        Self {
            config: config.clone(),
            shape,
            waiting: Vec::new(),
            batch: Vec::new(),
            taken: Vec::new(),
            dirty: (0..shape.mapping_pages).filter(|_| shape.is_table_protected).collect(),
            zero_cost: Vec::new(),
            harvest: Vec::new(),
            stream: None,
            runs: vec![0..0; shape.mapping_pages as usize],
            entered: vec![(None, false); shape.mapping_pages as usize],
            hits: Vec::new(),
            passed: vec![0; shape.mapping_pages as usize],
            arrivals: 0,
            overwritten: Vec::new(),
        }
    }

    fn map_page(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.shape.entries_per_mapping_page
    }

    pub(crate) fn push(&mut self, slot: SlotId, lpn: Lpn) {
        self.follow(lpn);
        self.arrivals += 1;
        let map_page = self.map_page(lpn);
        self.waiting.push(Write { slot: slot.0, map_page, arrival: self.arrivals });
        self.update();
    }

    /// Whether `lpn` goes on with a stream.
    fn follow(&mut self, lpn: Lpn) {
        let page = self.map_page(lpn) as usize;
        let before = page.checked_sub(1).map(|before| self.runs[before].clone());
        let is_first = lpn.0 == page as u32 * self.shape.entries_per_mapping_page;
        if let Some(run) = before.filter(|run| is_first && run.end == lpn.0) {
            self.runs[page] = run;
            self.enter(page);
        }
        if self.runs[page].is_empty() && self.runs[page].end == lpn.0 {
            self.enter(page);
        }
        let run = &mut self.runs[page];
        let is_near = run.end.saturating_sub(lpn.0) <= self.shape.batch_units;
        if run.end == lpn.0 {
            run.end += 1;
        } else if !is_near || !run.contains(&lpn.0) {
            let goes_back = lpn.0 < run.end;
            *run = lpn.0..lpn.0 + 1;
            if goes_back {
                self.enter(page);
            }
        }
    }

    /// A run comes to `page`: soon, if the page's last one came so few arrivals ago that its data may still wait.
    fn enter(&mut self, page: usize) {
        let soon = |before: usize| before + self.waiting.len() >= self.arrivals;
        self.entered[page] = (Some(self.arrivals), self.entered[page].0.is_some_and(soon));
    }

    fn is_stream(&self, page: u32) -> bool {
        let page = page as usize;
        self.runs[page].len() as u32 >= self.shape.batch_units && !self.entered[page].1
    }

    /// How much of the stream waits for more.
    fn kept(&self, page: u32) -> usize {
        let ends_at = (page + 1) * self.shape.entries_per_mapping_page;
        if self.runs[page as usize].end == ends_at { 0 } else { self.shape.batch_units as usize }
    }

    pub(crate) fn remove(&mut self, slot: SlotId) {
        self.waiting.retain(|write| write.slot != slot.0);
        self.batch.retain(|write| write.slot != slot.0);
        self.harvest.retain(|&other| other != slot.0);
        self.overwritten.retain(|&other| other != slot.0);
        self.update();
    }

    pub(crate) fn overwritten(&mut self, slot: SlotId) {
        let page = self.waiting.iter().find(|write| write.slot == slot.0).map(|w| w.map_page);
        if let Some((entered, true)) = page.map(|page| &mut self.entered[page as usize]) {
            *entered = Some(self.arrivals);
        }
        if let Some(page) = page
            && !self.overwritten.contains(&slot.0)
            && !self.is_stream(page)
        {
            self.hits.push(page);
        }
        self.overwritten.push(slot.0);
    }

    pub(crate) fn take(&mut self, slot: SlotId) {
        let all = self.waiting.iter().chain(&self.batch);
        let write = *all.into_iter().find(|write| write.slot == slot.0).expect("waits");
        self.taken.push(write.map_page);
        self.remove(slot);
    }

    pub(crate) fn settled(&mut self, lpn: Lpn) {
        let page = self.map_page(lpn);
        let at = self.taken.iter().position(|&taken| taken == page).expect("was taken");
        self.taken.remove(at);
        self.update();
    }

    pub(crate) fn note(&mut self, page: u32, dirty: bool) {
        if dirty {
            self.dirty.insert(page);
        } else {
            self.dirty.remove(&page);
        }
        self.update();
    }

    pub(crate) fn pop(&mut self) -> Option<SlotId> {
        if matches!(self.config, ScheduleConfig::Hexa(_)) && self.batch.is_empty() {
            while (self.batch.len() as u32) < self.shape.batch_units {
                let Some(write) = self.best() else { break };
                self.waiting.retain(|other| other.slot != write.slot);
                self.batch.push(write);
                self.update();
            }
        }
        let next = match self.config {
            ScheduleConfig::Hexa(_) => self.batch.first().copied(),
            ScheduleConfig::Harvest(_) => self.harvest(),
            _ => self.best(),
        };
        let slot = SlotId(next?.slot);
        self.take(slot);
        Some(slot)
    }

    /// The waiting write that the policy takes first.
    fn best(&self) -> Option<Write> {
        match self.config {
            ScheduleConfig::Fifo(_) | ScheduleConfig::Harvest(_) => self.waiting.first().copied(),
            ScheduleConfig::Hexa(_) => self.hexa(),
            ScheduleConfig::Dawid(_) => self.dawid(),
        }
    }

    /// A zero-cost page's, or else one of the page with most.
    fn hexa(&self) -> Option<Write> {
        let of_page = |page| self.waiting.iter().copied().find(|write| write.map_page == page);
        if let Some(&page) = self.zero_cost.first() {
            return of_page(page);
        }
        let pages = 0..self.shape.mapping_pages;
        let most = pages.clone().map(|page| self.count(page)).max().unwrap_or(0);
        self.waiting.iter().copied().find(|write| self.count(write.map_page) == most)
    }

    /// The least cost; the first of several, since `min_by` keeps it.
    fn dawid(&self) -> Option<Write> {
        let by_cost = |a: &Write, b: &Write| -> Ordering {
            self.cost(a.map_page).total_cmp(&self.cost(b.map_page))
        };
        self.waiting.iter().copied().min_by(by_cost)
    }

    /// The next write of the harvest; what was overwritten goes to the end of those that wait.
    fn harvest(&mut self) -> Option<Write> {
        let batch = self.shape.batch_units as usize;
        loop {
            let of_page = |page| self.waiting.iter().copied().find(|w| w.map_page == page);
            let goes_on = |page: &u32| {
                !self.entered[*page as usize].1 && self.count(*page) > self.kept(*page)
            };
            if let Some(page) = self.stream.filter(goes_on) {
                return of_page(page);
            }
            if self.harvest.is_empty() {
                let mut pages = 0..self.shape.mapping_pages;
                self.stream = pages.find(|&page| {
                    self.is_stream(page) && self.count(page) >= self.kept(page) + batch
                });
                if let Some(page) = self.stream {
                    return of_page(page);
                }
                let page = self.turn()?;
                let of_page = self.waiting.iter().filter(|write| write.map_page == page);
                self.harvest = of_page.map(|write| write.slot).collect();
            }
            let slot = self.harvest[0];
            let at = self.waiting.iter().position(|write| write.slot == slot).expect("waits");
            let write = self.waiting[at];
            if self.overwritten.iter().filter(|&&other| other == slot).count() < 2 {
                return Some(write);
            }
            self.remove(SlotId(slot));
            self.arrivals += 1;
            self.waiting.push(Write { arrival: self.arrivals, ..write });
            self.update();
        }
    }

    /// The mapping page that has waited longest and is not passed over.
    fn turn(&mut self) -> Option<u32> {
        loop {
            let since = |w: &Write| w.arrival.max(self.passed[w.map_page as usize]);
            let oldest = |page| self.waiting.iter().find(|w| w.map_page == page).map(since);
            let pages = (0..self.shape.mapping_pages).filter(|&page| self.count(page) > 0);
            let page = pages.min_by_key(|&page| oldest(page))?;
            let all = (self.hits.len(), self.waiting.len());
            self.hits.retain(|&other| other != page);
            let hits = all.0 - self.hits.len();
            if hits < 8 || hits * all.1 <= 2 * all.0 * self.count(page) {
                return Some(page);
            }
            self.arrivals += 1;
            self.passed[page as usize] = self.arrivals;
        }
    }

    fn cost(&self, page: u32) -> f64 {
        if self.is_free(page) { 0.0 } else { 1.0 / self.count(page) as f64 }
    }

    fn count(&self, page: u32) -> usize {
        self.waiting.iter().filter(|write| write.map_page == page).count()
    }

    fn is_free(&self, page: u32) -> bool {
        self.dirty.contains(&page)
            || self.taken.contains(&page)
            || self.batch.iter().any(|write| write.map_page == page)
    }

    fn update(&mut self) {
        let waiting = &self.waiting;
        self.hits.retain(|&page| waiting.iter().any(|write| write.map_page == page));
        let listed = |page: u32| self.is_free(page) && self.count(page) > 0;
        let pages: Vec<_> = (0..self.shape.mapping_pages).filter(|&page| listed(page)).collect();
        self.zero_cost.retain(|page| pages.contains(page));
        let new: Vec<_> = pages.into_iter().filter(|p| !self.zero_cost.contains(p)).collect();
        assert!(new.len() <= 1, "one step, one page");
        self.zero_cost.extend(new);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u32, u32),
    /// A slot with the address after the last one.
    PushNext(u32),
    Overwrite(usize),
    /// All that waits of a mapping page.
    OverwritePage(u32),
    Remove(usize),
    Take(usize),
    Pop,
    Settle(usize),
    Note(u32, bool),
}

/// Few, so that they are used again; but enough for `harvest` to pass a page over.
const SLOTS: u32 = 40;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Much of one mapping page.
    let lpn = prop_oneof![0_u32..30, 12_u32..16];
    let step = prop_oneof![
        6 => (0..SLOTS, lpn).prop_map(|(slot, lpn)| Step::Push(slot, lpn)),
        4 => (0..SLOTS).prop_map(Step::PushNext),
        5 => any::<usize>().prop_map(Step::Overwrite),
        1 => (0_u32..8).prop_map(Step::OverwritePage),
        1 => any::<usize>().prop_map(Step::Remove),
        1 => any::<usize>().prop_map(Step::Take),
        4 => Just(Step::Pop),
        4 => any::<usize>().prop_map(Step::Settle),
        2 => (0_u32..8, any::<bool>()).prop_map(|(page, dirty)| Step::Note(page, dirty)),
    ];
    proptest::collection::vec(step, 0..300)
}

/// The next slot of `schedule`.
fn next(schedule: &mut Schedule) -> Option<SlotId> {
    let mut popped = Vec::new();
    schedule.pop(1, &mut popped);
    popped.pop()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Every schedule takes the slots that its twin takes, and ends empty when it does.
    #[test]
    fn schedules_behave_like_their_twins(
        policy in 0..ScheduleConfig::POLICIES.len(),
        batch_units in 1_u32..7,
        is_table_protected: bool,
        steps in steps(),
    ) {
        let config = ScheduleConfig::by_name(ScheduleConfig::POLICIES[policy].name).unwrap();
        let shape = Shape {
            slots: SLOTS,
            mapping_pages: 8,
            entries_per_mapping_page: 4,
            batch_units,
            is_table_protected,
        };
        let mut schedule = Schedule::new(&config, &shape);
        let mut twin = SlowSchedule::new(&config, shape);
        let mut waiting: Vec<(SlotId, Lpn)> = Vec::new();
        let mut taken: Vec<(SlotId, Lpn)> = Vec::new();
        let mut last = Lpn(0);
        for step in steps {
            match step {
                Step::Push(..) | Step::PushNext(_) => {
                    let (slot, lpn) = match step {
                        Step::Push(slot, lpn) => (SlotId(slot), Lpn(lpn)),
                        Step::PushNext(slot) => (SlotId(slot), Lpn((last.0 + 1) % 30)),
                        _ => unreachable!("one of the two"),
                    };
                    if !waiting.iter().chain(&taken).any(|&(other, _)| other == slot) {
                        schedule.push(slot, lpn);
                        twin.push(slot, lpn);
                        waiting.push((slot, lpn));
                        last = lpn;
                    }
                }
                Step::Overwrite(at) if !waiting.is_empty() => {
                    let (slot, _) = waiting[at % waiting.len()];
                    schedule.overwritten(slot);
                    twin.overwritten(slot);
                }
                Step::OverwritePage(page) => {
                    for &(slot, _) in waiting.iter().filter(|(_, lpn)| lpn.0 / 4 == page) {
                        schedule.overwritten(slot);
                        twin.overwritten(slot);
                    }
                }
                Step::Remove(at) if !waiting.is_empty() => {
                    let (slot, _) = waiting.swap_remove(at % waiting.len());
                    schedule.remove(slot);
                    twin.remove(slot);
                }
                Step::Take(at) if !waiting.is_empty() => {
                    let write = waiting.swap_remove(at % waiting.len());
                    schedule.take(write.0);
                    twin.take(write.0);
                    taken.push(write);
                }
                Step::Settle(at) if !taken.is_empty() => {
                    let (_, lpn) = taken.swap_remove(at % taken.len());
                    schedule.settled(lpn);
                    twin.settled(lpn);
                }
                Step::Note(page, dirty) => {
                    if dirty {
                        schedule.map_page_dirty(page);
                    } else {
                        schedule.map_page_clean(page);
                    }
                    twin.note(page, dirty);
                }
                Step::Pop => {
                    let slot = next(&mut schedule);
                    prop_assert_eq!(slot, twin.pop());
                    if let Some(slot) = slot {
                        let at = waiting.iter().position(|&(other, _)| other == slot);
                        taken.push(waiting.swap_remove(at.expect("waited")));
                    }
                }
                _ => {}
            }
            prop_assert!(schedule.fits(&shape));
        }
        while let Some(slot) = next(&mut schedule) {
            prop_assert_eq!(Some(slot), twin.pop());
            waiting.retain(|&(other, _)| other != slot);
        }
        prop_assert!(waiting.is_empty(), "left behind: {:?}", waiting);
    }
}
