//! COMMAND: which commands there are, and where the keys of a request are.
//!
//! Promise: everything comes from the table. Must never run a command.

use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::{Command, has_arity};
use crate::frontends::resp::commands::describe::{describe, document};
use crate::frontends::resp::commands::server::is_of;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::table::facts::{self, KeyRange, KeySpec};
use crate::frontends::resp::table::{all, every, find, find_whole};
use crate::frontends::resp::{error, glob};

fn text(text: &str) -> Frame {
    Frame::Bulk(text.as_bytes().to_vec())
}

/// COMMAND
pub fn command(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let mut reply = call.reply();
    reply.array_header(all().len());
    all().iter().for_each(|command| describe(&mut reply, command));
    Ok(())
}

/// COMMAND COUNT
pub fn count(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().integer(all().len() as i64);
    Ok(())
}

/// COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]
pub fn list(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let given = call.arg(4);
    let wanted: &dyn Fn(&Command) -> bool = match call.args.len() {
        2 => &|_| true,
        5 if call.is(2, "FILTERBY") && call.is(3, "MODULE") => &|_| false,
        5 if call.is(2, "FILTERBY") && call.is(3, "ACLCAT") => &|command| is_of(command, given),
        5 if call.is(2, "FILTERBY") && call.is(3, "PATTERN") => {
            &|command| glob::matches_ignore_case(given, command.name.as_bytes())
        }
        _ => return Err(error::SYNTAX.into()),
    };
    let names = every().filter(|command| wanted(command)).map(|command| text(command.name));
    let frame = Frame::Array(names.collect());
    call.reply().frame(&frame);
    Ok(())
}

/// COMMAND INFO [name …]; nil for what is not there.
pub fn info(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.args.len() == 2 {
        return command(call);
    }
    let names = call.args.iter().skip(2);
    let mut reply = call.reply();
    reply.array_header(names.len());
    for name in names {
        match find_whole(name) {
            Some(command) => describe(&mut reply, command),
            None => reply.null(),
        }
    }
    Ok(())
}

/// COMMAND DOCS [name …]; nothing for what is not there.
pub fn docs(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let commands: Vec<&Command> = match call.args.len() {
        2 => all().to_vec(),
        _ => call.args.iter().skip(2).filter_map(find_whole).collect(),
    };
    let frame = Frame::Map(commands.into_iter().map(document).collect());
    call.reply().frame(&frame);
    Ok(())
}

/// COMMAND GETKEYS command [argument …]
pub fn getkeys(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let keys = keys_of(call)?.into_iter().map(|(key, _)| Frame::Bulk(key.to_vec()));
    let frame = Frame::Array(keys.collect());
    call.reply().frame(&frame);
    Ok(())
}

/// COMMAND GETKEYSANDFLAGS command [argument …]
pub fn getkeysandflags(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let keys = keys_of(call)?.into_iter().map(|(key, flags)| {
        let flags = flags.iter().map(|flag| Frame::Simple((*flag).to_owned()));
        Frame::Array(vec![Frame::Bulk(key.to_vec()), Frame::Set(flags.collect())])
    });
    let frame = Frame::Array(keys.collect());
    call.reply().frame(&frame);
    Ok(())
}

type Flags = &'static [&'static str];

/// The keys of the request behind the subcommand, with what is done to each.
fn keys_of<'a>(call: &Call<'a, '_>) -> Result<Vec<(&'a [u8], Flags)>, CommandError> {
    let request: Vec<&[u8]> = call.args.iter().skip(2).collect();
    let command = request.first().and_then(|name| find(name)).and_then(|command| match request.get(1) {
        Some(word) if !command.subcommands.is_empty() => command.subcommand(word),
        _ => Some(command),
    });
    let Some(command) = command else { return Err("ERR Invalid command specified".into()) };
    let specs = facts::of(command.name).specs;
    if specs.is_empty() {
        return Err("ERR The command has no key arguments".into());
    }
    if !has_arity(command, request.len()) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    let mut keys = Vec::new();
    for spec in specs {
        let Some(places) = places(spec, &request) else {
            // A script may go without keys, and then nothing is said of those that are not there.
            return if command.flags.contains(&"no_mandatory_keys") {
                Ok(Vec::new())
            } else {
                Err("ERR Invalid arguments specified for command".into())
            };
        };
        let flags = flags_of(command, spec, &request);
        keys.extend(places.into_iter().filter_map(|place| Some((*request.get(place)?, flags))));
    }
    Ok(keys)
}

/// Which arguments of a request a specification finds; `None` when they are not there.
fn places(spec: &KeySpec, request: &[&[u8]]) -> Option<Vec<usize>> {
    let (begin, count) = (spec.begin, request.len() as i64);
    let (first, last, step) = match spec.keys {
        KeyRange::Until { last, step } => (begin, if last < 0 { count + last } else { begin + last }, step),
        KeyRange::Counted => {
            let number = parse_i64(request.get(begin as usize)?)?;
            if !(0..count - begin).contains(&number) {
                return None;
            }
            (begin + 1, begin + number, 1)
        }
    };
    Some((first..=last).step_by(step as usize).map(|place| place as usize).collect())
}

/// What is done to the keys. SET is the one command whose options decide it.
fn flags_of(command: &Command, spec: &KeySpec, request: &[&[u8]]) -> Flags {
    if command.name != "set" {
        return spec.flags;
    }
    let gets = request.iter().skip(3).any(|option| option.eq_ignore_ascii_case(b"GET"));
    if gets { &["RW", "access", "update"] } else { &["OW", "update"] }
}
