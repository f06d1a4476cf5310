//! Redis's glob patterns: `*`, `?`, `[abc]`, `[a-z]`, `[^x]` and `\` before a byte to be taken as it is.
//!
//! Promise: never recurses, never takes more than pattern times text steps. Must never know what is matched.

/// Whether `pattern` matches all of `text`, ASCII case ignored.
#[must_use]
pub fn matches_ignore_case(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // After a star: where the pattern goes on, and how much of the text the star has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
        } else if let Some(next) = one(pattern, p, text[t]) {
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
fn one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    let same = |a: u8, b: u8| a.eq_ignore_ascii_case(&b);
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => class(pattern, p + 1, byte),
        b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte).then_some(p + 2),
        literal => same(literal, byte).then_some(p + 1),
    }
}

/// A class begins at `p`, after the bracket; one without its end runs to the end of the pattern, as in Redis.
fn class(pattern: &[u8], mut p: usize, byte: u8) -> Option<usize> {
    let byte = byte.to_ascii_lowercase();
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut matched = false;
    while p < pattern.len() && pattern[p] != b']' {
        if pattern[p] == b'\\' && p + 1 < pattern.len() {
            p += 1;
            matched |= pattern[p].to_ascii_lowercase() == byte;
            p += 1;
        } else if p + 2 < pattern.len() && pattern[p + 1] == b'-' {
            let (a, b) = (pattern[p].to_ascii_lowercase(), pattern[p + 2].to_ascii_lowercase());
            matched |= (a.min(b)..=a.max(b)).contains(&byte);
            p += 3;
        } else {
            matched |= pattern[p].to_ascii_lowercase() == byte;
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
            ("*", "", true),
            ("", "", true),
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
        ] {
            assert_eq!(matches_ignore_case(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        let pattern = "a*".repeat(30) + "b";
        assert!(!matches_ignore_case(pattern.as_bytes(), "a".repeat(5000).as_bytes()));
    }
}
