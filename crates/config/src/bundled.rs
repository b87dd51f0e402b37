//! The scenarios of this repository's `scenarios/`, compiled in so that the command works anywhere.

/// Lists files once; a test holds the list against the folder.
macro_rules! bundle {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../scenarios/", $path)))),+]
    };
}

/// Every bundled file: its path below `scenarios/`, and its text.
pub const SCENARIOS: &[(&str, &str)] = bundle![
    "atomic-writes.toml",
    "hot-cold.toml",
    "power-cuts.toml",
    "power-loss.toml",
    "tpcc.toml",
    "bench/random-read-1tib.toml",
    "bench/random-read.toml",
    "bench/random-write-1tib.toml",
    "bench/random-write-7-1tib.toml",
    "bench/random-write-7.toml",
    "bench/random-write.toml",
    "bench/sequential-write-1tib.toml",
    "bench/sequential-write.toml",
    "bench/tpcc-1tib.toml",
    "bench/tpcc.toml",
    "bench/zone-append.toml",
    "dawid/jesd219.toml",
    "dawid/random-write.toml",
    "dawid/tpcc.toml",
    "devices/database.toml",
    "devices/hexa.toml",
    "devices/journal-zones.toml",
    "devices/qlc.toml",
    "devices/selective-plp.toml",
    "devices/tlc-datacenter.toml",
    "devices/zombie-16bank.toml",
    "devices/zombie-4bank.toml",
    "devices/zns.toml",
    "devices/zoned-block.toml",
    "devices/zoned-block-defaults.toml",
    "hexa/cyclic-log.toml",
    "hexa/figure1.toml",
    "hexa/jesd219.toml",
    "hexa/random-write.toml",
    "hexa/tpcc.toml",
    "journal-zones/conventional.toml",
    "journal-zones/journal.toml",
    "journal-zones/journal-lazy.toml",
    "journal-zones/journal-sequential.toml",
    "journal-zones/once-journal.toml",
    "journal-zones/once-journal-sequential.toml",
    "journal-zones/once-ordered.toml",
    "journal-zones/once-ordered-sequential.toml",
    "journal-zones/once-xfs.toml",
    "journal-zones/ordered.toml",
    "journal-zones/ordered-sequential.toml",
    "journal-zones/xfs.toml",
    "selective-plp/conventional.toml",
    "selective-plp/fillseq.toml",
    "selective-plp/fillseq-recorded.toml",
    "selective-plp/overwrite.toml",
    "selective-plp/overwrite-recorded.toml",
    "selective-plp/power-cuts.toml",
    "zombie/figure2.toml",
    "zombie/figure5-16bank.toml",
    "zombie/figure5.toml",
    "zombie/micro.toml",
    "zombie/pgbench-a.toml",
    "zombie/pgbench-d.toml",
    "zombie/pgbench-large.toml",
    "zombie/shared.toml",
    "zombie/tpcc-power.toml",
    "zombie/tpcc.toml",
];

/// Lists traces.
/// A bundled trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    /// Its path below `scenarios/`.
    pub(super) name: &'static str,
    /// Its contents.
    pub(super) bytes: &'static [u8],
    /// Length and SHA-256 of the repository's file, where `bytes` are others of the same meaning.
    pub(super) origin: Option<&'static str>,
}

macro_rules! plain {
    ($path:expr) => {
        Trace { name: $path, bytes: include_bytes!(concat!("../scenarios/", $path)), origin: None }
    };
}

/// A trace `traces/NAME.csv.zst`.
#[cfg(not(feature = "packed-traces"))]
macro_rules! table {
    ($name:literal) => {
        plain!(concat!("traces/", $name, ".csv.zst"))
    };
}

/// The same, of columns (`build.rs`).
#[cfg(feature = "packed-traces")]
macro_rules! table {
    ($name:literal) => {
        Trace {
            name: concat!("traces/", $name, ".csv.zst"),
            bytes: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".columns")),
            origin: Some(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".origin"))),
        }
    };
}

/// Every bundled trace. The bytes of a constant, and of a static, lie in the metadata of their crate as well; those of a
/// function that no other crate inlines do not.
#[inline(never)]
fn traces() -> &'static [Trace] {
    &[
        plain!("hexa/figure1.csv"),
        plain!("zombie/figure2.csv"),
        plain!("traces/rocksdb.files.zst"),
        table!("pgbench-a"),
        table!("pgbench-a.hints"),
        table!("pgbench-d"),
        table!("pgbench-d.hints"),
        table!("pgbench-large"),
        table!("pgbench-large.hints"),
        table!("tpcc"),
        table!("tpcc.hints"),
        table!("ext4-journal-randwrite4k"),
        table!("ext4-journal-randwrite4k-fsync16"),
        table!("ext4-journal-seqwrite4k-fsync32"),
        table!("ext4-ordered-randwrite4k-fsync16"),
        table!("ext4-ordered-seqwrite4k-fsync32"),
        table!("xfs-randwrite4k-once"),
        table!("ext4-ordered-seqwrite4k-once"),
        table!("ext4-ordered-randwrite4k-once"),
        table!("ext4-journal-seqwrite4k-once"),
        table!("ext4-journal-randwrite4k-once"),
        table!("xfs-randwrite4k-fsync16"),
    ]
}

/// The bundled trace at `path`, with or without `scenarios/` before it.
pub(super) fn trace(path: &str) -> Option<Trace> {
    let path = path.strip_prefix("scenarios/").unwrap_or(path);
    let trace = *traces().iter().find(|trace| trace.name == path)?;
    #[cfg(feature = "packed-traces")]
    let trace = Trace { bytes: unpacked(&trace), ..trace };
    Some(trace)
}

/// A trace's text, made once.
#[cfg(feature = "packed-traces")]
fn unpacked(trace: &Trace) -> &'static [u8] {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};

    static MADE: Mutex<BTreeMap<&str, &[u8]>> = Mutex::new(BTreeMap::new());
    if trace.origin.is_none() {
        return trace.bytes;
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(trace.name).or_insert_with(|| {
        let columns = zstd::decode_all(trace.bytes).expect("the build script made it");
        super::packed::unpack(&columns).expect("the build script tried it").leak()
    })
}

/// A user's name for the file at `path`: `bench/random-write`.
pub fn name(path: &str) -> &str {
    path.strip_suffix(".toml").unwrap_or(path)
}

/// A user's name for each of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(path, _)| name(path))
}

/// The file called `wanted`, with or without `.toml`.
pub(super) fn find(wanted: &str) -> Option<(&'static str, &'static str)> {
    let wanted = name(wanted.strip_prefix("scenarios/").unwrap_or(wanted));
    SCENARIOS.iter().find(|(path, _)| name(path) == wanted).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn tomls(folder: &Path, found: &mut Vec<String>, root: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                tomls(&path, found, root);
            } else if path.extension().is_some_and(|e| e == "toml")
                && !path.ends_with("scenarios/claims.toml")
            {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_scenario_is_bundled_and_loads() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut found = Vec::new();
        tomls(&root, &mut found, &root);
        found.sort();
        let mut listed: Vec<_> = SCENARIOS.iter().map(|(path, _)| (*path).to_owned()).collect();
        listed.sort();
        assert_eq!(found, listed, "list every file of scenarios/ above");
        for (path, _) in SCENARIOS {
            if let Err(error) = super::super::Loaded::new(name(path), &[]) {
                panic!("{path}: {error}");
            }
        }
    }
}
