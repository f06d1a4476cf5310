//! Holds what the scanner promises for every input: bounded room, linear work, no byte lost, no panic.

use proptest::prelude::*;

use super::*;

#[test]
fn a_value_that_is_too_long_takes_no_more_room_than_a_piece() {
    let mut client = Client::new(4, true);
    client.receive(b"*3\r\n$3\r\nSET\r\n$8\r\n");
    client.receive(b"longname");
    client.receive(b"\r\n$1000000\r\n");
    for piece in vec![b'x'; 1_000_000].chunks(1000) {
        client.receive(piece);
    }
    client.receive(b"\r\nPING\r\n");
    assert_eq!(client.events, ["SET|<oversize>|<oversize>", "PING"]);
    assert!(client.most_buffered < 1100, "{} bytes", client.most_buffered);
}

#[test]
fn nothing_is_allocated_by_a_declared_length() {
    let mut client = Client::new(usize::MAX, true);
    client.receive(b"*1048576\r\n$3\r\nSET\r\n$134217725\r\nabc");
    assert!(client.scanner.spans.capacity() < 10);
    assert_eq!(client.scanner.unquoted.capacity(), 0);
}

#[test]
fn the_room_of_a_large_request_is_given_back() {
    let mut client = Client::new(MAX_VALUE_BYTES, true);
    client.receive(format!("{}\r\n", "ab ".repeat(30_000)).as_bytes());
    client.receive(format!("*5000\r\n{}", "$1\r\na\r\n".repeat(5000)).as_bytes());
    assert_eq!(client.events.len(), 2);
    assert!(client.scanner.spans.capacity() <= limits::KEPT_ARGUMENTS);
    assert!(client.scanner.unquoted.capacity() <= limits::KEPT_INLINE_BYTES);
}

fn looked_per_byte(script: &[u8], piece_bytes: usize, requests: usize) -> f64 {
    let mut client = Client::new(MAX_VALUE_BYTES, true);
    script.chunks(piece_bytes).for_each(|piece| client.receive(piece));
    assert_eq!(client.events.len(), requests);
    assert!(client.scanner.looked > 0);
    client.scanner.looked as f64 / script.len() as f64
}

#[test]
fn work_is_linear_in_what_was_received() {
    let many = format!("*20000\r\n{}", "$5\r\nhello\r\n".repeat(20_000));
    assert!(looked_per_byte(many.as_bytes(), 100, 1) <= 3.0);
    assert!(looked_per_byte(many.as_bytes(), 1, 1) <= 3.0);
    let line = format!("{}\n", "x".repeat(60_000));
    assert!(looked_per_byte(line.as_bytes(), 1, 1) <= 3.0);
    let header = format!("*{}\r\n", "1".repeat(60_000));
    assert!(looked_per_byte(header.as_bytes(), 1, 1) <= 3.0);
}

/// A request as a client library sends it, or as a person types it.
fn written(request: &[Vec<u8>], inline: bool) -> Vec<u8> {
    if inline {
        let words = request.iter().map(|word| {
            let hex = word.iter().map(|byte| format!("\\x{byte:02x}"));
            format!("\"{}\"", hex.collect::<String>())
        });
        return format!("{}\r\n", words.collect::<Vec<_>>().join(" ")).into_bytes();
    }
    let mut out = format!("*{}\r\n", request.len()).into_bytes();
    for word in request {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn receive_in_pieces(client: &mut Client, script: &[u8], sizes: &[usize]) {
    let mut rest = script;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        client.receive(piece);
        rest = tail;
    }
}

fn request() -> impl Strategy<Value = (Vec<Vec<u8>>, bool)> {
    (prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8), any::<bool>())
}

/// Bytes that often are nearly a request.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "*", "$", "\r\n", "\r", "\n", "*1\r\n", "*2\r\n", "$1\r\n", "$3\r\nGET\r\n", "$0\r\n\r\n", "a\r\n", "-1", "9",
            "$20\r\n", "*-1\r\n", "\"", "'", "\\x4", " ", "POST ", "host:", "*0\r\n", "PING\r\n", "99999999999999999999",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn requests_survive_writing_and_any_cutting(
        requests in prop::collection::vec(request(), 0..8),
        sizes in prop::collection::vec(1..60_usize, 1..20),
        max_value_bytes in 5..50_usize,
    ) {
        let mut client = Client::new(max_value_bytes, true);
        let mut expected = Vec::new();
        let mut script = Vec::new();
        // A random word may be the name of a browser's request.
        for (words, inline) in requests.iter().filter(|(words, _)| !inline::is_cross_protocol(&words[0])) {
            script.extend(written(words, *inline));
            let shown = words.iter().map(|word| match word.len() > max_value_bytes {
                true => "<oversize>".to_owned(),
                false => word.escape_ascii().to_string(),
            });
            expected.push(shown.collect::<Vec<_>>().join("|"));
        }
        receive_in_pieces(&mut client, &script, &sizes);
        prop_assert_eq!(client.events, expected);
        prop_assert!(client.buffer.is_empty());
    }

    #[test]
    fn noise_is_judged_the_same_however_it_is_cut_and_never_panics(
        script in noise(),
        sizes in prop::collection::vec(1..20_usize, 1..20),
        max_value_bytes in 0..20_usize,
        authenticated in any::<bool>(),
    ) {
        let mut at_once = Client::new(max_value_bytes, authenticated);
        at_once.receive(&script);
        let mut in_pieces = Client::new(max_value_bytes, authenticated);
        receive_in_pieces(&mut in_pieces, &script, &sizes);
        prop_assert_eq!(at_once.events, in_pieces.events);
    }
}
