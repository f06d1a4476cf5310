//! Compares Hearth with redis-server side by side, for rows P1 to P6 of the performance plan.
//!
//! Both servers run with the same durability, each round on a fresh data directory of the same filesystem, in
//! alternating rounds, driven by redis-benchmark. What is promised is a ratio, taken pair by pair, never an absolute
//! number. It refuses to print or write a table when a run had an error reply or when data read back differ.
//!
//! Reading order: `rows` says what is measured, `measure` how a row runs, `report` how it is shown.
#![expect(clippy::disallowed_methods, reason = "a bench measures time and stops at the first surprise")]

// What is asked for.
mod options;
mod rows;

// How it is measured. The blank lines keep the formatter from sorting one step into another.
mod measure;

mod server;

mod generator;

mod readback;

mod raw_flush;

// What all of that stands on.
mod machine;
mod procfs;
mod resp;
mod run_dir;
mod stats;

// How it is shown.
mod report;

use std::path::Path;
use std::process::ExitCode;

use measure::{Bench, RowResult};
use options::{Action, Options};

/// Every failure here is a sentence for the person who runs the tool; nothing branches on its kind.
type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match options::parse(&arguments) {
        Ok(Action::Help) => {
            println!("{}", options::USAGE);
            Ok(())
        }
        // `cargo test --all-targets` starts every bench once; minutes of load are not what it asks for.
        Ok(Action::NotABenchRun) => {
            println!("compare measures only when started by `cargo bench` (or with --bench); nothing was run.");
            Ok(())
        }
        Ok(Action::Measure(options)) => compare(&options),
        Err(why) => Err(why),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("compare: {why}");
            eprintln!("compare: no table was written.");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Outcome<()> {
    let bench = Bench::prepare(options)?;
    let machine = machine::describe(bench.run_dir(), bench.versions()?)?;
    let mut results: Vec<RowResult> = Vec::new();
    for row in &options.rows {
        results.push(bench.measure_row(row, options.rounds)?);
    }
    let tables = report::tables(&results, options.rounds);
    println!("{tables}");
    if options.write {
        let target = options.package_dir.join("docs").join("performance.md");
        write_document(&target, &report::document(&machine, options, &tables)?)?;
        println!("Written to docs/performance.md.");
    } else {
        println!("{}", machine.as_list());
    }
    Ok(())
}

/// Writes through a second name, so that an interrupted run leaves the former document whole.
fn write_document(target: &Path, text: &str) -> Outcome<()> {
    let fresh = target.with_extension("md.new");
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder).map_err(|e| format!("The docs folder could not be created: {e}."))?;
    }
    std::fs::write(&fresh, text).map_err(|e| format!("The new docs/performance.md could not be written: {e}."))?;
    std::fs::rename(&fresh, target).map_err(|e| format!("docs/performance.md could not be replaced: {e}."))
}
