//! The commands about the broker that need no file of their own: TIME ROLE LASTSAVE WAIT LOLWUT, and what tools ask
//! LATENCY, MODULE, FUNCTION and ACL for.
//!
//! Promise: what they tell is true, most of it because there is nothing to tell. Must never change anything.

use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::{Command, around};
use crate::frontends::resp::commands::connection::DEFAULT_USER;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::error;
use crate::frontends::resp::table::{every, facts};

fn text(text: &str) -> Frame {
    Frame::Bulk(text.as_bytes().to_vec())
}

/// TIME: Unix seconds, and microseconds of the second. By the clock that expiries go by, which counts milliseconds.
pub fn time(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now = call.turn.now().0;
    let frame = Frame::Array(vec![text(&(now / 1000).to_string()), text(&(now % 1000 * 1000).to_string())]);
    call.reply().frame(&frame);
    Ok(())
}

/// ROLE: the owner of everything, with no replicas.
pub fn role(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let frame = Frame::Array(vec![text("master"), Frame::Integer(0), Frame::Array(Vec::new())]);
    call.reply().frame(&frame);
    Ok(())
}

/// LASTSAVE: what was acknowledged is in the log already; in memory nothing is saved, and Redis then tells its start.
pub fn lastsave(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let metrics = &call.session.metrics;
    let at = if metrics.facts.in_memory { metrics.started() } else { call.turn.now() };
    call.reply().integer((at.0 / 1000) as i64);
    Ok(())
}

/// WAIT replicas timeout: there are none, and none can come, so waiting for them would be for nothing.
pub fn wait(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    parse_i64(call.arg(1)).ok_or(error::NOT_AN_INTEGER)?;
    let timeout = parse_i64(call.arg(2)).ok_or("ERR timeout is not an integer or out of range")?;
    if timeout < 0 {
        return Err("ERR timeout is negative".into());
    }
    call.reply().integer(0);
    Ok(())
}

/// LOLWUT [VERSION number]
pub fn lolwut(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.args.len() > 2 && call.is(1, "VERSION") {
        parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    }
    let art = concat!("   )\n  ( )\n _(_)_\n[_____]\n\nHearth ver. ", env!("CARGO_PKG_VERSION"), "\n");
    call.reply().frame(&Frame::Verbatim(art.to_owned()));
    Ok(())
}

/// LATENCY LATEST, and HISTORY of any event: nothing is monitored.
pub fn no_latencies(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().array_header(0);
    Ok(())
}

/// LATENCY RESET [event …]
pub fn latency_reset(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().integer(0);
    Ok(())
}

/// LATENCY GRAPH event
pub fn latency_graph(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    Err(around("ERR No samples available for event '", call.arg(2), "'"))
}

/// LATENCY DOCTOR
pub fn latency_doctor(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let told = "Latency events are not monitored. SLOWLOG GET tells the requests that took long to evaluate.\n";
    call.reply().frame(&Frame::Verbatim(told.to_owned()));
    Ok(())
}

/// MODULE LIST: there are none.
pub fn module_list(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().array_header(0);
    Ok(())
}

/// FUNCTION FLUSH [ASYNC | SYNC]: there are none, so none are left.
pub fn function_flush(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.args.len() > 3 {
        return Err(too_many("function", call.arg(1)));
    }
    if call.args.len() == 3 && !call.is(2, "ASYNC") && !call.is(2, "SYNC") {
        return Err("ERR FUNCTION FLUSH only supports SYNC|ASYNC option".into());
    }
    call.reply().ok();
    Ok(())
}

/// Redis's text where a subcommand counts its arguments itself; it is another than elsewhere.
#[must_use]
pub fn too_many(container: &str, given: &[u8]) -> CommandError {
    let behind = format!("'. Try {} HELP.", container.to_ascii_uppercase());
    around("ERR unknown subcommand or wrong number of arguments for '", given, &behind)
}

/// ACL WHOAMI
pub fn acl_whoami(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().bulk(DEFAULT_USER);
    Ok(())
}

/// ACL USERS
pub fn acl_users(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().frame(&Frame::Array(vec![Frame::Bulk(DEFAULT_USER.to_vec())]));
    Ok(())
}

/// ACL LIST: the one user's rules. Redis would tell a digest of the password; here nothing of it is told.
pub fn acl_list(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let password = if call.shared.password.is_some() { "" } else { "nopass " };
    let frame = Frame::Array(vec![text(&format!("user default on {password}~* &* +@all"))]);
    call.reply().frame(&frame);
    Ok(())
}

/// The categories of Redis, in its order.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// ACL CAT [category]: the categories, or the commands of one.
pub fn acl_cat(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let frame = match call.args.get(2) {
        None => Frame::Array(CATEGORIES.into_iter().map(text).collect()),
        Some(_) if call.args.len() > 3 => return Err(too_many("acl", call.arg(1))),
        Some(category) => {
            if !CATEGORIES.iter().any(|known| eq_ignore_case(known.as_bytes(), category)) {
                return Err(around("ERR Unknown category '", category, "'"));
            }
            Frame::Array(every().filter(|command| is_of(command, category)).map(|command| text(command.name)).collect())
        }
    };
    call.reply().frame(&frame);
    Ok(())
}

/// Whether a command is of a category, which is named without its `@`.
#[must_use]
pub fn is_of(command: &Command, category: &[u8]) -> bool {
    let is = |known: &&str| eq_ignore_case(&known.as_bytes()[1..], category);
    facts::of(command.name).categories.iter().any(is)
}
