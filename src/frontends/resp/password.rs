//! The password clients have to give.
//!
//! Promise: it is kept as its digest only, and how long a comparison takes says nothing about it. Must never know where the
//! password comes from.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What a password is compared with.
#[derive(Clone)]
pub struct Password([u8; 32]);

impl Password {
    #[must_use]
    pub fn new(password: &[u8]) -> Self {
        Self(Sha256::digest(password).into())
    }

    /// Whether this is the password. Digests are compared, so not even its length can be told from the time it takes.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        let given: [u8; 32] = Sha256::digest(given).into();
        self.0.ct_eq(&given).into()
    }
}

/// Says nothing, wherever it is printed.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(set)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_itself_is_it_and_printing_it_says_nothing() {
        let password = Password::new(b"secret");
        assert!(password.is(b"secret"));
        for wrong in [&b""[..], b"Secret", b"secret ", b"secre", b"secret\0"] {
            assert!(!password.is(wrong));
        }
        assert_eq!(format!("{password:?}"), "Password(set)");
    }
}
