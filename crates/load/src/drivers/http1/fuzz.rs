//! Feeds the response parser valid, lying, damaged and random bytes, cut at random places.
//!
//! A fixed number of cases from a fixed seed. `NARROWS_FUZZ_CASES=10000000 cargo test -p narrows-load fuzz` tries more. A
//! case has a stream of random numbers of its own, so it can be made again from its number alone, which a failure names.
//! A valid response is generated together with what it announces, and the parser must read exactly that. On any other
//! bytes the parser must never panic, must hold bounded memory, and must read them the same however they are cut.

use super::response::{AtClose, ResponseParser};
use crate::drivers::transport::HEAD_BYTES_MAX;
use crate::random::Random;
use crate::request::ResponseForm;
use crate::session::Sink;

const CASES: u64 = 200_000;
const CASES_VARIABLE: &str = "NARROWS_FUZZ_CASES";
const SEED: u64 = 7;
/// Most bytes of a head that a reader holds: a vector that doubles has room for twice its content.
const HELD_BYTES_MAX: usize = 2 * HEAD_BYTES_MAX + 4096;

/// Bytes for the parser, and for a valid response the status and the body that it must read.
struct Case {
    bytes: Vec<u8>,
    expected: Option<(u16, Vec<u8>)>,
}

/// Bytes read and shown to the sink.
#[derive(Debug, PartialEq)]
struct Reading {
    /// Status, size and body's size.
    result: Result<(u16, u64, u64), AtClose>,
    head: Vec<u8>,
    body: Vec<u8>,
}

#[derive(Default)]
struct CapturedBytes {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Sink for CapturedBytes {
    fn head(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    fn body(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
}

fn read(parser: &mut ResponseParser, form: ResponseForm, pieces: &[&[u8]]) -> Reading {
    let mut kept = CapturedBytes::default();
    parser.expect(form);
    let fed = pieces.iter().find_map(|piece| parser.feed(piece, &mut kept).transpose());
    assert!(parser.held_bytes() <= HELD_BYTES_MAX, "{} bytes are held", parser.held_bytes());
    let result = match fed {
        Some(fed) => fed.map_err(AtClose::NotHttp),
        None => match parser.close() {
            AtClose::Whole(response) => Ok(response),
            other => Err(other),
        },
    };
    Reading { result: result.map(|a| (a.status, a.bytes, a.body_bytes)), head: kept.head, body: kept.body }
}

/// One of some things, each as likely.
fn one_of<T: Copy>(all: &[T], random: &mut Random) -> T {
    all[random.below(all.len() as u64) as usize]
}

fn is_one_in(n: u64, random: &mut Random) -> bool {
    random.below(n) == 0
}

fn random_bytes(most: u64, random: &mut Random) -> Vec<u8> {
    (0..random.below(most + 1)).map(|_| random.below(256) as u8).collect()
}

impl Case {
    fn new(random: &mut Random) -> Self {
        match random.below(16) {
            0 => Self { bytes: random_bytes(80, random), expected: None },
            1..8 => Self::valid(random),
            _ => Self { bytes: spoilt(Self::valid(random).bytes, random), expected: None },
        }
    }

    /// Interim responses, a response, and perhaps another one in the same read.
    fn valid(random: &mut Random) -> Self {
        let mut bytes = Vec::new();
        for _ in 0..random.below(6).saturating_sub(3) {
            let interim: &[&[u8]] =
                &[b"100 Continue\r\n\r\n", b"103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n\r\n"];
            bytes.extend_from_slice(b"HTTP/1.1 ");
            bytes.extend_from_slice(one_of(interim, random));
        }
        let status = one_of(&[200, 200, 201, 204, 206, 304, 404, 500, 599], random);
        let end: &[u8] = if is_one_in(8, random) { b"\n" } else { b"\r\n" };
        bytes.extend_from_slice(format!("HTTP/1.{} {status} Word", random.below(2)).as_bytes());
        bytes.extend_from_slice(end);
        for _ in 0..random.below(5) {
            absurd_header(&mut bytes, random);
            bytes.extend_from_slice(end);
        }
        let most = if is_one_in(64, random) { 5_000 } else { 60 };
        let body = if matches!(status, 204 | 304) { Vec::new() } else { random_bytes(most, random) };
        let ends_by_itself = match random.below(3) {
            _ if matches!(status, 204 | 304) => {
                // Its length is that of the body that another request would have had.
                bytes.extend_from_slice(&[b"Content-Length: 77", end, end].concat());
                true
            }
            0 => {
                let length = format!("Content-Length: {}", body.len());
                (0..1 + random.below(2)).for_each(|_| bytes.extend_from_slice(&[length.as_bytes(), end].concat()));
                bytes.extend_from_slice(&[end, &body].concat());
                true
            }
            1 => {
                chunked(&body, end, &mut bytes, random);
                true
            }
            _ => {
                bytes.extend_from_slice(&[end, &body].concat());
                false
            }
        };
        if ends_by_itself && is_one_in(4, random) {
            bytes.extend_from_slice(b"HTTP/1.1 500 Another\r\nContent-Length: 3\r\n\r\nabc");
        }
        Self { bytes, expected: Some((status, body)) }
    }
}

/// A header that says nothing about framing, however it looks.
fn absurd_header(bytes: &mut Vec<u8>, random: &mut Random) {
    let names: [&[u8]; 6] =
        [b"X", b"Set-Cookie", b"Content-Lengthy", b"Transfer-Encodin", b"!#$%&'*+-.^_`|~", b"Trailer"];
    let values: [&[u8]; 6] = [b"", b" ", b"=;;;=", b"chunked, chunked", b"\xff\xfe\x80", b"\t12, 13\t"];
    bytes.extend_from_slice(one_of(&names, random));
    bytes.push(b':');
    bytes.extend_from_slice(one_of(&values, random));
    bytes.extend((0..if is_one_in(32, random) { random.below(3_000) } else { 0 }).map(|_| b'y'));
}

/// The rest of a response whose body comes in chunks.
fn chunked(body: &[u8], end: &[u8], bytes: &mut Vec<u8>, random: &mut Random) {
    let coding: &[&[u8]] =
        &[b"Transfer-Encoding: chunked", b"transfer-encoding: gzip , Chunked", b"TRANSFER-ENCODING:chunked"];
    bytes.extend_from_slice(&[one_of(coding, random), end].concat());
    if is_one_in(4, random) {
        // A transfer coding counts more than a length.
        bytes.extend_from_slice(&[b"Content-Length: 1", end].concat());
    }
    bytes.extend_from_slice(end);
    let mut left = body;
    while !left.is_empty() {
        let (chunk, rest) = left.split_at(1 + random.below(left.len() as u64) as usize);
        let size = if is_one_in(2, random) { format!("{:x}", chunk.len()) } else { format!("{:03X}", chunk.len()) };
        let extension: &[u8] = one_of(&[b"", b"", b";a=b", b" ; x=\"0\""], random);
        bytes.extend_from_slice(&[size.as_bytes(), extension, end, chunk, end].concat());
        left = rest;
    }
    bytes.extend_from_slice(&[one_of(&[b"0".as_slice(), b"000", b"0;last"], random), end].concat());
    for _ in 0..random.below(3) {
        bytes.extend_from_slice(&[b"T: Content-Length: 5", end].concat());
    }
    bytes.extend_from_slice(end);
}

/// An invalid response: it lies about its length, is cut short, damaged, or far too long.
fn spoilt(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    const LENGTH: &[u8] = b"Content-Length: ";
    match random.below(8) {
        0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
        1 | 2 => {
            let lies: [&[u8]; 8] =
                [b"0", b"1", b"9", b"1000000000000", b"18446744073709551615", b"18446744073709551616", b"-1", b"+5"];
            let found = bytes.windows(LENGTH.len()).position(|window| window == LENGTH);
            let at = found.map_or(0, |at| at + LENGTH.len());
            let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            bytes.splice(at..at + digits, one_of(&lies, random).iter().copied());
        }
        3 if is_one_in(200, random) => {
            let value = b"X: ".iter().copied().chain((0..random.below(3 * HEAD_BYTES_MAX as u64)).map(|_| b'y'));
            let at = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            bytes.splice(at..at, value.chain(*b"\r\n"));
        }
        _ => damage(&mut bytes, random),
    }
    bytes
}

/// Changes up to three places: a byte put in, changed or taken out, or a part repeated.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let byte = one_of(b"\r\n:; 019aFx,\0\xff", random);
        match random.below(4) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => bytes[at] = byte,
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.extend_from_within(at..),
        }
    }
}

/// Bytes in up to four pieces, or one by one.
fn cut<'a>(bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    if is_one_in(16, random) {
        return bytes.chunks(1).collect();
    }
    let mut ends: Vec<usize> = (0..3).map(|_| random.below(bytes.len() as u64 + 1) as usize).collect();
    ends.extend([0, bytes.len()]);
    ends.sort_unstable();
    ends.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

fn cases() -> u64 {
    let Ok(text) = std::env::var(CASES_VARIABLE) else { return CASES };
    text.parse().unwrap_or_else(|_| panic!("{CASES_VARIABLE} is {text:?}, expected a whole number"))
}

#[test]
fn responses_are_read_as_they_announce_and_alike_however_they_are_cut() {
    let mut used = ResponseParser::new();
    let (mut whole, mut refused) = (0u64, 0u64);
    for number in 0..cases() {
        let mut random = Random::new(SEED, number);
        let Case { bytes, expected } = Case::new(&mut random);
        let form = if is_one_in(8, &mut random) { ResponseForm::HeadOnly } else { ResponseForm::WithBody };
        let pieces = cut(&bytes, &mut random);
        let told = || {
            let shown: Vec<String> = pieces.iter().map(|piece| piece.escape_ascii().to_string()).collect();
            format!("case {number}, {form:?}, cut into {shown:?}")
        };
        let seen = read(&mut ResponseParser::new(), form, &[&bytes]);
        // Earlier responses do not matter to a reader.
        assert_eq!(seen, read(&mut used, form, &pieces), "{}", told());
        if let Some((status, body)) = expected {
            let body = if form == ResponseForm::HeadOnly { Vec::new() } else { body };
            let read = seen.result.map(|(status, _, body_bytes)| (status, body_bytes));
            assert_eq!(read, Ok((status, body.len() as u64)), "{}", told());
            assert!(seen.body == body, "{}", told());
        }
        match seen.result {
            Ok((_, size, body_bytes)) => {
                whole += 1;
                assert_eq!(body_bytes, seen.body.len() as u64, "{}", told());
                assert!(size >= body_bytes + seen.head.len() as u64 && size <= bytes.len() as u64, "{}", told());
            }
            Err(_) => refused += 1,
        }
    }
    // Whichever cases are made, they are of both kinds.
    assert!(cases() < 1_000 || (whole > cases() / 4 && refused > cases() / 16), "{whole} whole, {refused} refused");
}
