//! Reads HTTP/1.1 responses (RFC 9112) piece by piece and keeps nothing of them but their size.
//!
//! A head that arrives in one piece is parsed where it lies; only a head in several pieces is copied. Bodies
//! end by their length, with the last chunk and its trailers, with the connection, or there is none.
//! Wherever the bytes are cut, the result is the same.
//!
//! Contents are not interpreted: no decompression, no cookies, no redirects. Whoever needs them gives a [`Sink`], which
//! sees the final head and the body without framing; without one nothing is copied.

use super::head::{Framing, Head, parse_head};
use crate::drivers::transport::{HEAD_BYTES_MAX, Response, Reuse};
use crate::request::ResponseForm;
use crate::session::Sink;

const CHUNK_LINE_BYTES_MAX: u32 = 4096;
/// A head this short is parsed at every byte, so that what is not HTTP at all is known at once.
const FIRST_BYTES: usize = 16;

/// Meaning of the end of a connection for the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtClose {
    /// The close was the body's end.
    Whole(Response),
    /// Not a byte had come.
    Nothing,
    /// Part of it is missing.
    CutShort,
    /// Bytes that are not HTTP.
    NotHttp(&'static str),
}

/// Reads one response at a time.
#[derive(Debug)]
pub(super) struct ResponseParser {
    state: State,
    form: ResponseForm,
    head: Vec<u8>,
    response: Response,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    UntilClose,
    ChunkSize { size: u64, digits: u32 },
    ChunkExtension { size: u64, bytes: u32 },
    ChunkData(u64),
    ChunkEnd,
    Trailer { bytes: usize, line: usize },
    Whole,
}

impl ResponseParser {
    pub(super) fn new() -> Self {
        let response = Response { status: 0, reuse: Reuse::Open, bytes: 0, body_bytes: 0 };
        Self { state: State::Head, form: ResponseForm::WithBody, head: Vec::new(), response }
    }

    /// Makes ready for the response to a new request.
    pub(super) fn expect(&mut self, form: ResponseForm) {
        self.state = State::Head;
        self.form = form;
        self.head.clear();
        self.response = Response { status: 0, reuse: Reuse::Open, bytes: 0, body_bytes: 0 };
    }

    /// Bytes of this response so far.
    pub(super) fn bytes(&self) -> u64 {
        self.response.bytes
    }

    /// Bytes of memory that it holds on to.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.head.capacity()
    }

    /// Takes the next bytes; returns the response once it is complete.
    ///
    /// # Errors
    /// Fault of bytes that are not an HTTP/1 response.
    pub(super) fn feed(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<Option<Response>, &'static str> {
        while !bytes.is_empty() && self.state != State::Whole {
            let taken = self.step(bytes, sink)?;
            self.response.bytes += taken as u64;
            bytes = &bytes[taken..];
        }
        if self.state != State::Whole {
            return Ok(None);
        }
        if !bytes.is_empty() {
            self.response.reuse = Reuse::Closed;
        }
        Ok(Some(self.response))
    }

    /// Returns what the response amounts to now that the connection is closed.
    pub(super) fn close(&mut self) -> AtClose {
        match self.state {
            State::Whole | State::UntilClose => AtClose::Whole(Response { reuse: Reuse::Closed, ..self.response }),
            State::Head if self.response.bytes == 0 => AtClose::Nothing,
            State::Head => match parse_head(&self.head) {
                Err(problem) => AtClose::NotHttp(problem),
                Ok(_) => AtClose::CutShort,
            },
            _ => AtClose::CutShort,
        }
    }

    /// Takes a part of `bytes`, at least one, and returns how many.
    fn step(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, &'static str> {
        match self.state {
            State::Head => self.step_head(bytes, sink),
            State::Length(left) => {
                let taken = self.take_body(left, bytes, sink);
                let left = left - taken as u64;
                self.state = if left == 0 { State::Whole } else { State::Length(left) };
                Ok(taken)
            }
            State::UntilClose => Ok(self.take_body(u64::MAX, bytes, sink)),
            State::ChunkData(left) => {
                let taken = self.take_body(left, bytes, sink);
                let left = left - taken as u64;
                self.state = if left == 0 { State::ChunkEnd } else { State::ChunkData(left) };
                Ok(taken)
            }
            _ => {
                self.state = step_framing(self.state, bytes[0])?;
                Ok(1)
            }
        }
    }

    fn take_body(&mut self, left: u64, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let taken = left.min(bytes.len() as u64);
        self.response.body_bytes += taken;
        sink.body(&bytes[..taken as usize]);
        taken as usize
    }

    fn step_head(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<usize, &'static str> {
        if self.head.is_empty() {
            if let Some((head, length)) = parse_head(bytes)? {
                self.begin_body(head, length)?;
                if self.state != State::Head {
                    sink.head(&bytes[..length]);
                }
                return Ok(length);
            }
            return self.keep_head(bytes);
        }
        let before = self.head.len();
        for &byte in bytes {
            self.head.push(byte);
            let may_be_whole = self.head.ends_with(b"\n\r\n") || self.head.ends_with(b"\n\n");
            let is_worth_parsing = may_be_whole || self.head.len() <= FIRST_BYTES;
            if is_worth_parsing && let Some((head, length)) = parse_head(&self.head)? {
                self.begin_body(head, length)?;
                if self.state != State::Head {
                    sink.head(&self.head[..length]);
                }
                self.head.clear();
                return Ok(length - before);
            }
            if self.head.len() > HEAD_BYTES_MAX {
                parse_head(&self.head)?;
                return Err("its head is longer than 64 KiB");
            }
        }
        // One complete line is enough to recognise a response that is not HTTP.
        if bytes.contains(&b'\n') {
            parse_head(&self.head)?;
        }
        Ok(bytes.len())
    }

    fn keep_head(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        if bytes.len() > HEAD_BYTES_MAX {
            return Err("its head is longer than 64 KiB");
        }
        self.head.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn begin_body(&mut self, head: Head, length: usize) -> Result<(), &'static str> {
        if length > HEAD_BYTES_MAX {
            return Err("its head is longer than 64 KiB");
        }
        if head.status == 101 {
            return Err("it switches protocols unexpectedly");
        }
        if head.status < 200 {
            return Ok(());
        }
        self.response.status = head.status;
        self.response.reuse = head.reuse;
        let no_body = self.form == ResponseForm::HeadOnly || matches!(head.status, 204 | 304);
        self.state = match head.framing {
            _ if no_body => State::Whole,
            Framing::Length(0) => State::Whole,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize { size: 0, digits: 0 },
            Framing::UntilClose => {
                self.response.reuse = Reuse::Closed;
                State::UntilClose
            }
        };
        Ok(())
    }
}

/// One byte of chunked framing (RFC 9112, 7.1). A bare line feed ends a line too.
fn step_framing(state: State, byte: u8) -> Result<State, &'static str> {
    const BAD_SIZE: &str = "a chunk's size is not a hexadecimal number";
    Ok(match (state, byte) {
        (State::ChunkSize { size, digits }, _) if byte.is_ascii_hexdigit() => {
            let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
            let size = size.checked_mul(16).ok_or(BAD_SIZE)? + digit;
            if digits >= 16 {
                return Err(BAD_SIZE);
            }
            State::ChunkSize { size, digits: digits + 1 }
        }
        (State::ChunkSize { digits: 0, .. }, _) => return Err(BAD_SIZE),
        (State::ChunkSize { size, .. } | State::ChunkExtension { size, .. }, b'\n') => after_size(size),
        (State::ChunkSize { size, .. }, b';' | b' ' | b'\t' | b'\r') => State::ChunkExtension { size, bytes: 0 },
        (State::ChunkSize { .. }, _) => return Err(BAD_SIZE),
        (State::ChunkExtension { bytes: CHUNK_LINE_BYTES_MAX.., .. }, _) => {
            return Err("a chunk's extension is longer than 4 KiB");
        }
        (State::ChunkExtension { size, bytes }, _) => State::ChunkExtension { size, bytes: bytes + 1 },
        (State::ChunkEnd, b'\r') => State::ChunkEnd,
        (State::ChunkEnd, b'\n') => State::ChunkSize { size: 0, digits: 0 },
        (State::ChunkEnd, _) => return Err("a chunk is longer than its size"),
        (State::Trailer { line: 0, .. }, b'\n') => State::Whole,
        (State::Trailer { bytes: HEAD_BYTES_MAX.., .. }, _) => return Err("its trailer is longer than 64 KiB"),
        (State::Trailer { bytes, .. }, b'\n') => State::Trailer { bytes: bytes + 1, line: 0 },
        (State::Trailer { bytes, line }, b'\r') => State::Trailer { bytes: bytes + 1, line },
        (State::Trailer { bytes, line }, _) => State::Trailer { bytes: bytes + 1, line: line + 1 },
        (state, _) => state,
    })
}

fn after_size(size: u64) -> State {
    if size == 0 { State::Trailer { bytes: 0, line: 0 } } else { State::ChunkData(size) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]], form: ResponseForm) -> Result<Response, AtClose> {
        let mut parser = ResponseParser::new();
        parser.expect(form);
        for piece in pieces {
            match parser.feed(piece, &mut ()) {
                Ok(Some(response)) => return Ok(response),
                Ok(None) => {}
                Err(problem) => return Err(AtClose::NotHttp(problem)),
            }
        }
        match parser.close() {
            AtClose::Whole(response) => Ok(response),
            other => Err(other),
        }
    }

    fn response(status: u16, reuse: Reuse, bytes: usize, body_bytes: u64) -> Result<Response, AtClose> {
        Ok(Response { status, reuse, bytes: bytes as u64, body_bytes })
    }

    /// Responses, each with what it should be read as.
    fn table() -> Vec<(&'static [u8], Result<Response, AtClose>)> {
        const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        const EMPTY: &[u8] = b"HTTP/1.1 404 Not Found\r\ncontent-length:0\r\n\r\n";
        const OLD: &[u8] = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
        const OLD_KEPT: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok";
        const CLOSES: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\n!";
        const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nall of it";
        const GZIPPED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\n123";
        const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n";
        const NOT_MODIFIED: &[u8] = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
        const CONTINUES: &[u8] =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n1";
        const CHUNKED: &[u8] =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
        const TRAILERS: &[u8] =
            b"HTTP/1.1 500 Oh\nTransfer-Encoding: gzip , Chunked\nContent-Length: 3\n\n1\n!\n00\nX: y\r\nZ: z\r\n\r\n";
        const CUT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
        const CUT_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Le";
        const CUT_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n";
        let mut rows = vec![
            (LENGTH, response(200, Reuse::Open, LENGTH.len(), 5)),
            (EMPTY, response(404, Reuse::Open, EMPTY.len(), 0)),
            (OLD, response(200, Reuse::Closed, OLD.len(), 2)),
            (OLD_KEPT, response(200, Reuse::Open, OLD_KEPT.len(), 2)),
            (CLOSES, response(200, Reuse::Closed, CLOSES.len(), 1)),
            (UNTIL_CLOSE, response(200, Reuse::Closed, UNTIL_CLOSE.len(), 9)),
            (GZIPPED, response(200, Reuse::Closed, GZIPPED.len(), 3)),
            (NO_CONTENT, response(204, Reuse::Open, NO_CONTENT.len(), 0)),
            (NOT_MODIFIED, response(304, Reuse::Open, NOT_MODIFIED.len(), 0)),
            (CONTINUES, response(201, Reuse::Open, CONTINUES.len(), 1)),
            (CHUNKED, response(200, Reuse::Open, CHUNKED.len(), 15)),
            (TRAILERS, response(500, Reuse::Open, TRAILERS.len(), 1)),
            (b"", Err(AtClose::Nothing)),
            (CUT, Err(AtClose::CutShort)),
            (CUT_HEAD, Err(AtClose::CutShort)),
            (CUT_CHUNK, Err(AtClose::CutShort)),
        ];
        rows.extend(bad().into_iter().map(|(bytes, problem)| (bytes, Err(AtClose::NotHttp(problem)))));
        rows
    }

    fn bad() -> Vec<(&'static [u8], &'static str)> {
        vec![
            (b"SSH-2.0-OpenSSH_9.2\r\n", "its head is not HTTP/1"),
            (b"HTTP/1.1 2x0 OK\r\n\r\n", "its head is not HTTP/1"),
            (b"HTTP/1.1 200 OK\r\nbad\x01name: x\r\n\r\n", "its head is not HTTP/1"),
            (b"HTTP/1.1 099 Odd\r\n\r\n", "its status is below 100"),
            (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "it switches protocols unexpectedly"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "its length is not a number"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "its length is not a number"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "it has two lengths"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                "a chunk's size is not a hexadecimal number",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
                "a chunk's size is not a hexadecimal number",
            ),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n12\r\n", "a chunk is longer than its size"),
        ]
    }

    #[test]
    fn responses_are_read_as_the_table_says() {
        for (bytes, expected) in table() {
            assert_eq!(read(&[bytes], ResponseForm::WithBody), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn cuts_anywhere_change_nothing() {
        for (bytes, expected) in table() {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single, ResponseForm::WithBody), expected, "byte by byte: {}", bytes.escape_ascii());
            for at in 0..=bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(read(&[left, right], ResponseForm::WithBody), expected, "{at}: {}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn the_response_to_head_has_no_body() {
        let bytes: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(read(&[bytes], ResponseForm::HeadOnly), response(200, Reuse::Open, bytes.len(), 0));
    }

    #[test]
    fn bytes_after_the_response_close_the_connection() {
        let mut parser = ResponseParser::new();
        let response = parser.feed(b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1", &mut ()).unwrap().unwrap();
        assert_eq!((response.reuse, response.bytes), (Reuse::Closed, 27));
    }

    #[test]
    fn a_head_may_have_64_kib_and_no_more() {
        for (value_bytes, expected) in [(HEAD_BYTES_MAX - 50, true), (HEAD_BYTES_MAX, false)] {
            let head = format!("HTTP/1.1 204 No Content\r\nX: {}\r\n\r\n", "y".repeat(value_bytes));
            let halves = head.as_bytes().split_at(head.len() / 2);
            assert_eq!(read(&[head.as_bytes()], ResponseForm::WithBody).is_ok(), expected);
            assert_eq!(read(&[halves.0, halves.1], ResponseForm::WithBody).is_ok(), expected);
        }
    }

    #[test]
    fn a_head_may_have_1_000_headers_and_no_more() {
        for (headers, expected) in [(129, true), (999, true), (1_000, false)] {
            let head =
                format!("HTTP/1.1 204 No Content\r\n{}Length: 0\r\n\r\n", "X-Name: some value\r\n".repeat(headers));
            for size in [1, 1_000, head.len()] {
                let pieces: Vec<&[u8]> = head.as_bytes().chunks(size).collect();
                let read = read(&pieces, ResponseForm::WithBody);
                match expected {
                    true => assert_eq!(read.map(|response| response.status), Ok(204)),
                    false => assert_eq!(read, Err(AtClose::NotHttp("it has more than 1,000 headers"))),
                }
            }
        }
    }

    type Seen = (Result<(u16, u64, u64), AtClose>, Vec<u8>, Vec<u8>);

    /// Reads a response that arrives in these pieces, and captures its parts.
    fn seen(pieces: &[&[u8]]) -> Seen {
        let (mut parser, mut kept) = (ResponseParser::new(), CapturedBytes::default());
        parser.expect(ResponseForm::WithBody);
        let fed = pieces.iter().find_map(|piece| parser.feed(piece, &mut kept).transpose());
        let result = match fed {
            Some(fed) => fed.map_err(AtClose::NotHttp),
            None => match parser.close() {
                AtClose::Whole(response) => Ok(response),
                other => Err(other),
            },
        };
        (result.map(|a| (a.status, a.bytes, a.body_bytes)), kept.head, kept.body)
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

    #[test]
    fn a_sink_sees_the_final_head_and_the_body_without_framing() {
        let bytes = b"HTTP/1.1 103 Hints\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\nab\r\n1\r\nc\r\n0\r\nT: t\r\n\r\nnext";
        let whole = seen(&[bytes]);
        assert_eq!(whole.1, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!((whole.0.unwrap().2, whole.2.as_slice()), (3, &b"abc"[..]));
        assert_eq!(seen(&bytes.chunks(1).collect::<Vec<_>>()).2, b"abc");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let _ = read(&pieces, ResponseForm::WithBody);
        }

        #[test]
        fn damaged_responses_are_read_alike_however_they_are_cut(
            row in 0..27usize, at in any::<prop::sample::Index>(), byte: u8, cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut bytes = table()[row].0.to_vec();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let whole = read(&[&bytes], ResponseForm::WithBody).map(|a| (a.status, a.bytes, a.body_bytes));
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            ends.sort_unstable();
            let pieces: Vec<&[u8]> = ends.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let cut = read(&pieces, ResponseForm::WithBody).map(|a| (a.status, a.bytes, a.body_bytes));
            prop_assert_eq!(whole, cut);
        }
    }
}
