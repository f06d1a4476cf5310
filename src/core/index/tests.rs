//! The index, rule by rule. The leaves, chunks and sweeps are small here (see their constants), so that a few keys split,
//! join and give back. `model` has the whole against a plain map.

use std::collections::BTreeSet;

use super::*;

mod model;

impl Index {
    /// What holds between any two calls.
    fn check(&self) {
        let map = self.read();
        let held: BTreeSet<&[u8]> = map.slab.iter().map(|(_, slot)| slot.key()).collect();
        assert_eq!(held.len(), map.slab.taken(), "a key has two slots");
        assert_eq!(held.len(), map.tables.len(), "the tables hold other keys than the slots");
        for (id, slot) in map.slab.iter() {
            assert_eq!(map.slot_of(slot.key()), Some(id), "{:?} is not found", slot.key());
        }
        if let Some(order) = &map.order {
            assert_eq!(order.check(&map.slab), held.len(), "the order holds other keys than the slots");
        }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.view().prefix(b"").map(|(key, _)| key.to_vec()).collect()
    }
}

fn place(position: u32) -> Location {
    Location { segment: SegmentNo(1), position, length: 10 }
}

fn put(key: &[u8], expires_at: Millis) -> CacheRecord<'_> {
    CacheRecord::Put { key, value: b"", expires_at }
}

/// Puts `keys` at offsets from `from` on, all in `segment`.
fn fill<K: AsRef<[u8]>>(index: &Index, from: u64, segment: u64, keys: impl IntoIterator<Item = K>) {
    for (offset, key) in (from..).zip(keys) {
        let location = Location { segment: SegmentNo(segment), position: offset as u32, length: 10 };
        index.apply([(Offset(offset), location, put(key.as_ref(), Millis::NEVER))]);
    }
}

fn delete<K: AsRef<[u8]>>(index: &Index, keys: impl IntoIterator<Item = K>) {
    for key in keys {
        index.apply([(Offset(u64::MAX), place(0), CacheRecord::Delete { key: key.as_ref() })]);
    }
}

/// `count` numbers below `count`, each once, in an order that is neither.
fn shuffled(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| i * 7919 % count)
}

fn numbered(count: u64) -> Vec<String> {
    shuffled(count).map(|number| format!("key:{number:08}")).collect()
}

#[test]
fn the_newest_record_of_a_key_decides() {
    let index = Index::default();
    index.apply([
        (Offset(1), place(0), put(b"a", Millis::NEVER)),
        (Offset(2), place(10), put(b"b", Millis(5))),
        (Offset(3), place(20), put(b"a", Millis(9))),
        (Offset(4), place(30), CacheRecord::Delete { key: b"b" }),
    ]);
    let view = index.view();
    let expected = Entry { offset: Offset(3), revision: Revision(3), expires_at: Millis(9), location: place(20) };
    assert_eq!(view.get(b"a"), Some(expected));
    assert_eq!(view.get(b"b"), None);
    assert_eq!((view.len(), view.expiring()), (1, 1));
}

#[test]
fn a_carried_record_moves_and_keeps_its_revision_and_a_clear_leaves_nothing() {
    let index = Index::default();
    let carried = CacheRecord::Carried { key: b"k", value: b"v", expires_at: Millis::NEVER, revision: Revision(3) };
    index.apply([(Offset(9), place(50), carried)]);
    let entry = index.view().get(b"k").unwrap();
    assert_eq!((entry.offset, entry.revision, entry.location), (Offset(9), Revision(3), place(50)));
    index.apply([(Offset(10), place(60), CacheRecord::Clear), (Offset(11), place(70), put(b"l", Millis::NEVER))]);
    assert_eq!(index.keys(), [b"l"]);
    assert_eq!(index.view().live(), Live { entries: 1, bytes: 10 });
    index.apply([(Offset(12), place(80), CacheRecord::Clear)]);
    assert!(index.view().is_empty());
    index.check();
}

/// Keys that an order can get wrong: empty, zeros at the end, long and alike for long, just longer than a slot has room
/// for.
fn awkward_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0; 2], vec![255], vec![255; 9], b"a\0\0b".to_vec()];
    keys.extend((0..12).map(|zeros| [&b"a"[..], &vec![0; zeros]].concat()));
    keys.extend((0..40).map(|end| [&[b'p'; 64 * 1024 - 1][..], &[end]].concat()));
    keys.extend((0..40).map(|end| [&[b'p'; 300][..], &[end, 0, end]].concat()));
    keys.extend((0..40).map(|length| vec![b'p'; 290 + length]));
    keys.extend((0..20).map(|length| vec![b'q'; length + 7]));
    keys.extend((0..=255).map(|byte| vec![byte, 255 - byte, 7]));
    let mut keys: Vec<_> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let count = keys.len();
    shuffled(count as u64).for_each(|other| keys.swap(other as usize, count / 2));
    keys
}

#[test]
fn keys_are_in_the_order_of_their_bytes_however_they_came() {
    let keys = awkward_keys();
    let sorted: Vec<Vec<u8>> = keys.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    let (kept, loaded) = (Index::default(), Index::loading());
    fill(&kept, 1, 1, &keys);
    fill(&loaded, 1, 1, &keys);
    loaded.finish_loading();
    for index in [&kept, &loaded] {
        index.check();
        assert_eq!(index.keys(), sorted);
        let of_prefix =
            |prefix: &[u8]| -> Vec<Vec<u8>> { index.view().prefix(prefix).map(|(key, _)| key.to_vec()).collect() };
        for key in &keys {
            let prefix = &key[..key.len() / 2];
            let expected: Vec<_> = sorted.iter().filter(|key| key.starts_with(prefix)).cloned().collect();
            assert_eq!(of_prefix(prefix), expected);
        }
        assert!(of_prefix(b"pq").is_empty());
        delete(index, keys.iter().step_by(2));
        index.check();
        let left: BTreeSet<Vec<u8>> = keys.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(index.keys(), left.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_scan_that_goes_on_behind_a_key_misses_none_and_repeats_none() {
    let index = Index::default();
    let keys = awkward_keys();
    fill(&index, 1, 1, &keys);
    for prefix in [&b""[..], b"a", b"p", b"zz"] {
        let expected: Vec<Vec<u8>> = index.view().prefix(prefix).map(|(key, _)| key.to_vec()).collect();
        for pace in [1, 7] {
            let (mut seen, mut last): (Vec<Vec<u8>>, Option<Vec<u8>>) = (Vec::new(), None);
            loop {
                let view = index.view();
                let some = view.range_after(prefix, last.as_deref()).take(pace).map(|(key, _)| key.to_vec());
                let some: Vec<_> = some.collect();
                let Some(newest) = some.last() else { break };
                last = Some(newest.clone());
                seen.extend(some);
                assert!(seen.len() <= expected.len(), "a key was repeated");
            }
            assert_eq!(seen, expected);
        }
    }
    let behind = |prefix: &[u8], after: &[u8]| index.view().range_after(prefix, Some(after)).count();
    assert_eq!(behind(b"a", b"0"), index.view().prefix(b"a").count(), "a key before the prefix skips nothing");
    assert_eq!(behind(b"a", b"b"), 0, "a key behind it leaves nothing");
    let greater = keys.iter().filter(|key| key.as_slice() > &b"a\0\0a"[..]).count();
    assert_eq!(behind(b"", b"a\0\0a"), greater, "the key behind which it goes on need not be there");
}

#[test]
#[should_panic(expected = "the order of an index was asked for while its log is replayed")]
fn there_is_no_order_while_a_log_is_replayed() {
    let index = Index::loading();
    fill(&index, 1, 1, ["a"]);
    let _ = index.view().prefix(b"").count();
}

#[test]
fn ascending_and_descending_keys_fill_leaves_whole() {
    let leaves = |keys: &mut dyn Iterator<Item = u32>| {
        let index = Index::default();
        fill(&index, 1, 1, keys.map(|number| number.to_be_bytes()));
        index.check();
        let map = index.read();
        map.order.as_ref().unwrap().leaves()
    };
    assert_eq!(leaves(&mut (0..80)), 10);
    assert_eq!(leaves(&mut (0..80).rev()), 10);
    // Two streams that grow, one in the middle of the other's keys.
    assert!(leaves(&mut (0..40).flat_map(|i| [i, 1000 + i])) <= 15);
    assert!(leaves(&mut (0..40).chain((40..80).rev())) <= 15);
    assert!(leaves(&mut (0..400).chain(1000..1400).chain((400..800).rev())) <= 160);
}

#[test]
#[should_panic(expected = "the index cannot name segment 4294967296")]
fn a_segment_number_beyond_four_bytes_is_refused_loudly() {
    let index = Index::default();
    fill(&index, 1, u64::from(u32::MAX), ["a"]);
    assert_eq!(index.view().get(b"a").unwrap().location.segment, SegmentNo(u64::from(u32::MAX)));
    fill(&index, 2, u64::from(u32::MAX) + 1, ["b"]);
}

#[test]
fn what_lies_below_the_logs_start_is_absent_before_any_sweep() {
    let index = Index::default();
    fill(&index, 1, 1, ["a", "b", "c"]);
    fill(&index, 4, 2, ["d", "b"]);
    assert_eq!(index.view().live_below(SegmentNo(2)), Live { entries: 2, bytes: 20 });
    index.trim(Offset(4), SegmentNo(2));
    let view = index.view();
    assert_eq!((view.get(b"a"), view.get(b"c")), (None, None));
    assert_eq!(view.get(b"b").unwrap().offset, Offset(5));
    assert_eq!(view.len(), 2);
    assert_eq!(view.iter().map(|(key, _)| key.to_vec()).collect::<BTreeSet<_>>().len(), 2);
    assert_eq!(view.prefix(b"").map(|(key, _)| key.to_vec()).collect::<Vec<_>>(), [b"b", b"d"]);
    assert_eq!(view.live(), Live { entries: 2, bytes: 20 });
    assert_eq!((view.live_below(SegmentNo(2)), view.live_of(SegmentNo(2))), (Live::default(), view.live()));
    drop(view);
    index.trim(Offset(2), SegmentNo(1));
    assert_eq!(index.view().get(b"a"), None, "a start does not go back");
    index.check();
}

#[test]
fn a_write_over_what_lies_below_the_start_is_not_taken_off_twice() {
    let index = Index::default();
    fill(&index, 1, 1, ["a", "b", "c"]);
    index.trim(Offset(4), SegmentNo(2));
    assert_eq!(index.view().live(), Live::default());
    fill(&index, 4, 2, ["a", "a"]);
    delete(&index, ["b"]);
    assert_eq!(index.view().live(), Live { entries: 1, bytes: 10 });
    assert_eq!(index.keys(), [b"a"]);
    let swept = index.sweep(&mut SweepCursor::default(), usize::MAX, Millis(1));
    assert_eq!((swept.dropped, swept.dropped_bytes, swept.wrapped), (1, 0, true));
    assert_eq!(index.view().live(), Live { entries: 1, bytes: 10 });
    index.check();
}

#[test]
#[should_panic(expected = "segment 2 has offset 2")]
fn a_start_that_is_not_where_its_segment_begins_is_refused_loudly() {
    let index = Index::default();
    fill(&index, 1, 1, ["a"]);
    fill(&index, 2, 2, ["b"]);
    index.trim(Offset(3), SegmentNo(2));
}

#[test]
#[should_panic(expected = "segment 2 below its first one, 3, has offset 2")]
fn a_start_that_leaves_records_before_it_is_refused_loudly() {
    let index = Index::default();
    fill(&index, 1, 1, ["a"]);
    fill(&index, 2, 2, ["b"]);
    index.trim(Offset(2), SegmentNo(3));
}

#[test]
fn a_sweep_removes_what_lapsed_and_nothing_else_and_a_pass_reaches_every_slot() {
    let index = Index::default();
    for (offset, key) in (1..).zip(numbered(1000)) {
        let expires_at = [Millis::NEVER, Millis(10), Millis(20)][offset as usize % 3];
        index.apply([(Offset(offset), place(offset as u32), put(key.as_bytes(), expires_at))]);
    }
    let (mut cursor, mut sum, mut steps) = (SweepCursor::default(), Swept::default(), 0);
    while !sum.wrapped {
        let swept = index.sweep(&mut cursor, 100, Millis(10));
        assert!(swept.visited <= 100, "{swept:?}");
        sum.visited += swept.visited;
        sum.dropped += swept.dropped;
        sum.dropped_bytes += swept.dropped_bytes;
        sum.wrapped = swept.wrapped;
        steps += 1;
    }
    assert_eq!((sum.visited, sum.dropped, sum.dropped_bytes), (index.view().slots(), 334, 3340));
    assert!(steps > 9, "{steps} steps");
    let view = index.view();
    assert_eq!((view.len(), view.expiring()), (666, 333));
    assert!(view.iter().all(|(_, entry)| entry.expires_at != Millis(10)));
    drop(view);
    let again = index.sweep(&mut cursor, usize::MAX, Millis(10));
    assert_eq!((again.dropped, again.visited), (0, sum.visited));
    index.check();
}

#[test]
fn a_sweep_spares_a_slot_that_was_taken_again_since_it_looked() {
    let index = Index::default();
    index.apply([(Offset(1), place(0), put(b"a", Millis(5)))]);
    let id = index.read().slot_of(b"a").unwrap();
    index.apply([(Offset(2), place(10), put(b"a", Millis(50)))]);
    assert_eq!(index.write().sweep_out(id, Offset(1), Millis(10)), None, "written over");
    assert_eq!(index.write().sweep_out(id, Offset(2), Millis(10)), None, "not lapsed");
    delete(&index, ["a"]);
    index.apply([(Offset(4), place(20), put(b"b", Millis(5)))]);
    assert_eq!(index.read().slot_of(b"b"), Some(id));
    assert_eq!(index.write().sweep_out(id, Offset(2), Millis(99)), None, "another key's");
    assert_eq!(index.write().sweep_out(id, Offset(4), Millis(99)), Some(10));
    assert_eq!(index.write().sweep_out(id, Offset(4), Millis(99)), None, "gone");
    index.check();
}

#[test]
fn a_lapsed_entry_is_dropped_only_as_the_record_that_was_met() {
    let index = Index::default();
    index.apply([(Offset(1), place(0), put(b"a", Millis(5))), (Offset(2), place(10), put(b"b", Millis::NEVER))]);
    assert!(!index.drop_lapsed(b"a", Offset(1), Millis(4)), "not lapsed");
    assert!(!index.drop_lapsed(b"a", Offset(2), Millis(9)), "another record");
    assert!(!index.drop_lapsed(b"b", Offset(2), Millis(9)), "never lapses");
    assert!(!index.drop_lapsed(b"c", Offset(3), Millis(9)), "not there");
    assert_eq!(index.view().len(), 2);
    assert!(index.drop_lapsed(b"a", Offset(1), Millis(5)));
    assert_eq!((index.view().live(), index.view().expiring()), (Live { entries: 1, bytes: 10 }, 0));
    index.check();
}

#[test]
fn what_is_deleted_gives_its_memory_back_and_what_is_left_keeps_its_place() {
    let index = Index::default();
    let keys = numbered(2000);
    fill(&index, 1, 1, &keys);
    let before = (index.view().slots(), index.read().slab.chunks_in_memory(), index.read().tables.capacity());
    delete(&index, &keys[..1900]);
    index.check();
    assert!(index.read().slab.chunks_in_memory() < before.1 / 8, "keys of one time share chunks");
    delete(&index, &keys[1900..]);
    index.check();
    let map = index.read();
    assert_eq!((map.slab.chunks_in_memory(), map.order.as_ref().unwrap().leaves()), (1, 0));
    assert!(map.tables.capacity() <= before.2 && map.tables.len() == 0);
    drop(map);
    fill(&index, 5000, 2, &keys);
    index.check();
    assert_eq!(index.view().slots(), before.0, "slots are used again");
}

#[test]
fn a_table_that_emptied_gives_its_memory_back() {
    let index = Index::default();
    let keys = numbered(100_000);
    index.apply((1..).zip(&keys).map(|(at, key)| (Offset(at), place(at as u32), put(key.as_bytes(), Millis::NEVER))));
    let full = index.read().tables.capacity();
    delete(&index, &keys[..95_000]);
    let left = index.read().tables.capacity();
    assert!(left * 4 < full, "{left} of {full}");
    assert!(keys[95_000..].iter().all(|key| index.view().get(key.as_bytes()).is_some()));
}
