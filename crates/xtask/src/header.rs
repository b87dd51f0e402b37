//! The C header of `crates/capi`, from its Rust source.
//!
//! Not a Rust parser: it knows the few forms that the sources below are written in, and refuses every other one.
//!
//! **Invariants**: a line that is not understood is an error and never left out; what the header says is in the
//! sources and nowhere else.

use std::fmt::Write as _;

/// The sources of the header, in this order.
pub(crate) const SOURCES: &[&str] = &[
    "crates/capi/src/types.rs",
    "crates/capi/src/calls.rs",
    "crates/capi/src/calls/data.rs",
    "crates/capi/src/calls/zones.rs",
    "crates/capi/src/calls/switch.rs",
];
/// Where it is.
pub(crate) const HEADER: &str = "crates/capi/include/leyden.h";

const WIDTH: usize = 110;

const BEGIN: &str = "\
#ifndef LEYDEN_H
#define LEYDEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";
const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// A form that is not known: the number of the source, its line counted from 1, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    pub(crate) source: usize,
    pub(crate) line: usize,
    pub(crate) problem: String,
}

/// The header of `sources`.
pub(crate) fn header(sources: &[&str]) -> Result<String, Unknown> {
    let mut out = String::new();
    let top = sources.first().map_or("", |text| *text).lines();
    let top: Vec<_> = top.map_while(|line| line.strip_prefix("//!")).collect();
    comment(&mut out, "", &top);
    out.push_str("/* Made by `cargo xtask header` from crates/capi/src: change that. */\n\n");
    out.push_str(BEGIN);
    for (number, text) in sources.iter().enumerate() {
        let mut reader = Reader { lines: text.lines().collect(), at: 0, docs: Vec::new() };
        while reader.at < reader.lines.len() {
            let line = reader.at + 1;
            let read = reader.item(&mut out);
            read.map_err(|problem| Unknown { source: number, line, problem })?;
        }
    }
    out.push_str(END);
    Ok(out)
}

/// A C comment of these lines, which begin with a space or are empty.
fn comment(out: &mut String, indent: &str, lines: &[&str]) {
    match lines {
        [] => {}
        [line] => {
            let _ = writeln!(out, "{indent}/**{line} */");
        }
        _ => {
            let _ = writeln!(out, "{indent}/**");
            for line in lines {
                let _ = writeln!(out, "{indent} *{line}");
            }
            let _ = writeln!(out, "{indent} */");
        }
    }
}

/// A source that is being read, line by line.
struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
    /// The documentation of the item that comes next.
    docs: Vec<&'a str>,
}

impl Reader<'_> {
    /// Reads an item, or a line of what comes before one.
    fn item(&mut self, out: &mut String) -> Result<(), String> {
        let line = self.lines[self.at];
        self.at += 1;
        let is_skipped = ["//!", "use ", "pub mod ", "mod ", "#["];
        if line.is_empty() || is_skipped.iter().any(|begin| line.starts_with(begin)) {
            return Ok(());
        }
        if let Some(text) = line.strip_prefix("///") {
            self.docs.push(text);
            return Ok(());
        }
        if let Some(title) = line.strip_prefix("// ") {
            let _ = write!(out, "\n/* ---- {title} ---- */\n");
            return Ok(());
        }
        out.push('\n');
        comment(out, "", &std::mem::take(&mut self.docs));
        if let Some(rest) = line.strip_prefix("pub const ") {
            return constant(out, rest);
        }
        if let Some(rest) = line.strip_prefix("pub type ") {
            let (name, of) = rest.trim_end_matches(';').split_once(" = ").ok_or("a type")?;
            let _ = writeln!(out, "typedef {};", declared(of, name)?);
            return Ok(());
        }
        if let Some(name) = line.strip_prefix("pub struct ").and_then(|it| it.strip_suffix(" {")) {
            return self.structure(out, name);
        }
        let safe = line.replacen("pub unsafe extern", "pub extern", 1);
        match safe.strip_prefix("pub extern \"C\" fn ") {
            Some(rest) => self.function(out, rest),
            None => Err(format!("not understood: {line}")),
        }
    }

    fn structure(&mut self, out: &mut String, name: &str) -> Result<(), String> {
        let mut fields = String::new();
        let mut docs = Vec::new();
        while let Some(&line) = self.lines.get(self.at) {
            self.at += 1;
            let line = line.trim();
            if line == "}" {
                let _ = match fields.as_str() {
                    "" => writeln!(out, "typedef struct {name} {name};"),
                    _ => writeln!(out, "typedef struct {name} {{\n{fields}}} {name};"),
                };
                return Ok(());
            }
            if let Some(text) = line.strip_prefix("///") {
                docs.push(text);
            } else if let Some(field) = line.strip_prefix("pub ") {
                let (name, of) = field.trim_end_matches(',').split_once(": ").ok_or("a field")?;
                comment(&mut fields, "    ", &std::mem::take(&mut docs));
                let _ = writeln!(fields, "    {};", declared(of, name)?);
            } else if !line.starts_with('_') {
                return Err(format!("not a field: {line}"));
            }
        }
        Err(format!("{name} has no end"))
    }

    /// A function, of which `rest` has the name and what follows on its line. Its body is not looked at.
    fn function(&mut self, out: &mut String, rest: &str) -> Result<(), String> {
        let mut text = rest.to_owned();
        while !text.ends_with('{') {
            let Some(line) = self.lines.get(self.at) else { return Err("no body".to_owned()) };
            text.push_str(line.trim());
            self.at += 1;
        }
        let (name, rest) = text.split_once('(').ok_or("no parameters")?;
        let (parameters, result) = rest.split_once(')').ok_or("no end of the parameters")?;
        let result = result.trim().trim_end_matches('{').trim();
        let result = result.strip_prefix("-> ").map_or("void", str::trim_end);
        let parameters = parameters.split(',').map(str::trim).filter(|text| !text.is_empty());
        let parameters = parameters.map(|parameter| {
            let (name, of) = parameter.split_once(": ").ok_or("a parameter")?;
            declared(of, name)
        });
        let parameters = parameters.collect::<Result<Vec<_>, String>>()?;
        let head = if result == "void" { format!("void {name}") } else { declared(result, name)? };
        let one = format!("{head}({});", parameters.join(", "));
        if parameters.is_empty() {
            let _ = writeln!(out, "{head}(void);");
        } else if one.len() <= WIDTH {
            let _ = writeln!(out, "{one}");
        } else {
            let _ = writeln!(out, "{head}(\n    {});", parameters.join(",\n    "));
        }
        while let Some(&line) = self.lines.get(self.at) {
            self.at += 1;
            if line == "}" {
                return Ok(());
            }
        }
        Err(format!("{name} has no end"))
    }
}

fn constant(out: &mut String, rest: &str) -> Result<(), String> {
    let (name, rest) = rest.split_once(": ").ok_or("a constant without a type")?;
    let (of, value) = rest.trim_end_matches(';').split_once(" = ").ok_or("no value")?;
    let value = match (of, value) {
        (_, "u64::MAX") => "UINT64_MAX".to_owned(),
        ("u32", value) => format!("UINT32_C({value})"),
        ("u64", value) => format!("UINT64_C({value})"),
        ("leyden_status", value) => format!("((leyden_status){value})"),
        _ => return Err(format!("a constant of type {of}")),
    };
    let _ = writeln!(out, "#define {name} {value}");
    Ok(())
}

/// The C declaration of `name` as a value of the Rust type `of`.
fn declared(of: &str, name: &str) -> Result<String, String> {
    let of = c_type(of.trim())?;
    let space = if of.ends_with('*') { "" } else { " " };
    Ok(format!("{of}{space}{name}"))
}

fn c_type(of: &str) -> Result<String, String> {
    if let Some(to) = of.strip_prefix("*mut ") {
        let to = c_type(to)?;
        return Ok(if to.ends_with('*') { format!("{to}*") } else { format!("{to} *") });
    }
    if let Some(to) = of.strip_prefix("*const ") {
        let to = c_type(to)?;
        return Ok(if to.ends_with('*') {
            format!("{to}const *")
        } else {
            format!("const {to} *")
        });
    }
    let known = match of {
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "usize" => "size_t",
        "f64" => "double",
        "c_char" => "char",
        "c_void" => "void",
        ours if ours.starts_with("leyden_") => ours,
        other => return Err(format!("the type {other}")),
    };
    Ok(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
//! A top.

use std::ffi::c_char;

// Constants.

/// A flag.
pub const LEYDEN_A: u32 = 1;
pub type leyden_status = i32;
/// Opaque.
pub struct leyden_thing {
    _opaque: [u8; 0],
}
/// Two
/// lines.
#[repr(C)]
pub struct leyden_pair {
    /// A field.
    pub names: *const *const c_char,
}
/// A call.
#[unsafe(no_mangle)]
pub unsafe extern \"C\" fn leyden_do(
    thing: *mut *mut leyden_thing,
    text: *const c_char,
) -> leyden_status {
    if true {
        return 1;
    }
    0
}
";

    #[test]
    fn every_form_is_written_in_c() {
        let header = header(&[SOURCE]).unwrap();
        for expected in [
            "/** A top. */\n",
            "/* ---- Constants. ---- */\n",
            "/** A flag. */\n#define LEYDEN_A UINT32_C(1)\n",
            "typedef int32_t leyden_status;\n",
            "/** Opaque. */\ntypedef struct leyden_thing leyden_thing;\n",
            "/**\n * Two\n * lines.\n */\ntypedef struct leyden_pair {\n    /** A field. */\n    \
             const char *const *names;\n} leyden_pair;\n",
            "/** A call. */\nleyden_status leyden_do(leyden_thing **thing, const char *text);\n",
        ] {
            assert!(header.contains(expected), "no {expected:?} in\n{header}");
        }
    }

    #[test]
    fn unknown_forms_are_errors() {
        for (bad, line) in [
            ("//! Top.\npub enum leyden_kind {\n", 2),
            ("pub const LEYDEN_A: bool = true;\n", 1),
            ("pub unsafe extern \"C\" fn leyden_do(name: &str) {\n}\n", 1),
            ("fn helper() {}\n", 1),
        ] {
            assert_eq!(header(&["", bad]).unwrap_err().line, line, "{bad}");
        }
    }
}
