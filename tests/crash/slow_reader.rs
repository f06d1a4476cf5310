//! A reader who takes its time: the segments its values stand in are trimmed while it reads, and every value is right.
//!
//! How slow is said by counts: the reader goes on only when the log has lost more segments. Must never use a clock.

use std::thread;

use crate::case::Case;
use crate::ledger::Ledger;
use crate::support::{Broker, Client, Info, Reply, Scratch, Word, until};

const LARGE_KEYS: u32 = 12;
/// Sent in pieces, and more than the kernel buffers for a connection that is not read.
const LARGE_BYTES: usize = 8 << 20;
const ROUNDS: u64 = 3;
/// More than the segments that hold the large values, so that all of them are gone.
const TRIMS_EACH: u64 = 8;

fn base_and_trims(client: &mut Client) -> (u64, u64) {
    let info = Info::of(client, "persistence");
    (info.number("hearth_base_offset"), info.number("hearth_trims"))
}

#[test]
fn values_are_right_for_a_reader_so_slow_that_their_segments_go_meanwhile() {
    let _case = Case::new("slow_reader::values_are_right_for_a_reader_so_slow_that_their_segments_go_meanwhile");
    let scratch = Scratch::new("slow-reader");
    let broker = Broker::start(&scratch.path().join("data"), "never");
    let mut large = Ledger::new(1, LARGE_KEYS, 0, LARGE_BYTES);
    let mut observer = broker.client();
    assert_eq!(large.put_all(&mut observer, 0..LARGE_KEYS), (u64::from(LARGE_KEYS), None));
    let (enough, mut read, mut trimmed) = (Word::default(), 0, 0);
    thread::scope(|scope| {
        let mut writer = broker.client();
        let (_end, enough) = (enough.at_the_end(), &enough);
        scope.spawn(move || {
            let mut small = Ledger::new(2, 2_000, 0, 64 * 1024);
            while !enough.was_said() {
                assert_eq!(small.put_all(&mut writer, 0..200), (200, None));
            }
        });
        for round in 0..ROUNDS {
            let mut reader = broker.client();
            for key in 0..LARGE_KEYS {
                reader.queue(&[b"GET", &large.name(key)]);
            }
            reader.flush().expect("sending GETs");
            for key in 0..LARGE_KEYS {
                // In the middle of each pipeline the log loses everything that the values stood in when they were asked for.
                if key == 1 {
                    let (base, trims) = base_and_trims(&mut observer);
                    until("the log loses its beginning", || base_and_trims(&mut observer).1 >= trims + TRIMS_EACH);
                    assert!(base_and_trims(&mut observer).0 > base);
                    trimmed += TRIMS_EACH;
                }
                match reader.read() {
                    Ok(Reply::Bulk(Some(value))) => large.is_value(key, &value, &format!("round {round}")),
                    other => panic!("round {round}: GET of large key {key} got {other:?}"),
                }
                read += 1;
            }
        }
    });
    let carried = Info::of(&mut observer, "persistence").number("hearth_carried_bytes");
    println!("{read} values of {LARGE_BYTES} bytes read right, {trimmed} trims among them, {carried} bytes carried");
    assert!(carried > LARGE_BYTES as u64, "the large values stayed where they were");
    assert_eq!(broker.terminate(), 0);
}
