//! Relative links of the documentation lead somewhere.

use super::Finding;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, target) in links(text) {
            if let Err(problem) = resolve(tree, path, target) {
                let remedy = "correct the link, or add its target";
                findings.push(Finding::new(path, line, problem, remedy));
            }
        }
    }
    findings
}

/// Every target of `[text](target)` and `src="target"` outside of code, with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        for (open, close) in [("](", ')'), ("src=\"", '"')] {
            for (at, _) in line.match_indices(open) {
                let in_code = line[..at].matches('`').count() % 2 == 1;
                let target = line[at + open.len()..].split_once(close).map(|(target, _)| target);
                found.extend(target.filter(|_| !in_code).map(|target| (index + 1, target)));
            }
        }
    }
    found
}

/// The fault of the link to `target` in the file at `path`, if it has one.
fn resolve(tree: &Tree, path: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(()); // elsewhere: checking it would need the network
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let found = if file.is_empty() { Some(path.to_owned()) } else { relative(path, file) };
    let Some(found) = found.filter(|found| tree.exists(found)) else {
        return Err(format!("the link `{target}` leads to nothing"));
    };
    let is_page = found.rsplit_once('.').is_some_and(|(_, extension)| extension == "md");
    if fragment.is_empty() || !is_page {
        return Ok(());
    }
    let page = tree.text(&found).unwrap_or_default();
    if headings(page).any(|heading| slug(heading) == fragment) {
        return Ok(());
    }
    Err(format!("`{found}` has no heading `#{fragment}`"))
}

/// `target` as seen from the file at `path`; `None` if it leaves the repository.
fn relative(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn headings(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
}

/// The name that a forge gives a heading: lower case, hyphens for spaces, no punctuation.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
