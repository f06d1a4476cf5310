//! Stopping and refusing: a signal ends a broker in order and loses nothing; a start that cannot succeed says why with
//! its exit code and leaves everything as it was.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::case::Case;
use crate::load::{Load, Manner, Stop};
use crate::oracle::{Checked, Line, check};
use crate::support::{Broken, Broker, Client, Launch, Refusal, Reply, Scratch};

const CLIENTS: u32 = 50;

const USAGE: i32 = 2;
const ADDRESS_IN_USE: i32 = 3;
const DIRECTORY_LOCKED: i32 = 4;
const DIRECTORY_UNUSABLE: i32 = 5;
const OTHER_FORMAT: i32 = 8;

#[test]
fn sigterm_and_sigint_drain_and_exit_0_with_fifty_pipelining_clients() {
    let case = Case::new("shutdown::sigterm_and_sigint_drain_and_exit_0_with_fifty_pipelining_clients");
    let scratch = Scratch::new("shutdown");
    let data_dir = scratch.path().join("data");
    let mut random = case.random();
    let mut lines: Vec<Line> = (0..CLIENTS).map(Line::new).collect();
    let (mut acknowledged, mut checked) = (0, Checked::default());
    for (round, signal) in (0..).zip(["TERM", "INT"]) {
        let broker = Broker::start(&data_dir, "always");
        checked.add(check(&mut broker.client(), &mut lines, &format!("before SIG{signal}")));
        let load =
            Load::start(std::mem::take(&mut lines), round, Manner::Steady, &mut random, || served_client(&broker));
        load.wait_for(random.between(1000, 5000));
        // No announcement: until its connection ends, an acknowledgement is one.
        broker.signal(signal);
        assert_eq!(broker.exit_code(), 0, "the exit code after SIG{signal}");
        let (written, outcomes) = load.join();
        lines = written;
        for outcome in &outcomes {
            let clean = matches!(outcome.stop, Stop::Broken(Broken::Ended));
            assert!(
                clean,
                "SIG{signal}: a client should have seen whole replies and a clean end, not {:?}",
                outcome.stop
            );
            acknowledged += outcome.acknowledged;
        }
    }
    let broker = Broker::start(&data_dir, "always");
    checked.add(check(&mut broker.client(), &mut lines, "after both signals"));
    println!("two signals: {acknowledged} acknowledged, {checked:?}");
    assert!(acknowledged > 0, "no write was acknowledged");
    assert!(checked.keys > 0, "no key was checked");
}

/// A connection that still waits in the kernel's queue is reset when the listener closes, whatever the broker does; so
/// each is served once before the signal.
fn served_client(broker: &Broker) -> Client {
    let mut client = broker.client();
    let reply = client.call(&[b"PING"]).expect("a first reply");
    assert_eq!(reply, Reply::Simple(b"PONG".to_vec()));
    client
}

#[test]
fn a_second_broker_on_the_same_directory_is_refused() {
    let _case = Case::new("shutdown::a_second_broker_on_the_same_directory_is_refused");
    let scratch = Scratch::new("second");
    let data_dir = scratch.path().join("data");
    let first = Broker::start(&data_dir, "always");
    let refusal = Launch::new(&data_dir, "always").refused();
    is_refused_with(DIRECTORY_LOCKED, &refusal);
    says_in_one_line(&refusal, &data_dir.display().to_string());
    let reply = first.client().call(&[b"PING"]).expect("the first broker serves on");
    assert_eq!(reply, Reply::Simple(b"PONG".to_vec()));
}

#[test]
fn a_taken_port_is_refused() {
    let _case = Case::new("shutdown::a_taken_port_is_refused");
    let scratch = Scratch::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("it has an address").port();
    let refusal = Launch::new(&scratch.path().join("data"), "always").port(port).refused();
    is_refused_with(ADDRESS_IN_USE, &refusal);
    says_in_one_line(&refusal, &format!("127.0.0.1:{port}"));
}

#[test]
fn another_format_is_refused() {
    let _case = Case::new("shutdown::another_format_is_refused");
    let scratch = Scratch::new("format");
    let data_dir = scratch.path().join("data");
    let shard = data_dir.join("caches").join("default-0123456789abcdef0123456789abcdef").join("0");
    std::fs::create_dir_all(&shard).expect("a directory");
    std::fs::write(data_dir.join("node.toml"), "format = 99\n").expect("a file");
    std::fs::write(shard.join("00000000000000000001.log"), b"not of this version").expect("a file");
    let before = contents(&data_dir);
    assert!(before.len() >= 5, "the comparison sees the directory: {before:?}");
    let refusal = Launch::new(&data_dir, "always").refused();
    is_refused_with(OTHER_FORMAT, &refusal);
    says_in_one_line(&refusal, &data_dir.display().to_string());
    assert_eq!(contents(&data_dir), before, "a refused directory stays as it was");
}

#[test]
fn an_unusable_directory_is_refused() {
    let _case = Case::new("shutdown::an_unusable_directory_is_refused");
    let scratch = Scratch::new("unusable");
    let file = scratch.path().join("file");
    std::fs::write(&file, b"in the way").expect("a file");
    let data_dir = file.join("data");
    let refusal = Launch::new(&data_dir, "always").refused();
    is_refused_with(DIRECTORY_UNUSABLE, &refusal);
    says_in_one_line(&refusal, &data_dir.display().to_string());
    assert_eq!(std::fs::read(&file).expect("the file is still one"), b"in the way");
}

#[test]
fn a_limit_on_file_sizes_is_told_and_not_a_silent_death() {
    let _case = Case::new("shutdown::a_limit_on_file_sizes_is_told_and_not_a_silent_death");
    let scratch = Scratch::new("file-size");
    let data_dir = scratch.path().join("data");
    let refusal = Launch::new(&data_dir, "always").within(limited("-f 4096")).refused();
    is_refused_with(DIRECTORY_UNUSABLE, &refusal);
    says_in_one_line(&refusal, &data_dir.display().to_string());
    Broker::start(&data_dir, "always").terminate();
}

/// A shell that sets a limit and then becomes the broker.
pub fn limited(limit: &str) -> Vec<OsString> {
    let script = format!("ulimit {limit} && exec \"$@\"");
    ["sh", "-c", &script, "sh"].map(OsString::from).into()
}

#[test]
fn running_out_of_descriptors_slows_accepting_and_ends_nothing() {
    let _case = Case::new("shutdown::running_out_of_descriptors_slows_accepting_and_ends_nothing");
    let scratch = Scratch::new("descriptors");
    let broker = Launch::new(&scratch.path().join("data"), "always").within(limited("-n 48")).start();
    let mut served = broker.client();
    let crowd: Vec<std::net::TcpStream> = (0..200).map(|_| broker.connect()).collect();
    for round in 0..50 {
        served.call(&[b"SET", b"key", format!("{round}").as_bytes()]).expect("who is served goes on being served");
    }
    drop(crowd);
    // Until the crowd is off the books, one more may still be told that there are too many.
    let value = (0..2000).find_map(|_| match broker.client().call(&[b"GET", b"key"]) {
        Ok(Reply::Bulk(value)) => value,
        _ => {
            std::thread::sleep(std::time::Duration::from_millis(5));
            None
        }
    });
    assert_eq!(value.as_deref(), Some(&b"49"[..]), "accepting goes on");
    assert_eq!(broker.terminate(), 0);
}

#[test]
fn whatever_crowd_knocks_the_log_keeps_the_descriptors_for_its_next_segment() {
    const PUTS: usize = 20;
    let _case = Case::new("shutdown::whatever_crowd_knocks_the_log_keeps_the_descriptors_for_its_next_segment");
    let scratch = Scratch::new("descriptors-64");
    let data_dir = scratch.path().join("data");
    let broker = Launch::new(&data_dir, "never").within(limited("-n 64")).start();
    let mut served = broker.client();
    let mut knocked = 0;
    // 160 MiB: more than two segments, each begun while 200 others want to be let in.
    let value = vec![b'v'; 8 * 1024 * 1024];
    let mut crowd = Vec::new();
    for round in 0..PUTS {
        crowd.extend((0..10).map(|_| broker.connect()));
        knocked += 10;
        let key = format!("key{round}");
        let reply = served.call(&[b"SET", key.as_bytes(), &value]).expect("a reply");
        assert_eq!(reply, Reply::Simple(b"OK".to_vec()), "round {round}, {knocked} have knocked");
    }
    for round in 0..PUTS {
        let reply = served.call(&[b"GET", format!("key{round}").as_bytes()]).expect("a reply");
        assert!(reply == Reply::Bulk(Some(value.clone())), "key{round} is not what was put");
    }
    drop(crowd);
    assert_eq!(broker.terminate(), 0);
}

#[test]
fn an_unknown_fsync_policy_is_a_usage_error() {
    let _case = Case::new("shutdown::an_unknown_fsync_policy_is_a_usage_error");
    let scratch = Scratch::new("usage");
    let data_dir = scratch.path().join("data");
    let refusal = Launch::new(&data_dir, "sometimes").refused();
    is_refused_with(USAGE, &refusal);
    assert!(refusal.stderr.contains("sometimes"), "stderr should name the value: {}", refusal.stderr);
    assert!(!data_dir.exists(), "a usage error leaves no directory behind");
}

fn is_refused_with(code: i32, refusal: &Refusal) {
    assert_eq!(refusal.code, code, "exit code; stderr: {}", refusal.stderr);
    assert!(!refusal.stdout.contains("ready"), "a refused broker said it was ready: {}", refusal.stdout);
}

fn says_in_one_line(refusal: &Refusal, fact: &str) {
    let lines: Vec<&str> = refusal.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    assert!(lines.len() == 1 && lines[0].contains(fact), "stderr should be one sentence with {fact}: {lines:?}");
}

/// Every entry below a directory with its mode and its bytes, except the lock, which is taken before anything is read.
fn contents(below: &Path) -> BTreeMap<String, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![below.to_path_buf()];
    while let Some(path) = left.pop() {
        let about = std::fs::symlink_metadata(&path).expect("it was listed");
        let bytes = about.is_file().then(|| std::fs::read(&path).expect("a readable file"));
        if about.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a readable directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        }
        if path.file_name().is_none_or(|name| name != "hearth.lock") {
            found.insert(path.display().to_string(), (about.permissions().mode(), bytes));
        }
    }
    found
}
