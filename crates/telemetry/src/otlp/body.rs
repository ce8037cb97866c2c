//! A request's body, inflated, within bounds.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// The largest body as sent.
pub(super) const COMPRESSED_BYTES_MAX: usize = 16 << 20;
/// The largest body once inflated.
pub(super) const INFLATED_BYTES_MAX: usize = 64 << 20;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Gzip,
}

impl Encoding {
    /// From `Content-Encoding`; an unknown one is given back.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, String> {
        let Some(value) = headers.get(CONTENT_ENCODING) else { return Ok(Self::Plain) };
        let name = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" | "none" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            _ => Err(name),
        }
    }
}

/// Declared type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentType {
    Protobuf,
    Json,
    Other,
}

impl ContentType {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "application/x-protobuf" | "application/protobuf" => Self::Protobuf,
            "application/json" => Self::Json,
            _ => Self::Other,
        }
    }
}

/// Why a body could not be inflated.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// More than [`INFLATED_BYTES_MAX`].
    TooLarge,
    /// Not gzip, or cut short.
    NotGzip(String),
}

/// All of a gzip body, never more than `bytes_max`.
pub(super) fn inflate(body: &[u8], bytes_max: usize) -> Result<Vec<u8>, Unreadable> {
    let mut inflated = Vec::with_capacity(body.len().saturating_mul(4).min(bytes_max));
    let read = MultiGzDecoder::new(body).take(bytes_max as u64 + 1).read_to_end(&mut inflated);
    match read {
        Ok(_) if inflated.len() > bytes_max => Err(Unreadable::TooLarge),
        Ok(_) => Ok(inflated),
        Err(error) => Err(Unreadable::NotGzip(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_bomb_is_refused_and_its_limit_is_exact() {
        let bomb = gzip(&[0; 1 << 20]);
        assert!(bomb.len() < 1 << 14);
        assert_eq!(inflate(&bomb, (1 << 20) - 1), Err(Unreadable::TooLarge));
        assert_eq!(inflate(&bomb, 1 << 20).map(|bytes| bytes.len()), Ok(1 << 20));
    }

    #[test]
    fn several_members_are_one_body() {
        assert_eq!(inflate(&[gzip(b"ab"), gzip(b"c")].concat(), 10), Ok(b"abc".to_vec()));
    }

    #[test]
    fn what_is_not_gzip_is_said() {
        for body in [&b""[..], b"abc", &gzip(b"abcdef")[..12]] {
            assert!(matches!(inflate(body, 10), Err(Unreadable::NotGzip(_))), "{body:?}");
        }
    }

    #[test]
    fn encodings_and_types_are_read_as_senders_write_them() {
        let with = |name, value: &str| HeaderMap::from_iter([(name, value.parse().unwrap())]);
        assert_eq!(Encoding::from_headers(&HeaderMap::new()), Ok(Encoding::Plain));
        assert_eq!(Encoding::from_headers(&with(CONTENT_ENCODING, "GZIP")), Ok(Encoding::Gzip));
        assert_eq!(Encoding::from_headers(&with(CONTENT_ENCODING, "zstd")), Err("zstd".to_owned()));
        assert_eq!(
            ContentType::from_headers(&with(CONTENT_TYPE, "application/x-protobuf; charset=x")),
            ContentType::Protobuf
        );
        assert_eq!(ContentType::from_headers(&with(CONTENT_TYPE, "application/json")), ContentType::Json);
        assert_eq!(ContentType::from_headers(&HeaderMap::new()), ContentType::Other);
    }

    proptest! {
        #[test]
        fn inflating_gives_back_what_was_deflated(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(inflate(&gzip(&bytes), 2000), Ok(bytes));
        }

        #[test]
        fn any_bytes_inflate_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let body = [&gzip(b"")[..10], &bytes].concat();
            prop_assert!(inflate(&body, 1000).map_or(true, |inflated| inflated.len() <= 1000));
        }
    }
}
