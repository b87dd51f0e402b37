//! The tables of a page, and the comment in front of each that says where its figures come from.

/// How a table is marked; the remedy of what is found.
pub(super) const HOW: &str = "put `<!-- figures: RECORD ... -->` in front of it, or `<!-- figures: none (REASON) -->` (papers/README.md)";

/// Why a table holds nothing that was measured.
const REASONS: &[&str] = &["definitions", "configuration"];

/// The marker in front of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// It holds nothing that was measured.
    Unmeasured,
    /// It was measured and no record was kept, for this reason.
    Unrecorded(String),
    Recorded {
        /// The records' names, at least one.
        records: Vec<String>,
        /// For each row of the table the template of each cell.
        rows: Vec<Vec<String>>,
    },
}

/// A row, without those of the head.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) line: usize,
    pub(super) cells: Vec<&'a str>,
}

#[derive(Debug)]
pub(super) struct Table<'a> {
    /// The line of its head.
    pub(super) line: usize,
    pub(super) rows: Vec<Row<'a>>,
    /// Whether a marker stands in front of it, sound or not.
    pub(super) is_marked: bool,
    /// Its marker, or what is wrong with it.
    pub(super) marker: Result<Marker, String>,
}

/// Every table of `page`, outside of code and comments.
pub(super) fn tables(page: &str) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut comment: Option<String> = None; // the last one, if nothing else came since
    let (mut is_fenced, mut is_comment, mut is_table) = (false, false, false);
    for (number, line) in (1..).zip(page.lines()) {
        if is_comment {
            let text = comment.get_or_insert_default();
            text.push('\n');
            text.push_str(line);
            is_comment = !line.contains("-->");
            continue;
        }
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        }
        let was_table = std::mem::replace(&mut is_table, line.starts_with('|') && !is_fenced);
        match (was_table, is_table) {
            (true, true) => {
                let cells = cells(line);
                if let Some(table) = tables.last_mut()
                    && !cells.iter().all(|cell| is_rule(cell))
                {
                    table.rows.push(Row { line: number, cells });
                }
            }
            (false, true) => {
                let comment = comment.take();
                let is_marked = comment.as_deref().and_then(said).is_some();
                let marker = comment.map_or_else(no_marker, |text| marker(&text));
                tables.push(Table { line: number, rows: Vec::new(), is_marked, marker });
            }
            (_, false) if line.starts_with("<!--") => {
                comment = Some(line.to_owned());
                is_comment = !line.contains("-->");
            }
            (_, false) if line.trim().is_empty() => {}
            (_, false) => comment = None,
        }
    }
    tables
}

fn no_marker() -> Result<Marker, String> {
    Err("the table does not say where its figures come from".to_owned())
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('|');
    line.strip_suffix('|').unwrap_or(line).split('|').map(str::trim).collect()
}

/// A cell of the line below the head.
fn is_rule(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':')) && cell.contains("--")
}

/// The comment `text` on figures, if it is a marker.
fn said(text: &str) -> Option<&str> {
    let inside = text.trim().trim_start_matches("<!--").trim_end_matches("-->").trim();
    inside.strip_prefix("figures:")
}

/// The marker that is the comment `text`.
fn marker(text: &str) -> Result<Marker, String> {
    let Some(said) = said(text) else { return no_marker() };
    let mut lines = said.trim().lines();
    let first = lines.next().unwrap_or_default().trim();
    if let Some(reason) = first.strip_prefix("none") {
        let reason = reason.trim().trim_start_matches('(');
        let (reason, why) = reason.split_once(')').unwrap_or((reason, ""));
        let why = std::iter::once(why.trim()).chain(lines.map(str::trim)).collect::<Vec<_>>();
        let why = why.join(" ").trim().to_owned();
        return match reason {
            "unrecorded" if why.is_empty() => Err("`none (unrecorded)` without saying why".into()),
            "unrecorded" => Ok(Marker::Unrecorded(why)),
            _ if REASONS.contains(&reason) => Ok(Marker::Unmeasured),
            _ => Err(format!("`{reason}` is no reason; {} or unrecorded are", REASONS.join(", "))),
        };
    }
    let records: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
    if records.is_empty() {
        return Err("the marker names no record".to_owned());
    }
    let mut each: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in joined(lines) {
        let mut parts = line.split('|').map(str::trim);
        let words: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
        let templates: Vec<String> = parts.map(str::to_owned).collect();
        if words == ["each"] {
            each = templates;
            continue;
        }
        let templates = if templates.is_empty() { &each } else { &templates };
        rows.push(templates.iter().map(|template| fill_in(template, &words)).collect());
    }
    Ok(Marker::Recorded { records, rows })
}

/// The lines of a marker; one that begins with `|` goes on with the line before it.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        match all.last_mut() {
            Some(last) if line.starts_with('|') => *last = format!("{last} {line}"),
            _ => all.push(line.to_owned()),
        }
    }
    all
}

/// `template` with the row's words in place of `@`, `@2`, `@3` and so on.
fn fill_in(template: &str, words: &[&str]) -> String {
    let mut text = template.to_owned();
    for (number, word) in (1..).zip(words).skip(1) {
        text = text.replace(&format!("@{number}"), word);
    }
    words.first().map_or(text.clone(), |word| text.replace('@', word))
}
