//! The page as a whole: well-formed, escaped, deterministic, honest about what is missing.

mod samples;

use leyden_record::{Bank, Power, Recovery, RecoveryStep, RunRecord, Series, Spread, Worst};
use leyden_report::{ReportError, read_records, render, render_to};
use samples::Sample;
use samples::html::{VEGA, between, body, data, outline, unbalanced};

fn one() -> Vec<RunRecord> {
    vec![Sample::default().record()]
}

fn page(records: &[RunRecord]) -> String {
    render(records, Some("A report")).unwrap()
}

#[test]
fn same_records_same_bytes() {
    assert_eq!(page(&samples::comparison()), page(&samples::comparison()));
    let mut out = Vec::new();
    render_to(&mut out, &one(), Some("A report")).unwrap();
    assert_eq!(out, page(&one()).into_bytes());
}

#[test]
fn a_single_run_has_its_figures() {
    assert_eq!(
        outline(&page(&one())),
        [
            "iops | IOPS over time",
            "bandwidth | Bandwidth over time",
            "percentiles | Latency distribution",
            "read-latency | Read latency over time",
            "write-latency | Write latency over time",
            "flush-latency | Flush latency over time",
            "queue-depth | Queue depth over time",
            "buffer | Write buffer over time",
            "free-blocks | Free blocks over time",
            "waf | Write amplification over time",
            "programs | Page programs by cause",
            "programs-totals | Page programs by cause: totals",
            "page-reads | Page reads by cause",
            "page-reads-totals | Page reads by cause: totals",
            "busy | Busy time over time",
            "dies | Busy time by channel and die",
            "wear-histogram | Erases per block",
        ]
    );
}

#[test]
fn several_runs_are_overlaid_or_stand_side_by_side() {
    let records = &samples::comparison()[..2];
    assert_eq!(
        outline(&page(records)),
        [
            "iops-reads | IOPS over time: reads",
            "iops-writes | IOPS over time: writes",
            "bandwidth-reads | Bandwidth over time: reads",
            "bandwidth-writes | Bandwidth over time: writes",
            "percentiles-reads | Latency distribution: reads",
            "percentiles-writes | Latency distribution: writes",
            "percentiles-flushes | Latency distribution: flushes",
            "read-latency-p50 | Read latency over time: median",
            "read-latency-p99 | Read latency over time: p99",
            "read-latency-max | Read latency over time: maximum",
            "write-latency-p50 | Write latency over time: median",
            "write-latency-p99 | Write latency over time: p99",
            "write-latency-max | Write latency over time: maximum",
            "flush-latency-p50 | Flush latency over time: median",
            "flush-latency-max | Flush latency over time: maximum",
            "queue-depth | Queue depth over time",
            "buffer | Write buffer over time",
            "free-blocks | Free blocks over time",
            "waf | Write amplification over time",
            "programs-totals | Page programs by cause: totals",
            "programs-1 | Page programs by cause: greedy",
            "programs-2 | Page programs by cause: cost-benefit",
            "page-reads-totals | Page reads by cause: totals",
            "page-reads-1 | Page reads by cause: greedy",
            "page-reads-2 | Page reads by cause: cost-benefit",
            "busy-dies | Busy time over time: dies, mean",
            "busy-channels | Busy time over time: channels, mean",
            "dies-1 | Busy time by channel and die: greedy",
            "dies-2 | Busy time by channel and die: cost-benefit",
            "wear-1 | Erases per block: greedy",
            "wear-2 | Erases per block: cost-benefit",
        ]
    );
}

#[test]
fn a_percentile_of_few_commands_is_not_drawn() {
    // The samples flush less than 100 times a point.
    let html = page(&samples::comparison()[..2]);
    let told = "Flush latency over time: p99: Too few commands a point for a 99th percentile.";
    assert!(body(&html).contains(told));
}

/// The script has the light page's colours again, for paper.
#[test]
fn paper_has_the_colours_of_the_light_page() {
    let light = between(leyden_report::FIGURE_SCRIPT, "const LIGHT = {", "};");
    let pairs = light.split(',').filter_map(|pair| pair.split_once(':'));
    let pairs: Vec<(&str, &str)> = pairs
        .map(|(name, colour)| (name.trim().trim_matches('"'), colour.trim().trim_matches('"')))
        .collect();
    assert!(pairs.len() >= 14, "{pairs:?}");
    let style = between(include_str!("../assets/style.css"), ":root {", "}");
    for (name, colour) in pairs {
        assert!(style.contains(&format!("{name}: {colour};")), "{name}: {colour}");
    }
}

#[test]
fn a_share_never_reaches_beyond_its_axis() {
    // Most of the time all dies are idle, and in short bursts all are busy.
    let mut record = Sample { intervals: 5_000, ..Sample::default() }.record();
    for (i, share) in record.series.die_busy.iter_mut().enumerate() {
        *share = if i % 10 == 0 { 1.0 } else { 0.0 };
    }
    let html = page(&[record]);
    assert!(!between(&html, "<figure id=\"busy\"", "</figure>").contains("beyond the axis"));
}

#[test]
fn a_kind_of_command_that_is_rare_is_points() {
    let mut record = Sample { intervals: 100, ..Sample::default() }.record();
    for (i, latency) in record.series.read_p50_us.iter_mut().enumerate() {
        *latency = if i % 3 == 0 { 80.0 } else { 0.0 };
    }
    record.series.read_p99_us.clear();
    record.series.read_max_us.clear();
    let data = data(&page(&[record]));
    assert_eq!(data["charts"]["read-latency"]["spec"]["mark"]["type"], "point");
    assert_eq!(data["charts"]["write-latency"]["spec"]["mark"]["type"], "line");
}

#[test]
fn a_row_of_figures_has_no_hole() {
    let html = page(&one());
    // Flush latency stands alone behind read and write latency.
    assert!(html.contains("<figure id=\"flush-latency\" class=\"wide\">"));
    assert!(html.contains("<figure id=\"write-latency\" class=\"half\">"));
}

#[test]
fn many_runs_have_what_sums_them_up_and_no_tangle() {
    let runs = (0..20).map(|i| {
        let mut record = Sample::default().record();
        record.name = format!("run {i}");
        record
    });
    let html = page(&runs.collect::<Vec<_>>());
    let totals = [
        "programs-totals | Page programs by cause: totals",
        "page-reads-totals | Page reads by cause: totals",
    ];
    assert_eq!(outline(&html), totals);
    assert!(body(&html).contains("reports of up to four runs"));
}

/// Runs that differ in their names alone.
fn alike(runs: usize) -> Vec<RunRecord> {
    let named = |i| RunRecord { name: format!("run {i}"), ..Sample::default().record() };
    (0..runs).map(named).collect()
}

#[test]
fn four_runs_are_overlaid_and_five_have_a_panel_each() {
    let of = |runs: usize| {
        let html = page(&alike(runs));
        let is_overlaid = data(&html)["charts"].as_object().unwrap().contains_key("iops-reads");
        let panels = match html.split_once("<figure id=\"iops-reads\"") {
            Some((_, rest)) => between(rest, "", "</figure>").matches("class=\"panel\"").count(),
            None => 0,
        };
        (is_overlaid, panels)
    };
    assert_eq!([4, 5, 16, 17].map(of), [(true, 0), (false, 5), (false, 16), (false, 0)]);
}

#[test]
fn a_panel_has_its_own_line_before_all_of_them() {
    let html = page(&alike(6));
    let figure = between(&html, "<figure id=\"waf\"", "</figure>");
    assert_eq!(figure.matches("<path ").count(), 6, "each line is there once");
    assert_eq!(figure.matches("href=\"#waf-lines\"").count(), 6);
    let own: Vec<String> = (1..=6)
        .map(|line| format!("<use class=\"c{}\" href=\"#waf-line-{line}\"/>", line - 1))
        .collect();
    assert!(own.iter().all(|line| figure.matches(line.as_str()).count() == 1), "{own:?}");
    assert!(figure.contains("aria-label=\"run 3: from ") && figure.contains(", median "));
}

#[test]
fn a_line_on_another_is_dashed_and_named() {
    let html = page(&alike(2));
    let lines = &data(&html)["charts"]["iops-reads"]["lines"];
    assert_eq!([&lines[0]["stroke"], &lines[1]["stroke"]], ["solid", "dashed"]);
    for figure in ["iops-reads", "percentiles-reads"] {
        let figure = between(&html, &format!("<figure id=\"{figure}\""), "</figure>");
        assert!(figure.contains("&quot;run 1&quot; lies on &quot;run 0&quot;."), "{figure}");
    }
}

#[test]
fn a_report_of_eight_runs_is_below_half_a_megabyte() {
    let size = page(&alike(8)).len();
    assert!(size < 500_000, "{size}");
}

/// Bands of four lines would hide them: none is drawn, kept or spoken of.
#[test]
fn a_page_has_the_bands_that_it_draws() {
    let series = Series {
        interval_s: 1.0,
        time_s: (1..=6_000).map(f64::from).collect(),
        read_iops: (0..6_000).map(|second| f64::from(second % 2)).collect(),
        ..Series::default()
    };
    for (count, is_banded) in [(1, true), (4, false)] {
        let mut records = alike(count);
        for record in &mut records {
            record.series = series.clone();
        }
        let html = page(&records);
        let bands = data(&html)["runs"][0]["bands"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(bands > 0, is_banded, "{count} runs");
        assert_eq!(html.contains("Shaded: from the 5th"), is_banded, "{count} runs");
    }
}

#[test]
fn a_run_in_which_power_was_lost_begins_with_it() {
    let json = include_str!("../../../fuzz/corpus-seeds/record/cuts.json");
    let html = page(&read_records(json).unwrap());
    let sections: Vec<&str> =
        html.split("<section id=\"").skip(1).map(|it| it.split('"').next().unwrap()).collect();
    assert_eq!(sections[..2], ["summary", "power"]);
}

#[test]
fn a_figure_that_is_saved_has_a_title_and_a_caption() {
    let html = page(&one());
    let data = data(&html);
    assert_eq!(data["charts"]["waf"]["title"], "Write amplification over time");
    let caption = data["caption"].as_str().unwrap();
    for part in ["Scenario ", "seed ", "Leyden "] {
        assert!(caption.contains(part), "{caption}");
    }
}

#[test]
fn every_chart_has_its_place_its_data_and_its_table() {
    for records in [one(), samples::comparison()] {
        let html = page(&records);
        let data = data(&html);
        let charts = data["charts"].as_object().unwrap();
        assert_eq!(charts.len(), html.matches("<div class=\"chart\" data-figure=").count());
        for (id, chart) in charts {
            assert!(html.contains(&format!("<div class=\"chart\" data-figure=\"{id}\">")));
            let figure = between(&html, &format!("<figure id=\"{id}\""), "</figure>");
            assert!(figure.contains("<table>"), "{id} has no table");
            for line in chart["lines"].as_array().unwrap() {
                let points = match line["column"].as_str() {
                    Some(column) => {
                        &data["runs"][line["run"].as_u64().unwrap() as usize]["values"][column]
                    }
                    None => &line["y"],
                };
                assert!(!points.as_array().unwrap().is_empty(), "{id}");
            }
        }
    }
}

#[test]
fn nothing_recorded_is_said_and_not_drawn() {
    let html = page(&[samples::nothing()]);
    assert_eq!(data(&html)["charts"], serde_json::json!({}));
    assert_eq!(outline(&html), Vec::<String>::new(), "no box stands over nothing");
    assert!(body(&html).contains("Read latency over time: Nothing was read."));
    assert!(!body(&html).contains("NaN") && !body(&html).contains("inf"));
    assert_eq!(unbalanced(&html), Vec::<String>::new());
}

#[test]
fn a_run_without_reads_says_so_once_and_draws_the_rest() {
    let sample = Sample { reads: 0.0, ..Sample::default() };
    let html = page(&[sample.record()]);
    let iops = between(&html, "<figure id=\"iops\"", "</figure>");
    assert!(iops.contains("Writes only. Nothing was read."));
    assert!(!outline(&html).contains(&"read-latency | Read latency over time".to_owned()));
    assert!(body(&html).contains("Read latency over time: Nothing was read."));
    assert!(outline(&html).contains(&"write-latency | Write latency over time".to_owned()));
}

#[test]
fn a_record_without_series_is_no_run_without_writes() {
    let without = |records: &mut [RunRecord]| {
        for record in records {
            record.series = Series::default();
        }
    };
    let mut records = samples::comparison();
    without(&mut records[1..]);
    let html = page(&records);
    let waf = between(&html, "<figure id=\"waf\"", "</figure>");
    let told = "cost-benefit, z-greedy, hints: the record was saved without series.";
    assert!(waf.contains(told), "{waf}");
    without(&mut records);
    let html = page(&records);
    assert!(body(&html).contains("Write amplification over time: The record was saved without"));
    assert!(!body(&html).contains("Nothing was written."));
    // Of two runs without a line each has its own reason.
    let html = page(&[samples::nothing(), records[1].clone()]);
    let told = "cost-benefit: the record was saved without series. nothing: nothing was written.";
    assert!(body(&html).contains(told));
}

#[test]
fn one_interval_is_drawn() {
    let sample = Sample { intervals: 1, ..Sample::default() };
    let data = data(&page(&[sample.record()]));
    assert_eq!(
        data["charts"]["iops"]["spec"]["encoding"]["x"]["scale"]["domain"],
        serde_json::json!([0.0, 60.0])
    );
}

#[test]
fn numbers_that_are_none_do_no_harm() {
    let mut record = Sample::default().record();
    record.host.iops = f64::NAN;
    record.flash.waf = f64::INFINITY;
    record.series.read_iops[3] = f64::NAN;
    record.series.waf.truncate(7);
    record.host.read_latency_us.distribution[2].1 = f64::NAN;
    record.utilisation.dies[1] = f64::NAN;
    let html = page(&[record]);
    assert!(!body(&html).contains("NaN"));
    // `null` is a gap; the data must stay JSON.
    data(&html);
}

#[test]
fn texts_of_users_are_only_ever_text() {
    let nasty = "</script></title><img src=x onerror=alert(1)>\"'&{{ 7*7 }}";
    let mut record = Sample::default().record();
    record.name = nasty.into();
    record.reproduce = nasty.into();
    record.warnings = vec![nasty.into()];
    record.leyden_version = nasty.into();
    record.gc.policy = nasty.into();
    record.sim.digest = nasty.into();
    record.config = serde_json::json!({nasty: [nasty, {"x": nasty}]});
    let html = render(&[record.clone(), record], Some(nasty)).unwrap();
    assert!(!html.replace(VEGA, "").contains("<img"));
    assert_eq!(html.matches("</script>").count(), 4);
    assert_eq!(unbalanced(&html), Vec::<String>::new());
    let charts = data(&html);
    let labels = charts["charts"]["iops-reads"]["lines"].as_array().unwrap();
    assert_eq!(labels[0]["label"], nasty);
    assert_eq!(labels[1]["label"], format!("{nasty} (2)"));
}

#[test]
fn tags_are_balanced() {
    for records in [one(), samples::comparison()] {
        assert_eq!(unbalanced(&page(&records)), Vec::<String>::new());
    }
}

#[test]
fn nothing_is_fetched() {
    let html = page(&samples::comparison());
    assert!(html.contains("default-src 'none'"));
    for tag in ["<link", "<iframe", "<script src", "@import", "url("] {
        let own = html.replace(VEGA, "");
        assert!(!own.contains(tag), "{tag}");
    }
}

#[test]
fn even_long_runs_make_a_small_file() {
    let sample = |reads| Sample { intervals: 50_000, reads, ..Sample::default() };
    let records = [0.5, 0.7, 0.9].map(|reads| sample(reads).record());
    assert!(page(&records).len() < 2_500_000);
}

#[test]
fn the_library_can_stand_in_a_script_element() {
    for end in ["</script", "<!--", "<script"] {
        assert!(!VEGA.contains(end), "{end}");
    }
}

#[test]
fn records_read_back_render_the_same() {
    let records = samples::comparison();
    let json = serde_json::to_string(&records).unwrap();
    assert_eq!(page(&read_records(&json).unwrap()), page(&records));
}

#[test]
fn no_runs_no_report() {
    assert!(matches!(render(&[], None), Err(ReportError::NoRuns)));
}

#[test]
fn a_drive_with_capacitors_has_a_card_figures_and_rows() {
    let without = page(&one());
    assert!(!without.contains("Promised writes lost") && !without.contains("id=\"power\""));
    let mut records = one();
    records[0].power = Some(Power {
        moments: 100,
        energy_mj: Spread { mean: 100.0, p50: 90.0, p99: 180.0, max: 192.5 },
        dump_ms: Spread { mean: 40.0, p50: 40.0, p99: 70.0, max: 72.5 },
        capacitance_uf: 4007.0,
        parts: 23,
        worst: Worst { energy_mj: 200.0, capacitance_uf: 4160.0, parts: 24, ..Worst::default() },
        bank: Bank {
            part: "tantalum_polymer".into(),
            parts: 20,
            shortfall_uf: 560.0,
            ..Bank::default()
        },
        ..Power::default()
    });
    let step = RecoveryStep { name: "load_map".into(), pages: 275, time_ms: 4.8 };
    let time_ms = Spread { max: 138.0, ..Spread::default() };
    records[0].recovery = Some(Recovery { time_ms, steps: vec![step], ..Recovery::default() });
    let html = page(&records);
    assert!(html.find("<section id=\"power\"") < html.find("<section id=\"throughput\""));
    for part in [
        "<h3>Capacitance at the peak</h3><p class=\"value\">4.007 <span>mF</span>",
        "lacks 560.0 µF",
        "138.0 ms",
        "id=\"dump-energy\"",
        "load map",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(between(&html, "Energy of a dump at the peak", "</tr>").contains("192"), "rows");
    assert!(unbalanced(&html).is_empty());
    let again = read_records(&serde_json::to_string(&records).unwrap()).unwrap();
    assert_eq!(again, records);
    let old = serde_json::to_value(one()).unwrap();
    assert!(old[0].get("power").is_none(), "records without capacitors are what they were");
    assert_eq!(page(&read_records(&old.to_string()).unwrap()), without);
}

#[test]
fn power_cuts_of_a_run_have_a_row_each() {
    let json = include_str!("../../../fuzz/corpus-seeds/record/cuts.json");
    let records = read_records(json).unwrap();
    let power = records[0].power.as_ref().unwrap();
    assert_eq!(power.made.len(), 2);
    let page = render(&records, Some("cuts")).unwrap();
    for text in
        ["Power cuts", "commands cut off", "After the last power cut", "Of the 2 power cuts"]
    {
        assert!(page.contains(text), "no `{text}`");
    }
}
