//! What is written is what a client reads: replies of every shape, decoded again by a library's parser.
//!
//! Promise: each reply is exactly one reply, whatever stands before and behind it; cut short it is none. Must never know
//! which bytes the replies are: the tests beside this one do.

use proptest::prelude::*;
use redis_protocol::{resp2, resp3};

use super::*;

/// What a client reads where `frame` was written.
fn read_as(frame: &Frame, protocol: Protocol) -> Frame {
    let all = |frames: &[Frame]| frames.iter().map(|frame| read_as(frame, protocol)).collect::<Vec<_>>();
    let flat = |pairs: &[(Frame, Frame)]| {
        let frames = pairs.iter().flat_map(|(key, value)| [read_as(key, protocol), read_as(value, protocol)]);
        Frame::Array(frames.collect())
    };
    match frame {
        Frame::Simple(text) => Frame::Simple(text.replace(['\r', '\n'], " ")),
        Frame::Error(text) => Frame::Error(text.replace(['\r', '\n'], " ")),
        Frame::Integer(_) | Frame::Bulk(_) | Frame::Null => frame.clone(),
        Frame::Array(frames) => Frame::Array(all(frames)),
        Frame::Verbatim(text) if protocol == Protocol::Resp2 => Frame::Bulk(text.clone().into_bytes()),
        Frame::Verbatim(_) => frame.clone(),
        Frame::Set(frames) if protocol == Protocol::Resp2 || frames.iter().any(is_aggregate) => {
            Frame::Array(all(frames))
        }
        Frame::Set(frames) => {
            let mut members: Vec<Frame> = Vec::new();
            for member in all(frames) {
                if !members.contains(&member) {
                    members.push(member);
                }
            }
            Frame::Set(members)
        }
        Frame::Map(pairs) if protocol == Protocol::Resp2 || pairs.iter().any(|(key, _)| is_aggregate(key)) => {
            flat(pairs)
        }
        Frame::Map(pairs) => {
            let mut told: Vec<(Frame, Frame)> = Vec::new();
            for (key, value) in pairs {
                let (key, value) = (read_as(key, protocol), read_as(value, protocol));
                match told.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, known)) => *known = value,
                    None => told.push((key, value)),
                }
            }
            Frame::Map(told)
        }
    }
}

/// The reply at the front of `bytes` and how long it is; `None` while it is not whole.
fn decoded(bytes: &[u8], protocol: Protocol) -> Option<(Frame, usize)> {
    match protocol {
        Protocol::Resp2 => resp2::decode::decode(bytes).unwrap().map(|(frame, size)| (from_resp2(frame), size)),
        Protocol::Resp3 => {
            resp3::decode::complete::decode(bytes).unwrap().map(|(frame, size)| (from_resp3(frame), size))
        }
    }
}

fn from_resp2(frame: Resp2Frame) -> Frame {
    match frame {
        Resp2Frame::SimpleString(text) => Frame::Simple(String::from_utf8(text).unwrap()),
        Resp2Frame::Error(text) => Frame::Error(text),
        Resp2Frame::Integer(value) => Frame::Integer(value),
        Resp2Frame::BulkString(bytes) => Frame::Bulk(bytes),
        Resp2Frame::Array(frames) => Frame::Array(frames.into_iter().map(from_resp2).collect()),
        Resp2Frame::Null => Frame::Null,
    }
}

fn from_resp3(frame: Resp3Frame) -> Frame {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    match frame {
        Resp3Frame::SimpleString { data, .. } => Frame::Simple(text(data)),
        Resp3Frame::SimpleError { data, .. } => Frame::Error(data),
        Resp3Frame::Number { data, .. } => Frame::Integer(data),
        Resp3Frame::BlobString { data, .. } => Frame::Bulk(data),
        Resp3Frame::VerbatimString { data, format: VerbatimStringFormat::Text, .. } => Frame::Verbatim(text(data)),
        Resp3Frame::Array { data, .. } => Frame::Array(data.into_iter().map(from_resp3).collect()),
        Resp3Frame::Set { data, .. } => Frame::Set(data.into_iter().map(from_resp3).collect()),
        Resp3Frame::Map { data, .. } => {
            // The library reads a map from its end.
            Frame::Map(data.into_iter().rev().map(|(key, value)| (from_resp3(key), from_resp3(value))).collect())
        }
        Resp3Frame::Null => Frame::Null,
        other => panic!("nobody writes {other:?}"),
    }
}

/// Writes `frame` the way hot replies are written, where there is one; whether there was.
fn write_hot(reply: &mut Reply<'_>, frame: &Frame) -> bool {
    match frame {
        Frame::Simple(text) => reply.simple(text),
        Frame::Error(text) => reply.error(text),
        Frame::Integer(value) => reply.integer(*value),
        Frame::Bulk(bytes) => reply.bulk(bytes),
        Frame::Null => reply.null(),
        Frame::Array(frames) => {
            reply.array_header(frames.len());
            return frames.iter().all(|frame| write_hot(reply, frame));
        }
        Frame::Verbatim(_) | Frame::Set(_) | Frame::Map(_) => return false,
    }
    true
}

fn frame() -> impl Strategy<Value = Frame> {
    let text = || "[a-zA-Z0-9 $*:+_\r\né-]{0,14}";
    let leaf = prop_oneof![
        text().prop_map(Frame::Simple),
        // No line end at the end: hot errors drop it, as Redis does; the others never have one.
        text().prop_map(|text| Frame::Error(format!("ERR {text}."))),
        any::<i64>().prop_map(Frame::Integer),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Frame::Bulk),
        text().prop_map(Frame::Verbatim),
        Just(Frame::Null),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Frame::Array),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Frame::Set),
            prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Frame::Map),
        ]
    })
}

proptest! {
    #[test]
    fn replies_of_every_shape_are_read_as_they_were_meant(frames in prop::collection::vec(frame(), 1..5)) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut out = Vec::new();
            frames.iter().for_each(|frame| Reply::new(&mut out, protocol).frame(frame));
            let mut rest = out.as_slice();
            for frame in &frames {
                let (read, size) = decoded(rest, protocol).unwrap();
                prop_assert_eq!(read, read_as(frame, protocol));
                rest = &rest[size..];
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_reply_that_is_cut_short_is_none(frame in frame()) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut out = Vec::new();
            Reply::new(&mut out, protocol).frame(&frame);
            for cut in 0..out.len() {
                prop_assert_eq!(decoded(&out[..cut], protocol), None, "cut at {} of {}", cut, out.escape_ascii());
            }
        }
    }

    #[test]
    fn hot_replies_are_written_like_the_others(frame in frame()) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let (mut hot, mut other) = (Vec::new(), Vec::new());
            if write_hot(&mut Reply::new(&mut hot, protocol), &frame) {
                Reply::new(&mut other, protocol).frame(&frame);
                prop_assert_eq!(hot.escape_ascii().to_string(), other.escape_ascii().to_string());
            }
        }
    }
}
