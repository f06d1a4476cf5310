//! A broker whose data takes long to open: it listens, says that it is loading, can be stopped, and refuses what is damaged.
//!
//! Opening is held up by the kernel: another process has a lease on the log's anchor, so that the broker waits in `open`
//! until that process gives it up (or the kernel takes it away, 45 seconds later).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::case::Case;
use crate::support::{Broken, Broker, Client, Launch, Reply, Scratch};

const DAMAGED: i32 = 7;

/// A lease on a file; nobody else can open it while this is held.
struct Lease {
    process: Child,
    stdin: Option<ChildStdin>,
}

impl Lease {
    fn on(file: &Path) -> Self {
        const SCRIPT: &str = "import fcntl, signal, sys\n\
             signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
             held = open(sys.argv[1], 'r+b')\n\
             fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
             print('held', flush=True)\n\
             sys.stdin.read()";
        let mut command = Command::new("python3");
        command.args(["-c", SCRIPT]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3 is installed");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        assert_eq!(line, "held\n", "no lease on {}", file.display());
        let stdin = process.stdin.take();
        Self { process, stdin }
    }

    fn give_up(mut self) {
        drop(self.stdin.take());
        self.process.wait().expect("it ends with its input");
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The one file of this name below a directory.
fn find(below: &Path, name: &str) -> PathBuf {
    let mut left = vec![below.to_path_buf()];
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(path).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
            } else if path.file_name().is_some_and(|found| found == name) {
                return path;
            }
        }
    }
    panic!("no {name} below {}", below.display());
}

fn call(client: &mut Client, words: &[&[u8]]) -> Reply {
    client.call(words).expect("a reply")
}

fn is_loading(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(text) if text == b"LOADING Redis is loading the dataset in memory")
}

/// A directory with one key, and a lease on its anchor.
fn held_data(scratch: &Scratch) -> (PathBuf, Lease) {
    let data_dir = scratch.path().join("data");
    let broker = Broker::start(&data_dir, "always");
    assert_eq!(call(&mut broker.client(), &[b"SET", b"key", b"value"]), Reply::Simple(b"OK".to_vec()));
    assert_eq!(broker.terminate(), 0);
    let lease = Lease::on(&find(&data_dir, "anchor"));
    (data_dir, lease)
}

#[test]
fn a_broker_that_is_opening_says_so_and_serves_the_same_connections_once_it_is_open() {
    let _case = Case::new("loading::a_broker_that_is_opening_says_so_and_serves_the_same_connections_once_it_is_open");
    let scratch = Scratch::new("loading");
    let (data_dir, lease) = held_data(&scratch);
    let broker = Launch::new(&data_dir, "always").start_opening();
    let mut early = broker.client();
    assert!(is_loading(&call(&mut early, &[b"PING"])));
    assert!(is_loading(&call(&mut early, &[b"GET", b"key"])));
    assert!(is_loading(&call(&mut early, &[b"SET", b"key", b"other"])));
    let Reply::Bulk(Some(info)) = call(&mut early, &[b"INFO", b"persistence"]) else { panic!("INFO is answered") };
    let info = String::from_utf8_lossy(&info).into_owned();
    assert!(info.contains("loading:1\r\n") && info.contains("loading_eta_seconds:"), "{info}");
    lease.give_up();
    broker.wait_until_open();
    assert_eq!(call(&mut early, &[b"GET", b"key"]), Reply::Bulk(Some(b"value".to_vec())));
    let Reply::Bulk(Some(info)) = call(&mut early, &[b"INFO", b"persistence"]) else { panic!("INFO is answered") };
    let info = String::from_utf8_lossy(&info).into_owned();
    assert!(info.contains("loading:0\r\n") && !info.contains("loading_"), "{info}");
    assert_eq!(broker.terminate(), 0);
}

#[test]
fn a_broker_that_is_opening_can_be_stopped_and_its_data_opens_later() {
    let _case = Case::new("loading::a_broker_that_is_opening_can_be_stopped_and_its_data_opens_later");
    let scratch = Scratch::new("loading-stop");
    let (data_dir, lease) = held_data(&scratch);
    for signal in ["TERM", "INT"] {
        let broker = Launch::new(&data_dir, "always").start_opening();
        let mut waiting = broker.client();
        assert!(is_loading(&call(&mut waiting, &[b"PING"])));
        broker.signal(signal);
        assert!(matches!(waiting.read(), Err(Broken::Ended)), "the connection ends");
        // The lease is still held: the end did not wait for it.
        assert_eq!(broker.exit_code(), 0, "after SIG{signal}");
    }
    lease.give_up();
    let broker = Broker::start(&data_dir, "always");
    assert_eq!(call(&mut broker.client(), &[b"GET", b"key"]), Reply::Bulk(Some(b"value".to_vec())));
}

#[test]
fn damage_that_is_found_while_clients_wait_ends_the_broker_with_its_own_exit_code() {
    let _case = Case::new("loading::damage_that_is_found_while_clients_wait_ends_the_broker_with_its_own_exit_code");
    let scratch = Scratch::new("loading-damage");
    let (data_dir, lease) = held_data(&scratch);
    let segment = find(&data_dir, "0000000000000001.seg");
    let mut bytes = std::fs::read(&segment).expect("the segment");
    bytes[600] ^= 1;
    std::fs::write(&segment, bytes).expect("the segment");
    let broker = Launch::new(&data_dir, "always").start_opening();
    let mut waiting = broker.client();
    assert!(is_loading(&call(&mut waiting, &[b"PING"])));
    lease.give_up();
    assert_eq!(broker.exit_code(), DAMAGED);
}
