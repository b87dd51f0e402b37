//! Numbers as people read them. Everything here is a pure function from a number to text; what is
//! not a finite number becomes a dash.

/// What stands where there is no value.
pub(crate) const DASH: &str = "–";

const KIB: f64 = 1024.0;

/// `digits` significant digits, without an exponent for what a report shows.
fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The scientific form knows the magnitude after rounding, so 999.6 becomes "1000", not "1000.0".
    let scientific = format!("{value:.*e}", (digits - 1) as usize);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let decimals = (digits - 1 - exponent).clamp(0, 12) as usize;
    format!("{value:.decimals$}")
}

/// Thousands separated by commas: 12,345,678.
pub(crate) fn count(value: f64) -> String {
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

/// A plain number: whole from a thousand up, three significant digits below.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        DASH.to_owned()
    } else if value.abs() >= 1000.0 {
        count(value)
    } else {
        significant(value, 3)
    }
}

/// Two parts of a scaled number, for large type: ("1.23", "M").
pub(crate) fn scaled(value: f64) -> (String, &'static str) {
    if !value.is_finite() {
        return (DASH.to_owned(), "");
    }
    // Thresholds a little below the unit: 999,950 should read 1.00 M, not 1000 k.
    let (divisor, suffix) = match value.abs() {
        v if v >= 999.5e6 => (1e9, "G"),
        v if v >= 999.5e3 => (1e6, "M"),
        v if v >= 9999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if suffix.is_empty() {
        (number(value), suffix)
    } else {
        (significant(value / divisor, 3), suffix)
    }
}

/// A latency given in microseconds.
pub(crate) fn latency(us: f64) -> String {
    let (value, unit) = latency_parts(us);
    if unit.is_empty() { value } else { format!("{value}\u{a0}{unit}") }
}

/// Value and unit of a latency given in microseconds.
pub(crate) fn latency_parts(us: f64) -> (String, &'static str) {
    if !us.is_finite() {
        return (DASH.to_owned(), "");
    }
    match us {
        v if v >= 999_500.0 => (significant(v / 1e6, 3), "s"),
        v if v >= 999.5 => (significant(v / 1e3, 3), "ms"),
        v => (significant(v, 3), "µs"),
    }
}

/// A size in bytes.
pub(crate) fn bytes(value: f64) -> String {
    if !value.is_finite() {
        return DASH.to_owned();
    }
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 999.5 && unit + 1 < units.len() {
        scaled /= KIB;
        unit += 1;
    }
    format!("{}\u{a0}{}", significant(scaled, 3), units[unit])
}

/// A rate in MiB per second.
pub(crate) fn mib_per_s(value: f64) -> String {
    format!("{}\u{a0}MiB/s", number(value))
}

/// A span of time in seconds.
pub(crate) fn seconds(value: f64) -> String {
    if !value.is_finite() {
        DASH.to_owned()
    } else if value == 0.0 {
        "0\u{a0}s".to_owned()
    } else if value.abs() < 1.0 {
        latency(value * 1e6)
    } else {
        format!("{}\u{a0}s", number(value))
    }
}

/// A share of one as a percentage.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return DASH.to_owned();
    }
    let value = share * 100.0;
    let decimals = usize::from(value != 0.0 && value.abs() < 99.95);
    format!("{value:.decimals$}\u{a0}%")
}

/// A write amplification factor.
pub(crate) fn factor(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { DASH.to_owned() }
}

/// A ratio over the first run.
pub(crate) fn ratio(value: f64) -> String {
    format!("×{}", number(value))
}

/// Rounded to five significant digits: what a chart can show, in a third of the bytes.
pub(crate) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(count(-0.2), "0");
        assert_eq!(number(0.123_45), "0.123");
        assert_eq!(number(999.6), "1000");
        assert_eq!(number(f64::NAN), DASH);
        assert_eq!(scaled(612_345.0), ("612".into(), "k"));
        assert_eq!(scaled(999_950.0), ("1.00".into(), "M"));
        assert_eq!(scaled(1234.0), ("1,234".into(), ""));
    }

    #[test]
    fn units_follow_the_magnitude() {
        assert_eq!(latency(85.24), "85.2\u{a0}µs");
        assert_eq!(latency(999.7), "1.00\u{a0}ms");
        assert_eq!(latency(1_234_000.0), "1.23\u{a0}s");
        assert_eq!(bytes(1_610_612_736.0), "1.50\u{a0}GiB");
        assert_eq!(bytes(0.0), "0\u{a0}B");
        assert_eq!(seconds(0.25), "250\u{a0}ms");
        assert_eq!(percent(0.1234), "12.3\u{a0}%");
        assert_eq!(percent(1.0), "100\u{a0}%");
    }

    #[test]
    fn rounding_keeps_five_digits() {
        assert!((rounded(123_456.789) - 123_460.0).abs() < f64::EPSILON);
        assert!(rounded(0.0).abs() < f64::EPSILON);
    }
}
