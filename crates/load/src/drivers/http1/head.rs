//! The head of a response, and what it means for the body and the connection (RFC 9112, 6.3 and 9.3).
//!
//! `httparse` finds the lines; of the headers only those that frame the response are looked at. A transfer coding
//! counts more than a length. Tested with complete responses in `response.rs`.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};

use crate::drivers::transport::Reuse;

/// Maximum number of headers of a response.
const HEADERS_MAX: usize = 1_000;
/// Number of headers for which space is reserved at first; more is allocated only for heads that need it.
const HEADERS_USUAL: usize = 128;

/// Announcements of a head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) reuse: Reuse,
    pub(super) framing: Framing,
}

/// Where a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// A head at the beginning of `bytes` and its length; none while it is not whole.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, &'static str> {
    parse::<HEADERS_USUAL>(bytes).unwrap_or_else(|| parse_large_head(bytes))
}

#[cold]
#[inline(never)]
fn parse_large_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, &'static str> {
    parse::<HEADERS_MAX>(bytes).unwrap_or(Err("it has more than 1,000 headers"))
}

/// As [`parse_head`], for at most `N` headers; `None` if there are more.
fn parse<const N: usize>(bytes: &[u8]) -> Option<Result<Option<(Head, usize)>, &'static str>> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; N];
    let mut response = httparse::Response::new(&mut []);
    match ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(Status::Partial) => Some(Ok(None)),
        Ok(Status::Complete(length)) => Some(read_head(&response).map(|head| Some((head, length)))),
        Err(httparse::Error::TooManyHeaders) => None,
        Err(_) => Some(Err("its head is not HTTP/1")),
    }
}

fn read_head(response: &httparse::Response<'_, '_>) -> Result<Head, &'static str> {
    let status = response.code.unwrap_or(0);
    if status < 100 {
        return Err("its status is below 100");
    }
    let mut reuse = if response.version == Some(1) { Reuse::Open } else { Reuse::Closed };
    let mut length = None;
    let mut coding = None;
    for header in response.headers.iter() {
        // Lengths first: most headers differ in it, and then nothing is compared.
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => reuse = connection(header.value, reuse),
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let value = content_length(header.value)?;
                if length.is_some_and(|other| other != value) {
                    return Err("it has two lengths");
                }
                length = Some(value);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => coding = Some(header.value),
            _ => {}
        }
    }
    let framing = match (coding, length) {
        (Some(coding), _) if ends_in_chunked(coding) => Framing::Chunked,
        (Some(_), _) | (None, None) => Framing::UntilClose,
        (None, Some(length)) => Framing::Length(length),
    };
    Ok(Head { status, reuse, framing })
}

fn connection(value: &[u8], otherwise: Reuse) -> Reuse {
    let says = |word: &[u8]| value.split(|b| *b == b',').any(|token| token.trim_ascii().eq_ignore_ascii_case(word));
    if says(b"close") {
        Reuse::Closed
    } else if says(b"keep-alive") {
        Reuse::Open
    } else {
        otherwise
    }
}

fn content_length(value: &[u8]) -> Result<u64, &'static str> {
    const BAD_LENGTH: &str = "its length is not a number";
    if value.is_empty() {
        return Err(BAD_LENGTH);
    }
    value.iter().try_fold(0u64, |sum, byte| {
        let digit = if byte.is_ascii_digit() { u64::from(byte - b'0') } else { return Err(BAD_LENGTH) };
        sum.checked_mul(10).and_then(|sum| sum.checked_add(digit)).ok_or(BAD_LENGTH)
    })
}

fn ends_in_chunked(value: &[u8]) -> bool {
    value.rsplit(|b| *b == b',').next().is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}
