//! Aligned tables for a terminal or a text file.

use std::io::{self, Write};

use super::escape::shown;

/// A table: the first column is left-aligned, the others right-aligned.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    /// All columns are left-aligned.
    of_texts: bool,
}

#[derive(Debug)]
enum Row {
    /// A heading over the rows that follow; its cells head the columns.
    Head(Vec<String>),
    Cells(Vec<String>),
    Gap,
}

impl Table {
    /// A table of texts: all columns are left-aligned.
    pub(crate) fn of_texts() -> Self {
        Self { of_texts: true, ..Self::default() }
    }

    pub(crate) fn head<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        if !self.rows.is_empty() {
            self.rows.push(Row::Gap);
        }
        self.rows
            .push(Row::Head(cells.into_iter().map(|cell| shown(&cell.into(), false)).collect()));
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows
            .push(Row::Cells(cells.into_iter().map(|cell| shown(&cell.into(), false)).collect()));
    }

    /// Writes the table; headings are bold where `out` shows that.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths();
        let bold = anstyle::Style::new().bold();
        for row in &self.rows {
            match row {
                Row::Gap => writeln!(out)?,
                Row::Head(cells) => writeln!(out, "{bold}{}{bold:#}", self.line(cells, &widths))?,
                Row::Cells(cells) => writeln!(out, "{}", self.line(cells, &widths))?,
            }
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.rows {
            let (Row::Head(cells) | Row::Cells(cells)) = row else {
                continue;
            };
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        use std::fmt::Write as _; // into a text, which never fails

        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let gap = if index == 0 { "" } else { "  " };
            let _ = if index == 0 || self.of_texts {
                write!(line, "{gap}{cell:width$}")
            } else {
                write!(line, "{gap}{cell:>width$}")
            };
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// `text` in lines of at most `width` characters, broken at spaces.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = Table::default();
        table.head(["host", "read", "write"]);
        table.row(["requests", "5", "1,000"]);
        table.row(["µs", "12.5"]);
        let mut out = Vec::new();
        table.write(&mut anstream::StripStream::new(&mut out)).unwrap();
        let mut texts = Table::of_texts();
        texts.row(["work", "a long command"]);
        texts.row(["device", "1 GiB"]);
        let mut aligned = Vec::new();
        texts.write(&mut aligned).unwrap();
        assert_eq!(String::from_utf8(aligned).unwrap(), "work    a long command\ndevice  1 GiB\n");
        let expected = "host      read  write\nrequests     5  1,000\nµs        12.5\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
