//! Figures drawn without a browser: complete, of the size asked for, and refused where they must be.

use std::io::Write as _;

use leyden_plot::{FigureData, Fonts, Format, MADE_BY, Paper, PlotError, plot};
use leyden_report::read_records;

/// A run with two power cuts.
fn cuts() -> FigureData {
    let json = include_str!("../../../fuzz/corpus-seeds/record/cuts.json");
    FigureData::of_records(&read_records(json).unwrap()).unwrap()
}

fn svg(id: &str, paper: &Paper) -> String {
    String::from_utf8(plot(&cuts(), id, paper, Format::Svg).unwrap()).unwrap()
}

#[test]
fn an_svg_has_title_legend_caption_and_the_width_asked_for() {
    let data = cuts();
    let drawn = svg("programs", &Paper { width_mm: 120.0, ..Paper::default() });
    for part in ["width=\"120mm\"", "Page programs by cause", "seed ", "digest ", MADE_BY] {
        assert!(drawn.contains(part), "no {part}");
    }
    assert!(!drawn.contains("var("), "paper has no style sheet");
    assert!(data.figures().iter().any(|(id, _)| id == "programs"));
}

#[test]
fn lines_that_are_several_have_a_legend_behind_bands_too() {
    let paper = Paper::default();
    let records = read_records(&long_run()).unwrap();
    let data = FigureData::of_records(&records).unwrap();
    assert!(data.json().get().contains("\"low\""), "the run is long enough for bands");
    let svg = String::from_utf8(plot(&data, "iops", &paper, Format::Svg).unwrap()).unwrap();
    let legend = svg.split("role-legend").nth(1).unwrap();
    assert!(legend.contains("Reads") && legend.contains("Writes"));
    assert_eq!(svg.matches("role-legend\"").count(), 1, "one for all channels");
}

/// A record of reads and writes over 1,000 intervals.
fn long_run() -> String {
    let json = include_str!("../../../fuzz/corpus-seeds/record/cuts.json");
    let mut record = serde_json::to_value(&read_records(json).unwrap()[0]).unwrap();
    let series = &mut record["series"];
    series["interval_s"] = 1.0.into();
    series["time_s"] = (1..=1000).collect();
    series["read_iops"] = (0..1000).map(|i| 100 + i % 7).collect();
    series["write_iops"] = (0..1000).map(|i| 50 + i % 5).collect();
    record.to_string()
}

#[test]
fn many_runs_have_a_panel_each() {
    let record = read_records(&long_run()).unwrap().remove(0);
    let named = |number: usize| {
        let mut record = record.clone();
        record.name = format!("run {number}");
        record.scenario.clone_from(&record.name);
        record
    };
    let records: Vec<_> = (0..6).map(named).collect();
    let data = FigureData::of_records(&records).unwrap();
    let paper = Paper { width_mm: 120.0, ..Paper::default() };
    let svg = String::from_utf8(plot(&data, "iops-reads", &paper, Format::Svg).unwrap()).unwrap();
    assert!(svg.contains("width=\"120mm\"") && svg.contains("IOPS over time: reads"));
    for name in (0..6).map(|number| format!(">run {number}<")) {
        assert_eq!(svg.matches(&name).count(), 1, "{name}");
    }
    // In each panel its own line, and behind it all six in grey.
    let paths = |colour: &str| svg.matches(&format!("stroke=\"{colour}\" stroke-opacity=")).count();
    assert_eq!(paths("#c3cad1"), 36);
    assert_eq!(
        ["#0b62b0", "#dd5f0d", "#2f9e77", "#86217c", "#6b5a00", "#3d99e3"].map(paths),
        [1; 6]
    );
}

#[test]
fn a_title_that_begins_with_the_lone_line_says_it_once() {
    let titled = |title: &str| {
        let json = format!(
            r#"{{"caption": "", "runs": [], "charts": {{"x": {{"title": "{title}", "rows": [], "lines": [{{"label": "Waf", "x": [1], "y": [1]}}],
            "spec": {{"mark": "point", "encoding": {{"x": {{"field": "x"}}, "y": {{"field": "v"}}}}}}}}}}}}"#
        );
        let page = format!("<script type=\"application/json\" id=\"data\">{json}</script>");
        let data = FigureData::of_page(&page).unwrap();
        let svg = plot(&data, "x", &Paper::default(), Format::Svg).unwrap();
        String::from_utf8(svg).unwrap().matches("Waf").count()
    };
    assert_eq!(titled("Waf over x"), titled("Over x"), "there it is told behind the title");
}

#[test]
fn data_without_figures_says_so() {
    let page = r#"<script type="application/json" id="data">{"charts": {}}</script>"#;
    let data = FigureData::of_page(page).unwrap();
    let refused = plot(&data, "waf", &Paper::default(), Format::Svg).unwrap_err();
    assert_eq!(refused.to_string(), "there is no figure `waf`; the input has none");
}

#[test]
fn every_figure_of_a_report_is_drawn() {
    let data = cuts();
    assert!(data.figures().len() >= 4);
    for (id, title) in data.figures() {
        let drawn = svg(id, &Paper::default());
        let first = title.split(' ').next().unwrap();
        assert!(drawn.contains(first) && drawn.contains("<path"), "{id}");
    }
}

#[test]
fn a_page_has_the_figures_of_its_records() {
    let json = include_str!("../../../fuzz/corpus-seeds/record/cuts.json");
    let records = read_records(json).unwrap();
    let page = leyden_report::render(&records, Some("A page </script>")).unwrap();
    let from_page = FigureData::of_page(&page).unwrap();
    let paper = Paper::default();
    let id = "programs";
    let drawn = plot(&from_page, id, &paper, Format::Svg).unwrap();
    assert_eq!(drawn, plot(&cuts(), id, &paper, Format::Svg).unwrap());
    for page in ["", "<html>", "<script type=\"application/json\" id=\"data\">{}</script>"] {
        assert!(FigureData::of_page(page).is_err(), "{page}");
    }
}

#[test]
fn same_data_same_bytes() {
    let id = "programs";
    assert_eq!(svg(id, &Paper::default()), svg(id, &Paper::default()));
}

#[test]
fn an_unknown_figure_is_refused_with_those_that_there_are() {
    let refused = plot(&cuts(), "wafs", &Paper::default(), Format::Svg).unwrap_err();
    assert!(matches!(refused, PlotError::NoFigure { .. }));
    assert!(refused.to_string().contains("there are ") && refused.to_string().contains("waf"));
}

#[test]
fn pdf_and_png_are_what_their_names_say() {
    if Fonts::installed().is_empty() {
        // Past the capture of a test's output: who reads the log must see it.
        let said = "SKIPPED pdf_and_png_are_what_their_names_say: no font";
        writeln!(std::io::stderr(), "{said} (apt-get install fonts-dejavu-core)").unwrap();
        return;
    }
    let paper = Paper { width_mm: 88.0, ..Paper::default() };
    let pdf = plot(&cuts(), "programs", &paper, Format::Pdf).unwrap();
    assert!(pdf.starts_with(b"%PDF-") && pdf.ends_with(format!("% {MADE_BY}\n").as_bytes()));
    let png = plot(&cuts(), "programs", &paper, Format::Png).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
    assert!((1039..=1041).contains(&width), "88 mm at 300 dpi are 1,039 pixels, not {width}");
    assert!(png.windows(MADE_BY.len()).any(|window| window == MADE_BY.as_bytes()));
}

#[test]
fn hostile_data_ends_in_an_error() {
    let page = |spec: &str| {
        let json = format!(
            r#"{{"caption": "", "runs": [], "charts": {{"x": {{"title": "x", "lines": [], "rows": [{{"x": 1, "v": 1}}], "spec": {spec}}}}}}}"#
        );
        format!("<script type=\"application/json\" id=\"data\">{json}</script>")
    };
    let drawn = |spec: &str| {
        let data = FigureData::of_page(&page(spec)).unwrap();
        plot(&data, "x", &Paper::default(), Format::Svg)
    };
    // No mark, a mark that is none, a layer that is none, data from elsewhere.
    for spec in ["{}", r#"{"mark": "nothing"}"#, r#"{"layer": 3}"#, "null"] {
        assert!(drawn(spec).is_err(), "{spec}");
    }
    let foreign = r#"{"mark": "point", "encoding": {}, "transform": [{"lookup": "x", "from": {"data": {"url": "file:///etc/passwd"}, "key": "x", "fields": ["y"]}}]}"#;
    // The library asks for the file, and there is no way to it.
    if let Ok(svg) = drawn(foreign) {
        assert!(!String::from_utf8(svg).unwrap().contains("root:"));
    }
}
