//! Where the password of the broker comes from: a file, or a variable.
//!
//! Promise: an empty or unreadable one is refused rather than taken for none; no error says what it is.
//! Must never know how it is compared.

#![expect(clippy::disallowed_methods, reason = "the password's file is none of the broker's data")]

use std::io::Read;

use crate::config::Config;
use crate::frontends::resp::limits::UNAUTHENTICATED_MAX_BULK_BYTES;
use crate::frontends::resp::password::Password;

/// The variable that is looked at when no file is named.
pub const VARIABLE: &str = "HEARTH_PASSWORD";

/// The password that is set; `None` when none is.
///
/// # Errors
/// A sentence that says why there cannot be one.
pub fn of(config: &Config) -> Result<Option<Password>, String> {
    let (from, password) = match &config.password_file {
        Some(path) => {
            let shown = format!("the password file {}", path.display());
            let bytes = first_bytes(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
            (shown, first_line(&bytes).to_vec())
        }
        None => match std::env::var_os(VARIABLE) {
            Some(value) => (format!("the variable {VARIABLE}"), value.into_encoded_bytes()),
            None => return Ok(None),
        },
    };
    match password.len() {
        0 => Err(format!("{from} has no password: it is empty")),
        // A client that is not authenticated could not send it.
        length if length > UNAUTHENTICATED_MAX_BULK_BYTES => {
            Err(format!("{from} has a password of more than {UNAUTHENTICATED_MAX_BULK_BYTES} bytes"))
        }
        _ => Ok(Some(Password::new(&password))),
    }
}

/// As much of a file as a password may take, and the end of its line.
fn first_bytes(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(UNAUTHENTICATED_MAX_BULK_BYTES as u64 + 2).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn with_file(content: &[u8]) -> Result<Option<Password>, String> {
        let path = std::env::temp_dir().join(format!("hearth-password-{}-{}", std::process::id(), content.len()));
        std::fs::write(&path, content).unwrap();
        let config = Config::parse_from(["hearth", "--password-file", path.to_str().unwrap()]);
        let password = of(&config);
        std::fs::remove_file(&path).unwrap();
        password
    }

    #[test]
    fn the_first_line_of_the_file_is_the_password() {
        for content in [&b"secret"[..], b"secret\n", b"secret\r\nmore\n"] {
            assert!(with_file(content).unwrap().unwrap().is(b"secret"));
        }
        assert!(with_file(b" with blanks \n").unwrap().unwrap().is(b" with blanks "));
        assert!(with_file(&[b'x'; UNAUTHENTICATED_MAX_BULK_BYTES]).unwrap().is_some());
    }

    #[test]
    fn a_file_that_is_not_there_or_empty_is_refused_and_no_reason_tells_the_password() {
        let config = Config::parse_from(["hearth", "--password-file", "/nowhere/password"]);
        assert!(of(&config).unwrap_err().contains("/nowhere/password cannot be read"));
        for empty in [&b""[..], b"\n", b"\r\nsecret"] {
            let reason = with_file(empty).unwrap_err();
            assert!(reason.contains("empty") && !reason.contains("secret"), "{reason}");
        }
        assert!(with_file(&[b'x'; UNAUTHENTICATED_MAX_BULK_BYTES + 1]).is_err());
    }
}
