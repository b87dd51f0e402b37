//! The time of a recovery, derived from the pages on the flash.
//!
//! **What lives here**: the pages that each step of a recovery reads, by die, and so its time ([`WayBack`]). Pages that the
//! drive wrote itself are read here as recovery reads them. **What doesn't**: which entries and units a recovery
//! finds, which is for the oracle to judge.
//!
//! **Invariants**: no code of `ftl` or `device` takes part; the flash is that of the moment before the power returns.

mod zoned;

use std::collections::{BTreeMap, BTreeSet};

use leyden_device::{Config, Recovery};
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::recovery::StepName;
use leyden_nand::{BlockId, Content, DieId, Geometry, Health, Medium, MetaPage, PageKind, Ppn};
use leyden_sim::{Span, Time};

use super::bank;

/// Bytes of a root before its list of mapping pages, and of a record of the journal (docs/power.md).
const ROOT_HEADER: usize = 29;
const RECORD_BYTES: u32 = 8;

/// Times of the flash, and what the table leaves there.
#[derive(Clone, Debug)]
pub(crate) struct WayBack {
    geometry: Geometry,
    read_ns: u128,
    transfer_ns: u128,
    erase_ns: u128,
    has_journal: bool,
    /// The table is never dumped, but for trims.
    always_scans: bool,
    /// Erases may fail, and others take their place.
    erases_vary: bool,
    power: leyden_power::Config,
}

/// A step that a recovery must take.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: StepName,
    pages: u64,
    ns: u128,
}

/// The steps that a recovery must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Derived {
    steps: Vec<Step>,
    /// Steps that the drive may leave out.
    optional: Vec<StepName>,
}

/// Pages to read, by die.
struct Reads<'a> {
    way: &'a WayBack,
    by_die: Vec<u64>,
}

impl<'a> Reads<'a> {
    fn new(way: &'a WayBack) -> Self {
        Self { way, by_die: vec![0; way.geometry.dies() as usize] }
    }

    fn add(&mut self, die: DieId, pages: u64) {
        self.by_die[die.index()] += pages;
    }

    fn add_places(mut self, places: impl Iterator<Item = Ppn>) -> Self {
        for place in places {
            self.add(self.way.geometry.die_of_page(place), 1);
        }
        self
    }

    /// Out-of-band areas alone, which cost no transfer.
    fn areas(&self, name: StepName) -> Step {
        self.step(name, 0)
    }

    /// Whole pages.
    fn pages(&self, name: StepName) -> Step {
        self.step(name, self.way.transfer_ns)
    }

    /// A die reads and hands over one page after the other. A channel waits for its first page, and carries one at a time.
    fn step(&self, name: StepName, transfer_ns: u128) -> Step {
        let read_ns = self.way.read_ns;
        let slowest_die =
            self.by_die.iter().map(|&pages| u128::from(pages) * (read_ns + transfer_ns));
        let mut channels = vec![0_u128; self.way.geometry.channels() as usize];
        for (die, &pages) in self.by_die.iter().enumerate() {
            let channel = die % channels.len();
            channels[channel] += u128::from(pages);
        }
        let busy = channels.into_iter().filter(|&pages| pages > 0);
        let slowest_channel = busy.map(|pages| read_ns + pages * transfer_ns);
        let ns = slowest_die.chain(slowest_channel).max().unwrap_or(0);
        Step { name, pages: self.by_die.iter().sum(), ns }
    }
}

/// The pages of the last dump, if it is wanted, in the order they were written.
fn last_dump<C: Content>(medium: &Medium<C>) -> Vec<(Ppn, &MetaPage)> {
    let blocks = dump_blocks(medium);
    let pages = blocks.flat_map(|block| medium.meta_pages(block)).collect::<Vec<_>>();
    let last = pages.iter().map(|(_, page)| page.sequence).max().unwrap_or(0);
    let wanted = |(_, page): &(Ppn, &MetaPage)| page.sequence == last;
    let mut pages: Vec<_> = if last > medium.used_dump() {
        pages.into_iter().filter(wanted).collect()
    } else {
        Vec::new()
    };
    pages.sort_by_key(|(_, page)| page.number);
    pages
}

fn blocks_of<C>(medium: &Medium<C>) -> impl Iterator<Item = BlockId> + use<C>
where
    C: Content,
{
    (0..medium.geometry().blocks()).map(BlockId)
}

/// Blocks that hold a dump, wanted or not.
fn dump_blocks<C: Content>(medium: &Medium<C>) -> impl Iterator<Item = BlockId> {
    blocks_of(medium).filter(|&block| {
        matches!(kind_of(medium, block), Some(PageKind::Dump | PageKind::Root))
            && !medium.is_poisoned(block)
    })
}

/// The use of a block that can be read.
fn kind_of<C: Content>(medium: &Medium<C>, block: BlockId) -> Option<PageKind> {
    let used_for = medium.used_for(block).map(|used_for| used_for.kind);
    used_for.filter(|_| medium.health(block) != Health::Bad)
}

fn places_of<'a>(
    dump: &'a [(Ppn, &MetaPage)],
    kind: PageKind,
) -> impl Iterator<Item = Ppn> + use<'a> {
    dump.iter().filter(move |(_, page)| page.kind == kind).map(|&(place, _)| place)
}

/// The number that a page of a dump carries before its content.
fn number_of(page: &MetaPage) -> Option<u64> {
    page.bytes.first_chunk().map(|number| u64::from_le_bytes(*number))
}

/// The contents list of a dump's root.
struct Root {
    map_pages: BTreeSet<u64>,
    /// The first record of the journal that is wanted, and the next to be written.
    journal: Option<(u64, u64)>,
}

impl Root {
    fn of(dump: &[(Ppn, &MetaPage)]) -> Option<Self> {
        let parts: Vec<&[u8]> = dump
            .iter()
            .filter(|(_, page)| page.kind == PageKind::Root)
            .map(|(_, page)| &*page.bytes)
            .collect();
        let bytes = parts.concat();
        let (header, bits) = bytes.split_at_checked(ROOT_HEADER)?;
        let number =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let count = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        if count as usize != parts.len() {
            return None;
        }
        let is_listed = |&page: &u64| bits[page as usize / 8] >> (page % 8) & 1 != 0;
        Some(Self {
            map_pages: (0..bits.len() as u64 * 8).filter(is_listed).collect(),
            journal: (header[12] != 0).then(|| (number(13), number(21))),
        })
    }
}

impl WayBack {
    /// Of the drive that `config` describes.
    pub(super) fn new(config: &Config, geometry: Geometry, transfer_ns: u128) -> Option<Self> {
        let nand = &config.nand;
        let protection = &config.ftl.map.protection;
        Some(Self {
            geometry,
            read_ns: nand.read.as_ns().into(),
            transfer_ns,
            erase_ns: nand.erase.as_ns().into(),
            has_journal: matches!(protection, ProtectionConfig::Journal(_)),
            always_scans: matches!(protection, ProtectionConfig::None(_)),
            erases_vary: nand.endurance_cycles > 0 || nand.faults.erase_failures.as_ppm() > 0,
            power: config.power.clone()?,
        })
    }

    /// The reads of a conventional drive with this medium in its recovery.
    pub(crate) fn conventional<C: Content>(&self, medium: &Medium<C>) -> Derived {
        let dump = last_dump(medium);
        let root = Root::of(&dump);
        let mut steps = vec![self.find_checkpoint(medium)];
        let dumped: BTreeSet<u64> = dump
            .iter()
            .filter(|(_, page)| page.kind == PageKind::Mapping)
            .filter_map(|(_, page)| number_of(page))
            .collect();
        let of_flash =
            newest_map_pages(medium).into_iter().filter(|(page, _)| !dumped.contains(page));
        let dumped_places = [PageKind::Root, PageKind::Mapping].into_iter();
        let dumped_places = dumped_places.flat_map(|kind| places_of(&dump, kind));
        let places = dumped_places.chain(of_flash.map(|(_, place)| place));
        steps.push(Reads::new(self).add_places(places).pages(StepName::LoadMap));

        let journal = self.journal(medium, &dump, root.as_ref());
        let knows_all = root.as_ref().is_some_and(|root| {
            root.map_pages.is_subset(&dumped) && (!self.has_journal || journal.is_some())
        });
        if !knows_all || self.always_scans {
            steps.push(self.roll_forward(medium));
        }
        if let Some(places) = journal {
            steps.push(
                Reads::new(self).add_places(places.into_iter()).pages(StepName::ReplayJournal),
            );
        }
        steps.push(self.open_blocks(medium));
        self.put_back(&dump, &mut steps);
        Derived { steps, optional: vec![StepName::PutBack, StepName::RollForward] }
    }

    /// One page of each block of a dump, and each page of blocks of the table.
    fn find_checkpoint<C: Content>(&self, medium: &Medium<C>) -> Step {
        let mut reads = Reads::new(self);
        for block in blocks_of(medium) {
            let pages = match kind_of(medium, block) {
                Some(PageKind::Dump | PageKind::Root) => 1,
                Some(PageKind::Mapping | PageKind::Journal) => medium.written_pages(block),
                _ => 0,
            };
            reads.add(self.geometry.die_of(block), pages.into());
        }
        reads.areas(StepName::FindCheckpoint)
    }

    /// Every page of data.
    fn roll_forward<C: Content>(&self, medium: &Medium<C>) -> Step {
        let mut reads = Reads::new(self);
        for block in blocks_of(medium).filter(|&it| kind_of(medium, it) == Some(PageKind::Data)) {
            reads.add(self.geometry.die_of(block), medium.written_pages(block).into());
        }
        reads.areas(StepName::RollForward)
    }

    /// Where the pages of the journal lie that are wanted; `None` if some are nowhere.
    fn journal<C: Content>(
        &self,
        medium: &Medium<C>,
        dump: &[(Ppn, &MetaPage)],
        root: Option<&Root>,
    ) -> Option<Vec<Ppn>> {
        let (tail, next) = root?.journal?;
        let per_page = u64::from(self.geometry.page_bytes() / RECORD_BYTES);
        let blocks = blocks_of(medium);
        let of_journal = blocks.filter(|&it| kind_of(medium, it) == Some(PageKind::Journal));
        let pages = of_journal.flat_map(|block| medium.meta_pages(block));
        let mut on_flash: BTreeMap<u64, Ppn> = pages
            .filter(|(_, page)| page.kind == PageKind::Journal)
            .map(|(place, page)| (page.number, place))
            .collect();
        let dumped: BTreeMap<u64, Ppn> = dump
            .iter()
            .filter(|(_, page)| page.kind == PageKind::Journal)
            .filter_map(|(place, page)| Some((number_of(page)?, *place)))
            .collect();
        let wanted = tail / per_page..next.div_ceil(per_page);
        let is_there = |page: u64| on_flash.contains_key(&page) || dumped.contains_key(&page);
        if tail != next && !wanted.clone().all(is_there) {
            return None;
        }
        on_flash.retain(|&page, _| page >= wanted.start);
        // The page that was being filled held nothing that is wanted: the journal begins a new one.
        let head = next / per_page;
        if !next.is_multiple_of(per_page) && !dumped.contains_key(&head) {
            on_flash.clear();
        }
        Some(dumped.into_values().chain(on_flash.into_values()).collect())
    }

    /// A search by halves over the pages of the block that each stream of each die was filling.
    fn open_blocks<C: Content>(&self, medium: &Medium<C>) -> Step {
        let mut reads = Reads::new(self);
        let each = u64::from(self.geometry.pages_per_block().ilog2() + 1);
        let mut open = BTreeSet::new();
        for block in blocks_of(medium) {
            let die = self.geometry.die_of(block);
            let is_open = medium.health(block) == Health::Good
                && !medium.is_poisoned(block)
                && medium.next_page(block).is_some();
            let stream = medium.used_for(block).filter(|it| it.kind == PageKind::Data);
            if let Some(used_for) = stream.filter(|_| is_open)
                && open.insert((die, used_for.stream))
            {
                reads.add(die, each);
            }
        }
        reads.areas(StepName::OpenBlocks)
    }

    fn put_back(&self, dump: &[(Ppn, &MetaPage)], steps: &mut Vec<Step>) {
        let reads = Reads::new(self).add_places(places_of(dump, PageKind::Dump));
        let step = reads.pages(StepName::PutBack);
        steps.extend((step.pages > 0).then_some(step));
    }

    /// Compares what a drive says of its way back with that; yields the first difference. The power returned at `at`, the
    /// dump has ended at `dump_end`, and the drive says that its bank has `bank_nf`.
    pub(crate) fn check(
        &self,
        derived: &Derived,
        (at, dump_end): (Time, Time),
        bank_nf: u64,
        said: &Recovery,
    ) -> Result<(), String> {
        let mut steps = said.steps.iter().filter(|step| step.name != StepName::EraseOldDumps);
        for step in &derived.steps {
            let next = steps.clone().next().filter(|next| next.name == step.name);
            let Some(next) = next else {
                if derived.optional.contains(&step.name) {
                    continue;
                }
                return Err(format!("the recovery leaves out the step {}", step.name.name()));
            };
            steps.next();
            if (next.pages, u128::from(next.time.as_ns())) != (step.pages, step.ns) {
                return Err(format!(
                    "the step {} is said to read {} pages in {} ns, and there are {} to read in {} ns",
                    step.name.name(),
                    next.pages,
                    next.time.as_ns(),
                    step.pages,
                    step.ns
                ));
            }
        }
        if let Some(step) = steps.next() {
            return Err(format!("nothing asks for the step {}", step.name.name()));
        }
        let charge_ns = bank::charge_ns(&self.power.bank, self.power.charge_power, bank_nf);
        let scan_ns: u128 = said.steps.iter().map(|step| u128::from(step.time.as_ns())).sum();
        let pages: u64 = said.steps.iter().map(|step| step.pages).sum();
        let begin = at.max(dump_end);
        let ready_ns = u128::from(begin.as_ns()) + scan_ns.max(charge_ns);
        let numbers = [
            (
                "ns of the dump that are left",
                said.dump.as_ns().into(),
                begin.since(at).as_ns().into(),
            ),
            ("ns to charge the bank", said.charge.as_ns().into(), charge_ns),
            ("ns for all steps", said.scan.as_ns().into(), scan_ns),
            ("pages read", said.pages_scanned.into(), pages.into()),
            ("ns as the time when it is ready", said.ready_at.as_ns().into(), ready_ns),
        ];
        match numbers.into_iter().find(|(_, said, is): &(_, u128, u128)| said != is) {
            Some((what, said, is)) => Err(format!("the drive says {said} {what}, and it is {is}")),
            None => Ok(()),
        }
    }
}

/// Where the newest copy of each mapping page lies, outside of dumps.
fn newest_map_pages<C: Content>(medium: &Medium<C>) -> BTreeMap<u64, Ppn> {
    let blocks = blocks_of(medium).filter(|&it| kind_of(medium, it) == Some(PageKind::Mapping));
    let mut newest: BTreeMap<u64, (u64, Ppn)> = BTreeMap::new();
    for (place, page) in blocks.flat_map(|block| medium.meta_pages(block)) {
        let copy = newest.entry(page.number).or_insert((page.sequence, place));
        *copy = (*copy).max((page.sequence, place));
    }
    newest.into_iter().map(|(page, (_, place))| (page, place)).collect()
}

/// The state of a block at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    kind: Option<PageKind>,
    health: Health,
    written: u32,
    erases: u32,
    /// It holds a dump before the last one.
    is_old: bool,
}

/// All blocks of a flash as they were at a moment, and how many erases the drive had counted.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    all: Vec<Seen>,
    counted: u64,
    /// The time of its erases according to a recovery that has just begun.
    said: Span,
}

impl Blocks {
    pub(crate) fn of<C: Content>(medium: &Medium<C>, counted: u64) -> Self {
        let seen = |block| Seen {
            kind: medium.used_for(block).map(|used_for| used_for.kind),
            health: medium.health(block),
            written: medium.written_pages(block),
            erases: medium.erases(block),
            is_old: false,
        };
        Self { all: blocks_of(medium).map(seen).collect(), counted, said: Span::ZERO }
    }

    /// The same, of `medium` when `recovery` has just begun.
    pub(crate) fn with<C: Content>(mut self, medium: &Medium<C>, recovery: &Recovery) -> Self {
        let geometry = medium.geometry();
        let wanted = last_dump(medium).into_iter().map(|(place, _)| geometry.block_of_page(place));
        let wanted: BTreeSet<BlockId> = wanted.collect();
        for block in dump_blocks(medium) {
            self.all[block.index()].is_old = !wanted.contains(&block);
        }
        let erases = recovery.steps.iter().filter(|step| step.name == StepName::EraseOldDumps);
        Self { said: erases.fold(Span::ZERO, |sum, step| sum + step.time), ..self }
    }

    /// Each block that lost pages since then was erased, and the drive has counted as many erases as its blocks.
    pub(crate) fn check_erases(&self, now: &Self) -> Result<(), String> {
        for (block, (before, after)) in self.all.iter().zip(&now.all).enumerate() {
            let lost_pages = after.written < before.written
                || before.kind.is_some() && after.kind != before.kind;
            if after.erases < before.erases || lost_pages && after.erases == before.erases {
                return Err(format!(
                    "block {block} had {} pages after {} erases, and has {} after {}",
                    before.written, before.erases, after.written, after.erases
                ));
            }
        }
        let sum = |blocks: &Self| blocks.all.iter().map(|it| u64::from(it.erases)).sum::<u64>();
        let (erased, counted) = (sum(now) - sum(self), now.counted - self.counted);
        if erased != counted {
            return Err(format!(
                "blocks were erased {erased} times, and the drive counts {counted}"
            ));
        }
        Ok(())
    }
}

impl WayBack {
    /// Compares what a recovery has erased with the time that it took for that. `before` is what flash held when the power
    /// had returned.
    pub(crate) fn check_erased(&self, before: &Blocks, now: &Blocks) -> Result<(), String> {
        before.check_erases(now)?;
        let said_span = before.said;
        let mut by_die = vec![0_u128; self.geometry.dies() as usize];
        for (block, (before, after)) in (0..).map(BlockId).zip(before.all.iter().zip(&now.all)) {
            let is_erased = after.erases > before.erases;
            // Garbage whose erase fails goes bad, too. An old dump's block that was failing goes bad without an erase.
            let is_tried =
                if before.is_old { before.health == Health::Good } else { self.erases_vary };
            let is_retired =
                is_tried && before.health != Health::Bad && after.health == Health::Bad;
            by_die[self.geometry.die_of(block).index()] += u128::from(is_erased || is_retired);
        }
        let ns = by_die.into_iter().max().unwrap_or(0) * self.erase_ns;
        let said_ns = u128::from(said_span.as_ns());
        // An erase that failed leaves room for another one, which no time was kept for.
        if said_ns == ns || self.erases_vary && said_ns <= ns {
            return Ok(());
        }
        Err(format!("the recovery says that its erases take {said_ns} ns, and they take {ns}"))
    }
}
