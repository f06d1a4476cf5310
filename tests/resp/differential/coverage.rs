//! How often each kind of reply was seen, and which must be seen.
//!
//! Promise: a run that did not see every cell of `cells.txt` often enough fails and says which. Must never know a reply.

#![expect(clippy::disallowed_methods, reason = "the list is a file of the source tree")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// How often a full run must see each cell.
pub const LEAST: usize = 50;

#[derive(Default)]
pub struct Coverage {
    cells: BTreeMap<String, usize>,
    /// How often each normaliser and each difference on purpose was needed.
    pub needed: BTreeMap<&'static str, usize>,
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/resp/differential/cells.txt")
}

/// The cells that a full run must see.
pub fn expected() -> BTreeSet<String> {
    let text = std::fs::read_to_string(file()).unwrap();
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

impl Coverage {
    pub fn count(&mut self, cell: String) {
        *self.cells.entry(cell).or_default() += 1;
    }

    pub fn need(&mut self, name: &'static str) {
        *self.needed.entry(name).or_default() += 1;
    }

    fn seen(&self, cell: &str) -> usize {
        self.cells.get(cell).copied().unwrap_or_default()
    }

    /// The expected cells that were seen too seldom.
    pub fn rare(&self) -> Vec<(String, usize)> {
        expected().into_iter().map(|cell| (cell.clone(), self.seen(&cell))).filter(|(_, seen)| *seen < LEAST).collect()
    }

    /// A few lines for people.
    pub fn table(&self) -> String {
        let expected = expected();
        let mut text = String::new();
        let mut counts: Vec<_> = expected.iter().map(|cell| (self.seen(cell), cell)).collect();
        counts.sort_unstable();
        let _ = writeln!(text, "{} cells; the rarest:", counts.len());
        for (count, cell) in counts.iter().take(10) {
            let _ = writeln!(text, "  {count:>5}  {cell}");
        }
        let rare = self.rare();
        let _ = writeln!(text, "{} cells seen fewer than {LEAST} times", rare.len());
        for (cell, count) in rare {
            let _ = writeln!(text, "  {count:>5}  {cell}");
        }
        let others: Vec<_> = self.cells.iter().filter(|(cell, _)| !expected.contains(*cell)).collect();
        let _ = writeln!(text, "{} cells that are not in the list", others.len());
        for (cell, count) in others {
            let _ = writeln!(text, "  {count:>5}  {cell}");
        }
        for (name, count) in &self.needed {
            let _ = writeln!(text, "{name}: {count} times");
        }
        text
    }

    /// Writes every cell seen in this run as the list; what cannot be seen often enough is taken out by hand.
    pub fn write_list(&self) {
        let mut text = String::from(
            "# The kinds of replies that a full run must see: command, options, outcome. Written from redis-server by\n\
             # HEARTH_RECORD=1 HEARTH_DIFFERENTIAL_AGAINST=redis; see docs/testing.md.\n",
        );
        self.cells.keys().for_each(|cell| text.extend([cell, "\n"]));
        std::fs::write(file(), text).unwrap();
    }
}
