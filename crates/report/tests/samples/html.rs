//! The contents of a page.

use serde_json::Value;

pub(crate) const VEGA: &str = include_str!("../../assets/vega/charts.min.js.gz.b64");

/// The text between two marks, the first time.
pub(crate) fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap() + from.len();
    let end = text[start..].find(to).unwrap();
    &text[start..start + end]
}

/// The page without style, library, script and licences: what a record can have an effect on.
pub(crate) fn body(html: &str) -> &str {
    between(html, "<body>", "<details><summary>Licences")
}

/// The JSON the page's script reads.
pub(crate) fn data(html: &str) -> Value {
    let json = between(html, "<script type=\"application/json\" id=\"data\">", "</script>");
    serde_json::from_str(json).unwrap()
}

/// Ids and captions of the figures; `!` marks those that say there is nothing.
pub(crate) fn outline(html: &str) -> Vec<String> {
    let figures = body(html).split("<figure id=\"").skip(1);
    figures
        .map(|figure| {
            let id = figure.split('"').next().unwrap();
            let figure = figure.split("</figure>").next().unwrap();
            let title = between(figure, "<h3>", "</h3>");
            let empty = figure.contains("<p class=\"empty\">");
            format!("{id}{} | {title}", if empty { "!" } else { "" })
        })
        .collect()
}

/// Opening tags without their closing ones, apart from elements that have none.
pub(crate) fn unbalanced(html: &str) -> Vec<String> {
    let void = ["meta", "br", "!doctype", "img", "input"];
    let mut open: Vec<String> = Vec::new();
    for tag in body(html).split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name = tag.trim_start_matches('/');
        let name = name.split([' ', '\n']).next().unwrap().to_owned();
        if tag.starts_with('/') {
            if open.pop().as_ref() != Some(&name) {
                return vec![format!("</{name}> closes nothing")];
            }
        } else if !void.contains(&name.as_str()) {
            open.push(name);
        }
    }
    // The body ends where its footer has been cut off.
    open.retain(|name| name != "footer");
    open
}
