//! A captured response as checks and extraction see it: headers by name, the body decoded, and as JSON.
//!
//! Each form is made at most once per response and only when it is needed. Bodies are decoded from gzip and deflate
//! (RFC 1951 to 1952); what decodes to more than the limit counts as too long, however little it was on the wire.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use serde_json::Value;

use super::capture::{BODY_BYTES_MAX, Capture};
use crate::request::{header_of, headers_of};

/// A buffer of one thread for decoded bodies.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    decoded: Vec<u8>,
}

/// Why a body cannot be looked at, as the end of a sentence that begins with "body".
pub(super) type Unreadable = &'static str;

const TOO_LONG: Unreadable = "is longer than 1 MiB";

/// See the module.
pub(super) struct Response<'a> {
    pub(super) status: u16,
    head: &'a [u8],
    body: Result<&'a [u8], Unreadable>,
    json: Option<Result<Value, Unreadable>>,
}

impl<'a> Response<'a> {
    pub(super) fn new(status: u16, capture: &'a Capture, decoder: &'a mut Decoder) -> Self {
        let body = if capture.is_cut { Err(TOO_LONG) } else { decoder.decode(&capture.head, &capture.body) };
        Self { status, head: &capture.head, body, json: None }
    }

    /// The values of all headers with a name, in order.
    pub(super) fn headers(&self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        headers_of(self.head).filter(|(given, _)| given.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The body as the server meant it.
    pub(super) fn body(&self) -> Result<&'a [u8], Unreadable> {
        self.body
    }

    /// The body as JSON.
    pub(super) fn json(&mut self) -> Result<&Value, Unreadable> {
        let body = self.body;
        let parse = || serde_json::from_slice(body?).map_err(|_| "is not JSON");
        self.json.get_or_insert_with(parse).as_ref().map_err(|unreadable| *unreadable)
    }
}

impl Decoder {
    fn decode<'a>(&'a mut self, head: &[u8], body: &'a [u8]) -> Result<&'a [u8], Unreadable> {
        let coding = if body.is_empty() { None } else { header_of(head, "content-encoding") };
        match coding.map(<[u8]>::to_ascii_lowercase).as_deref() {
            None | Some(b"" | b"identity") => Ok(body),
            Some(b"gzip" | b"x-gzip") => self.inflate(MultiGzDecoder::new(body), "is not gzip as it says"),
            // Some servers leave the zlib frame out.
            Some(b"deflate") if body[0] & 0x0f == 8 && body.len() > 1 && is_zlib(body) => {
                self.inflate(ZlibDecoder::new(body), "is not deflate as it says")
            }
            Some(b"deflate") => self.inflate(DeflateDecoder::new(body), "is not deflate as it says"),
            Some(_) => Err("has an encoding other than gzip and deflate"),
        }
    }

    fn inflate(&mut self, decoder: impl Read, otherwise: Unreadable) -> Result<&[u8], Unreadable> {
        self.decoded.clear();
        let read = decoder.take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut self.decoded);
        if self.decoded.len() > BODY_BYTES_MAX {
            return Err(TOO_LONG);
        }
        read.map(|_| &self.decoded[..]).map_err(|_| otherwise)
    }
}

/// RFC 1950, 2.2: the first two bytes are a multiple of 31.
fn is_zlib(body: &[u8]) -> bool {
    (u16::from(body[0]) << 8 | u16::from(body[1])).is_multiple_of(31)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::session::Sink;
    use crate::session::capture::ResponseParts;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    /// A response as a driver captures it.
    pub(in crate::session) fn captured(headers: &str, body: &[u8]) -> Capture {
        let mut capture = Capture::default();
        capture.want(ResponseParts::All).head(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes());
        capture.body(body);
        capture
    }

    fn read(coding: &str, body: &[u8]) -> Result<Vec<u8>, Unreadable> {
        let capture = captured(&format!("Content-Encoding: {coding}\r\n"), body);
        Response::new(200, &capture, &mut Decoder::default()).body().map(<[u8]>::to_vec)
    }

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn bodies_are_decoded_by_what_their_header_says() {
        let text = b"hello, hello, hello";
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(text).unwrap();
        let (zlib, raw, gzip) = (zlib.finish().unwrap(), raw.finish().unwrap(), gzip(text));
        for (coding, body) in [("gzip", &gzip), ("X-Gzip", &gzip), ("deflate", &zlib), ("deflate", &raw)] {
            assert_eq!(read(coding, body).as_deref(), Ok(&text[..]), "{coding}");
        }
        assert_eq!(read("identity", &gzip), Ok(gzip.clone()));
        assert_eq!(read("gzip", b""), Ok(Vec::new()));
    }

    #[test]
    fn what_cannot_be_decoded_says_why() {
        let whole = gzip(&[b'x'; 1000]);
        let bomb = gzip(&vec![0; 64 * BODY_BYTES_MAX]);
        assert!(bomb.len() < BODY_BYTES_MAX);
        let cases: [(&str, &[u8], Unreadable); 6] = [
            ("gzip", b"garbage", "is not gzip as it says"),
            ("gzip", &whole[..whole.len() - 1], "is not gzip as it says"),
            ("deflate", &[0xff; 100], "is not deflate as it says"),
            ("br", b"x", "has an encoding other than gzip and deflate"),
            ("gzip", &bomb, TOO_LONG),
            ("identity", &vec![0; BODY_BYTES_MAX + 1], TOO_LONG),
        ];
        for (coding, body, expected) in cases {
            assert_eq!(read(coding, body), Err(expected), "{coding}");
        }
        assert_eq!(read("identity", &vec![0; BODY_BYTES_MAX]).map(|body| body.len()), Ok(BODY_BYTES_MAX));
    }

    #[test]
    fn headers_are_found_by_name_in_their_order() {
        let capture = captured("X-A:  one \r\nx-a: two\r\nEmpty:\r\n", b"");
        let mut decoder = Decoder::default();
        let response = Response::new(200, &capture, &mut decoder);
        let values = |name| response.headers(name).collect::<Vec<_>>();
        assert_eq!(values("x-A"), [&b"one"[..], b"two"]);
        assert_eq!((values("empty"), values("x-b")), (vec![&b""[..]], Vec::new()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(coding in "gzip|deflate", body: Vec<u8>, at: prop::sample::Index, byte: u8) {
            let _ = read(&coding, &body);
            let mut damaged = gzip(&body);
            let at = at.index(damaged.len());
            damaged[at] = byte;
            let _ = read(&coding, &damaged);
        }
    }
}
