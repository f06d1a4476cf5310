//! The commands about the connection itself: PING ECHO HELLO AUTH QUIT RESET SELECT. CLIENT has a file of its own.
//!
//! Promise: they touch nothing but the client's own state. Must never know a socket: QUIT only notes the wish.

use crate::core::types::CacheName;
use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::{shown, wrong_arity};
use crate::frontends::resp::commands::client::valid_name;
use crate::frontends::resp::encode::{Frame, Protocol};
use crate::frontends::resp::error;
use crate::frontends::resp::limits::DATABASES;

/// The Redis version whose behaviour clients may expect; they gate features on it.
pub const REDIS_VERSION: &str = "7.2.4";

/// The user every connection is, and the only one there is.
pub const DEFAULT_USER: &[u8] = b"default";

const HELLO_WITHOUT_AUTH: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH \
     <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";

/// PING [message]
pub fn ping(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    match call.args.len() {
        1 => call.reply().simple("PONG"),
        2 => {
            let message = call.arg(1);
            call.reply().bulk(message);
        }
        _ => return Err(wrong_arity("ping").into()),
    }
    Ok(())
}

/// ECHO message
pub fn echo(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let message = call.arg(1);
    call.reply().bulk(message);
    Ok(())
}

/// HELLO [2 | 3 [AUTH user password] [SETNAME name]]
pub fn hello(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let mut protocol = call.client.protocol;
    if call.args.len() > 1 {
        let Some(version) = parse_i64(call.arg(1)) else {
            return Err("ERR Protocol version is not an integer or out of range".into());
        };
        protocol = match version {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err("NOPROTO unsupported protocol version".into()),
        };
    }
    let mut login = None;
    let mut i = 2;
    while i < call.args.len() {
        let (option, left) = (call.arg(i), call.args.len() - i - 1);
        if eq_ignore_case(option, b"AUTH") && left >= 2 {
            login = Some((call.arg(i + 1), call.arg(i + 2)));
            i += 3;
        } else if eq_ignore_case(option, b"SETNAME") && left >= 1 {
            // As in Redis at once, even if a later option is wrong.
            call.client.name = valid_name(call.arg(i + 1))?;
            i += 2;
        } else {
            return Err([b"ERR Syntax error in HELLO option '", shown(option, usize::MAX), b"'"].concat().into());
        }
    }
    if let Some((user, password)) = login {
        authenticate(call, user, password)?;
    }
    if !call.client.authenticated {
        return Err(HELLO_WITHOUT_AUTH.into());
    }
    call.client.protocol = protocol;
    let text = |text: &str| Frame::Bulk(text.as_bytes().to_vec());
    let frame = Frame::Map(vec![
        (text("server"), text("redis")),
        (text("version"), text(REDIS_VERSION)),
        (text("proto"), Frame::Integer(if protocol == Protocol::Resp3 { 3 } else { 2 })),
        (text("id"), Frame::Integer(call.client.id as i64)),
        (text("mode"), text("standalone")),
        (text("role"), text("master")),
        (text("modules"), Frame::Array(Vec::new())),
    ]);
    call.reply().frame(&frame);
    Ok(())
}

/// AUTH [user] password
pub fn auth(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    match call.args.len() {
        2 if call.shared.password.is_none() => {
            return Err("ERR AUTH <password> called without any password configured for the default user. \
                        Are you sure your configuration is correct?"
                .into());
        }
        2 => authenticate(call, DEFAULT_USER, call.arg(1))?,
        3 => authenticate(call, call.arg(1), call.arg(2))?,
        _ => return Err(error::SYNTAX.into()),
    }
    call.reply().ok();
    Ok(())
}

/// Lets the client in, if it gives the password; without one, the default user may give any. There is no other user.
fn authenticate(call: &mut Call<'_, '_>, user: &[u8], given: &[u8]) -> Result<(), CommandError> {
    if user != DEFAULT_USER || call.shared.password.as_ref().is_some_and(|password| !password.is(given)) {
        return Err(error::WRONG_PASSWORD.into());
    }
    call.client.authenticated = true;
    Ok(())
}

/// QUIT
pub fn quit(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.client.quitting = true;
    call.reply().ok();
    Ok(())
}

/// RESET
pub fn reset(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let cache = call.session.cache.clone();
    call.turn.select(cache.name());
    call.client.reset(cache, call.shared.password.is_none());
    call.reply().simple("RESET");
    Ok(())
}

/// SELECT index | tenant/namespace/name
pub fn select(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let given = call.arg(1);
    let name = match parse_i64(given) {
        Some(number) if i32::try_from(number).is_err() => return Err(error::NOT_AN_INT.into()),
        Some(number) => u32::try_from(number).ok().filter(|number| *number < DATABASES).map(CacheName::numbered),
        None if given.contains(&b'/') => return select_named(call, given),
        None => return Err(error::NOT_AN_INTEGER.into()),
    };
    let cache = name.and_then(|name| call.session.caches.get(&name)).ok_or(error::DB_OUT_OF_RANGE)?;
    call.turn.select(cache.name());
    call.client.cache = cache;
    call.reply().ok();
    Ok(())
}

fn select_named(call: &mut Call<'_, '_>, given: &[u8]) -> Result<(), CommandError> {
    let name = str::from_utf8(given).ok().and_then(CacheName::parse);
    let Some(cache) = name.and_then(|name| call.session.caches.get(&name)) else {
        // What lives in the data directory is not known before it is open.
        if call.session.metrics.is_loading() {
            return Err(error::LOADING.into());
        }
        let shown = String::from_utf8_lossy(&given[..given.len().min(200)]);
        return Err(format!("ERR no such cache; start the broker with --cache {shown}").into());
    };
    call.turn.select(cache.name());
    call.client.cache = cache;
    call.reply().ok();
    Ok(())
}
