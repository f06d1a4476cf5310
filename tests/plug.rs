//! A front end of another protocol, written against the public API only: it plugs in through the two-method trait.
//!
//! The protocol: `put key value\n` answers `stored\n`, `get key\n` answers `value …\n` or `none\n`, anything else
//! `error …\n`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Once, mpsc};
use std::time::Duration;

use clap::Parser;
use hearth::config::Config;
use hearth::core::api::{Fate, Found, Hold, Room, Turn, Turns, WriteError};
use hearth::core::log::reader::Wait;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::frontends::front_end::{FrontEnd, Served, Session, TurnedAway};
use hearth::rt::{self, Stream};
use hearth::server::{Broker, Ended, ServerError};

const PATIENCE: Duration = Duration::from_secs(60);

struct Lines;

impl FrontEnd for Lines {
    fn serve(&self, stream: Stream, session: Session) -> Served {
        Box::pin(serve(stream, session))
    }

    fn turn_away(&self, mut stream: Stream, why: TurnedAway) -> Served {
        Box::pin(async move {
            let _ = stream.write_all(format!("error {why:?}\n").as_bytes()).await;
        })
    }
}

async fn serve(mut stream: Stream, session: Session) {
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        received.extend_from_slice(&buffer[..read]);
        while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = received.drain(..=end).collect();
            let reply = answer(&session, &line[..end]).await;
            if stream.write_all(&reply).await.is_err() {
                return;
            }
        }
    }
}

/// Runs one line; its reply leaves only when what it rests on is applied.
async fn answer(session: &Session, line: &[u8]) -> Vec<u8> {
    loop {
        let turns = session.cache.turns();
        let evaluated = {
            let mut turn = turns.turn();
            evaluate(&turns, &mut turn, line)
        };
        match evaluated {
            Evaluated::Reply(reply, None) => return reply,
            Evaluated::Reply(reply, Some(hold)) => {
                let fate = turns.settle(hold).await;
                return if fate == Fate::Applied { reply } else { format!("error {fate:?}\n").into_bytes() };
            }
            Evaluated::WaitFor(room) => turns.wait_for_room(room).await,
        }
    }
}

enum Evaluated {
    Reply(Vec<u8>, Option<Hold>),
    WaitFor(Room),
}

fn evaluate(turns: &Turns, turn: &mut Turn<'_>, line: &[u8]) -> Evaluated {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    match words.as_slice() {
        [b"put", key, value] => {
            let put = Put { key, value, expiry: Expiry::Never, condition: Condition::Always };
            match turn.put(&put) {
                Ok((_, hold)) => Evaluated::Reply(b"stored\n".to_vec(), hold),
                Err(WriteError::Refused(refusal)) => Evaluated::Reply(format!("error {refusal}\n").into_bytes(), None),
                Err(WriteError::Full(shard)) => Evaluated::WaitFor(turns.room(shard)),
                // The cache it is handed is made when the broker starts, and it begins no transaction.
                Err(WriteError::NotCreated(_) | WriteError::Apart) => unreachable!(),
            }
        }
        [b"get", key] => {
            let found = turn.get(key).and_then(|(found, hold)| {
                let mut scratch = Vec::new();
                let value = match found {
                    None => None,
                    Some(Found::Staged(value)) => Some(value.to_vec()),
                    Some(Found::Cached(value)) => Some(value.to_vec()),
                    Some(Found::Stored(pinned)) => pinned.read(key, Wait::IfNeeded, &mut scratch)?.map(<[u8]>::to_vec),
                };
                Ok((value, hold))
            });
            match found {
                Ok((None, hold)) => Evaluated::Reply(b"none\n".to_vec(), hold),
                Ok((Some(value), hold)) => Evaluated::Reply([b"value ", &value[..], b"\n"].concat(), hold),
                Err(fault) => Evaluated::Reply(format!("error {fault}\n").into_bytes(), None),
            }
        }
        _ => Evaluated::Reply(b"error put key value, or get key\n".to_vec(), None),
    }
}

struct Running {
    address: std::net::SocketAddr,
    stop: rt::channel::Sender<()>,
    ended: mpsc::Receiver<Result<Ended, ServerError>>,
}

fn start(arguments: &[&str]) -> Running {
    static RUNTIME: Once = Once::new();
    RUNTIME.call_once(|| rt::start(1).unwrap());
    let config = Config::parse_from([&["hearth", "--resp", "127.0.0.1:0"], arguments].concat());
    let broker = rt::run(async move { Broker::start_with(&config, Arc::new(Lines)).await }).unwrap();
    let address = broker.address();
    let (stop, stopped) = rt::channel::bounded::<()>(1);
    let (done, ended) = mpsc::sync_channel(1);
    rt::thread("broker", move || {
        let stopped = async move {
            let _ = stopped.recv().await;
        };
        let _ = done.send(rt::run(broker.serve(stopped, 10_000)));
    })
    .unwrap();
    Running { address, stop, ended }
}

fn connect(running: &Running) -> BufReader<TcpStream> {
    let socket = TcpStream::connect(running.address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(socket)
}

fn ask(client: &mut BufReader<TcpStream>, line: &str) -> String {
    client.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    read(client)
}

fn read(client: &mut BufReader<TcpStream>) -> String {
    let mut reply = String::new();
    client.read_line(&mut reply).unwrap();
    reply
}

#[test]
fn another_protocol_plugs_in_and_its_clients_see_each_others_writes() {
    let running = start(&["--memory"]);
    let (mut one, mut other) = (connect(&running), connect(&running));
    assert_eq!(ask(&mut one, "get k"), "none\n");
    assert_eq!(ask(&mut one, "put k hello"), "stored\n");
    assert_eq!(ask(&mut other, "get k"), "value hello\n");
    assert_eq!(ask(&mut other, "PING"), "error put key value, or get key\n");
    one.get_mut().write_all(b"put a 1\nget a\nput a 2\nget a\n").unwrap();
    let replies = [read(&mut one), read(&mut one), read(&mut one), read(&mut one)];
    assert_eq!(replies, ["stored\n", "value 1\n", "stored\n", "value 2\n"]);
}

#[test]
fn a_stored_reply_means_it_is_durable() {
    let data = std::env::temp_dir().join(format!("hearth-test-plug-{}", std::process::id()));
    let arguments = ["--data-dir", data.to_str().unwrap()];
    for round in 0..3 {
        let running = start(&arguments);
        let (mut one, mut other) = (connect(&running), connect(&running));
        for number in 0..30 {
            assert_eq!(ask(&mut one, &format!("put k{number} {round}")), "stored\n");
            assert_eq!(ask(&mut other, &format!("get k{number}")), format!("value {round}\n"));
        }
        running.stop.close();
        assert_eq!(read(&mut one), "", "a broker that ends ends the stream");
        assert!(matches!(running.ended.recv_timeout(PATIENCE), Ok(Ok(Ended::Drained))));
    }
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn who_is_turned_away_is_told_in_the_protocols_own_words() {
    let running = start(&["--memory", "--max-clients", "1"]);
    let mut one = connect(&running);
    assert_eq!(ask(&mut one, "get k"), "none\n");
    assert_eq!(read(&mut connect(&running)), "error TooManyClients\n");
}
