//! Meaning of the library's errors: how they are counted, and whether the request may be sent once more.
//!
//! A connection or stream that the server closed is a reset; bytes that HTTP does not allow are a breach of the protocol.
//! Words are the same for every request that meets the same error.

use std::error::Error;
use std::io;

use h2::Reason;
use narrows_model::load::ErrorKind;

use crate::drivers::transport::{Failure, Repeat};
use crate::recorder::Cause;
use crate::tls;

/// The most characters of an error of the library that are repeated.
const SAID_CHARS_MAX: usize = 200;

/// How much of a response had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    Part,
}

/// Meaning of an error.
pub(super) fn broken_by(error: &hyper::Error, heard: Progress) -> Failure {
    let (kind, cause) = meaning(error, heard);
    let repeat = match find::<h2::Error>(error) {
        _ if heard == Progress::Part => Repeat::Never,
        Some(error) if !error.is_io() && is_turned_away(error) => Repeat::Unprocessed,
        Some(error) if !error.is_io() => Repeat::Never,
        _ if kind == ErrorKind::Reset => Repeat::IfIdempotent,
        _ => Repeat::Never,
    };
    Failure { repeat, ..Failure::new(kind, cause) }
}

/// Whether the server reports that it has not processed the request (RFC 9113, 8.7).
fn is_turned_away(error: &h2::Error) -> bool {
    error.is_remote()
        && match error.reason() {
            Some(Reason::REFUSED_STREAM) => true,
            Some(Reason::NO_ERROR) => error.is_go_away(),
            _ => false,
        }
}

fn meaning(error: &hyper::Error, heard: Progress) -> (ErrorKind, Cause) {
    if let Some(error) = find::<h2::Error>(error) {
        return meaning_of_http2(error, heard);
    }
    if let Some(error) = find::<io::Error>(error) {
        return meaning_of_io(error, heard);
    }
    if error.is_parse() {
        return (ErrorKind::Protocol, Cause::Said(format!("its head is not HTTP/1: {error}").into()));
    }
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return (ErrorKind::Reset, closed(heard));
    }
    (ErrorKind::Protocol, said("HTTP", error))
}

fn meaning_of_http2(error: &h2::Error, heard: Progress) -> (ErrorKind, Cause) {
    if let Some(error) = error.get_io() {
        return meaning_of_io(error, heard);
    }
    match error.reason() {
        Some(reason) if error.is_remote() && error.is_go_away() => {
            (ErrorKind::Reset, Cause::Said(format!("HTTP/2: the server closes the connection: {reason:?}").into()))
        }
        Some(reason) if error.is_remote() => {
            (ErrorKind::Reset, Cause::Said(format!("HTTP/2: the server reset the stream: {reason:?}").into()))
        }
        Some(reason) => {
            (ErrorKind::Protocol, Cause::Said(format!("HTTP/2: the server broke a rule: {reason:?}").into()))
        }
        None => (ErrorKind::Protocol, said("HTTP/2", error)),
    }
}

fn meaning_of_io(error: &io::Error, heard: Progress) -> (ErrorKind, Cause) {
    match tls::rustls_error(error) {
        Some(error @ rustls::Error::AlertReceived(_)) => (ErrorKind::Reset, tls::cause(error)),
        Some(error) => (ErrorKind::Protocol, tls::cause(error)),
        None => match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => (ErrorKind::Protocol, said("HTTP", error)),
            _ => (ErrorKind::Reset, error.raw_os_error().map_or(closed(heard), Cause::Os)),
        },
    }
}

fn closed(heard: Progress) -> Cause {
    Cause::Text(match heard {
        Progress::Nothing => "the server closed the connection without a response",
        Progress::Part => "the server closed the connection during a response",
    })
}

fn said(what: &str, error: &dyn Error) -> Cause {
    let mut text = error.to_string();
    if let Some(source) = error.source() {
        text = format!("{text}: {source}");
    }
    let text: String = text.chars().take(SAID_CHARS_MAX).collect();
    Cause::Said(format!("{what}: {text}").into())
}

/// The first error of a kind in a chain.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}
