//! Which of the keys that were written is to blame for a problem with a key that was not.
//!
//! Layers check values against each other, and name the one that does not fit; that may be a default. The
//! key to blame is one without which the problem is gone: each that was written is left out in turn.

use super::Scenario;
use super::de;
use super::diagnostic::{Base, Origin};
use super::tree::{Node, Value, join};

/// Keys that are tried, at most: each costs a check of the whole scenario.
const MOST_TRIED: usize = 48;

/// The first key, and where it was written, without which `fails` no longer holds. Keys of bundled files
/// are not tried if there are others: they fitted each other.
pub(super) fn blame(tree: &Node, fails: &dyn Fn(&Scenario) -> bool) -> Option<(String, Origin)> {
    let mut leaves = Vec::new();
    collect(tree, "", &mut leaves);
    let is_own = |origin: &Origin| !matches!(origin.source.base, Base::Bundled(_));
    if leaves.iter().any(|(_, origin)| is_own(origin)) {
        leaves.retain(|(_, origin)| is_own(origin));
    }
    leaves.into_iter().take(MOST_TRIED).find(|(path, _)| {
        let mut without = tree.clone();
        remove(&mut without, path);
        de::read::<Scenario>(&without).is_ok_and(|scenario| !fails(&scenario))
    })
}

/// Every key below `node` that holds no table, with its dotted path. Lists count as values.
fn collect(node: &Node, path: &str, into: &mut Vec<(String, Origin)>) {
    let Value::Table(table) = &node.value else { return };
    for (key, entry) in table {
        let path = join(path, key);
        match &entry.node.value {
            Value::Table(below) if !below.is_empty() => collect(&entry.node, &path, into),
            _ => into.push((path, entry.node.origin.clone())),
        }
    }
}

fn remove(node: &mut Node, path: &str) {
    let Value::Table(table) = &mut node.value else { return };
    match path.split_once('.') {
        None => drop(table.remove(path)),
        Some((key, rest)) => {
            if let Some(entry) = table.get_mut(key) {
                remove(&mut entry.node, rest);
            }
        }
    }
}
