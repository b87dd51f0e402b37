//! A cell beside its template: text with `{expressions}`.
//!
//! A number is shown with as many decimals as the cell has in its place, so the page decides how it rounds. `{range ...}`
//! adds ` (LEAST to MOST)` where these two are not the same when shown.

use super::expression::{Lookup, Values, evaluate, least, mean, most};

/// The contents that a cell must show.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing that was measured: the template is `-`.
    Name,
    Text(String),
}

/// Decimals of a number that the cell does not have.
const DECIMALS: usize = 3;

/// How a number is written.
#[derive(Clone, Copy)]
struct Style {
    decimals: usize,
    has_sign: bool,
}

/// The contents that the cell must show by `template`; `cell` tells only how numbers are written.
pub(super) fn shown(template: &str, cell: &str, lookup: &mut Lookup<'_>) -> Result<Shown, String> {
    if template == "-" {
        return Ok(Shown::Name);
    }
    let mut styles = Vec::new();
    let mut rest = cell;
    while let Some((style, behind)) = next_number(rest) {
        styles.push(style);
        rest = behind;
    }
    let mut styles = styles.into_iter();
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (expression, behind) =
            behind.split_once('}').ok_or_else(|| format!("a `}}` is missing in `{template}`"))?;
        add_literal(&mut text, before, &mut styles);
        add_value(&mut text, expression, &mut styles, lookup)?;
        rest = behind;
    }
    add_literal(&mut text, rest, &mut styles);
    Ok(Shown::Text(text))
}

/// Whether `cell` shows `expected`: commas in numbers and bold print are the page's choice.
pub(super) fn is_same(cell: &str, expected: &str) -> bool {
    let plain = |text: &str| {
        let mut plain = String::new();
        for (at, c) in text.char_indices() {
            let is_between = |c: char| c.is_ascii_digit();
            let in_number = c == ','
                && text[..at].ends_with(is_between)
                && text[at + 1..].starts_with(is_between);
            if c != '*' && !in_number {
                plain.push(c);
            }
        }
        plain
    };
    plain(cell) == plain(expected)
}

/// Text as it is; its numbers have their place in the cell, too.
fn add_literal(text: &mut String, literal: &str, styles: &mut impl Iterator<Item = Style>) {
    text.push_str(literal);
    let mut rest = literal;
    while let Some((_, behind)) = next_number(rest) {
        styles.next();
        rest = behind;
    }
}

fn add_value(
    text: &mut String,
    expression: &str,
    styles: &mut impl Iterator<Item = Style>,
    lookup: &mut Lookup<'_>,
) -> Result<(), String> {
    let (expression, is_range) = match expression.strip_prefix("range ") {
        Some(expression) => (expression, true),
        None => (expression, false),
    };
    let numbers = match evaluate(expression, lookup)? {
        Values::Word(word) => {
            text.push_str(&word);
            return Ok(());
        }
        Values::Numbers(numbers) => numbers,
    };
    let style = styles.next().unwrap_or(Style { decimals: DECIMALS, has_sign: false });
    text.push_str(&number(mean(&numbers), style)?);
    let (least, most) = (least(&numbers), most(&numbers));
    if is_range && number(least, style)? != number(most, style)? {
        let ends = [styles.next().unwrap_or(style), styles.next().unwrap_or(style)];
        let (least, most) = (number(least, ends[0])?, number(most, ends[1])?);
        for part in [" (", &least, " to ", &most, ")"] {
            text.push_str(part);
        }
    }
    Ok(())
}

fn number(value: f64, style: Style) -> Result<String, String> {
    if !value.is_finite() {
        return Err(format!("the record gives {value}"));
    }
    let digits = format!("{:.*}", style.decimals, value.abs());
    let is_zero = digits.chars().all(|c| matches!(c, '0' | '.'));
    let sign = match value < 0.0 && !is_zero {
        true => "-",
        false if style.has_sign && !is_zero => "+",
        false => "",
    };
    Ok(format!("{sign}{}", with_commas(&digits)))
}

/// `digits` with a comma before each three of the whole part.
fn with_commas(digits: &str) -> String {
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// How the first number in `text` is written, and what stands behind it.
fn next_number(text: &str) -> Option<(Style, &str)> {
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let has_sign = text[..at].ends_with('+');
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = at;
    while is_digit(end) || (bytes.get(end) == Some(&b',') && is_digit(end + 1)) {
        end += 1;
    }
    let whole = end;
    if bytes.get(end) == Some(&b'.') && is_digit(end + 1) {
        end += 1;
        while is_digit(end) {
            end += 1;
        }
    }
    let decimals = (end - whole).saturating_sub(1);
    Some((Style { decimals, has_sign }, &text[end..]))
}
