//! What COMMAND INFO and COMMAND DOCS answer for one command.
//!
//! Promise: Redis's shapes and order of fields; of a container only the subcommands that are there.
//! Must never know a client.

use crate::frontends::resp::command::Command;
use crate::frontends::resp::encode::{Frame, Reply};
use crate::frontends::resp::table::facts::{self, Argument, KeyRange, KeySpec};
use crate::frontends::resp::table::find;

/// Writes the ten elements that Redis 7 answers for each command. Directly, because no library would write a set of maps.
pub fn describe(reply: &mut Reply<'_>, command: &Command) {
    let facts = facts::of(command.name);
    reply.array_header(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity);
    write_words(reply, command.flags);
    for number in [command.keys.first, command.keys.last, command.keys.step] {
        reply.integer(number);
    }
    write_words(reply, facts.categories);
    reply.set_header(facts.tips.len());
    facts.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set_header(facts.specs.len());
    facts.specs.iter().for_each(|spec| write_key_spec(reply, spec));
    reply.set_header(command.subcommands.len());
    command.subcommands.iter().for_each(|subcommand| describe(reply, subcommand));
}

fn write_words(reply: &mut Reply<'_>, words: &[&str]) {
    reply.set_header(words.len());
    words.iter().for_each(|word| reply.simple(word));
}

fn write_key_spec(reply: &mut Reply<'_>, spec: &KeySpec) {
    reply.map_header(3 + usize::from(!spec.notes.is_empty()));
    if !spec.notes.is_empty() {
        reply.bulk(b"notes");
        reply.bulk(spec.notes.as_bytes());
    }
    reply.bulk(b"flags");
    write_words(reply, spec.flags);
    write_search(reply, "begin_search", "index", &[("index", spec.begin)]);
    match spec.keys {
        KeyRange::Until { last, step } => {
            write_search(reply, "find_keys", "range", &[("lastkey", last), ("keystep", step), ("limit", 0)]);
        }
        KeyRange::Counted => {
            write_search(reply, "find_keys", "keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)]);
        }
    }
}

fn write_search(reply: &mut Reply<'_>, name: &str, kind: &str, numbers: &[(&str, i64)]) {
    reply.bulk(name.as_bytes());
    reply.map_header(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map_header(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}

fn text(text: &str) -> Frame {
    Frame::Bulk(text.as_bytes().to_vec())
}

/// The name of a command and what there is to read about it.
#[must_use]
pub fn document(command: &Command) -> (Frame, Frame) {
    let container = command.name.split('|').next().unwrap_or_default();
    document_of(command, find(container.as_bytes()).map_or(command.group, |container| container.group))
}

fn document_of(command: &Command, group: &str) -> (Frame, Frame) {
    let mut fields = vec![
        (text("summary"), text(command.summary)),
        (text("since"), text(command.since)),
        (text("group"), text(group)),
        (text("complexity"), text(command.complexity)),
    ];
    let arguments = facts::of(command.name).arguments;
    if !arguments.is_empty() {
        fields.push((text("arguments"), Frame::Array(arguments.iter().map(argument).collect())));
    }
    if !command.subcommands.is_empty() {
        let subcommands = command.subcommands.iter().map(|subcommand| document_of(subcommand, group));
        fields.push((text("subcommands"), Frame::Map(subcommands.collect())));
    }
    (text(command.name), Frame::Map(fields))
}

fn argument(argument: &Argument) -> Frame {
    let mut fields = vec![(text("name"), text(argument.name)), (text("type"), text(argument.kind.name()))];
    if let Some(spec) = argument.key_spec {
        fields.push((text("key_spec_index"), Frame::Integer(spec)));
    }
    let texts = [("token", argument.token), ("since", argument.since), ("deprecated_since", argument.deprecated)];
    fields.extend(texts.into_iter().filter_map(|(name, value)| Some((text(name), text(value?)))));
    let flags: Vec<&str> = [("optional", argument.optional), ("multiple", argument.multiple)]
        .into_iter()
        .filter_map(|(flag, is_set)| is_set.then_some(flag))
        .collect();
    if !flags.is_empty() {
        let flags = flags.iter().map(|flag| Frame::Simple((*flag).to_owned()));
        fields.push((text("flags"), Frame::Set(flags.collect())));
    }
    if !argument.arguments.is_empty() {
        fields.push((text("arguments"), Frame::Array(argument.arguments.iter().map(self::argument).collect())));
    }
    Frame::Map(fields)
}
