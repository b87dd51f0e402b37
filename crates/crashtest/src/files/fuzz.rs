//! Entry points of the fuzz target and of the short fuzz test.

use std::fmt::Write as _;
use std::io::Cursor;
use std::sync::Arc;

use super::atom::Ino;
use super::history::{ATOM_BYTES_LEAST, FileHistory};
use super::recording::{HEAD, RecordedFiles, read_from};
use super::rules::Persistence;
use super::step::Kind;
use super::surviving::SurvivingFiles;
use super::tree::Tree;
use crate::cut::Flushes;
use crate::history::History as _;
use crate::search::Search;

/// States of a recording that are walked through.
const STATES: usize = 20;
/// Bytes of a file that are read.
const READ: usize = 8_192;

/// Reads what may be a recording of files under each of the rules, and walks through some of its states.
///
/// # Errors
/// What is wrong with it.
pub fn files(bytes: &[u8]) -> Result<(), String> {
    let whole = Persistence::ALL.map(FileHistory::new);
    let torn = whole.clone().map(|history| history.torn(ATOM_BYTES_LEAST).expect("a sector"));
    for history in whole.into_iter().chain(torn) {
        let RecordedFiles { history, .. } = read_from(Cursor::new(bytes), history)?;
        let history = Arc::new(history);
        let cuts = history.cuts(Flushes::All, &|_| true);
        for state in Search::new(&*history, &cuts, 1).take(STATES) {
            assert_eq!(history.check(&state), Ok(()), "a state that may be left is one");
            drop(history.lost_words(&state));
            walk(&history, &Tree::over(SurvivingFiles::new(Arc::clone(&history), &state)));
        }
    }
    Ok(())
}

/// Reads everything that can be reached.
fn walk(history: &FileHistory, tree: &Tree) {
    let mut folders = vec![Ino::ROOT];
    while let Some(folder) = folders.pop() {
        for ino in tree.entries(folder).into_values() {
            assert!(
                tree.xattrs(ino).iter().all(|name| tree.xattr(ino, name).is_ok()),
                "it is listed"
            );
            match tree.kind(ino) {
                Kind::Folder => folders.push(ino),
                Kind::Symlink => assert!(tree.target(ino).is_some(), "a link leads somewhere"),
                Kind::File => {
                    let most = tree.length(ino).min(READ as u64) as usize;
                    assert_eq!(tree.read(ino, 0, READ).map(|read| read.len()).ok(), Some(most));
                }
            }
            assert!(folders.len() < history.next_ino() as usize, "a tree has no circles");
        }
    }
}

/// A recording of each kind of entry.
pub fn files_seed() -> Vec<u8> {
    let mut text = format!("{HEAD}\n");
    for (at, (entry, data)) in [
        (r#"{"did":{"create":{"folder":1,"name":"a","kind":"file"}}}"#, ""),
        (r#"{"did":{"write":{"file":2,"offset":4000}}}"#, "twenty bytes of data"),
        (r#""begun""#, ""),
        (r#"{"did":{"create":{"folder":1,"name":"d","kind":"folder"}}}"#, ""),
        (r#"{"owned":[2,{"mode":384,"uid":0,"gid":0}]}"#, ""),
        (r#"{"synced":{"whole":2}}"#, ""),
        (r#"{"did":{"link":{"file":2,"folder":3,"name":"b"}}}"#, ""),
        (r#"{"did":{"rename":{"from":[1,"a"],"to":[3,"b"],"how":"exchange"}}}"#, ""),
        (r#"{"did":{"set_length":{"file":2,"bytes":0}}}"#, ""),
        (r#"{"did":{"close":{"file":2}}}"#, ""),
        (r#"{"did":{"write":{"file":2,"offset":0}}}"#, "new"),
        (r#"{"synced":{"data":2}}"#, ""),
        (r#"{"acknowledged":"one"}"#, ""),
        (r#"{"did":{"symlink":{"folder":1,"name":"l","target":"d/b"}}}"#, ""),
        (r#"{"did":{"zero":{"file":2,"offset":1,"bytes":2}}}"#, ""),
        (r#"{"did":{"remove":{"folder":3,"name":"b","kind":"file"}}}"#, ""),
        (r#"{"did":{"set_xattr":{"of":2,"name":"user.a"}}}"#, "value"),
        (r#"{"did":{"remove_xattr":{"of":2,"name":"user.a"}}}"#, ""),
        (r#"{"synced":"everything"}"#, ""),
        (r#""ended""#, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let _ = write!(text, "[{at},{entry},{}]\n{data}", data.len()); // no I/O
    }
    text.into_bytes()
}
