//! A policy folder registers every policy in it, and every registered policy has its file.

use std::collections::BTreeMap;

use super::Finding;
use super::code::{line_of, only};
use super::tree::Tree;

const MACRO: &str = "policies! {";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs").filter(|(path, _)| path.starts_with("crates/")) {
        let code = only(text);
        // With the crate's name: the macro's own file only defines it.
        let uses = code.match_indices(MACRO).map(|(at, _)| at);
        let calls: Vec<_> = uses.filter(|&at| code[..at].ends_with("::")).collect();
        if !calls.is_empty() {
            check_folder(tree, path, &code, &calls, &mut findings);
        }
    }
    findings
}

fn check_folder(tree: &Tree, path: &str, code: &str, calls: &[usize], findings: &mut Vec<Finding>) {
    let Some(folder) = path.strip_suffix("/mod.rs") else {
        let remedy = "a folder of policies registers them in its mod.rs";
        findings.push(Finding::new(path, line_of(code, calls[0]), "a registry elsewhere", remedy));
        return;
    };
    let mut registered = BTreeMap::new();
    for &at in calls {
        let end = code[at..].find("\n}").map_or(code.len(), |length| at + length);
        registered.extend(modules_registered(&code[at..end], line_of(code, at)));
    }
    let declared = modules_declared(code);
    let has_file = |module: &str| {
        tree.exists(&format!("{folder}/{module}.rs"))
            || tree.exists(&format!("{folder}/{module}/mod.rs"))
    };
    for (module, &line) in &registered {
        if !has_file(module) {
            let problem = format!("policy `{module}` is registered and has no file");
            let remedy = format!("write {folder}/{module}.rs, or take the line out");
            findings.push(Finding::new(path, line, problem, remedy));
        }
    }
    // A folder of policies may have a folder of others in it.
    let is_registry = |module: &str| {
        let inner = format!("{folder}/{module}/mod.rs");
        tree.with_extension("rs")
            .any(|(file, text)| *file == *inner && text.contains("policies! {"))
    };
    for (module, &(line, public)) in &declared {
        if public && !registered.contains_key(module) && !is_registry(module) {
            let problem = format!("`pub mod {module}` is not a registered policy");
            let remedy = "register it in `policies!`, or make it private: mechanism, not policy";
            findings.push(Finding::new(path, line, problem, remedy));
        }
    }
    for (file, _) in tree.with_extension("rs") {
        let name = file.strip_prefix(folder).and_then(|name| name.strip_prefix('/'));
        let module = name.and_then(|name| name.strip_suffix(".rs"));
        let Some(module) = module.filter(|module| !module.contains('/') && *module != "mod") else {
            continue;
        };
        // A registry with a trait declares its modules itself.
        if !declared.contains_key(module) && !registered.contains_key(module) {
            let problem = format!("the policy in this file is not registered in {path}");
            let remedy = "give it a line in `policies!`, and declare the module if that does not";
            findings.push(Finding::new(file, 1, problem, remedy));
        }
    }
}

/// The module of each `Variant(module::Type) = "name"`, and its line; `first` is the line at which
/// `registry` begins.
fn modules_registered(registry: &str, first: usize) -> BTreeMap<String, usize> {
    let mut modules = BTreeMap::new();
    for (index, line) in registry.lines().enumerate() {
        let module = line.split_once('(').and_then(|(_, inside)| inside.split_once("::"));
        if let Some((module, _)) = module.filter(|_| line.contains(") =")) {
            modules.insert(module.to_owned(), first + index);
        }
    }
    modules
}

/// Every `mod name;`, its line, and whether it is public.
fn modules_declared(code: &str) -> BTreeMap<String, (usize, bool)> {
    let mut modules = BTreeMap::new();
    for (index, line) in code.lines().enumerate() {
        let (public, rest) = match line.strip_prefix("pub ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let name = rest.strip_prefix("mod ").and_then(|name| name.strip_suffix(';'));
        modules.extend(name.map(|name| (name.to_owned(), (index + 1, public))));
    }
    modules
}
