//! Scripts that client libraries send, known by their SHA1 and run without Lua.
//!
//! Reading order: `table` (which bodies there are), `run` (what a body may call, and its answer), `number` (Lua's numbers),
//! then what stands in their place: `locks`, `many_locks`, `rate_limits`, `windows`. docs/scripts.md tells each.
//!
//! Promise: a script is one batch or nothing; what it did before an error of its own stays done, as in Redis. Must never run
//! a text.

pub mod locks;
pub mod many_locks;
pub mod number;
pub mod rate_limits;
pub mod run;
pub mod table;
pub mod windows;

use std::sync::LazyLock;

use hashbrown::HashMap;
use sha1::{Digest, Sha1};

use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::scripts::run::{Answer, Script, Stop};
use crate::frontends::resp::scripts::table::{Body, NATIVES, Native};

/// A body and what runs in its place.
#[derive(Clone, Copy)]
pub struct Known {
    pub native: &'static Native,
    pub body: &'static Body,
}

static BY_SHA1: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let bodies = NATIVES.iter().flat_map(|native| native.bodies.iter().map(move |body| Known { native, body }));
    bodies.map(|known| (known.body.sha1, known)).collect()
});

/// The script of this SHA1, in hexadecimal digits of any case.
#[must_use]
pub fn find(sha1: &[u8]) -> Option<Known> {
    let lower = str::from_utf8(sha1).ok()?.to_ascii_lowercase();
    BY_SHA1.get(lower.as_str()).copied()
}

/// The SHA1 of a body, in hexadecimal digits.
#[must_use]
pub fn sha1_of(body: &[u8]) -> String {
    Sha1::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text for a body that is not known.
#[must_use]
pub fn unknown(sha1: &str) -> String {
    format!(
        "ERR this broker runs no Lua: the script with SHA1 {sha1} is not one of those it knows; see docs/scripts.md"
    )
}

/// Runs a known script with the call's keys and arguments.
///
/// # Errors
/// [`CommandError`]: nothing was staged.
pub fn run(call: &mut Call<'_, '_>, known: Known, keys: usize, read_only: bool) -> Result<(), CommandError> {
    let Known { native, body } = known;
    let args = call.args.len().saturating_sub(3 + keys);
    if keys < native.keys || args < native.args {
        let (needed, given) = ((native.keys, native.args), (keys, args));
        return Err(format!(
            "ERR the script with SHA1 {} needs {} keys and {} arguments, and was given {} and {}",
            body.sha1, needed.0, needed.1, given.0, given.1
        )
        .into());
    }
    let attempt = |call: &mut Call<'_, '_>| {
        let mut script = Script { call, body, keys, read_only };
        match (native.run)(&mut script) {
            Ok(answer) => Ok(answer),
            // What it staged before is committed.
            Err(Stop::Script(text)) => Ok(Answer::Error(text)),
            Err(Stop::Call(error)) => Err(error),
        }
    };
    let answer = if native.writes {
        call.atomically(attempt)?
    } else {
        call.require_together((0..keys).map(|i| call.arg(3 + i)))?;
        attempt(call)?
    };
    answer.write(call);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sha1_is_there_once_and_is_found_in_any_case() {
        let bodies = NATIVES.iter().map(|native| native.bodies.len()).sum::<usize>();
        assert_eq!(BY_SHA1.len(), bodies);
        for (sha1, known) in BY_SHA1.iter() {
            assert!(sha1.len() == 40 && sha1.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{sha1}");
            let found = find(sha1.to_ascii_uppercase().as_bytes());
            assert!(found.is_some_and(|found| std::ptr::eq(found.body, known.body)));
        }
        assert!(find(b"").is_none() && find(&[0xff; 40]).is_none());
    }

    #[test]
    fn a_body_is_named_by_the_hash_that_redis_gives_it() {
        assert_eq!(sha1_of(b"return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    }
}
