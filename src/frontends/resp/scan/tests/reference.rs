//! A second reading of what a client may send, written from the protocol's rules and nothing else: whole input, one request
//! after the other, no state kept, everything copied. What the scanner finds must be what this finds.
//!
//! Promise: plain before fast; it judges a byte only once the rules let a server judge it, so that the end of its input
//! means the same as the end of what was received. Must never know the scanner.
//!
//! `fuzz/` includes this file too, so it names nothing of the crate.

/// The numbers a server chooses.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub authenticated: bool,
    /// A longer argument counts, and is not kept.
    pub value_bytes: usize,
    pub bulk_bytes: usize,
    pub request_bytes: usize,
    pub arguments: usize,
    pub inline_bytes: usize,
    pub header_bytes: usize,
    pub stranger_arguments: usize,
    pub stranger_bulk_bytes: usize,
}

/// One thing that a client said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// Its arguments; `None` is one that is too long to be kept.
    Request(Vec<Option<Vec<u8>>>),
    /// What gets no answer.
    Nothing,
    /// What is no request, with the text that says why. The last one.
    Refused(String),
    /// What is closed without a word. The last one.
    Browser,
}

/// Why reading ends.
enum End {
    More,
    Refused(&'static str),
    NoBulk(u8),
    Browser,
}

type Read<'a, T> = Result<(T, &'a [u8]), End>;

/// Everything `input` says, and how many of its bytes that took.
pub fn read(input: &[u8], rules: &Rules) -> (Vec<Said>, usize) {
    let mut said = Vec::new();
    let mut rest = input;
    loop {
        match one(rest, rules) {
            Ok((one, after)) => {
                said.push(one);
                rest = after;
            }
            Err(end) => {
                match end {
                    End::More => {}
                    End::Refused(why) => said.push(Said::Refused(format!("Protocol error: {why}"))),
                    End::NoBulk(byte) => said.push(Said::Refused(format!("Protocol error: {}", no_bulk(byte)))),
                    End::Browser => said.push(Said::Browser),
                }
                return (said, input.len() - rest.len());
            }
        }
    }
}

fn no_bulk(byte: u8) -> String {
    match byte {
        b'\r' | b'\n' => "expected '$', got ' '".to_owned(),
        0x20..=0x7e => format!("expected '$', got '{}'", byte as char),
        _ => format!("expected '$', got '\\x{byte:02x}'"),
    }
}

fn one<'a>(input: &'a [u8], rules: &Rules) -> Read<'a, Said> {
    match input.first() {
        None => Err(End::More),
        Some(b'*') => array(&input[1..], rules),
        Some(_) => line(input, rules),
    }
}

fn array<'a>(input: &'a [u8], rules: &Rules) -> Read<'a, Said> {
    const INVALID: &str = "invalid multibulk length";
    let (count, mut rest) = number(input, INVALID, "too big mbulk count string", rules)?;
    if count <= 0 {
        return Ok((Said::Nothing, rest));
    }
    if count > rules.arguments as i64 {
        return Err(End::Refused(INVALID));
    }
    if !rules.authenticated && count > rules.stranger_arguments as i64 {
        return Err(End::Refused("unauthenticated multibulk length"));
    }
    let mut arguments = Vec::new();
    let mut kept_bytes = 0;
    for _ in 0..count {
        let (argument, after) = bulk(rest, rules, &mut kept_bytes)?;
        arguments.push(argument);
        rest = after;
    }
    Ok((Said::Request(arguments), rest))
}

fn bulk<'a>(input: &'a [u8], rules: &Rules, kept_bytes: &mut usize) -> Read<'a, Option<Vec<u8>>> {
    const INVALID: &str = "invalid bulk length";
    match input.first() {
        None => return Err(End::More),
        Some(b'$') => {}
        Some(other) => return Err(End::NoBulk(*other)),
    }
    let (length, rest) = number(&input[1..], INVALID, "too big bulk count string", rules)?;
    if length < 0 || length > rules.bulk_bytes as i64 {
        return Err(End::Refused(INVALID));
    }
    let length = length as usize;
    if !rules.authenticated && length > rules.stranger_bulk_bytes {
        return Err(End::Refused("unauthenticated bulk length"));
    }
    let kept = length <= rules.value_bytes;
    if kept {
        *kept_bytes += length;
    }
    if *kept_bytes > rules.request_bytes {
        return Err(End::Refused("request larger than 134217728 bytes"));
    }
    match rest.get(length..length + 2) {
        None => Err(End::More),
        Some(b"\r\n") => Ok((kept.then(|| rest[..length].to_vec()), &rest[length + 2..])),
        Some(_) => Err(End::Refused("invalid bulk terminator")),
    }
}

/// The number behind a type byte. It is judged with the byte behind its CR, not before.
fn number<'a>(input: &'a [u8], invalid: &'static str, endless: &'static str, rules: &Rules) -> Read<'a, i64> {
    let Some(end) = input.iter().position(|byte| *byte == b'\r') else {
        return Err(if 1 + input.len() > rules.header_bytes { End::Refused(endless) } else { End::More });
    };
    let Some(behind) = input.get(end + 1) else { return Err(End::More) };
    let text = String::from_utf8_lossy(&input[..end]);
    // There is one way to write a number: the way it is written.
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    match number {
        None => Err(End::Refused(invalid)),
        Some(_) if *behind != b'\n' => Err(End::Refused("expected LF after CR")),
        Some(number) => Ok((number, &input[end + 2..])),
    }
}

fn line<'a>(input: &'a [u8], rules: &Rules) -> Read<'a, Said> {
    const TOO_BIG: &str = "too big inline request";
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return Err(if input.len() > rules.inline_bytes { End::Refused(TOO_BIG) } else { End::More });
    };
    // The CR of CR LF is a blank at the end like any other, but not within quotes.
    let line = if end > 0 && input[end - 1] == b'\r' { &input[..end - 1] } else { &input[..end] };
    let words = words(line, rules.arguments)?;
    let words: Vec<_> =
        words.into_iter().map(|word| Some(word).filter(|word| word.len() <= rules.value_bytes)).collect();
    match words.first() {
        None => Ok((Said::Nothing, &input[end + 1..])),
        Some(Some(word)) if matches!(word.to_ascii_lowercase().as_slice(), b"post" | b"host:") => Err(End::Browser),
        Some(_) => Ok((Said::Request(words), &input[end + 1..])),
    }
}

/// How a word is being read.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Blanks,
    Word,
    Double,
    Single,
}

/// The words of a line. `None` stands for what is behind its end.
fn words(line: &[u8], most: usize) -> Result<Vec<Vec<u8>>, End> {
    const UNBALANCED: End = End::Refused("unbalanced quotes in request");
    let blank = |byte: Option<&u8>| matches!(byte, None | Some(b' ' | 0x09..=0x0d));
    let hex = |at: usize| line.get(at).and_then(|byte| (*byte as char).to_digit(16));
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut word = Vec::new();
    let mut within = Within::Blanks;
    let mut at = 0;
    loop {
        let byte = line.get(at).copied();
        if within == Within::Blanks {
            if byte.is_none() {
                return Ok(words);
            }
            if blank(byte.as_ref()) {
                at += 1;
                continue;
            }
            if words.len() == most {
                return Err(End::Refused("too big inline request"));
            }
            within = Within::Word;
        }
        let mut ends = false;
        match (within, byte) {
            (Within::Word, None | Some(b' ' | b'\t' | b'\r' | b'\n')) => ends = true,
            (Within::Word, Some(b'"')) => within = Within::Double,
            (Within::Word, Some(b'\'')) => within = Within::Single,
            (Within::Double | Within::Single, None) => return Err(UNBALANCED),
            (Within::Double, Some(b'\\')) => match (line.get(at + 1), hex(at + 2), hex(at + 3)) {
                (Some(b'x'), Some(high), Some(low)) => {
                    word.push((high * 16 + low) as u8);
                    at += 3;
                }
                (Some(letter), ..) => {
                    word.push(match letter {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'b' => 8,
                        b'a' => 7,
                        other => *other,
                    });
                    at += 1;
                }
                (None, ..) => word.push(b'\\'),
            },
            (Within::Single, Some(b'\\')) if line.get(at + 1) == Some(&b'\'') => {
                word.push(b'\'');
                at += 1;
            }
            (Within::Double, Some(b'"')) | (Within::Single, Some(b'\'')) => {
                if !blank(line.get(at + 1)) {
                    return Err(UNBALANCED);
                }
                ends = true;
            }
            (_, Some(byte)) => word.push(byte),
            (Within::Blanks, None) => return Ok(words),
        }
        if ends {
            words.push(std::mem::take(&mut word));
            within = Within::Blanks;
        }
        at += 1;
    }
}
