//! CLIENT: what is known of connections, and what ends them.
//!
//! Promise: what is told of another connection is what it was at the end of its last round of requests; what is told of this
//! one is what it is now. Must never know a socket.

use std::net::SocketAddr;

use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::client::{Answers, Client};
use crate::frontends::resp::clients::Card;
use crate::frontends::resp::command::around;
use crate::frontends::resp::commands::connection::DEFAULT_USER;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::error;

/// CLIENT ID
pub fn id(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let id = call.client.id as i64;
    call.reply().integer(id);
    Ok(())
}

/// CLIENT GETNAME
pub fn getname(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let Client { name, protocol, .. } = &*call.client;
    let mut reply = call.replies.writer(*protocol);
    if name.is_empty() {
        reply.null()
    } else {
        reply.bulk(name)
    }
    Ok(())
}

/// CLIENT SETNAME name
pub fn setname(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.client.name = valid_name(call.arg(2))?;
    call.reply().ok();
    Ok(())
}

/// CLIENT SETINFO LIB-NAME name | LIB-VER version
pub fn setinfo(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (option, value) = (call.arg(2), call.arg(3));
    let place = if eq_ignore_case(option, b"LIB-NAME") {
        &mut call.client.library_name
    } else if eq_ignore_case(option, b"LIB-VER") {
        &mut call.client.library_version
    } else {
        return Err(around("ERR Unrecognized option '", option, "'"));
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

/// A name a client may have.
///
/// # Errors
/// Redis's text.
pub fn valid_name(name: &[u8]) -> Result<Vec<u8>, CommandError> {
    if is_printable(name) {
        Ok(name.to_vec())
    } else {
        Err("ERR Client names cannot contain spaces, newlines or special characters.".into())
    }
}

/// CLIENT INFO
pub fn info(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now_us = see_this_one(call);
    let line = call.client.card.line(now_us);
    tell(call, &[line]);
    Ok(())
}

/// CLIENT LIST [TYPE type | ID id [id …]]
pub fn list(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now_us = see_this_one(call);
    let count = call.args.len();
    let cards = if count == 4 && call.is(2, "TYPE") {
        if is_type_of_all(call.arg(3))? { call.shared.clients.all() } else { Vec::new() }
    } else if count > 3 && call.is(2, "ID") {
        let id = |id: &[u8]| parse_i64(id).ok_or(CommandError::from("ERR Invalid client ID"));
        let ids = call.args.iter().skip(3).map(id).collect::<Result<Vec<i64>, _>>()?;
        ids.into_iter().filter_map(|id| call.shared.clients.get(u64::try_from(id).ok()?)).collect()
    } else if count == 2 {
        call.shared.clients.all()
    } else {
        return Err(error::SYNTAX.into());
    };
    let lines: Vec<Vec<u8>> = cards.iter().map(|card| card.line(now_us)).collect();
    tell(call, &lines);
    Ok(())
}

/// Brings the card of this connection up to date, in mid-round; the time it is.
fn see_this_one(call: &Call<'_, '_>) -> u64 {
    let now_us = call.session.cache.micros();
    call.client.card.see(call.client, now_us);
    now_us
}

/// Lines as one text.
fn tell(call: &mut Call<'_, '_>, lines: &[Vec<u8>]) {
    // Names are printable ASCII, so it is text.
    let text = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned() + "\n").collect();
    call.reply().frame(&Frame::Verbatim(text));
}

/// Whether connections are of this type, which all are or none.
fn is_type_of_all(given: &[u8]) -> Result<bool, CommandError> {
    let is = |word: &str| eq_ignore_case(given, word.as_bytes());
    match () {
        () if is("normal") => Ok(true),
        () if ["master", "replica", "slave", "pubsub"].into_iter().any(is) => Ok(false),
        () => Err(around("ERR Unknown client type '", given, "'")),
    }
}

/// Which connections CLIENT KILL is about.
struct Filter<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    /// There is a connection of such a type.
    of_a_type: bool,
    skips_this_one: bool,
    least_age_seconds: u64,
}

impl<'a> Filter<'a> {
    fn read(call: &Call<'a, '_>) -> Result<Self, CommandError> {
        let mut filter = Self {
            id: None,
            address: None,
            local_address: None,
            of_a_type: true,
            skips_this_one: true,
            least_age_seconds: 0,
        };
        let mut i = 2;
        while i < call.args.len() {
            let Some(value) = call.args.get(i + 1) else { return Err(error::SYNTAX.into()) };
            match () {
                () if call.is(i, "ID") => {
                    let id = parse_i64(value).filter(|id| *id > 0);
                    filter.id = Some(id.ok_or("ERR client-id should be greater than 0")? as u64);
                }
                () if call.is(i, "TYPE") => filter.of_a_type = is_type_of_all(value)?,
                () if call.is(i, "ADDR") => filter.address = Some(value),
                () if call.is(i, "LADDR") => filter.local_address = Some(value),
                () if call.is(i, "USER") => {
                    if value != DEFAULT_USER {
                        return Err(around("ERR No such user '", value, "'"));
                    }
                }
                () if call.is(i, "SKIPME") && eq_ignore_case(value, b"yes") => filter.skips_this_one = true,
                () if call.is(i, "SKIPME") && eq_ignore_case(value, b"no") => filter.skips_this_one = false,
                () if call.is(i, "MAXAGE") => {
                    let age = parse_i64(value).ok_or("ERR maxage is not an integer or out of range")?;
                    if age <= 0 {
                        return Err("ERR maxage should be greater than 0".into());
                    }
                    filter.least_age_seconds = age as u64;
                }
                () => return Err(error::SYNTAX.into()),
            }
            i += 2;
        }
        Ok(filter)
    }

    fn takes(&self, card: &Card, now_us: u64) -> bool {
        let is = |address: SocketAddr, wanted: &[u8]| address.to_string().as_bytes() == wanted;
        self.of_a_type
            && self.id.is_none_or(|id| id == card.id)
            && self.address.is_none_or(|wanted| is(card.peer, wanted))
            && self.local_address.is_none_or(|wanted| card.local.is_some_and(|local| is(local, wanted)))
            && card.age_seconds(now_us) >= self.least_age_seconds
    }
}

/// CLIENT KILL ip:port | filter value [filter value …]
pub fn kill(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let is_old_form = call.args.len() == 3;
    let filter = if is_old_form {
        Filter {
            id: None,
            address: Some(call.arg(2)),
            local_address: None,
            of_a_type: true,
            skips_this_one: false,
            least_age_seconds: 0,
        }
    } else {
        Filter::read(call)?
    };
    let now_us = call.session.cache.micros();
    let mut killed = 0;
    for card in call.shared.clients.all().iter().filter(|card| filter.takes(card, now_us)) {
        if card.id != call.client.id {
            card.hang_up();
        } else if filter.skips_this_one {
            continue;
        } else {
            // It is told first.
            call.client.quitting = true;
        }
        killed += 1;
    }
    match killed {
        0 if is_old_form => return Err("ERR No such client".into()),
        _ if is_old_form => call.reply().ok(),
        killed => call.reply().integer(killed),
    }
    Ok(())
}

/// CLIENT NO-EVICT ON | OFF
pub fn no_evict(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.client.no_evict = on_or_off(call)?;
    call.reply().ok();
    Ok(())
}

/// CLIENT NO-TOUCH ON | OFF
pub fn no_touch(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.client.no_touch = on_or_off(call)?;
    call.reply().ok();
    Ok(())
}

fn on_or_off(call: &Call<'_, '_>) -> Result<bool, CommandError> {
    match () {
        () if call.is(2, "ON") => Ok(true),
        () if call.is(2, "OFF") => Ok(false),
        () => Err(error::SYNTAX.into()),
    }
}

/// CLIENT REPLY ON | OFF | SKIP. Only ON is answered: whether a reply is sent is asked after it was written.
pub fn reply(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    match () {
        () if call.is(2, "ON") => call.client.answers = Answers::On,
        () if call.is(2, "OFF") => call.client.answers = Answers::Off,
        () if call.is(2, "SKIP") => {
            if call.client.answers != Answers::Off {
                call.client.answers = Answers::SkipNext;
            }
        }
        () => return Err(error::SYNTAX.into()),
    }
    call.reply().ok();
    Ok(())
}

/// CLIENT GETREDIR: nothing is tracked, so nothing is sent elsewhere.
pub fn getredir(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().integer(-1);
    Ok(())
}
