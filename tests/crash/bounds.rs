//! The bounds that an operator sets: over them what grows is refused in Redis's words, what does not grow and what makes room
//! goes on.

use crate::case::Case;
use crate::ledger::Ledger;
use crate::support::{Broker, Client, Info, Launch, Reply, Scratch, until};

const OVER_THE_BOUND: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn call(client: &mut Client, words: &[&[u8]]) -> Reply {
    client.call(words).expect("a reply")
}

/// Fills `ledger` until a put is refused, and holds what is promised then; gives how many keys it holds.
fn at_the_bound(ledger: &mut Ledger, client: &mut Client) -> u32 {
    let (done, refused) = ledger.put_all(client, 0..ledger.keys());
    assert_eq!(refused.as_deref(), Some(OVER_THE_BOUND));
    let held: Vec<u32> = ledger.present().collect();
    assert!(done > 0 && !held.is_empty());
    let (overwritten, refused) = ledger.put_all(client, held.iter().copied().take(1000));
    assert!(overwritten > 0 && refused.is_none(), "an overwrite of the same size does not grow: {refused:?}");
    let one = ledger.name(held[0]);
    let Reply::Error(text) = call(client, &[b"SET", &one, &vec![b'v'; 1 << 20]]) else {
        panic!("an overwrite that is larger grows");
    };
    assert_eq!(text, OVER_THE_BOUND.as_bytes());
    assert_eq!(call(client, &[b"EXISTS", &one]), Reply::Integer(1));
    ledger.agrees(client, "at the bound");
    u32::try_from(held.len()).expect("below the number of keys")
}

#[test]
fn over_max_data_what_grows_is_refused_and_a_delete_makes_room_for_as_much_again() {
    const BOUND: u64 = 16 << 20;
    let _case = Case::new("bounds::over_max_data_what_grows_is_refused_and_a_delete_makes_room_for_as_much_again");
    let scratch = Scratch::new("max-data");
    let data_dir = scratch.path().join("data");
    let launch = || Launch::new(&data_dir, "always").with(&["--max-data", "16mb"]).start();
    let live = |client: &mut Client| Info::of(client, "persistence").number("hearth_live_bytes");
    let mut broker = launch();
    let mut client = broker.client();
    assert_eq!(Info::of(&mut client, "persistence").number("hearth_max_data_bytes"), BOUND);
    let mut ledger = Ledger::new(1, 30_000, 0, 1024);
    let held = at_the_bound(&mut ledger, &mut client);
    // Nearly all of the bound is used, and nothing above it.
    until("INFO has seen it", || live(&mut client) > BOUND * 9 / 10);
    assert!(live(&mut client) <= BOUND);
    for round in 0..2 {
        assert_eq!(ledger.delete_all(&mut client, 0..10), (10, None), "round {round}");
        assert_eq!(ledger.put_all(&mut client, 0..10), (10, None), "round {round}: room for as much again");
        let (_, refused) = ledger.put_all(&mut client, held..ledger.keys());
        assert_eq!(refused.as_deref(), Some(OVER_THE_BOUND), "round {round}");
        // The bound is there after a restart, too.
        assert_eq!(broker.terminate(), 0);
        broker = launch();
        client = broker.client();
        ledger.agrees(&mut client, "after a restart");
    }
    println!("{held} keys of 1 KiB in 16 MiB, {} bytes live", live(&mut client));
    drop(client);
    assert_eq!(broker.terminate(), 0);
    // Without the bound the rest is taken.
    let broker = Broker::start(&data_dir, "always");
    assert_eq!(ledger.put_all(&mut broker.client(), held..ledger.keys()), (u64::from(ledger.keys() - held), None));
}

#[test]
fn over_max_memory_what_grows_is_refused_and_deletes_make_room() {
    const BOUND: u64 = 48 << 20;
    let _case = Case::new("bounds::over_max_memory_what_grows_is_refused_and_deletes_make_room");
    let scratch = Scratch::new("max-memory");
    let launch = Launch::new(&scratch.path().join("data"), "never").with(&["--max-memory", "48mb"]);
    let broker = launch.start();
    let mut client = broker.client();
    let used = |client: &mut Client| Info::of(client, "memory").number("used_memory");
    let before = used(&mut client);
    assert!(before < BOUND && Info::of(&mut client, "memory").number("maxmemory") == BOUND);
    // Long names: keys are what a log keeps in memory.
    let mut ledger = Ledger::new(1, 40_000, 2_000, 32);
    let held = at_the_bound(&mut ledger, &mut client);
    let full = used(&mut client);
    // What a connection buffers comes and goes: near the bound on either side.
    assert!(full > BOUND * 9 / 10, "{full}");
    assert_eq!(ledger.delete_all(&mut client, 0..held / 2).1, None, "deletes go on over the bound");
    let half = used(&mut client);
    let (again, refused) = ledger.put_all(&mut client, 0..held / 2);
    println!(
        "{held} keys of 2,000 bytes in 48 MiB: {before} bytes used, {full} at the bound, {half} after deletes, {again} puts"
    );
    assert!(half < full && again > u64::from(held / 4), "{again} puts, then {refused:?}");
    assert_eq!(broker.terminate(), 0);
}
