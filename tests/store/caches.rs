//! Caches of several shards: made whole or not at all, whatever cuts the making short, and with the number of shards they
//! were made with for ever.

use hearth::core::log::FsyncPolicy;
use hearth::core::store::OpenShard;
use hearth::core::types::CacheName;

use crate::bed::World;
use crate::power_cut::left_by_a_cut;

const SEGMENT_BYTES: u32 = 16 * 1024;

fn cache() -> CacheName {
    CacheName::parse("a/b/c").expect("a name")
}

/// Makes two caches, one of one shard and one of three.
fn make(world: &World) -> bool {
    let Ok(mut store) = world.open_store() else { return false };
    store.open_cache(&CacheName::default_cache(), 1).is_ok() && store.open_cache(&cache(), 3).is_ok()
}

fn close(shards: Vec<OpenShard>) {
    for mut shard in shards {
        shard.driver.close().expect("a sound disk");
    }
}

#[test]
fn a_cache_that_a_power_cut_stopped_in_the_making_is_made_later_and_never_found_in_part() {
    let effects = {
        let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
        assert!(make(&world));
        world.disk.effects()
    };
    let (mut found_made, mut found_missing) = (0, 0);
    for effect in 0..effects {
        let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
        world.disk.power_off_after(effect);
        assert!(!make(&world), "it ends at effect {effect} of {effects}");
        for (tear, disk) in left_by_a_cut(&world.disk, effect) {
            let after = world.with_disk(disk);
            let mut store = after.open_store().unwrap_or_else(|error| panic!("effect {effect}, {tear}: {error}"));
            let widths = store.caches().unwrap_or_else(|error| panic!("effect {effect}, {tear}: {error}"));
            let made = widths.iter().find(|(name, _)| *name == cache());
            assert!(made.is_none_or(|(_, width)| *width == 3), "effect {effect}, {tear}: {widths:?}");
            found_made += u64::from(made.is_some());
            found_missing += u64::from(made.is_none());
            let shards =
                store.open_cache(&cache(), 3).unwrap_or_else(|error| panic!("effect {effect}, {tear}: {error}"));
            assert_eq!(shards.len(), 3);
        }
    }
    assert!(found_made > 0 && found_missing > 100, "{found_made} made, {found_missing} missing");
}

#[test]
fn a_cache_keeps_the_number_of_shards_it_was_made_with() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    {
        let mut store = world.open_store().expect("a new store");
        close(store.open_cache(&cache(), 3).expect("a new cache"));
    }
    let mut store = world.open_store().expect("a store");
    assert_eq!(store.caches().expect("whole caches"), [(cache(), 3)]);
    let shards = store.open_cache(&cache(), 8).expect("a cache");
    assert_eq!(shards.iter().map(|opened| opened.shard.id.shard.0).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(shards.iter().all(|opened| !opened.report.created && !opened.report.unclean));
}
