//! Redis's glob patterns: `*`, `?`, `[abc]`, `[a-z]`, `[^x]` and `\` before a byte to be taken as it is.
//!
//! Promise: never recurses, never takes more than pattern times text steps. Must never know what is matched.

/// Whether `pattern` matches all of `text`.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_by(pattern, text, |byte| byte)
}

/// Whether `pattern` matches all of `text`, ASCII case ignored.
#[must_use]
pub fn matches_ignore_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_by(pattern, text, |byte| byte.to_ascii_lowercase())
}

/// What every text that `pattern` matches begins with.
#[must_use]
pub fn literal_prefix(pattern: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::new();
    let mut rest = pattern;
    loop {
        rest = match rest {
            [] | [b'*' | b'?' | b'[', ..] => return prefix,
            [b'\\', escaped, rest @ ..] => {
                prefix.push(*escaped);
                rest
            }
            [literal, rest @ ..] => {
                prefix.push(*literal);
                rest
            }
        };
    }
}

/// `fold` makes bytes the same that are to match each other.
fn matches_by(pattern: &[u8], text: &[u8], fold: fn(u8) -> u8) -> bool {
    if text.is_empty() {
        // As in Redis, where nothing else matches nothing, not even two stars.
        return pattern.is_empty() || pattern == b"*";
    }
    let (mut p, mut t) = (0, 0);
    // After a star: where the pattern goes on, and how much of the text the star has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
        } else if let Some(next) = one(pattern, p, text[t], fold) {
            p = next;
            t += 1;
        } else if let Some((after, taken)) = star {
            star = Some((after, taken + 1));
            (p, t) = (after, taken + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Where the pattern goes on when its element at `p` matches `byte`.
fn one(pattern: &[u8], p: usize, byte: u8, fold: fn(u8) -> u8) -> Option<usize> {
    let same = |a: u8, b: u8| fold(a) == fold(b);
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => class(pattern, p + 1, byte, fold),
        b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte).then_some(p + 2),
        literal => same(literal, byte).then_some(p + 1),
    }
}

/// A class begins at `p`, after the bracket; one without its end runs to the end of the pattern, as in Redis.
fn class(pattern: &[u8], mut p: usize, byte: u8, fold: fn(u8) -> u8) -> Option<usize> {
    let byte = fold(byte);
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut matched = false;
    while p < pattern.len() && pattern[p] != b']' {
        if pattern[p] == b'\\' && p + 1 < pattern.len() {
            p += 1;
            matched |= fold(pattern[p]) == byte;
            p += 1;
        } else if p + 2 < pattern.len() && pattern[p + 1] == b'-' {
            // The bytes of a range have a sign, as C's have on x86-64.
            let (a, b) = (fold(pattern[p]).cast_signed(), fold(pattern[p + 2]).cast_signed());
            matched |= (a.min(b)..=a.max(b)).contains(&byte.cast_signed());
            p += 3;
        } else {
            matched |= fold(pattern[p]) == byte;
            p += 1;
        }
    }
    (matched != negated).then(|| (p + 1).min(pattern.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("[c-\u{e9}]", "a", true),
            ("[c-\u{e9}]", "d", false),
            ("[\u{e9}-c]", "-", true),
            ("", "a", false),
            ("a*c", "abbbc", true),
            ("a*c*", "abcbd", true),
            ("a*c", "abcb", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hBllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hello", false),
            ("[a", "a", true),
            ("SAVE", "save", true),
            ("maxmemory*", "maxmemory-policy", true),
            ("*", "", true),
            ("**", "", false),
        ] {
            assert_eq!(matches_ignore_case(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = "a*".repeat(30) + "b";
        assert!(!matches_ignore_case(pattern.as_bytes(), "a".repeat(5000).as_bytes()));
    }

    #[test]
    fn case_counts_unless_it_is_ignored() {
        for (pattern, text) in [("k", "K"), ("[k]", "K"), ("[a-z]", "K"), ("\\k", "K")] {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            assert!(matches(pattern.as_bytes(), text.to_lowercase().as_bytes()), "{pattern} {text}");
        }
    }

    #[test]
    fn every_match_begins_with_the_literal_prefix() {
        for (pattern, prefix) in [
            ("", ""),
            ("user:*", "user:"),
            ("user:1", "user:1"),
            ("a?c", "a"),
            ("a[b]", "a"),
            ("*x", ""),
            ("a\\*b*", "a*b"),
            ("a\\", "a\\"),
        ] {
            assert_eq!(literal_prefix(pattern.as_bytes()), prefix.as_bytes(), "{pattern}");
        }
    }
}
