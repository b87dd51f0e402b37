//! Scripts for crash tests of well-known software: a setup, a work and a check of each, and the command that runs them.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::error::{CrashError, said};

/// Scripts for one piece of software.
#[derive(Clone, Copy, Debug)]
pub struct Kit {
    /// Its name on the command line.
    pub name: &'static str,
    /// A line about the kit, with the needs of its scripts.
    pub about: &'static str,
    /// Names and texts.
    files: &'static [(&'static str, &'static str)],
    /// A shell command that builds the program from them; none for scripts.
    build: Option<&'static str>,
    /// The program, and its arguments for each of the three.
    program: &'static str,
    setup: &'static str,
    work: &'static str,
    check: &'static str,
    /// The check stays, and reads a line for each state.
    is_server: bool,
    /// Programs that must be there.
    needs: &'static [&'static str],
    size: &'static str,
    /// The members of a cluster, each with a drive of its own; one for software that is alone.
    drives: u32,
}

/// The commands of a kit, which run in its folder.
#[derive(Clone, Debug)]
pub struct KitScripts {
    /// The command of the preparation.
    pub setup: String,
    /// The command of the work.
    pub work: String,
    /// The command of the check.
    pub check: String,
    /// The check stays, and reads a line for each state.
    pub is_server: bool,
    /// Room on a drive, as sizes are written.
    pub size: &'static str,
    /// The drives.
    pub drives: u32,
}

macro_rules! script {
    ($path:literal) => {
        include_str!(concat!("../scripts/", $path))
    };
}

const GO_BUILD: &str = "go mod tidy && go build -o store .";
/// As its users run it: in a debug build a store stops at assertions where it recovers otherwise.
const CARGO_BUILD: &str = "cargo build --release --quiet --target-dir target";
/// The package is put beside the script if it is not installed.
const DUCKDB_BUILD: &str = "python3 -c 'import duckdb' 2>/dev/null || python3 -m pip install --quiet --target . duckdb==2.0.1";

/// The shape that most have.
const KIT: Kit = Kit {
    name: "",
    about: "",
    files: &[],
    build: None,
    program: "",
    setup: "setup",
    work: "",
    check: "check",
    is_server: true,
    needs: &[],
    size: "64 MiB",
    drives: 1,
};

/// All of them, by name.
pub const KITS: &[Kit] = &[
    Kit {
        name: "badger",
        about: "Badger with SyncWrites; needs Go and the module github.com/dgraph-io/badger",
        files: &[
            ("main.go", script!("go/main.go")),
            ("store.go", script!("badger/store.go")),
            ("go.mod", script!("badger/go.mod")),
        ],
        build: Some(GO_BUILD),
        program: "./store",
        work: "work 200",
        needs: &["go"],
        ..KIT
    },
    Kit {
        name: "bbolt",
        about: "bbolt, the store of etcd; needs Go and the module go.etcd.io/bbolt",
        files: &[
            ("main.go", script!("go/main.go")),
            ("store.go", script!("bbolt/store.go")),
            ("go.mod", script!("bbolt/go.mod")),
        ],
        build: Some(GO_BUILD),
        program: "./store",
        work: "work 100",
        needs: &["go"],
        ..KIT
    },
    Kit {
        name: "duckdb",
        about: "DuckDB; needs Python 3, and its package duckdb or pip",
        files: &[("duck.py", script!("duckdb/duck.py"))],
        build: Some(DUCKDB_BUILD),
        program: "./duck.py",
        work: "work 60",
        needs: &["python3"],
        ..KIT
    },
    Kit {
        name: "etcd",
        about: "etcd of three members, each on a drive of its own, always with --files; needs etcd-server, etcd-client and Python 3",
        files: &[("etcd.py", script!("etcd/etcd.py"))],
        program: "./etcd.py",
        work: "work 30",
        needs: &["python3", "etcd", "etcdctl"],
        drives: 3,
        ..KIT
    },
    Kit {
        name: "fjall",
        about: "fjall with SyncAll; needs cargo and the crate fjall",
        files: &[
            ("main.rs", script!("rust/main.rs")),
            ("store.rs", script!("fjall/store.rs")),
            ("Cargo.toml", script!("fjall/manifest.toml")),
        ],
        build: Some(CARGO_BUILD),
        program: "./target/release/store",
        work: "work 200",
        needs: &["cargo"],
        ..KIT
    },
    Kit {
        name: "gdbm",
        about: "GDBM with gdbm_sync, which loses records: it promises no crash tolerance so; needs a C compiler and libgdbm-dev",
        files: &[("gdbm.c", script!("gdbm/gdbm.c"))],
        build: Some("cc -O1 -o gdbm gdbm.c -lgdbm"),
        program: "./gdbm",
        work: "work 100",
        needs: &["cc"],
        ..KIT
    },
    Kit {
        name: "git",
        about: "git with core.fsync=all, which loses the last commit: it syncs files, not folders; needs git",
        files: &[("git.sh", script!("git/git.sh"))],
        program: "./git.sh",
        setup: "setup core.fsync=all",
        work: "work 20",
        is_server: false,
        needs: &["git"],
        ..KIT
    },
    Kit {
        name: "leveldb",
        about: "LevelDB with synchronous writes; needs a C++ compiler and libleveldb-dev",
        files: &[("leveldb.cc", script!("leveldb/leveldb.cc"))],
        build: Some("c++ -std=c++17 -O1 -o leveldb leveldb.cc -lleveldb"),
        program: "./leveldb",
        work: "work 400",
        needs: &["c++"],
        ..KIT
    },
    Kit {
        name: "lmdb",
        about: "LMDB; needs python3-lmdb",
        files: &[("lightning.py", script!("lmdb/lightning.py"))],
        program: "./lightning.py",
        work: "work sync 200",
        needs: &["python3"],
        ..KIT
    },
    Kit {
        name: "mariadb",
        about: "MariaDB with InnoDB; needs mariadb-server",
        files: &[("mariadb.py", script!("mariadb/mariadb.py"))],
        program: "./mariadb.py",
        work: "work 60",
        needs: &["python3", "mariadbd"],
        size: "192 MiB",
        ..KIT
    },
    Kit {
        name: "pebble",
        about: "Pebble, the store of CockroachDB, with synchronous writes; needs Go and the module github.com/cockroachdb/pebble",
        files: &[
            ("main.go", script!("go/main.go")),
            ("store.go", script!("pebble/store.go")),
            ("go.mod", script!("pebble/go.mod")),
        ],
        build: Some(GO_BUILD),
        program: "./store",
        work: "work 200",
        needs: &["go"],
        ..KIT
    },
    Kit {
        name: "postgresql",
        about: "PostgreSQL; needs postgresql, and a user postgres who may enter this folder",
        files: &[("postgres.py", script!("postgresql/postgres.py"))],
        program: "./postgres.py",
        work: "work 200",
        needs: &["python3", "setpriv"],
        size: "256 MiB",
        ..KIT
    },
    Kit {
        name: "postgresql-replica",
        about: "PostgreSQL and a synchronous replica, each on a drive of its own, always with --files; needs postgresql, root, and a user postgres who may enter this folder",
        files: &[
            ("postgres.py", script!("postgresql/postgres.py")),
            ("replica.py", script!("postgresql/replica.py")),
        ],
        program: "./replica.py",
        work: "work 60",
        needs: &["python3", "setpriv", "psql"],
        size: "256 MiB",
        drives: 2,
        ..KIT
    },
    Kit {
        name: "redb",
        about: "redb; needs cargo and the crate redb",
        files: &[
            ("main.rs", script!("rust/main.rs")),
            ("store.rs", script!("redb/store.rs")),
            ("Cargo.toml", script!("redb/manifest.toml")),
        ],
        build: Some(CARGO_BUILD),
        program: "./target/release/store",
        work: "work 100",
        needs: &["cargo"],
        ..KIT
    },
    Kit {
        name: "redis",
        about: "Redis with appendfsync always; needs redis-server",
        files: &[("redis.py", script!("redis/redis.py"))],
        program: "./redis.py",
        work: "work 100",
        needs: &["python3", "redis-server"],
        ..KIT
    },
    Kit {
        name: "rocksdb",
        about: "RocksDB with synchronous writes; needs a C++ compiler and librocksdb-dev",
        files: &[("rocksdb.cc", script!("rocksdb/rocksdb.cc"))],
        build: Some("c++ -std=c++17 -O1 -o rocksdb rocksdb.cc -lrocksdb"),
        program: "./rocksdb",
        work: "work 400",
        needs: &["c++"],
        ..KIT
    },
    Kit {
        name: "sled",
        about: "sled with a flush after each batch; needs cargo and the crate sled",
        files: &[
            ("main.rs", script!("rust/main.rs")),
            ("store.rs", script!("sled/store.rs")),
            ("Cargo.toml", script!("sled/manifest.toml")),
        ],
        build: Some(CARGO_BUILD),
        program: "./target/release/store",
        work: "work 100",
        needs: &["cargo"],
        ..KIT
    },
    Kit {
        name: "sqlite",
        about: "SQLite in WAL mode with synchronous=FULL; needs Python 3",
        files: &[("sqlite.py", script!("sqlite/sqlite.py"))],
        program: "./sqlite.py",
        setup: "setup WAL FULL",
        work: "work WAL FULL 200",
        check: "check WAL",
        needs: &["python3"],
        ..KIT
    },
];

/// The script that runs the test.
const RUN: &str = "run.sh";

impl Kit {
    /// The one with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KITS.iter().find(|kit| kit.name == name)
    }

    /// The first program that the scripts need and this machine lacks.
    pub fn lacks(&self) -> Option<&'static str> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &&str| std::env::split_paths(&path).any(|at| at.join(name).is_file());
        self.needs.iter().copied().find(|name| !is_there(name))
    }

    /// Its commands.
    pub fn scripts(&self) -> KitScripts {
        let Self { program, setup, work, check, is_server, size, drives, .. } = *self;
        let exec = if is_server { "exec " } else { "" };
        KitScripts {
            setup: format!("{program} {setup}"),
            work: format!("{program} {work}"),
            check: format!("{exec}{program} {check}"),
            is_server,
            size,
            drives,
        }
    }

    /// Builds the program in its folder, if it is not a script.
    ///
    /// # Errors
    /// If it cannot be built; with what the tools said.
    pub fn build(&self, folder: &Path) -> Result<(), CrashError> {
        let Some(build) = self.build else { return Ok(()) };
        let mut command = Command::new("sh");
        command.args(["-c", build]).current_dir(folder);
        said(&mut command).map(drop)
    }

    /// The script that runs the test; its arguments are further ones of `leyden crashtest`. If the first is `--files`, there is
    /// no drive.
    pub fn run_script(&self) -> String {
        let KitScripts { setup, work, check, is_server, size, drives } = self.scripts();
        let about = self.about;
        let build =
            self.build.map_or_else(String::new, |build| format!("{{ {build}; }} || exit 2\n"));
        let server = if is_server { " --check-server" } else { "" };
        let (files, drive) = if drives > 1 {
            let files = format!("files=$1; shift; set -- \"$files\" --drives {drives} \"$@\"");
            (files, format!("--files --drives {drives}"))
        } else {
            let drive = "devices/tlc-datacenter --set device.buffer.region=none --latency off";
            (":".to_owned(), format!("{drive} --size \"{size}\""))
        };
        format!(
            "#!/bin/sh\n# {about}.\n# Arguments are further ones of `leyden crashtest`: sh {RUN} --states 5000\n\
             # On a modelled drive; with --files first at the level of files, without root.\n\
             cd \"$(dirname \"$0\")\" || exit 2\n{build}\
             case \"${{1:-}}\" in\n--files*) {files} ;;\n*) set -- {drive} \"$@\" ;;\nesac\n\
             exec \"${{LEYDEN:-leyden}}\" crashtest --setup \"{setup}\" --work \"{work}\" \\\n    \
             --check \"{check}\"{server} --out crash \"$@\"\n"
        )
    }

    /// Writes everything to the new folder `to`.
    ///
    /// # Errors
    /// If it is there already, or cannot be written.
    pub fn write(&self, to: &Path) -> Result<(), CrashError> {
        std::fs::create_dir(to).map_err(CrashError::io(to))?;
        let run = self.run_script();
        for (name, text) in self.files.iter().copied().chain([(RUN, run.as_str())]) {
            let path = to.join(name);
            let io = |error| CrashError::Io(path.clone(), error);
            let mut file = File::create_new(&path).map_err(io)?;
            file.write_all(text.as_bytes()).map_err(io)?;
            if text.starts_with("#!") {
                file.set_permissions(PermissionsExt::from_mode(0o755)).map_err(io)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kits_are_found_by_name_and_written_once() {
        assert!(KITS.is_sorted_by_key(|kit| kit.name));
        let folder = tempfile::tempdir().unwrap();
        for kit in KITS {
            let to = folder.path().join(kit.name);
            Kit::named(kit.name).unwrap().write(&to).unwrap();
            let run = std::fs::read_to_string(to.join(RUN)).unwrap();
            assert!(run.contains(kit.program) && run.contains("--out crash"), "{run}");
            // The programs that it calls exist, or are built.
            assert!(kit.build.is_some() || to.join(kit.program).exists(), "{}", kit.name);
            assert!(kit.write(&to).is_err(), "what is there is not overwritten");
        }
        assert!(Kit::named("oracle").is_none());
    }
}
