//! Numbers as people read them.

/// With thousands separators.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// To four significant digits or so, with thousands separators and no exponent.
pub(crate) fn real(number: f64) -> String {
    if !number.is_finite() {
        return "-".into();
    }
    let size = number.abs();
    if size >= 1000.0 {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", count(size.round() as u64));
    }
    match size {
        s if s >= 100.0 => format!("{number:.1}"),
        s if s >= 10.0 => format!("{number:.2}"),
        s if s >= 0.001 || s == 0.0 => format!("{number:.3}"),
        _ => format!("{number:.6}"),
    }
}

/// A size in the binary unit that suits it.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (number.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    let scale = 1_u64 << (10 * unit);
    if number.is_multiple_of(scale) {
        return format!("{} {}", count(number / scale), UNITS[unit]);
    }
    format!("{} {}", real(number as f64 / scale as f64), UNITS[unit])
}

/// Millions and thousands of something a second, for rates of the simulation itself.
pub(crate) fn rate(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => real(n),
    }
}

/// A capacitance in the unit that suits it.
pub(crate) fn capacitance(microfarads: f64) -> String {
    match microfarads {
        uf if uf >= 1e6 => format!("{} F", real(uf / 1e6)),
        uf if uf >= 1e3 => format!("{} mF", real(uf / 1e3)),
        uf => format!("{} uF", real(uf)),
    }
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_units() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(real(1234.5), "1,235");
        assert_eq!(real(-1234.0), "-1,234");
        assert_eq!(real(4.6582), "4.658");
        assert_eq!(real(0.0), "0.000");
        assert_eq!(real(f64::NAN), "-");
        assert_eq!(bytes(512), "512 B");
        assert_eq!((bytes(0).as_str(), bytes(4096).as_str()), ("0 B", "4 KiB"));
        assert_eq!(bytes(4_233_000_000), "3.942 GiB");
        assert_eq!(rate(2_345_678.0), "2.35 M");
        assert_eq!(percent(0.0731), "7.3 %");
        assert_eq!(
            (capacitance(180.0).as_str(), capacitance(30_780.0).as_str()),
            ("180.0 uF", "30.78 mF")
        );
    }
}
