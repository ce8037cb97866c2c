//! The first bytes of a connection, and those before each message.

use std::io::{self, Read, Write};

const MAGIC: [u8; 8] = *b"NRWbus01";
const SECRET_BYTES_MAX: usize = 255;

/// How a connection begins: magic, length of the secret, the secret, sender, connection.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) secret: String,
    /// A number of the sender's own.
    pub(super) sender: u64,
    /// Which of the sender's connections it is.
    pub(super) connection: u64,
}

/// The part of the secret that is sent.
fn sent(secret: &str) -> &[u8] {
    &secret.as_bytes()[..secret.len().min(SECRET_BYTES_MAX)]
}

impl Head {
    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let secret = sent(&self.secret);
        let mut head = MAGIC.to_vec();
        head.push(u8::try_from(secret.len()).unwrap_or(u8::MAX));
        head.extend_from_slice(secret);
        head.extend_from_slice(&self.sender.to_le_bytes());
        head.extend_from_slice(&self.connection.to_le_bytes());
        stream.write_all(&head)
    }

    /// Sender and connection; an error if the stream begins otherwise or with another secret.
    pub(super) fn read(stream: &mut impl Read, secret: &str) -> io::Result<(u64, u64)> {
        let expected = sent(secret);
        let mut begin = [0; MAGIC.len() + 1];
        stream.read_exact(&mut begin)?;
        if begin[..MAGIC.len()] != MAGIC || usize::from(begin[MAGIC.len()]) != expected.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut found = vec![0; expected.len()];
        stream.read_exact(&mut found)?;
        if found != expected {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (mut sender, mut connection) = ([0; 8], [0; 8]);
        stream.read_exact(&mut sender)?;
        stream.read_exact(&mut connection)?;
        Ok((u64::from_le_bytes(sender), u64::from_le_bytes(connection)))
    }
}

/// Writes a message with its header: length and CRC-32.
pub(super) fn write_message(stream: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(&crc32fast::hash(message).to_le_bytes())?;
    stream.write_all(message)
}

/// The next message, of at most `bytes_max`. No more room is taken than bytes have come.
pub(super) fn read_message(stream: &mut impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let (mut length, mut crc) = ([0; 4], [0; 4]);
    stream.read_exact(&mut length)?;
    stream.read_exact(&mut crc)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = Vec::new();
    stream.take(length as u64).read_to_end(&mut message)?;
    if message.len() != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if crc32fast::hash(&message) != u32::from_le_bytes(crc) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_other_programs_and_hubs_are_refused() {
        let mut bytes = Vec::new();
        Head { secret: "ours".to_owned(), sender: 7, connection: 9 }.write(&mut bytes).expect("written");
        assert_eq!(Head::read(&mut &bytes[..], "ours").expect("read"), (7, 9));
        assert!(Head::read(&mut &bytes[..], "else").is_err());
        assert!(Head::read(&mut &b"GET / HTTP/1.1\r\n\r\n"[..], "ours").is_err());
        for at in 0..bytes.len() {
            assert!(Head::read(&mut &bytes[..at], "ours").is_err(), "cut at {at}");
        }
    }

    #[test]
    fn messages_that_are_cut_changed_or_too_long_are_refused() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, b"message").expect("written");
        assert_eq!(read_message(&mut &bytes[..], 7).expect("read"), b"message");
        assert!(read_message(&mut &bytes[..], 6).is_err());
        for at in 0..bytes.len() {
            assert!(read_message(&mut &bytes[..at], 100).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(read_message(&mut &changed[..], 100).is_err(), "changed at {at}");
        }
    }
}
