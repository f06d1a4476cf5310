//! One trial of the scanner: the same bytes whole, in pieces, and read by `reference`.
//!
//! Promise: what differs is told with the bytes it differs for. Must never know where the bytes come from.
//!
//! `fuzz/` includes this file too, so it names nothing but the scanner and the reference.

use super::reference::{self, Rules, Said};
use super::{Args, Scan, Scanner};

/// What a scanner said, and how many bytes that took, those handed back to be dropped included.
type Heard = (Vec<Said>, usize);

/// Holds the scanner to the reference and to itself, for `input` whole and cut into pieces of `sizes` (again and again).
/// `watch` sees the scanner after each piece, with the bytes it was given so far and those still kept for it.
///
/// # Errors
/// What differs.
pub fn trial(
    input: &[u8],
    sizes: &[usize],
    rules: &Rules,
    mut watch: impl FnMut(&Scanner, usize, usize),
) -> Result<(), String> {
    let told = |what: &str, got: &Heard, wanted: &Heard| {
        let input = input.escape_ascii();
        format!("{what}\n   input {input}\n   sizes {sizes:?}\n   {rules:?}\n   got {got:?}\n   wanted {wanted:?}")
    };
    let wanted = reference::read(input, rules);
    let whole = hear(&mut [input].into_iter(), rules, &mut watch);
    if whole != wanted {
        return Err(told("the scanner and the reference differ", &whole, &wanted));
    }
    let cut = hear(&mut pieces(input, sizes), rules, &mut watch);
    if cut != whole && !gave_up_waiting(&cut.0, &whole.0, input, rules) {
        return Err(told("cut, it is judged differently", &cut, &whole));
    }
    Ok(())
}

/// How long a line is waited for is the one thing that a cut may decide: what was found before must be the same.
fn gave_up_waiting(cut: &[Said], whole: &[Said], input: &[u8], rules: &Rules) -> bool {
    let long = input.len() > rules.inline_bytes.min(rules.header_bytes);
    match cut.split_last() {
        Some((Said::Refused(why), before)) => long && why.contains("too big") && whole.starts_with(before),
        _ => false,
    }
}

fn pieces<'a>(mut rest: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = sizes.next().copied().unwrap_or(1).clamp(1, rest.len().max(1));
        let (piece, after) = rest.split_at_checked(size)?;
        rest = after;
        Some(piece)
    })
}

/// What the caller of a scanner does.
fn hear(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    rules: &Rules,
    watch: &mut impl FnMut(&Scanner, usize, usize),
) -> Heard {
    let mut scanner = Scanner::new(rules.value_bytes);
    scanner.set_authenticated(rules.authenticated);
    let (mut said, mut taken, mut dropped, mut given) = (Vec::new(), 0, 0, 0);
    let mut buffer = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        given += piece.len();
        loop {
            let consumed = match scanner.scan(&buffer) {
                Scan::NeedMore => break,
                Scan::Request { consumed } => {
                    said.push(Said::Request(arguments(scanner.args(&buffer))));
                    consumed
                }
                Scan::Skip { consumed } => {
                    said.push(Said::Nothing);
                    consumed
                }
                Scan::Discard { start, end } => {
                    assert!(start < end && end <= buffer.len(), "{start}..{end} of {}", buffer.len());
                    buffer.drain(start..end);
                    dropped += end - start;
                    continue;
                }
                last @ (Scan::Bad(_) | Scan::CrossProtocol) => {
                    watch(&scanner, given, buffer.len());
                    assert_eq!(scanner.scan(&buffer), last, "a scanner that gave up goes on");
                    said.push(match last {
                        Scan::Bad(error) => Said::Refused(error.to_string()),
                        _ => Said::Browser,
                    });
                    return (said, taken);
                }
            };
            watch(&scanner, given, buffer.len());
            assert!((1..=buffer.len()).contains(&consumed), "{consumed} of {}", buffer.len());
            buffer.drain(..consumed);
            taken += consumed + std::mem::take(&mut dropped);
        }
        watch(&scanner, given, buffer.len());
    }
    (said, taken)
}

fn arguments(args: Args<'_>) -> Vec<Option<Vec<u8>>> {
    assert_eq!(args.any_oversize(), (0..args.len()).any(|index| args.is_oversize(index)));
    let kept = |(index, bytes): (usize, &[u8])| (!args.is_oversize(index)).then(|| bytes.to_vec());
    args.iter().enumerate().map(kept).collect()
}
