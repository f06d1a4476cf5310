//! The HELP of every container: its subcommands, how they are written and what they do, from the table.
//!
//! Promise: names only what is there. Must never run anything.

use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::Command;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::table::{facts, find};

/// CLIENT HELP, CONFIG HELP …
pub fn help(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let name = call.args.get(0).unwrap_or_default();
    let subcommands = find(name).map_or(&[][..], |container| container.subcommands);
    let title = String::from_utf8_lossy(name).to_ascii_uppercase();
    let mut lines = vec![format!("{title} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for subcommand in subcommands.iter().filter(|subcommand| subcommand.word() != "help") {
        lines.push(written(subcommand));
        lines.push(format!("    {}", subcommand.summary));
    }
    lines.extend(["HELP".to_owned(), "    Prints this help.".to_owned()]);
    let frame = Frame::Array(lines.into_iter().map(Frame::Simple).collect());
    call.reply().frame(&frame);
    Ok(())
}

fn written(subcommand: &Command) -> String {
    let arguments = facts::of(subcommand.name).arguments.iter().map(facts::Argument::written);
    let words = std::iter::once(subcommand.word().to_ascii_uppercase()).chain(arguments);
    words.collect::<Vec<_>>().join(" ")
}
