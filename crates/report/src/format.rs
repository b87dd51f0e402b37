//! Numbers as people read them: the one place that says how, for the page and for tables on a terminal.
//! Everything here is a pure function from a number to text. A number has four significant digits and no
//! exponent; what is not finite becomes a dash; a unit follows after a space.

/// The text for a missing value.
pub const DASH: &str = "–";

/// Significant digits.
const DIGITS: i32 = 4;
const KIB: f64 = 1024.0;

/// The decimal exponent of `value` once it is rounded to [`DIGITS`]: 999.96 is 1000, so 3.
fn exponent(value: f64) -> i32 {
    let scientific = format!("{value:.*e}", (DIGITS - 1) as usize);
    scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// An amount, in whole or in fractions. Beyond 2^53 the last digits are rounded.
pub trait Amount {
    /// The same as a real number.
    fn amount(self) -> f64;
}

impl Amount for f64 {
    fn amount(self) -> f64 {
        self
    }
}

impl Amount for u64 {
    fn amount(self) -> f64 {
        self as f64
    }
}

/// Thousands separated by commas: 12,345,678.
pub fn count(value: impl Amount) -> String {
    let value = value.amount();
    if !value.is_finite() {
        return DASH.to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value <= -0.5 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A plain number: whole from a thousand up, with decimals that line up in a column below one.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return DASH.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    match exponent(value) {
        e if e >= DIGITS - 1 => count(value),
        e if e >= 0 => format!("{value:.*}", (DIGITS - 1 - e) as usize),
        e if e >= -(DIGITS - 1) => format!("{value:.*}", (DIGITS - 1) as usize),
        e => format!("{value:.*}", (DIGITS - 2 - e).min(15) as usize),
    }
}

/// `value` in the largest of `units` of which it has at least one; `units` grow by their factors.
fn in_unit(value: f64, units: &[(f64, &'static str)]) -> (String, &'static str) {
    if !value.is_finite() {
        return (DASH.to_owned(), "");
    }
    // Half a digit below the unit it would be rounded up to: 999.96 us reads 1.000 ms.
    let reaches = |scale: f64| value.abs() >= scale * 0.999_95;
    let unit = units.iter().rev().find(|(scale, _)| reaches(*scale)).or(units.first());
    let (scale, name) = unit.copied().unwrap_or((1.0, ""));
    (number(value / scale), name)
}

fn with_unit((value, unit): (String, &'static str)) -> String {
    if unit.is_empty() { value } else { format!("{value} {unit}") }
}

/// Two parts of a scaled number, for large type: ("1.234", "M"). Up to ten thousand it stays as it is.
pub fn scaled(value: f64) -> (String, &'static str) {
    if value.abs() < 9999.5 {
        return (number(value), "");
    }
    in_unit(value, &[(1e3, "k"), (1e6, "M"), (1e9, "G")])
}

/// The same as one text, for rates of the simulation: "1.234 M".
pub fn rate(per_s: f64) -> String {
    with_unit(scaled(per_s))
}

/// A latency given in microseconds.
pub fn latency(us: f64) -> String {
    with_unit(latency_parts(us))
}

/// Value and unit of a latency given in microseconds.
pub fn latency_parts(us: f64) -> (String, &'static str) {
    in_unit(us, &[(1.0, "µs"), (1e3, "ms"), (1e6, "s")])
}

/// A size in bytes, in the binary unit that suits it; whole if it is a whole number of that unit.
pub fn bytes(value: impl Amount) -> String {
    const UNITS: [(f64, &str); 6] = [
        (1.0, "B"),
        (KIB, "KiB"),
        (KIB * KIB, "MiB"),
        (KIB * KIB * KIB, "GiB"),
        (KIB * KIB * KIB * KIB, "TiB"),
        (KIB * KIB * KIB * KIB * KIB, "PiB"),
    ];
    let value = value.amount();
    let scale = UNITS.iter().rev().find(|(scale, _)| value.abs() >= *scale).unwrap_or(&UNITS[0]);
    if value.is_finite() && (value / scale.0).fract() == 0.0 {
        return format!("{} {}", count(value / scale.0), scale.1);
    }
    with_unit(in_unit(value, &UNITS))
}

/// A rate in MiB per second.
pub fn mib_per_s(value: f64) -> String {
    format!("{} MiB/s", number(value))
}

/// A span of time in seconds, in the unit that suits it.
pub fn seconds(value: f64) -> String {
    match value {
        0.0 => "0 s".to_owned(),
        v if v.abs() < 1.0 => latency(v * 1e6),
        v if v.is_finite() => format!("{} s", number(v)),
        _ => DASH.to_owned(),
    }
}

/// How long a trace took when it was recorded, in seconds, and how many times as fast it was replayed; `None` for
/// what is no trace.
pub fn recorded(recorded_s: Option<f64>, elapsed_s: f64) -> Option<String> {
    let recorded_s = recorded_s.filter(|_| elapsed_s > 0.0)?;
    let times = recorded_s / elapsed_s;
    let pace = if (times - 1.0).abs() < 0.01 {
        "replayed as fast".to_owned()
    } else {
        format!("replayed {} times as fast", number(times))
    };
    Some(format!("{}, {pace}", seconds(recorded_s)))
}

/// A capacitance given in microfarads.
pub fn capacitance(microfarads: f64) -> String {
    with_unit(in_unit(microfarads, &[(1.0, "µF"), (1e3, "mF"), (1e6, "F")]))
}

/// An energy given in millijoules.
pub fn energy(millijoules: f64) -> String {
    with_unit(in_unit(millijoules, &[(1.0, "mJ"), (1e3, "J")]))
}

/// A share of one as a percentage.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return DASH.to_owned();
    }
    let value = share * 100.0;
    let decimals = usize::from(value != 0.0 && value.abs() < 99.95);
    format!("{value:.decimals$} %")
}

/// A write amplification factor.
pub fn factor(value: f64) -> String {
    number(value)
}

/// A ratio over the first run.
pub fn ratio(value: f64) -> String {
    format!("×{}", number(value))
}

/// Rounded to five significant digits: what a chart can show, in a third of the bytes.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(-0.2), "0");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.123_45), "0.123");
        assert_eq!(number(4.658_2), "4.658");
        assert_eq!(number(-12.345), "-12.35");
        assert_eq!(number(999.96), "1,000");
        assert_eq!(number(99.996), "100.0");
        assert_eq!(number(0.000_012_34), "0.0000123");
        assert_eq!(number(f64::NAN), DASH);
        assert_eq!(scaled(612_345.0), ("612.3".into(), "k"));
        assert_eq!(scaled(999_960.0), ("1.000".into(), "M"));
        assert_eq!(scaled(1234.0), ("1,234".into(), ""));
    }

    #[test]
    fn units_follow_the_magnitude() {
        assert_eq!(latency(85.24), "85.24 µs");
        assert_eq!(latency(999.96), "1.000 ms");
        assert_eq!(latency(1_234_000.0), "1.234 s");
        assert_eq!(bytes(1_610_612_736.0), "1.500 GiB");
        assert_eq!((bytes(0_u64).as_str(), bytes(4096_u64).as_str()), ("0 B", "4 KiB"));
        assert_eq!(bytes(4_233_000_000.0), "3.942 GiB");
        assert_eq!(seconds(0.25), "250.0 ms");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(capacitance(180.0), "180.0 µF");
        assert_eq!(capacitance(15_609.0), "15.61 mF");
        assert_eq!(energy(751.0), "751.0 mJ");
    }

    #[test]
    fn rounding_keeps_five_digits() {
        assert!((rounded(123_456.789) - 123_460.0).abs() < f64::EPSILON);
        assert!(rounded(0.0).abs() < f64::EPSILON);
    }
}
