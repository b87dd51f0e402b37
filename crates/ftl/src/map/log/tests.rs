//! An example worked out, and the log against a slow twin: every record there ever was.

use super::*;
use proptest::prelude::*;

/// Two dies, four records to a page, two pages in DRAM, three on flash, five at most.
const SHAPE: JournalShape =
    JournalShape { records_per_page: 4, dram_pages: 2, flash_pages: 3, most_pages: 5, dies: 2 };

/// The remainder of `log` after a power cut: the pages on flash.
fn after_cut(log: &MapLog) -> MapLog {
    let mut left = MapLog::new(log.shape, log.dirty_first.len() as u32, log.keep);
    for (number, place) in log.places() {
        left.found(number, place, log.records_of(number));
    }
    left
}

fn write(log: &mut MapLog, page: u32, lpn: u32) -> Option<u64> {
    log.append(MapPage(page), Record { lpn: Lpn(lpn), unit: Some(Ppa(lpn)) })
}

#[test]
fn an_example_worked_out() {
    let mut log = MapLog::new(SHAPE, 3, true);
    // Mapping page 0 has records 0 and 1, page 1 has 2, page 2 has 3: journal page 0 is full.
    assert_eq!(
        [(0, 10), (0, 11), (1, 20), (2, 30)].map(|(p, l)| write(&mut log, p, l))[3],
        Some(0)
    );
    assert_eq!((log.tail(), log.unhanded_records(), log.room()), (0, 4, 4));
    assert_eq!((log.next_waiting(DieId(0)), log.next_waiting(DieId(1))), (Some(0), None));
    log.hand_over(0);
    log.programmed(0, Ppn(7));
    assert_eq!((log.unhanded_records(), log.first_page()), (0, 0));

    // Page 0 goes to flash, and changes meanwhile: record 4. The tail stays until it is written.
    log.map_page_handed(MapPage(0));
    assert_eq!(write(&mut log, 0, 12), None);
    assert_eq!(log.tail(), 0);
    log.map_page_written(MapPage(0));
    assert_eq!(log.tail(), 2);
    assert_eq!(log.first_page(), 0);
    for page in [1, 2] {
        log.map_page_handed(MapPage(page));
        log.map_page_written(MapPage(page));
    }
    // Record 4 is needed alone; it is in the page being filled.
    assert_eq!((log.tail(), log.first_page()), (4, 1));
    assert_eq!(log.pages_to_dump(|_| false), [1]);
    assert_eq!(&*log.records_of(1), [Record { lpn: Lpn(12), unit: Some(Ppa(12)) }]);

    // Pages 1 to 3 of the journal: not too long. When page 4 is full, and page 5 is begun, records
    // before page 2's are too old.
    for lpn in 0..11 {
        let full = write(&mut log, 1, lpn);
        assert_eq!(log.due(false), []);
        if let Some(number) = full {
            log.hand_over(number);
            log.programmed(number, Ppn(number as u32));
        }
    }
    assert_eq!((log.next(), log.head_page()), (16, 4));
    assert_eq!(log.due(false), []);
    for lpn in 0..4 {
        write(&mut log, 2, lpn);
    }
    assert_eq!(
        log.due(false),
        [MapPage(0), MapPage(1)],
        "first records 4 and 5, of journal page 1"
    );
    assert_eq!(log.due(false), [], "once");
}

#[test]
fn a_full_journal_waits_for_its_tail() {
    let mut log = MapLog::new(SHAPE, 4, false);
    for lpn in 0..20 {
        if let Some(number) = write(&mut log, lpn / 8, lpn) {
            log.hand_over(number);
            log.programmed(number, Ppn(number as u32));
        }
    }
    for lpn in 0..8 {
        write(&mut log, 3, lpn);
    }
    // Five pages on flash, two in DRAM: no room anywhere.
    assert!(!log.has_room(1));
    assert_eq!((log.next_waiting(DieId(0)), log.next_waiting(DieId(1))), (None, None));
    assert_eq!(log.due(false), [MapPage(0), MapPage(1)]);
    log.map_page_handed(MapPage(0));
    assert_eq!(log.next_waiting(DieId(1)), None);
    log.map_page_written(MapPage(0));
    assert_eq!(log.tail(), 8);
    assert_eq!((log.next_waiting(DieId(1)), log.next_waiting(DieId(0))), (Some(5), Some(6)));
}

#[test]
fn what_a_cut_tears_is_dumped_and_a_missing_page_is_noticed() {
    let mut log = MapLog::new(SHAPE, 2, true);
    for lpn in 0..6 {
        write(&mut log, lpn % 2, lpn);
    }
    log.hand_over(0);
    assert_eq!(log.pages_to_dump(|number| number == 0), [1]);
    assert_eq!(log.pages_to_dump(|_| false), [0, 1]);
    log.program_failed(0);
    let (root, dumped) = (log.root(), [0, 1].map(|number| (number, log.records_of(number))));
    assert_eq!(root, LogRoot { tail: 0, next: 6 });
    log = after_cut(&log);
    assert!(log.is_whole(root, &dumped));
    assert!(!log.is_whole(root, &dumped[1..]) && !log.is_whole(root, &dumped[..1]));
    let records = log.recover(root, &dumped);
    assert_eq!(
        records.iter().map(|&(n, r)| (n, r.lpn.0)).collect::<Vec<_>>(),
        (0..6).map(|i| (i, i as u32)).collect::<Vec<_>>()
    );
    assert_eq!((log.unhanded_records(), log.next_waiting(DieId(0))), (2, Some(0)));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Change(u32),
    HandMap(u32),
    EndMap(u32, bool),
    HandPage(u32),
    EndPage(u32, bool),
    Cut,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0_u32..PAGES).prop_map(Step::Change),
        5 => (0_u32..PAGES).prop_map(Step::HandMap),
        5 => (0_u32..PAGES, any::<bool>()).prop_map(|(page, ok)| Step::EndMap(page, ok)),
        5 => (0_u32..2).prop_map(Step::HandPage),
        5 => (0_u32..2, any::<bool>()).prop_map(|(die, ok)| Step::EndPage(die, ok)),
        1 => Just(Step::Cut),
    ];
    proptest::collection::vec(step, 0..400)
}

const PAGES: u32 = 5;

/// Every record there ever was, and what flash holds.
#[derive(Default)]
struct Twin {
    records: Vec<(u64, MapPage, Record)>,
    next: u64,
    /// Of each mapping page, flash holds the records before this one.
    saved: [u64; PAGES as usize],
    /// A die is writing it with the records before this one.
    handed: [Option<u64>; PAGES as usize],
    /// The page of the journal on each die.
    on_die: [Option<u64>; 2],
    on_flash: BTreeMap<u64, Box<[Record]>>,
}

impl Twin {
    fn first_after(&self, page: MapPage, from: u64) -> Option<u64> {
        let of_page =
            |&&(number, other, _): &&(u64, MapPage, Record)| other == page && number >= from;
        self.records.iter().find(of_page).map(|&(number, _, _)| number)
    }
    fn first_dirty(&self, page: MapPage) -> Option<u64> {
        self.first_after(page, self.handed[page.index()].unwrap_or(self.saved[page.index()]))
    }
    fn is_dirty(&self, page: MapPage) -> bool {
        self.first_dirty(page).is_some()
    }
    fn tail(&self) -> u64 {
        let firsts = (0..PAGES).map(MapPage);
        let firsts = firsts.filter_map(|page| self.first_after(page, self.saved[page.index()]));
        firsts.min().unwrap_or(self.next)
    }
}

fn apply(log: &mut MapLog, twin: &mut Twin, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Change(page) if log.has_room(1) => {
            let unit = twin.next.is_multiple_of(3).then_some(Ppa(twin.next as u32));
            let record = Record { lpn: Lpn(page * 4 + twin.next as u32 % 4), unit };
            log.append(MapPage(page), record);
            twin.records.push((twin.next, MapPage(page), record));
            twin.next += 1;
        }
        Step::HandMap(page)
            if twin.handed[page as usize].is_none() && twin.is_dirty(MapPage(page)) =>
        {
            log.map_page_handed(MapPage(page));
            twin.handed[page as usize] = Some(twin.next);
        }
        Step::EndMap(page, ok) => {
            if let Some(upto) = twin.handed[page as usize].take() {
                if ok {
                    log.map_page_written(MapPage(page));
                    twin.saved[page as usize] = upto;
                } else {
                    log.map_page_failed(MapPage(page));
                }
            }
        }
        Step::HandPage(die) if twin.on_die[die as usize].is_none() => {
            if let Some(number) = log.next_waiting(DieId(die)) {
                log.hand_over(number);
                twin.on_die[die as usize] = Some(number);
            }
        }
        Step::EndPage(die, ok) => {
            if let Some(number) = twin.on_die[die as usize].take() {
                if ok {
                    twin.on_flash.insert(number, log.records_of(number));
                    log.programmed(number, Ppn(number as u32));
                } else {
                    log.program_failed(number);
                }
            }
        }
        Step::Cut => cut(log, twin)?,
        Step::Change(_) | Step::HandMap(_) | Step::HandPage(_) => {}
    }
    Ok(())
}

/// The power fails; what was on its way is torn.
fn cut(log: &mut MapLog, twin: &mut Twin) -> Result<(), TestCaseError> {
    for page in (0..PAGES).filter(|&page| twin.handed[page as usize].take().is_some()) {
        log.map_page_failed(MapPage(page));
    }
    for number in twin.on_die.iter_mut().filter_map(Option::take) {
        log.program_failed(number);
    }
    let dumped: Vec<_> =
        log.pages_to_dump(|_| false).into_iter().map(|n| (n, log.records_of(n))).collect();
    // Pages that capacitors protect, and one for each die.
    prop_assert!(dumped.len() <= 2 + 2);
    let root = log.root();
    *log = after_cut(log);
    prop_assert!(log.is_whole(root, &dumped));
    let replayed = log.recover(root, &dumped);
    let needed = twin.records.iter().filter(|(number, ..)| *number >= twin.tail());
    prop_assert_eq!(
        &replayed,
        &needed.map(|&(number, _, record)| (number, record)).collect::<Vec<_>>()
    );
    for (number, record) in replayed {
        let page = MapPage(record.lpn.0 / 4);
        if number >= twin.saved[page.index()] {
            log.mark_dirty(page, number);
        }
    }
    twin.next = log.next();
    Ok(())
}

proptest! {
    #[test]
    fn behaves_like_all_records_there_ever_were(steps in steps()) {
        let mut log = MapLog::new(SHAPE, PAGES, true);
        let mut twin = Twin::default();
        for step in steps {
            apply(&mut log, &mut twin, step)?;
            prop_assert_eq!(log.check(|page| twin.is_dirty(page)), Ok(()));
            prop_assert_eq!(log.tail(), twin.tail());
            prop_assert!(log.unhanded_records() <= 8);
            // Needed pages that are not in DRAM are on flash, where they were programmed.
            for (number, _) in log.places() {
                prop_assert_eq!(&log.records_of(number), &twin.on_flash[&number]);
            }
            // Oldest first, and only what is too old.
            let due = log.due(false);
            let firsts: Vec<_> = due.iter().map(|&page| twin.first_dirty(page)).collect();
            prop_assert!(firsts.is_sorted());
            prop_assert!(firsts.iter().flatten().all(|first| first / 4 + 3 < log.head_page()));
        }
    }
}
