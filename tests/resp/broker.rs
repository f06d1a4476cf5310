//! Brokers to test: in this process for most tests, as a process of its own where its memory is measured.
//!
//! Promise: every broker is on a port of its own and gone when its value is dropped. Must never know a test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Once};
use std::time::Duration;

use clap::Parser;
use hearth::config::Config;
use hearth::frontends::resp::Resp;
use hearth::rt;
use hearth::server::{Ended, Opening, ServerError};

use crate::client::Client;

/// The longest any test waits for anything that must happen. Reached only when a promise is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A broker in this process.
pub struct TestBroker {
    pub address: SocketAddr,
    stop: rt::channel::Sender<()>,
    ended: mpsc::Receiver<Result<Ended, ServerError>>,
    data: Option<PathBuf>,
}

impl TestBroker {
    /// One that keeps everything in memory.
    pub fn in_memory(arguments: &[&str]) -> Self {
        Self::start(&[&["--memory"], arguments].concat(), None)
    }

    /// One that flushes each batch to a directory of its own.
    pub fn durable() -> Self {
        Self::durable_with(&[])
    }

    /// The same with further flags.
    pub fn durable_with(arguments: &[&str]) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let data = std::env::temp_dir().join(format!("hearth-test-resp-{}-{number}", std::process::id()));
        let durable = ["--data-dir", data.to_str().unwrap(), "--fsync", "always"];
        Self::start(&[&durable, arguments].concat(), Some(data.clone()))
    }

    /// Stops it, and starts another one in its directory with these flags.
    pub fn restarted(mut self, arguments: &[&str]) -> Self {
        self.stop();
        self.ended().unwrap();
        let data = self.data.take().unwrap();
        let durable = ["--data-dir", data.to_str().unwrap(), "--fsync", "always"];
        Self::start(&[&durable, arguments].concat(), Some(data.clone()))
    }

    fn start(arguments: &[&str], data: Option<PathBuf>) -> Self {
        let mut broker = OpeningBroker::listen(arguments).open();
        broker.data = data;
        broker
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.stop.close();
    }

    /// Drops its files from the system's cache, so that what is read next has to be waited for.
    pub fn forget_cached_files(&self) {
        let mut folders = vec![self.data.clone().unwrap()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let file = rustix::fs::open(&path, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
                    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
                }
            }
        }
    }

    /// Waits for its end.
    pub fn ended(&self) -> Result<Ended, ServerError> {
        self.ended.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        self.stop();
        if let Some(data) = &self.data {
            let _ = self.ended.recv_timeout(PATIENCE);
            let _ = std::fs::remove_dir_all(data);
        }
    }
}

/// A broker in this process that listens and has not begun to open its data.
pub struct OpeningBroker {
    pub opening: Opening,
    drain_ms: u64,
}

impl OpeningBroker {
    pub fn listen(arguments: &[&str]) -> Self {
        static RUNTIME: Once = Once::new();
        RUNTIME.call_once(|| rt::start(1).unwrap());
        let config = Config::parse_from([&["hearth", "--resp", "127.0.0.1:0"], arguments].concat());
        let drain_ms = config.drain * 1000;
        let password = hearth::password::of(&config).unwrap();
        let opening = rt::run(async move { Opening::listen(&config, Arc::new(Resp::new(password))).await }).unwrap();
        Self { opening, drain_ms }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.opening.address())
    }

    /// Opens the data and serves it.
    pub fn open(self) -> TestBroker {
        let Self { opening, drain_ms } = self;
        let broker = rt::run(opening.open(std::future::pending())).unwrap().unwrap();
        let address = broker.address();
        let (stop, stopped) = rt::channel::bounded::<()>(1);
        let (done, ended) = mpsc::sync_channel(1);
        rt::thread("broker", move || {
            let stopped = async move {
                let _ = stopped.recv().await;
            };
            let _ = done.send(rt::run(broker.serve(stopped, drain_ms)));
        })
        .unwrap();
        TestBroker { address, stop, ended, data: None }
    }
}

/// A broker in a process of its own, so that its memory is its own.
pub struct OwnProcess {
    pub address: SocketAddr,
    child: Child,
}

impl OwnProcess {
    /// One that keeps everything in memory.
    pub fn start(arguments: &[&str]) -> Self {
        Self::launch(arguments, Stdio::null())
    }

    /// The same, whose log lines are kept for [`OwnProcess::told`]: a pipe holds 64 KiB of them.
    pub fn start_telling(arguments: &[&str]) -> Self {
        Self::launch(arguments, Stdio::piped())
    }

    fn launch(arguments: &[&str], log: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hearth"))
            .args(["--memory", "--resp", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (_, rest) = line.split_once("RESP on ").unwrap();
        let (address, _) = rest.split_once(',').unwrap();
        Self { address: address.parse().unwrap(), child }
    }

    /// Ends it, and gives its log lines.
    pub fn told(&mut self) -> String {
        let _ = self.child.kill();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        told
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let pause = Duration::from_millis(5);
    let tries = PATIENCE.as_millis() / pause.as_millis();
    for _ in 0..tries {
        if condition() {
            return;
        }
        std::thread::sleep(pause);
    }
    panic!("never: {what}");
}
