//! Random operations on the simulated disk, beside a model of plain vectors and maps.
//!
//! The model keeps whole contents and whole name tables twice, live and durable, so that it shares no
//! idea with the page images and undo lists it checks.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Create(u8),
    Write(u8, usize, usize, u8),
    SetLen(u8, usize),
    Flush(u8),
    Rename(u8, u8),
    Remove(u8),
    FlushDir,
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..4u8;
    // Lengths about the size of a sector and of a page; a value of 0 writes zeros.
    let size = || prop_oneof![0..1_200usize, 3_900..9_000usize];
    prop_oneof![
        2 => name().prop_map(Op::Create),
        6 => (name(), size(), size(), 0..4u8).prop_map(|(n, at, len, v)| Op::Write(n, at, len, v)),
        2 => (name(), size()).prop_map(|(n, len)| Op::SetLen(n, len)),
        2 => name().prop_map(Op::Flush),
        2 => (name(), name()).prop_map(|(from, to)| Op::Rename(from, to)),
        1 => name().prop_map(Op::Remove),
        1 => Just(Op::FlushDir),
    ]
}

fn name_of(name: u8) -> String {
    format!("/d/{name}")
}

/// Does one operation; one that finds no file, or the name taken, is refused and changes nothing.
fn apply(disk: &MemoryDisk, op: &Op) -> io::Result<()> {
    let open = |name: &u8| disk.open(path(&name_of(*name)));
    match op {
        Op::Create(name) => disk.create(path(&name_of(*name))).map(|_| ()),
        Op::Write(name, at, len, value) => open(name)?.write_at(*at as u64, &vec![*value; *len]),
        Op::SetLen(name, len) => open(name)?.set_len(*len as u64),
        Op::Flush(name) => open(name)?.flush(),
        Op::Rename(from, to) => disk.rename(path(&name_of(*from)), path(&name_of(*to))),
        Op::Remove(name) => disk.remove(path(&name_of(*name))),
        Op::FlushDir => disk.flush_dir(path("/d")),
    }
}

#[derive(Clone, Default)]
struct FileModel {
    live: Vec<u8>,
    durable: Vec<u8>,
}

type Names = BTreeMap<u8, usize>;

#[derive(Default)]
struct Model {
    files: Vec<FileModel>,
    names: Names,
    /// The name tables since the last flush of the directory; the first is the durable one.
    tables: Vec<Names>,
    effects: u64,
}

impl Model {
    fn new() -> Model {
        // Two effects made the directory.
        Model { tables: vec![Names::new()], effects: 2, ..Model::default() }
    }

    fn file(&mut self, name: u8) -> Option<&mut FileModel> {
        self.names.get(&name).map(|file| &mut self.files[*file])
    }

    /// Whether the operation was an effect.
    fn apply(&mut self, op: &Op) {
        let happened = match op {
            Op::Create(name) => {
                let free = !self.names.contains_key(name);
                if free {
                    self.names.insert(*name, self.files.len());
                    self.files.push(FileModel::default());
                }
                free
            }
            Op::Write(name, at, len, value) => self.file(*name).is_some_and(|file| {
                if *len > 0 {
                    file.live.resize(file.live.len().max(at + len), 0);
                    file.live[*at..at + len].fill(*value);
                }
                *len > 0
            }),
            Op::SetLen(name, len) => self.file(*name).map(|file| file.live.resize(*len, 0)).is_some(),
            Op::Flush(name) => self.file(*name).map(|file| file.durable = file.live.clone()).is_some(),
            Op::Rename(from, to) => {
                from != to && {
                    let moved = self.names.remove(from);
                    moved.map(|file| self.names.insert(*to, file)).is_some()
                }
            }
            Op::Remove(name) => self.names.remove(name).is_some(),
            Op::FlushDir => {
                self.tables.clear();
                true
            }
        };
        self.effects += u64::from(happened);
        self.tables.push(self.names.clone());
    }

    fn contents(&self, names: &Names, of: fn(&FileModel) -> &Vec<u8>) -> BTreeMap<u8, Vec<u8>> {
        names.iter().map(|(name, file)| (*name, of(&self.files[*file]).clone())).collect()
    }
}

fn contents_of(disk: &MemoryDisk) -> BTreeMap<u8, Vec<u8>> {
    let names = disk.list(path("/d")).unwrap();
    let names = names.iter().map(|name| name.parse().unwrap());
    names.map(|name| (name, content(disk, &name_of(name)).unwrap())).collect()
}

fn padded(bytes: &[u8], sector: usize, len: usize) -> Vec<u8> {
    let end = (sector + 512).min(len);
    (sector..end).map(|at| bytes.get(at).copied().unwrap_or(0)).collect()
}

/// Whether these bytes are made of the live and the durable length and sectors of the file. A file
/// that lost its name in the live table may only come back durable.
fn may_be_left(bytes: &[u8], file: &FileModel, named: bool) -> bool {
    let lives: &[&Vec<u8>] = if named { &[&file.live, &file.durable] } else { &[&file.durable] };
    let len = bytes.len();
    lives.iter().any(|from| from.len() == len)
        && (0..len).step_by(512).all(|sector| {
            let found = padded(bytes, sector, len);
            lives.iter().any(|from| padded(from, sector, len) == found)
        })
}

fn run(ops: &[Op]) -> (MemoryDisk, Model) {
    let (disk, mut model) = (MemoryDisk::new(), Model::new());
    disk.create_dir(path("/d")).unwrap();
    for op in ops {
        let _ = apply(&disk, op);
        model.apply(op);
    }
    (disk, model)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn live_durable_and_torn_are_what_the_model_says(
        ops in prop::collection::vec(op(), 1..40),
        seeds in prop::array::uniform4(any::<u64>()),
    ) {
        let (disk, model) = run(&ops);
        let live = model.contents(&model.names, |file| &file.live);
        let durable = model.contents(&model.tables[0], |file| &file.durable);
        prop_assert_eq!(disk.effects(), model.effects);
        prop_assert_eq!(&contents_of(&disk), &live);
        prop_assert_eq!(&contents_of(&all_kept(&disk)), &live);
        prop_assert_eq!(&contents_of(&all_lost(&disk)), &durable);
        prop_assert_eq!(&contents_of(&all_lost(&disk.after_kill())), &durable);
        let named: BTreeSet<usize> = model.names.values().copied().collect();
        for seed in seeds {
            let left = contents_of(&disk.after_power_cut(&mut torn(seed)));
            let possible = model.tables.iter().any(|table| {
                table.keys().eq(left.keys()) && table.iter().all(|(name, file)| {
                    may_be_left(&left[name], &model.files[*file], named.contains(file))
                })
            });
            prop_assert!(possible, "seed {} left {:?}", seed, left.keys());
        }
    }

    #[test]
    fn the_power_goes_off_after_exactly_so_many_effects(
        ops in prop::collection::vec(op(), 1..30),
        at in any::<prop::sample::Index>(),
    ) {
        let total = run(&ops).0.effects();
        let limit = 2 + at.index(total as usize - 1) as u64;
        let (cut, whole) = (MemoryDisk::new(), MemoryDisk::new());
        cut.power_off_after(limit);
        for disk in [&cut, &whole] {
            disk.create_dir(path("/d")).unwrap();
        }
        for op in &ops {
            if whole.effects() < limit {
                let _ = apply(&whole, op);
            }
            let _ = apply(&cut, op);
        }
        prop_assert_eq!(cut.is_off(), limit < total);
        prop_assert_eq!(cut.effects(), limit);
        for seed in 0..3 {
            let left = [&cut, &whole].map(|disk| disk.after_power_cut(&mut torn(seed)).image_hash());
            prop_assert_eq!(left[0], left[1]);
        }
    }
}
