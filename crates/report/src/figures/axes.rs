//! Axes: scales that enclose their values, and ticks in the units of the field.

use crate::format::rounded;
use serde::Serialize;
use serde_json::{Value, json};

/// Labels of plain numbers; the formatter alone would write "0k" and "0.5k".
pub const NUMBER: &str =
    "abs(datum.value) < 1 ? format(datum.value, '~r') : format(datum.value, '~s')";

/// Labels of millijoules.
const ENERGY: &str = "datum.value >= 1000 ? format(datum.value / 1000, '~r') + ' J' \
                      : format(datum.value, '~r') + ' mJ'";

/// The unit of a chart's values; decides ticks here and tooltips in the script.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Commands per second.
    Iops,
    /// MiB per second.
    MibPerS,
    /// Microseconds, on a logarithmic scale.
    Latency,
    /// A share of one.
    Percent,
    /// A plain ratio.
    Factor,
    /// Page operations per second.
    PagesPerS,
    /// A number of blocks.
    Blocks,
    /// A number of zones.
    Zones,
    /// A share of mapping updates.
    Hits,
    /// Seconds.
    Seconds,
    /// Commands outstanding.
    Commands,
    /// Bytes.
    Bytes,
    /// Millijoules.
    Energy,
    /// Volts.
    Volts,
    /// Years.
    Years,
}

impl Unit {
    pub(super) fn axis_title(self) -> &'static str {
        match self {
            Self::Iops => "commands per second",
            Self::MibPerS => "MiB per second",
            Self::Latency => "latency (µs, ms, s; logarithmic)",
            Self::Percent => "share of time busy (%)",
            Self::Factor => "bytes programmed / bytes written",
            Self::PagesPerS => "pages per second",
            Self::Blocks => "blocks",
            Self::Zones => "zones",
            Self::Hits => "updates of dirty mapping pages (%)",
            Self::Seconds => "seconds",
            Self::Commands => "commands outstanding",
            Self::Bytes => "bytes",
            Self::Energy => "energy",
            Self::Volts => "voltage (V)",
            Self::Years => "years",
        }
    }
}

/// Factors above so many times the 98th percentile of the points are cut off: one interval with a power
/// cut in it would flatten all others.
pub(super) const CUT_OFF_ABOVE: f64 = 3.0;

/// The highest value that an axis of factors shows, and the highest there is, if that is cut off.
pub fn cut_off(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let top = *sorted.last()?;
    let usual = sorted[(sorted.len() * 98).div_ceil(100) - 1] * CUT_OFF_ABOVE;
    (top > usual && usual > 0.0).then_some((usual, top))
}

/// The horizontal channel.
pub fn x_axis(scale: &Value, axis: &Value) -> Value {
    json!({"field": "x", "type": "quantitative", "scale": scale, "axis": axis})
}

/// The vertical channel for these values.
pub fn y_axis(unit: Unit, values: &[f64]) -> Value {
    let (scale, axis) = match unit {
        Unit::Latency => log_axis(values),
        Unit::Percent | Unit::Hits => (
            json!({"domain": [0, 1], "nice": false}),
            json!({"format": "~%", "values": [0, 0.25, 0.5, 0.75, 1]}),
        ),
        Unit::Bytes => {
            // Ticks at powers of two, which is what buffers are sized in.
            let top = values.iter().copied().fold(1024.0, f64::max);
            let step = 2_f64.powi((top / 4.0).log2().ceil() as i32);
            let ticks: Vec<f64> =
                (0..=(top / step).ceil() as u32).map(|n| f64::from(n) * step).collect();
            let label = "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~r') + ' GiB' \
                         : datum.value >= 1048576 ? format(datum.value / 1048576, '~r') + ' MiB' \
                         : format(datum.value / 1024, '~r') + ' KiB'";
            let top = ticks[ticks.len() - 1];
            (
                json!({"domain": [0, top], "nice": false, "zero": true}),
                json!({"values": ticks, "labelExpr": label}),
            )
        }
        _ => {
            let top = match (unit, cut_off(values)) {
                (Unit::Factor, Some((usual, _))) => usual,
                _ => values.iter().copied().fold(0.0, f64::max),
            };
            let top = if top > 0.0 { rounded(top) } else { 1.0 };
            let label = if unit == Unit::Energy { ENERGY } else { NUMBER };
            (json!({"domain": [0, top], "nice": true, "zero": true}), json!({"labelExpr": label}))
        }
    };
    let mut axis = axis;
    axis["title"] = json!(unit.axis_title());
    json!({"field": "v", "type": "quantitative", "scale": scale, "axis": axis})
}

/// Scale and axis of latencies: from one round number to another, labelled in µs, ms and s.
fn log_axis(values: &[f64]) -> (Value, Value) {
    let positive = || values.iter().copied().filter(|v| *v > 0.0);
    let low = floor_125(positive().reduce(f64::min).unwrap_or(1.0));
    let high = positive().reduce(f64::max).unwrap_or(10.0);
    let mut ticks = vec![low];
    // One step beyond the highest value, and a decade at least: less would make towers of noise.
    while ticks[ticks.len() - 1] < high.max(low * 9.0) {
        ticks.push(next_125(ticks[ticks.len() - 1]));
    }
    let top = ticks[ticks.len() - 1];
    // The chart would drop some of so many for lack of room; whole decades read better.
    if ticks.len() > 5 {
        ticks.retain(|t| is_power_of_ten(*t));
    }
    let label = "datum.value >= 1e6 ? format(datum.value / 1e6, '~r') + ' s' \
                 : datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' ms' \
                 : format(datum.value, '~r') + ' µs'";
    (
        json!({"type": "log", "domain": [low, top], "nice": false}),
        json!({"values": ticks, "labelExpr": label, "labelOverlap": false}),
    )
}

/// The largest of 1, 2, 5 times a power of ten that is not above `value`.
fn floor_125(value: f64) -> f64 {
    let mut step = 1e-3;
    while next_125(step) <= value {
        step = next_125(step);
    }
    step
}

/// The next of 1, 2, 5 times a power of ten.
fn next_125(step: f64) -> f64 {
    let lead = format!("{step:e}");
    rounded(step * if lead.starts_with('2') { 2.5 } else { 2.0 })
}

fn is_power_of_ten(value: f64) -> bool {
    format!("{value:e}").starts_with("1e")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_axes_enclose_their_values_in_round_numbers() {
        let (scale, axis) = log_axis(&[0.0, 73.0, 1234.0]);
        assert_eq!(scale["domain"], json!([50.0, 2000.0]));
        assert_eq!(axis["values"], json!([100.0, 1000.0]));
        let (scale, axis) = log_axis(&[3.0, 4e6]);
        assert_eq!(scale["domain"], json!([2.0, 5e6]));
        assert_eq!(axis["values"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn one_value_still_spans_an_axis() {
        for value in [1.0, 80.0, 0.5] {
            let (scale, _) = log_axis(&[value]);
            let domain = scale["domain"].as_array().unwrap();
            assert!(domain[0].as_f64() <= Some(value) && domain[1].as_f64() >= Some(value));
            assert!(domain[0].as_f64() < domain[1].as_f64());
        }
    }
}
