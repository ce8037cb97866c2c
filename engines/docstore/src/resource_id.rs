//! Resource ids (`_rid`): the internal names clients may use instead of the user's names.
//!
//! A database is 4 bytes, a container those and 4 more, a document those and 8 more, in base64 with `-` for `/` so that
//! the id can stand in a path.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
/// The first database's number; any would do.
const DATABASE: [u8; 4] = [0x6E, 0x61, 0x72, 0x00];

/// The id of the one database.
pub(crate) fn database() -> String {
    base64(&DATABASE)
}

/// The id of container number `container`.
pub(crate) fn container(container: u32) -> String {
    base64(&container_bytes(container))
}

/// The id of document number `document` of a container.
pub(crate) fn document(container: u32, document: u64) -> String {
    let mut bytes = [0_u8; 16];
    bytes[..8].copy_from_slice(&container_bytes(container));
    bytes[8..].copy_from_slice(&document.to_be_bytes());
    base64(&bytes)
}

fn container_bytes(container: u32) -> [u8; 8] {
    let mut bytes = [0_u8; 8];
    bytes[..4].copy_from_slice(&DATABASE);
    // The top bit distinguishes a container from the other children a database may have.
    bytes[4..].copy_from_slice(&(container | 0x8000_0000).to_be_bytes());
    bytes
}

fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| (word << 8) | u32::from(byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let sextet = (word >> (18 - 6 * digit)) & 63;
            out.push(if digit <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_like_the_standard() {
        for (bytes, expected) in [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }

    #[test]
    fn ids_differ_and_keep_out_of_the_path_separator() {
        assert_ne!(container(0), container(1));
        assert_ne!(document(0, 1), document(1, 1));
        assert!((0..1_000).all(|number| !document(number, u64::from(number) << 40).contains('/')));
    }
}
