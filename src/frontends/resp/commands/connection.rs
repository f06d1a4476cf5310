//! The commands about the connection itself: PING ECHO HELLO AUTH QUIT RESET SELECT CLIENT.
//!
//! Promise: they touch nothing but the client's own state. Must never know a socket: QUIT only notes the wish.

use crate::core::types::CacheName;
use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::client::Client;
use crate::frontends::resp::command::{shown, unknown_subcommand, wrong_arity};
use crate::frontends::resp::encode::{Frame, Protocol};
use crate::frontends::resp::error;
use crate::frontends::resp::limits::DATABASES;

/// The Redis version whose behaviour clients may expect; they gate features on it.
pub const REDIS_VERSION: &str = "7.2.4";

/// The user every connection is, and the only one there is.
const DEFAULT_USER: &[u8] = b"default";
const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

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
    let mut i = 2;
    while i < call.args.len() {
        let (option, left) = (call.arg(i), call.args.len() - i - 1);
        if eq_ignore_case(option, b"AUTH") && left >= 2 {
            // No password is set: the default user may give any, and there is no other user.
            if call.arg(i + 1) != DEFAULT_USER {
                return Err(WRONG_PASSWORD.into());
            }
            i += 3;
        } else if eq_ignore_case(option, b"SETNAME") && left >= 1 {
            // As in Redis at once, even if a later option is wrong.
            call.client.name = valid_name(call.arg(i + 1))?;
            i += 2;
        } else {
            return Err([b"ERR Syntax error in HELLO option '", shown(option, usize::MAX), b"'"].concat().into());
        }
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
        2 => Err("ERR AUTH <password> called without any password configured for the default user. \
                  Are you sure your configuration is correct?"
            .into()),
        3 if call.arg(1) == DEFAULT_USER => {
            call.reply().ok();
            Ok(())
        }
        3 => Err(WRONG_PASSWORD.into()),
        _ => Err(error::SYNTAX.into()),
    }
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
    call.client.reset(cache);
    call.reply().simple("RESET");
    Ok(())
}

/// SELECT index | tenant/namespace/name
pub fn select(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let given = call.arg(1);
    let name = match parse_i64(given) {
        Some(number) if i32::try_from(number).is_err() => return Err(error::NOT_AN_INT.into()),
        Some(number) => u32::try_from(number).ok().filter(|number| *number < DATABASES).map(CacheName::numbered),
        None if given.contains(&b'/') => str::from_utf8(given).ok().and_then(CacheName::parse),
        None => return Err(error::NOT_AN_INTEGER.into()),
    };
    let cache = name.and_then(|name| call.session.caches.get(&name)).ok_or(error::DB_OUT_OF_RANGE)?;
    call.turn.select(cache.name());
    call.client.cache = cache;
    call.reply().ok();
    Ok(())
}

/// CLIENT SETINFO | SETNAME | GETNAME | ID | HELP
pub fn client(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (subcommand, count) = (call.arg(1), call.args.len());
    let is = |name: &str| eq_ignore_case(subcommand, name.as_bytes());
    let arity = |name: &str| Err(wrong_arity(&format!("client|{name}")).into());
    if is("ID") {
        if count != 2 {
            return arity("id");
        }
        let id = call.client.id as i64;
        call.reply().integer(id);
    } else if is("GETNAME") {
        if count != 2 {
            return arity("getname");
        }
        write_name(call);
    } else if is("SETNAME") {
        if count != 3 {
            return arity("setname");
        }
        call.client.name = valid_name(call.arg(2))?;
        call.reply().ok();
    } else if is("SETINFO") {
        if count != 4 {
            return arity("setinfo");
        }
        set_info(call)?;
    } else if is("HELP") {
        let lines = [
            "CLIENT <subcommand> [<arg> ...]. Subcommands are:",
            "GETNAME",
            "ID",
            "SETINFO <option> <value>",
            "SETNAME <name>",
            "HELP",
        ];
        call.reply().array_header(lines.len());
        lines.iter().for_each(|line| call.reply().simple(line));
    } else {
        return Err(unknown_subcommand("client", subcommand).into());
    }
    Ok(())
}

fn write_name(call: &mut Call<'_, '_>) {
    let Client { name, protocol, .. } = &*call.client;
    let mut reply = call.replies.writer(*protocol);
    if name.is_empty() { reply.null() } else { reply.bulk(name) }
}

fn set_info(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (option, value) = (call.arg(2), call.arg(3));
    let place = if eq_ignore_case(option, b"LIB-NAME") {
        &mut call.client.library_name
    } else if eq_ignore_case(option, b"LIB-VER") {
        &mut call.client.library_version
    } else {
        return Err(format!("ERR Unrecognized option '{}'", String::from_utf8_lossy(option)).into());
    };
    if !is_printable(value) {
        let option = String::from_utf8_lossy(option).to_ascii_lowercase();
        return Err(format!("ERR {option} cannot contain spaces, newlines or special characters.").into());
    }
    *place = value.to_vec();
    call.reply().ok();
    Ok(())
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn valid_name(name: &[u8]) -> Result<Vec<u8>, CommandError> {
    if is_printable(name) {
        Ok(name.to_vec())
    } else {
        Err("ERR Client names cannot contain spaces, newlines or special characters.".into())
    }
}
