//! Values as messages: JSON, compressed, cut into pieces that a server takes.

use std::io::{Read, Write};

use bytes::{BufMut as _, Bytes, BytesMut};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most bytes of a piece. The default limit of NATS is 1 MiB for a message.
const PIECE_BYTES_MAX: usize = 512 << 10;
/// The most pieces of a value.
const PIECES_MAX: usize = 128;
/// The most bytes of a value, not compressed.
const VALUE_BYTES_MAX: u64 = 256 << 20;
/// The number of a piece and the number of pieces before each piece.
const HEAD_BYTES: usize = 8;

/// The most bytes of a value, compressed.
pub(crate) const COMPRESSED_BYTES_MAX: usize = PIECE_BYTES_MAX * PIECES_MAX;

/// A value in pieces, in order.
///
/// # Errors
/// Its size in bytes, compressed, if it is above [`COMPRESSED_BYTES_MAX`].
pub(crate) fn pieces(value: &impl Serialize) -> Result<Vec<Bytes>, usize> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Neither writing to memory nor writing such values as JSON can fail.
    let _ = serde_json::to_writer(&mut encoder, value);
    let _ = encoder.flush();
    let packed = encoder.finish().unwrap_or_default();
    if packed.len() > COMPRESSED_BYTES_MAX {
        return Err(packed.len());
    }
    let count = packed.len().div_ceil(PIECE_BYTES_MAX);
    let piece = |(number, bytes): (usize, &[u8])| {
        let mut piece = BytesMut::with_capacity(HEAD_BYTES + bytes.len());
        piece.put_u32(number as u32);
        piece.put_u32(count as u32);
        piece.put_slice(bytes);
        piece.freeze()
    };
    Ok(packed.chunks(PIECE_BYTES_MAX).enumerate().map(piece).collect())
}

/// Pieces of values that come one after the other.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    packed: Vec<u8>,
    /// The number of the piece that comes next.
    next: u32,
}

impl Assembler {
    /// Takes a piece; the value when it is the last one. A piece with number 0 begins a new value.
    ///
    /// # Errors
    /// Why the pieces are no value.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, piece: &[u8]) -> Result<Option<T>, String> {
        let Some((head, bytes)) = piece.split_first_chunk::<HEAD_BYTES>() else {
            return Err(format!("a message of {} bytes, expected at least {HEAD_BYTES}", piece.len()));
        };
        let [a, b, c, d, e, f, g, h] = *head;
        let (number, count) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        if number >= count || count as usize > PIECES_MAX || bytes.len() > PIECE_BYTES_MAX {
            return Err(format!("piece {number} of {count} with {} bytes", bytes.len()));
        }
        if number == 0 {
            self.packed.clear();
        } else if number != self.next {
            return Err(format!("piece {number} of {count}, expected piece {}", self.next));
        }
        self.packed.extend_from_slice(bytes);
        self.next = number + 1;
        if self.next < count {
            return Ok(None);
        }
        self.next = 0;
        let packed = std::mem::take(&mut self.packed);
        let unpacked = ZlibDecoder::new(packed.as_slice()).take(VALUE_BYTES_MAX);
        serde_json::from_reader(std::io::BufReader::new(unpacked)).map(Some).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn noise(bytes: usize) -> String {
        let mut state = 1u64;
        let letter = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b' ' + (state >> 57) as u8 % 90)
        };
        (0..bytes).map(letter).collect()
    }

    #[test]
    fn a_value_of_several_pieces_comes_back_whole() {
        let value = vec![noise(2 << 20), "end".to_owned()];
        let pieces = pieces(&value).unwrap();
        assert!(pieces.len() > 2, "{}", pieces.len());
        let mut assembler = Assembler::default();
        for piece in &pieces[..pieces.len() - 1] {
            assert_eq!(assembler.take::<Vec<String>>(piece), Ok(None));
        }
        assert_eq!(assembler.take(&pieces[pieces.len() - 1]), Ok(Some(value)));
    }

    #[test]
    fn a_piece_that_is_missing_is_noticed_and_the_next_value_is_read() {
        let pieces = pieces(&noise(2 << 20)).unwrap();
        let mut assembler = Assembler::default();
        assert_eq!(assembler.take::<String>(&pieces[0]), Ok(None));
        assert!(assembler.take::<String>(&pieces[2]).unwrap_err().contains("expected piece 1"));
        let next = super::pieces(&"next").unwrap();
        assert_eq!(assembler.take::<String>(&next[0]), Ok(Some("next".to_owned())));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Assembler::default().take::<Vec<String>>(&bytes);
        }
    }
}
