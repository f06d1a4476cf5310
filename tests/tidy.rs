//! House rules that a compiler does not hold: which layer may name which, what a file opens with, what a dependency
//! must say for itself.
#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "reads the project's own files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_under(dir: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(dir)];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no .{extension} file under {dir}");
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

/// The lines of a file that are code: no comments.
fn code(path: &Path) -> Vec<String> {
    text(path).lines().map(|line| line.split("//").next().unwrap_or_default().to_owned()).collect()
}

/// Every place under `dir` whose code holds one of `words`, but in the files that begin with one of `except`.
fn places(dir: &str, words: &[&str], except: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files_under(dir, "rs") {
        if except.iter().any(|except| name(&path).starts_with(except)) {
            continue;
        }
        for (number, line) in code(&path).iter().enumerate() {
            if let Some(word) = words.iter().find(|word| line.contains(**word)) {
                found.push(format!("{}:{}: {word}", name(&path), number + 1));
            }
        }
    }
    found
}

const NOTHING: [String; 0] = [];

#[test]
fn arrows_between_layers_point_one_way() {
    assert_eq!(
        places("src/core", &["crate::frontends", "crate::cluster", "crate::server", "crate::config"], &[]),
        NOTHING
    );
    assert_eq!(places("src/core", &["crate::metrics"], &[]), NOTHING);
    assert_eq!(places("src/frontends", &["crate::cluster", "crate::server", "crate::config"], &[]), NOTHING);
    assert_eq!(places("src/cluster", &["crate::frontends", "crate::server", "crate::config"], &[]), NOTHING);
    let all_three = |path: &PathBuf| {
        let code = code(path).join("\n");
        ["crate::core", "crate::frontends", "crate::cluster"].iter().all(|layer| code.contains(layer))
    };
    let roots: Vec<String> =
        files_under("src", "rs").iter().filter(|path| all_three(path)).map(|path| name(path)).collect();
    assert_eq!(roots, ["src/server.rs"], "only the composition root names all three layers");
}

#[test]
fn layers_within_the_core_point_down() {
    let log_knows =
        ["core::record", "core::consensus", "core::index", "core::shard", "core::routing", "core::api", "core::store"];
    assert_eq!(places("src/core/log", &log_knows, &[]), NOTHING);
    assert_eq!(
        places("src/core/record", &["core::log", "core::index", "core::shard", "core::consensus"], &[]),
        NOTHING
    );
    assert_eq!(
        places("src/core/consensus", &["core::index", "core::shard", "core::routing", "core::api"], &[]),
        NOTHING
    );
    assert_eq!(places("src/core/routing", &["core::api", "core::store", "core::log"], &[]), NOTHING);
    let machine = ["core::log::writer", "core::log::open", "core::log::disk", "core::clock", "crate::rt", "std::fs"];
    for sans_io in ["machine.rs", "stage.rs", "overlay.rs", "apply.rs"] {
        let found = places("src/core/shard", &machine, &[]);
        assert!(!found.iter().any(|place| place.contains(sans_io)), "{sans_io} does I/O: {found:?}");
    }
}

#[test]
fn each_door_is_named_in_one_place_only() {
    assert_eq!(places("src", &["raft::", "slog::"], &["src/core/consensus/"]), NOTHING);
    assert_eq!(
        places("src", &["async_std", "smol::", "async_global_executor", "async_signal"], &["src/rt.rs", "src/rt/"]),
        NOTHING
    );
    assert_eq!(
        places("src", &["std::fs"], &["src/core/log/disk/real.rs", "src/memory.rs", "src/password.rs"]),
        NOTHING
    );
    assert_eq!(places("src", &["Instant::now", "SystemTime::now"], &["src/core/clock.rs"]), NOTHING);
    assert_eq!(places("src", &["getrandom::"], &["src/core/entropy.rs"]), NOTHING);
    assert_eq!(places("src", &["epoll"], &["src/rt/reactor.rs"]), NOTHING);
}

#[test]
fn the_core_speaks_no_protocol() {
    let mut found = Vec::new();
    for path in files_under("src/core", "rs") {
        for (number, line) in code(&path).iter().enumerate() {
            let line = line.to_ascii_lowercase();
            for word in ["redis", "resp2", "resp3", "websocket", "http"] {
                if line.contains(word) {
                    found.push(format!("{}:{}: {word}", name(&path), number + 1));
                }
            }
        }
    }
    assert_eq!(found, NOTHING);
}

#[test]
fn every_file_says_first_what_it_is_for() {
    for dir in ["src", "tests", "benches"] {
        for path in files_under(dir, "rs") {
            assert!(text(&path).starts_with("//! "), "{} does not open with `//! `", name(&path));
        }
    }
}

#[test]
fn files_and_functions_stay_readable() {
    let mut long = BTreeMap::new();
    for path in files_under("src", "rs") {
        let text = text(&path);
        let before_tests = text.split("#[cfg(test)]").next().unwrap_or_default().lines().count();
        if before_tests > 450 {
            long.insert(name(&path), before_tests);
        }
    }
    assert!(long.is_empty(), "does each of these still do one thing? {long:?}");
}

#[test]
fn no_stub_is_left_and_no_test_sleeps() {
    assert_eq!(places("src", &["todo!", "unimplemented!", "dbg!"], &[]), NOTHING);
    // A bounded wait for a condition looks again after a moment; those places are named here.
    let waits = ["tests/support/", "tests/crash/", "tests/resp/", "tests/tidy.rs", "tests/plug.rs"];
    assert_eq!(places("tests", &["thread::sleep"], &waits), NOTHING);
}

#[test]
fn each_dependency_gives_its_reason() {
    let manifest = text(&root().join("Cargo.toml"));
    let (mut in_dependencies, mut explained) = (false, false);
    let mut count = 0;
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
            explained = false;
        } else if !in_dependencies || line.trim().is_empty() {
            explained = false;
        } else if line.starts_with('#') {
            explained = true;
        } else {
            assert!(explained, "no comment above: {line}");
            count += 1;
            // A line directly below shares the reason.
        }
    }
    assert!(count > 20, "only {count} dependencies were seen");
}

/// What is really built, as `name vVERSION` lines; the lock file also has what optional features could bring.
fn built_packages() -> String {
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).unwrap()
}

#[test]
fn one_major_is_built_of_what_we_name_and_no_other_runtime() {
    let packages = built_packages();
    let mut majors: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in packages.lines() {
        let mut words = line.split(' ');
        let (Some(package), Some(version)) = (words.next(), words.next()) else { continue };
        majors.entry(package).or_default().insert(version.split('.').next().unwrap_or_default());
    }
    assert!(!majors.contains_key("tokio"), "tokio is another runtime");
    let named = [
        "raft",
        "bytes",
        "smol",
        "async-std",
        "async-global-executor",
        "crc32fast",
        "rustix",
        "redis-protocol",
        "tracing",
    ];
    for package in named {
        assert_eq!(majors.get(package).map(BTreeSet::len), Some(1), "{package}: {:?}", majors.get(package));
    }
}

#[test]
fn the_readme_has_every_command_flag_and_exit_code() {
    let readme = text(&root().join("README.md"));
    for command in hearth::frontends::resp::table::all() {
        let row = format!("| `{}` |", command.name.to_ascii_uppercase());
        assert!(readme.contains(&row), "README.md has no row {row}");
    }
    let program = <hearth::cli::Cli as clap::CommandFactory>::command();
    for argument in program.get_arguments().filter(|argument| !argument.is_hide_set()) {
        if let Some(long) = argument.get_long() {
            assert!(readme.contains(&format!("`--{long}")), "README.md does not name --{long}");
        }
    }
    for command in program.get_subcommands() {
        let name = command.get_name();
        assert!(readme.contains(&format!("hearth {name}")), "README.md does not name hearth {name}");
        for long in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(readme.contains(&format!("--{long}")), "README.md does not name --{long} of {name}");
        }
    }
    for code in 0..=9 {
        assert!(readme.contains(&format!("| {code} |")), "README.md does not explain exit code {code}");
    }
}

#[test]
fn the_readmes_limits_are_the_codes() {
    use hearth::core::limits::{DEFAULT_MAX_VALUE_BYTES, HIGHEST_MAX_VALUE_BYTES, MAX_KEY_BYTES, SEGMENT_BYTES};
    use hearth::frontends::resp::limits::{
        CURSORS, MAX_ARGUMENTS, MAX_BULK_BYTES, MAX_KEYS_REPLY_BYTES, MAX_REQUEST_BYTES, MAX_SCANNED_KEYS,
        OUTPUT_HIGH_WATER_BYTES,
    };
    let readme = text(&root().join("README.md"));
    let kib = |bytes: usize| format!("{} KiB", bytes / 1024);
    let mib = |bytes: usize| format!("{} MiB", bytes / 1024 / 1024);
    for (what, shown) in [
        ("Key", kib(MAX_KEY_BYTES)),
        ("Value", mib(DEFAULT_MAX_VALUE_BYTES)),
        ("Value, highest", mib(HIGHEST_MAX_VALUE_BYTES)),
        ("Arguments of a request", MAX_ARGUMENTS.to_string()),
        ("Request", mib(MAX_REQUEST_BYTES)),
        ("Names that one `KEYS` answers", mib(MAX_KEYS_REPLY_BYTES)),
        ("Cursors of `SCAN` that are remembered", CURSORS.to_string()),
        ("Keys that one `SCAN` looks at", MAX_SCANNED_KEYS.to_string()),
        ("Bulk that is read and dropped", mib(MAX_BULK_BYTES)),
        ("Replies waiting for a slow reader", mib(OUTPUT_HIGH_WATER_BYTES)),
        ("Segment file", mib(SEGMENT_BYTES as usize)),
    ] {
        let row = format!("| {what} | {shown}");
        assert!(readme.contains(&row), "README.md has no row that begins with: {row}");
    }
}

#[test]
fn every_file_of_the_scanners_corpus_is_used() {
    let used = text(&root().join("src/frontends/resp/scan/tests/mutations.rs"));
    for entry in std::fs::read_dir(root().join("tests/fixtures/resp-corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(used.contains(&format!("\"{name}\"")), "mutations.rs does not begin with {name}");
    }
}

#[test]
fn documents_name_only_files_that_exist() {
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/formats.md",
        "docs/resp.md",
        "docs/scripts.md",
        "docs/testing.md",
    ] {
        let text = text(&root().join(document));
        for quoted in text.split('`').skip(1).step_by(2) {
            let looks_like_a_path = quoted.contains('/')
                && ["src/", "tests/", "docs/", "benches/", "compat/"].iter().any(|start| quoted.starts_with(start));
            if looks_like_a_path && !quoted.contains(['*', ' ', '{']) {
                assert!(root().join(quoted).exists(), "{document} names `{quoted}`, which does not exist");
            }
        }
    }
}
