//! Resource ids (`_rid`): the internal names clients may use instead of the user's names.
//!
//! A database is 4 bytes, a container those and 4 more, a document those and 8 more, in base64 with `-` for `/` so that
//! the id can stand in a path.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
/// The first database's number; any would do.
const FIRST_DATABASE: u32 = 0x6E61_7200;

/// The numbers that a container's resource id is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContainerId {
    pub(crate) database: u32,
    pub(crate) container: u32,
}

/// Numbers of databases and containers are below this, so that all kinds of ids hold them.
pub(crate) const NUMBERS: u32 = 1 << 24;

/// The id of database number `database`.
pub(crate) fn database(database: u32) -> String {
    base64(&database_bytes(database))
}

/// The id of the offer of a database or container with this number.
pub(crate) fn offer(number: u32) -> String {
    base64(&number.to_be_bytes()[1..])
}

fn database_bytes(database: u32) -> [u8; 4] {
    FIRST_DATABASE.wrapping_add(database).to_be_bytes()
}

impl ContainerId {
    /// The container's id.
    pub(crate) fn text(self) -> String {
        base64(&self.bytes())
    }

    /// The id of document number `document` of the container.
    pub(crate) fn document(self, document: u64) -> String {
        let mut bytes = [0_u8; 16];
        bytes[..8].copy_from_slice(&self.bytes());
        // Clients take the upper half of the last byte for the kind of resource, where 0 is a document.
        bytes[8..].copy_from_slice(&document.to_le_bytes());
        base64(&bytes)
    }

    /// The container's address by ids, as in `_self`.
    pub(crate) fn path(self) -> String {
        format!("dbs/{}/colls/{}/", database(self.database), self.text())
    }

    fn bytes(self) -> [u8; 8] {
        let mut bytes = [0_u8; 8];
        bytes[..4].copy_from_slice(&database_bytes(self.database));
        // The top bit distinguishes a container from the other children a database may have.
        bytes[4..].copy_from_slice(&(self.container | 0x8000_0000).to_be_bytes());
        bytes
    }
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
        let id = |database, container| ContainerId { database, container };
        assert_ne!(id(0, 0).text(), id(0, 1).text());
        assert_ne!(id(0, 0).text(), id(1, 0).text());
        assert_ne!(id(0, 0).document(1), id(1, 0).document(1));
        assert!((0..1_000).all(|number| !id(0, number).document(u64::from(number) << 40).contains('/')));
        assert!((0..1_000).all(|number| !offer(number).contains('/')));
    }
}
