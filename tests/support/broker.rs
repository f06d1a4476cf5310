//! One broker process: started, waited for, signalled, killed.
//!
//! Promises that every wait is bounded and says what it waited for, and that the process is gone when the value is
//! dropped. It ends only processes it started, by their own number. Must never know what is in the data directory.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::client::{Client, Reply};

/// How long a process may take for what it was asked; never part of what a test asserts about a healthy broker.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// What is kept of a broker's stderr.
const STDERR_BYTES: usize = 64 * 1024;

/// A command line that has not been run yet.
pub struct Launch {
    data_dir: PathBuf,
    fsync: String,
    resp: String,
    under: Vec<OsString>,
    becomes_the_broker: bool,
    flags: Vec<OsString>,
}

/// What a broker left that ended by itself instead of starting.
pub struct Refusal {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A broker that has said it is ready.
pub struct Broker {
    child: Child,
    /// The broker itself; not the child when it runs under a tracer.
    pid: u32,
    port: u16,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: JoinHandle<()>,
    ended: bool,
}

impl Launch {
    pub fn new(data_dir: &Path, fsync: &str) -> Self {
        let (data_dir, fsync) = (data_dir.to_path_buf(), fsync.to_owned());
        let resp = "127.0.0.1:0".to_owned();
        Self { data_dir, fsync, resp, under: Vec::new(), becomes_the_broker: false, flags: Vec::new() }
    }

    /// Adds flags of the broker's own.
    pub fn with(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(OsString::from));
        self
    }

    pub fn port(mut self, port: u16) -> Self {
        self.resp = format!("127.0.0.1:{port}");
        self
    }

    /// Puts a tracer with its own arguments before the command.
    pub fn under(mut self, tracer: Vec<OsString>) -> Self {
        self.under = tracer;
        self
    }

    /// Puts a command before it that turns into the broker, so that the child is the broker.
    pub fn within(mut self, wrapper: Vec<OsString>) -> Self {
        self.under = wrapper;
        self.becomes_the_broker = true;
        self
    }

    /// Starts the broker and waits until it is ready and answers.
    pub fn start(self) -> Broker {
        let traced = !self.under.is_empty() && !self.becomes_the_broker;
        let mut child = self.spawn();
        let lines = forward_lines(child.stdout.take().expect("stdout is piped"));
        let (stderr, stderr_reader) = keep(child.stderr.take().expect("stderr is piped"));
        let mut broker = Broker { pid: child.id(), child, port: 0, stderr, stderr_reader, ended: false };
        broker.port = broker.wait_for_port(&lines);
        if traced {
            broker.pid = only_child_of(broker.child.id());
        }
        broker.wait_until_it_answers();
        broker
    }

    /// Starts the broker and waits until it says that it listens, though it cannot open its data yet.
    pub fn start_opening(self) -> Broker {
        let mut child = self.spawn();
        let (_, _) = keep(child.stdout.take().expect("stdout is piped"));
        let (stderr, stderr_reader) = keep(child.stderr.take().expect("stderr is piped"));
        let mut broker = Broker { pid: child.id(), child, port: 0, stderr, stderr_reader, ended: false };
        for _ in 0..PATIENCE.as_millis() / POLL.as_millis() {
            let said = text(&broker.stderr);
            if let Some(port) = said.lines().filter(|line| line.contains("opening the data")).find_map(port_in) {
                broker.port = port;
                return broker;
            }
            thread::sleep(POLL);
        }
        panic!("it never said that it is opening its data\n{}", broker.said());
    }

    /// Runs a broker that is expected to end by itself, with an exit code, before it serves.
    pub fn refused(self) -> Refusal {
        let mut child = self.spawn();
        let (stdout, out) = keep(child.stdout.take().expect("stdout is piped"));
        let (stderr, err) = keep(child.stderr.take().expect("stderr is piped"));
        let status = wait(&mut child, PATIENCE / 4);
        if status.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        out.join().expect("reading stdout");
        err.join().expect("reading stderr");
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        let code = status.and_then(|status| status.code()).unwrap_or_else(|| {
            panic!("the broker should have refused to start; status {status:?}\nstdout: {stdout}\nstderr: {stderr}")
        });
        Refusal { code, stdout, stderr }
    }

    fn spawn(&self) -> Child {
        let binary = binary();
        let mut words = self.under.clone();
        words.push(binary.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("--resp").arg(&self.resp).arg("--data-dir").arg(&self.data_dir);
        command.arg("--fsync").arg(&self.fsync).args(&self.flags);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("cannot run {:?}: {error}", words[0]))
    }
}

impl Broker {
    pub fn start(data_dir: &Path, fsync: &str) -> Self {
        Launch::new(data_dir, fsync).start()
    }

    /// A connection nobody has greeted yet.
    pub fn connect(&self) -> std::net::TcpStream {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).expect("the system queues connections")
    }

    pub fn client(&self) -> Client {
        Client::connect(self.port)
            .unwrap_or_else(|error| panic!("cannot connect to the broker: {error}\n{}", self.said()))
    }

    /// kill -9: nothing of the broker runs after this returns.
    pub fn kill(mut self) {
        self.end();
    }

    /// Sends a signal (`TERM`, `INT`) and goes on.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.pid.to_string()).status();
        assert!(status.expect("running kill").success(), "no broker to send SIG{name} to\n{}", self.said());
    }

    /// Waits for the exit code of a broker that was asked to stop.
    pub fn exit_code(mut self) -> i32 {
        match wait(&mut self.child, PATIENCE) {
            Some(status) => {
                self.ended = true;
                status.code().unwrap_or_else(|| panic!("ended by a signal: {status}\n{}", self.said()))
            }
            None => panic!("still running {PATIENCE:?} after it was asked to stop\n{}", self.said()),
        }
    }

    /// The exit code of a broker that ends by itself, None if it had to be killed.
    pub fn exit_by_itself(mut self) -> Option<i32> {
        let status = wait(&mut self.child, PATIENCE / 4);
        self.ended = status.is_some();
        status.map(|status| status.code().unwrap_or(-1))
    }

    /// Whether the process is still there.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("waiting for a child").is_none()
    }

    /// SIGTERM, and the exit code.
    pub fn terminate(self) -> i32 {
        self.signal("TERM");
        self.exit_code()
    }

    /// Waits until the broker answers like one that is open.
    pub fn wait_until_open(&self) {
        self.wait_until_it_answers();
    }

    fn wait_for_port(&mut self, lines: &Receiver<String>) -> u16 {
        let mut seen = String::new();
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    if let Some(port) = port_in(&line) {
                        return port;
                    }
                    seen.push_str(&line);
                    seen.push('\n');
                }
                Err(why) => {
                    let what = if why == RecvTimeoutError::Timeout { "no start line" } else { "stdout ended" };
                    let status = wait(&mut self.child, POLL * 20);
                    panic!("{what} (status {status:?})\nstdout: {seen}\n{}", self.said());
                }
            }
        }
    }

    /// The start line may come while the log is still being replayed: LOADING is an answer to wait for.
    fn wait_until_it_answers(&self) {
        let mut client = self.client();
        for _ in 0..PATIENCE.as_millis() / POLL.as_millis() {
            match client.call(&[b"PING"]) {
                Ok(Reply::Simple(word)) if word == b"PONG" => return,
                Ok(Reply::Error(text)) if text.starts_with(b"LOADING") => thread::sleep(POLL),
                other => panic!("PING right after the start line got {other:?}\n{}", self.said()),
            }
        }
        panic!("the broker is still loading\n{}", self.said());
    }

    /// For a failure's text. A broker that is ending gets a moment to say why; one that runs on keeps its stderr open.
    fn said(&self) -> String {
        for _ in 0..20 {
            if self.stderr_reader.is_finished() {
                break;
            }
            thread::sleep(POLL);
        }
        format!("stderr: {}", text(&self.stderr))
    }

    fn end(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        if self.pid != self.child.id() {
            // The tracer goes when its tracee has gone.
            let _ = Command::new("kill").arg("-KILL").arg(self.pid.to_string()).stderr(Stdio::null()).status();
            if wait(&mut self.child, PATIENCE / 4).is_some() {
                return;
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}

/// The binary under test: `HEARTH_BIN`, else the one cargo built beside this test.
fn binary() -> PathBuf {
    std::env::var_os("HEARTH_BIN")
        .map(PathBuf::from)
        .or_else(|| option_env!("CARGO_BIN_EXE_hearth").map(PathBuf::from))
        .expect("set HEARTH_BIN to the broker to test")
}

fn port_in(line: &str) -> Option<u16> {
    let (_, after) = line.split_once("127.0.0.1:")?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).map_or(after, |end| &after[..end]);
    digits.parse().ok()
}

fn only_child_of(parent: u32) -> u32 {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).expect("the tracer runs");
    let children: String =
        tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default()).collect();
    let children: Vec<u32> = children.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match children[..] {
        [child] => child,
        _ => panic!("the tracer should have one child, it has {children:?}"),
    }
}

/// Looks again and again until `holds`; a bound, not a measure, on how long.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / POLL.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(POLL);
    }
    panic!("waited in vain: {what}");
}

/// Waits at most `limit`, counted in polls.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    for _ in 0..=limit.as_millis() / POLL.as_millis() {
        if let Some(status) = child.try_wait().expect("waiting for a child") {
            return Some(status);
        }
        thread::sleep(POLL);
    }
    None
}

/// Passes lines on; goes on reading when nobody listens any more, so that the broker never blocks on its own output.
fn forward_lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// Keeps the first bytes of a stream and reads the rest away.
fn keep(mut from: impl Read + Send + 'static) -> (Arc<Mutex<Vec<u8>>>, JoinHandle<()>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&kept);
    let reader = thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let mut kept = into.lock().expect("no panic under this lock");
            let room = STDERR_BYTES - kept.len();
            kept.extend_from_slice(&buffer[..count.min(room)]);
        }
    });
    (kept, reader)
}

fn text(bytes: &Mutex<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.lock().expect("no panic under this lock")).into_owned()
}
