//! The page in a real browser: wide and narrow, light and dark. Runs where Chromium is; elsewhere it says on
//! stderr that it was skipped, or fails if `LEYDEN_BROWSER` is set. The screenshots stay in cargo's temporary
//! folder of tests, to be looked at.

mod samples;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leyden_record::{RunRecord, Varied};
use leyden_report::{CrashModel, CrashRun, CrashTestPage, render, render_crash_test};
use samples::Sample;

/// Names that Chromium goes by.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Looks at the page at the moment that the charts in the window are drawn, then when those near it are, then has it draw
/// all of them as for print, and writes what it finds into attributes of the root element.
///
/// Virtual time runs out while the library is unpacked on another thread: until the end a timer takes real time, too.
const PROBE: &str = r#"
<script>
const root = document.documentElement;
const pause = () => new Promise((done) => setTimeout(done, 200));
const timer = setInterval(() => Array.from({ length: 4000 }, Math.random), 10);
const isBare = (chart) => !chart.querySelector("svg path[d]");
const isShown = (chart) => {
  const { top, bottom } = chart.getBoundingClientRect();
  return top < innerHeight && bottom > 0;
};
new MutationObserver(async (_, observer) => {
  observer.disconnect();
  const charts = [...document.querySelectorAll(".chart")];
  root.dataset.charts = charts.length;
  for (let turn = 0; turn < 100; turn += 1) await null; // a view draws when all that waits in this task has run
  root.dataset.missing = charts.filter((chart) => isShown(chart) && isBare(chart)).length;
  root.dataset.early = charts.filter((chart) => !isShown(chart) && !isBare(chart)).length;
  await pause();
  await pause();
  root.dataset.late = charts.filter(isBare).length;
  // A name that is clicked before its chart is drawn.
  const late = charts.filter(isBare).map((c) => c.closest("figure")).findLast((f) => f.querySelectorAll(".key").length > 1);
  const key = late.querySelector(".key");
  const lines = () => late.querySelectorAll(".mark-line path[d]").length;
  key.click();
  const room = charts.map((chart) => chart.offsetHeight);
  dispatchEvent(new Event("beforeprint"));
  dispatchEvent(new Event("afterprint"));
  await pause();
  root.dataset.bare = charts.filter(isBare).map((c) => c.dataset.figure).join(" ");
  root.dataset.jump = Math.max(...charts.map((chart, i) => Math.abs(chart.offsetHeight - room[i])));
  root.dataset.overflow = root.scrollWidth - root.clientWidth;
  root.dataset.ground = getComputedStyle(document.body).backgroundColor;
  const without = lines();
  key.click();
  await pause();
  const all = lines();
  key.click();
  await pause();
  root.dataset.lines = [without, all, lines()].join(" ");
  clearInterval(timer);
}).observe(root, { attributeFilter: ["data-drawn"] });
</script>
"#;

fn browser() -> Option<&'static str> {
    let runs = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success())
    };
    BROWSERS.into_iter().find(|name| runs(name))
}

/// The browser; without one it says that `test` is skipped, or fails where one is asked for.
fn browser_or_skip(test: &str) -> Option<&'static str> {
    let browser = browser();
    if browser.is_none() {
        assert!(
            std::env::var_os("LEYDEN_BROWSER").is_none(),
            "LEYDEN_BROWSER is set, and no browser runs"
        );
        // Past the capture of a test's output: who reads the log must see what was not looked at.
        let mut log = std::io::stderr();
        writeln!(log, "SKIPPED {test}: no Chromium here (apt-get install chromium)").unwrap();
    }
    browser
}

/// Opens a page in a window of this size.
fn open(browser: &str, page: &Path, (width, height): (u32, u32), what: &[&str]) -> Output {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=100000"])
        .arg(format!("--window-size={width},{height}"))
        .args(what)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{}: {console:?}", page.display());
    output
}

/// An attribute of the root element.
fn attribute(dom: &str, name: &str) -> String {
    let mark = format!("data-{name}=\"");
    let Some((_, rest)) = dom.split_once(&mark) else { panic!("no {mark} in {}", &dom[..300]) };
    rest.split('"').next().unwrap().to_owned()
}

/// A sweep, with values of the key that are numbers.
fn sweep() -> Vec<RunRecord> {
    let runs = [7, 15, 28, 40].into_iter().map(|percent| {
        let mut record =
            Sample { quality: 0.8 + f64::from(percent) / 100.0, ..Sample::default() }.record();
        record.name = format!("{percent} %");
        record.scenario = "sweep".into();
        let (key, value) = ("device.ftl.over_provisioning".into(), format!("{percent} %"));
        record.varied = vec![Varied { key, value }];
        record
    });
    runs.collect()
}

#[test]
fn every_chart_is_drawn_wide_narrow_light_and_dark() {
    let Some(browser) = browser_or_skip("every_chart_is_drawn_wide_narrow_light_and_dark") else {
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(&folder).unwrap();
    for (name, records) in [("one", vec![Sample::default().record()]), ("sweep", sweep())] {
        let html = render(&records, None).unwrap();
        for (theme, size, width) in [("light", "wide", 1280), ("dark", "narrow", 500)] {
            let themed = html.replace(
                "<html lang=\"en\">",
                &format!("<html lang=\"en\" data-theme=\"{theme}\">"),
            );
            let page = folder.join(format!("{name}-{size}-{theme}.html"));
            // The chart library speaks of bodies too: the last one is the page's.
            let (body, end) = themed.rsplit_once("</body>").unwrap();
            fs::write(&page, format!("{body}{PROBE}</body>{end}")).unwrap();
            let output = open(browser, &page, (width, 900), &["--dump-dom"]);
            let dom = String::from_utf8_lossy(&output.stdout);
            let case = page.display();
            assert_eq!(attribute(&dom, "bare"), "", "{case}: charts without a mark");
            let charts: usize = attribute(&dom, "charts").parse().unwrap();
            assert_eq!(charts, html.matches("<div class=\"chart\"").count(), "{case}");
            assert_eq!(attribute(&dom, "overflow"), "0", "{case}: wider than the window");
            let late: usize = attribute(&dom, "late").parse().unwrap();
            assert!(late > charts / 2, "{case}: {late} of {charts} are far below");
            assert_eq!(attribute(&dom, "missing"), "0", "{case}: in the window, and not drawn");
            assert_eq!(attribute(&dom, "early"), "0", "{case}: the first screen waits for others");
            let jump: f64 = attribute(&dom, "jump").parse().unwrap();
            assert!(jump <= 8.0, "{case}: text below a chart jumps by {jump} pixels");
            let ground = if theme == "dark" { "rgb(15, 17, 20)" } else { "rgb(246, 247, 248)" };
            assert_eq!(attribute(&dom, "ground"), ground, "{case}");
            let lines = attribute(&dom, "lines");
            let lines: Vec<u32> = lines.split(' ').map(|n| n.parse().unwrap()).collect();
            assert!(lines[0] + 1 == lines[1] && lines[2] == lines[0], "{case}: {lines:?}");
            let png = page.with_extension("png");
            open(browser, &page, (width, 2400), &[&format!("--screenshot={}", png.display())]);
            assert!(fs::metadata(&png).unwrap().len() > 20_000, "{case}: a blank picture");
        }
    }
}

/// A crash test with one state that held and one that lost.
fn crash_test() -> CrashTestPage<'static> {
    CrashTestPage {
        title: "Crash test of a sample",
        verdict: "one promise".to_owned(),
        is_held: false,
        facts: vec![("work", "sh <work>.sh".to_owned())],
        warnings: Vec::new(),
        run: CrashRun {
            is_of_files: true,
            span_ns: (0, 1_000_000),
            writes: vec![(0, 4_096)],
            flushes: vec![500_000],
            acks: vec![510_000],
        },
        models: vec![CrashModel {
            name: "adversarial",
            line: "2 states".to_owned(),
            tallies: vec![(499_999, [1, 0, 0]), (1_000_000, [0, 1, 0])],
        }],
        findings: Vec::new(),
        curve: Vec::new(),
    }
}

#[test]
fn a_drawing_is_saved_light_and_complete() {
    let Some(browser) = browser_or_skip("a_drawing_is_saved_light_and_complete") else { return };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser");
    fs::create_dir_all(&folder).unwrap();
    let html = render_crash_test(&crash_test()).unwrap();
    let html = html.replace("<html lang=\"en\">", "<html lang=\"en\" data-theme=\"dark\">");
    let probe = r##"<script>
URL.createObjectURL = (blob) => {
  blob.text().then((svg) => { document.documentElement.dataset.saved = svg.replaceAll('"', "'"); });
  return "#";
};
document.querySelector("button.save").click();
</script>"##;
    let page = folder.join("crash-dark.html");
    let (body, end) = html.rsplit_once("</body>").unwrap();
    fs::write(&page, format!("{body}{probe}</body>{end}")).unwrap();
    let output = open(browser, &page, (1280, 900), &["--dump-dom"]);
    let dom = String::from_utf8_lossy(&output.stdout);
    let saved = attribute(&dom, "saved").replace("&lt;", "<").replace("&gt;", ">");
    for part in [
        "width='175mm'",
        "what became of power cuts then",
        ">acknowledged lost<",
        "sample; work: sh",
        // Of the legend, and of the drawing itself.
        "fill='rgb(47, 158, 119)'",
        "fill='rgb(221, 95, 13)'",
        "fill:rgb(47, 158, 119)",
        "fill:rgb(221, 95, 13)",
    ] {
        assert!(saved.contains(part), "no {part} in {saved}");
    }
    assert!(!saved.contains("var(") && !saved.contains("class="), "{saved}");
    assert_eq!(attribute(&dom, "theme"), "dark");
}
