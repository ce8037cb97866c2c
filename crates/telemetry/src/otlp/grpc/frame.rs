//! gRPC's frame: one byte that says whether the message is compressed, four with its length, the message.

use bytes::Bytes;

use crate::otlp::body::{COMPRESSED_BYTES_MAX, Encoding};
use crate::otlp::export::{Refusal, Why};

/// Before each message.
pub(super) const HEAD_BYTES: usize = 5;

/// The one message of a unary call's body, and how it is compressed when the call's messages may be by `encoding`.
pub(super) fn only_message(mut body: Bytes, encoding: Encoding) -> Result<(Encoding, Bytes), Refusal> {
    if body.is_empty() {
        return Err(Refusal::new(Why::Unsupported, "the call has no message, expected one"));
    }
    let [flag, l0, l1, l2, l3] = *body.first_chunk::<HEAD_BYTES>().ok_or_else(cut_short)?;
    let length = usize::try_from(u32::from_be_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
    if length > COMPRESSED_BYTES_MAX {
        let message = format!("a message of {length} bytes, more than {COMPRESSED_BYTES_MAX}");
        return Err(Refusal::new(Why::TooLarge, message));
    }
    let encoding = match (flag, encoding) {
        (0, _) => Encoding::Plain,
        (1, Encoding::Gzip) => Encoding::Gzip,
        (1, Encoding::Plain) => {
            return Err(Refusal::new(Why::Framing, "the message is compressed and grpc-encoding does not say how"));
        }
        (flag, _) => {
            return Err(Refusal::new(
                Why::Framing,
                format!("the message's compressed flag is {flag}, expected 0 or 1"),
            ));
        }
    };
    let mut message = body.split_off(HEAD_BYTES);
    if message.len() < length {
        return Err(cut_short());
    }
    if message.len() > length {
        return Err(Refusal::new(Why::Unsupported, "the call has more than one message, expected one"));
    }
    Ok((encoding, message.split_to(length)))
}

fn cut_short() -> Refusal {
    Refusal::new(Why::Framing, "the message is cut short")
}

/// A message that is not compressed.
pub(super) fn framed(message: &[u8]) -> Bytes {
    // An export response is a few hundred bytes.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], length.as_slice(), message].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_out_of_its_frame() {
        for message in [&b""[..], b"abc"] {
            let got = only_message(framed(message), Encoding::Gzip);
            assert_eq!(got, Ok((Encoding::Plain, Bytes::copy_from_slice(message))));
        }
        let got = only_message(Bytes::from_static(&[1, 0, 0, 0, 1, 7]), Encoding::Gzip);
        assert_eq!(got, Ok((Encoding::Gzip, Bytes::from_static(&[7]))));
    }

    #[test]
    fn frames_that_are_wrong_are_refused_by_what_is_wrong_with_them() {
        let cases: [(&[u8], Why, &str); 8] = [
            (&[], Why::Unsupported, "the call has no message, expected one"),
            (&[0, 0, 0], Why::Framing, "the message is cut short"),
            (&[0, 0, 0, 0, 2, 7], Why::Framing, "the message is cut short"),
            (&[0, 0, 0, 0, 0, 0], Why::Unsupported, "the call has more than one message, expected one"),
            (&[0, 255, 255, 255, 255], Why::TooLarge, "a message of 4294967295 bytes, more than 16777216"),
            (&[0, 1, 0, 0, 1], Why::TooLarge, "a message of 16777217 bytes, more than 16777216"),
            (&[1, 0, 0, 0, 0], Why::Framing, "the message is compressed and grpc-encoding does not say how"),
            (&[2, 0, 0, 0, 0], Why::Framing, "the message's compressed flag is 2, expected 0 or 1"),
        ];
        for (body, why, message) in cases {
            let refusal = only_message(Bytes::from_static(body), Encoding::Plain).unwrap_err();
            assert_eq!((refusal.why, refusal.message.as_str()), (why, message));
        }
    }
}
