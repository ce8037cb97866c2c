//! Blobs: the last message of a subject holds the bytes, or where their parts are if they are too many for one message.
//!
//! Parts are written before the message that refers to them, and deleted after the one that no longer does. A node that
//! ends in between leaves parts that nothing refers to; they only cost room.
//!
//! The message is accepted only behind the one that it replaces. Otherwise a copy that lay in a server which stood still,
//! and was sent again over another one, could come later and put old bytes in the place of newer ones.

use bytes::Bytes;
use narrows_durable::PartitionId;

use super::link::{Behind, Link, RequestFailure, StoredMessage};
use super::record::{Head, Sort, decode, encode};
use super::subjects::Subjects;
use crate::calls::unique_number;

/// Bytes of the message of a long blob: number, length, CRC-32.
const REFERENCE_BYTES: usize = 8 + 8 + 4;
/// How often a blob is put that somebody else puts at the same time.
const ATTEMPTS_MAX: usize = 8;

/// Why a blob cannot be had.
pub(super) enum ReadFailure {
    Failed(RequestFailure),
    Damaged(String),
}

impl From<RequestFailure> for ReadFailure {
    fn from(failed: RequestFailure) -> Self {
        Self::Failed(failed)
    }
}

/// Keeps bytes under a name.
pub(super) async fn put(link: &Link, subjects: &Subjects, name: &str, bytes: &[u8]) -> Result<(), RequestFailure> {
    let head = Head::new(Sort::Blob, PartitionId(0), u64::from(crc32fast::hash(name.as_bytes())));
    let payload = if bytes.len() <= link.body_bytes_max() {
        encode(head, bytes)
    } else {
        let blob = unique_number();
        let mut number = 0_u32;
        for part in bytes.chunks(link.body_bytes_max()) {
            let subject = subjects.part(blob, &number.to_string());
            let payload = Bytes::copy_from_slice(part);
            link.publish(&subjects.parts_stream(), &subject, payload, Behind::any()).await?;
            number += 1;
        }
        let mut body = blob.to_le_bytes().to_vec();
        body.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        body.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
        encode(Head { parts: number, ..head }, &body)
    };
    let (stream, subject, payload) = (subjects.names_stream(), subjects.blob(name), Bytes::from(payload));
    for _ in 0..ATTEMPTS_MAX {
        let before = link.last(&stream, &subject).await?;
        let behind = before.as_ref().map_or_else(Behind::any, |found| Behind::LastOfSubject(found.sequence));
        match link.publish(&stream, &subject, payload.clone(), behind).await {
            Ok(_) => return forget_parts(link, subjects, before.as_ref().and_then(reference)).await,
            Err(RequestFailure::Moved) => {}
            Err(failed) => return Err(failed),
        }
    }
    Err(RequestFailure::Moved)
}

/// The bytes under a name.
pub(super) async fn get(link: &Link, subjects: &Subjects, name: &str) -> Result<Option<Vec<u8>>, ReadFailure> {
    let Some(found) = link.last(&subjects.names_stream(), &subjects.blob(name)).await? else { return Ok(None) };
    let (head, body) = decode(&found.payload).map_err(ReadFailure::Damaged)?;
    if head.sort != Sort::Blob || head.epoch != u64::from(crc32fast::hash(name.as_bytes())) {
        return Err(ReadFailure::Damaged("it is the message of something else".to_owned()));
    }
    if head.parts == 1 {
        return Ok(Some(body.to_vec()));
    }
    let Some((blob, length, crc)) = referred(body) else {
        return Err(ReadFailure::Damaged(format!("a reference of {} bytes, expected {REFERENCE_BYTES}", body.len())));
    };
    let mut bytes = Vec::new();
    for number in 0..head.parts {
        let subject = subjects.part(blob, &number.to_string());
        let Some(part) = link.last(&subjects.parts_stream(), &subject).await? else {
            return Err(ReadFailure::Damaged(format!("part {number} of {} is missing", head.parts)));
        };
        bytes.extend_from_slice(&part.payload);
    }
    if bytes.len() as u64 != length || crc32fast::hash(&bytes) != crc {
        return Err(ReadFailure::Damaged("its checksum does not fit its bytes".to_owned()));
    }
    Ok(Some(bytes))
}

/// Forgets the bytes under a name.
pub(super) async fn delete(link: &Link, subjects: &Subjects, name: &str) -> Result<(), RequestFailure> {
    let (stream, subject) = (subjects.names_stream(), subjects.blob(name));
    let old = link.last(&stream, &subject).await?;
    link.forget(&stream, &subject).await?;
    forget_parts(link, subjects, old.as_ref().and_then(reference)).await
}

/// The raw messages of all blobs whose names begin with `prefix`, with their subjects within the hub.
pub(super) async fn raw(
    link: &Link,
    subjects: &Subjects,
    prefix: &str,
) -> Result<Vec<(String, Bytes)>, RequestFailure> {
    let (names, mut all) = (subjects.names_stream(), Vec::new());
    for subject in link.subjects(&names, &subjects.blobs(prefix)).await? {
        let Some(found) = link.last(&names, &subject).await? else { continue };
        let (blob, parts) = reference(&found).unwrap_or_default();
        all.push((subjects.within(&subject).to_owned(), found.payload));
        for number in 0..parts {
            let subject = subjects.part(blob, &number.to_string());
            let part = link.last(&subjects.parts_stream(), &subject).await?;
            all.extend(part.map(|part| (subjects.within(&subject).to_owned(), part.payload)));
        }
    }
    Ok(all)
}

/// The long blob that a message refers to, and its parts. Only if it is whole: a damaged
/// one could name the parts of another blob.
fn reference(found: &StoredMessage) -> Option<(i64, u32)> {
    let (head, body) = decode(&found.payload).ok()?;
    (head.parts > 1).then(|| referred(body).map(|(blob, ..)| (blob, head.parts)))?
}

async fn forget_parts(link: &Link, subjects: &Subjects, blob: Option<(i64, u32)>) -> Result<(), RequestFailure> {
    let Some((blob, parts)) = blob else { return Ok(()) };
    for number in 0..parts {
        link.forget(&subjects.parts_stream(), &subjects.part(blob, &number.to_string())).await?;
    }
    Ok(())
}

fn referred(body: &[u8]) -> Option<(i64, u64, u32)> {
    let body: &[u8; REFERENCE_BYTES] = body.try_into().ok()?;
    let (blob, rest) = body.split_first_chunk::<8>()?;
    let (length, crc) = rest.split_first_chunk::<8>()?;
    Some((i64::from_le_bytes(*blob), u64::from_le_bytes(*length), u32::from_le_bytes(crc.try_into().ok()?)))
}
