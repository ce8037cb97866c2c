//! Small files that are replaced as a whole: what sort they are, their bytes, and a checksum over both.

use std::path::Path;

use super::disk::{self, Disk};
use crate::store::{Location, StoreError};

/// Kind of a sealed file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    Hub,
    Epoch,
    End,
    Blob,
}

impl Sort {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Hub => b"NRWhub01",
            Self::Epoch => b"NRWepo01",
            Self::End => b"NRWend01",
            Self::Blob => b"NRWblb01",
        }
    }
}

/// Sort, then the checksum (CRC-32 of IEEE 802.3), then the length of what follows.
const HEAD: usize = 20;

pub(super) fn write(disk: &dyn Disk, path: &Path, sort: Sort, bytes: &[u8]) -> Result<(), StoreError> {
    let mut file = Vec::with_capacity(HEAD + bytes.len());
    file.extend_from_slice(sort.magic());
    file.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    file.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    file.extend_from_slice(bytes);
    disk::replace(disk, path, &file)
}

pub(super) fn read(disk: &dyn Disk, path: &Path, sort: Sort) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(mut file) = disk::read(disk, path)? else { return Ok(None) };
    if file.get(..8) != Some(sort.magic().as_slice()) {
        let what = format!("it does not begin with {:?}", String::from_utf8_lossy(sort.magic()));
        let place = Location::File { path: path.to_owned(), offset: Some(0) };
        // Only the first file of a folder shows whether that is a hub at all.
        return Err(if sort == Sort::Hub {
            StoreError::Foreign { place, what }
        } else {
            StoreError::Damaged { place, what }
        });
    }
    let number = |range: std::ops::Range<usize>| -> Option<u64> {
        file.get(range).map(|bytes| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let (Some(crc), Some(length)) = (number(8..12), number(12..HEAD)) else {
        return Err(disk::damaged(path, file.len() as u64, format!("it ends within its first {HEAD} bytes")));
    };
    let found = (file.len() - HEAD) as u64;
    if found != length {
        return Err(disk::damaged(path, HEAD as u64, format!("{found} bytes follow, expected {length}")));
    }
    let sum = u64::from(crc32fast::hash(&file[HEAD..]));
    if sum != crc {
        return Err(disk::damaged(path, HEAD as u64, format!("its checksum is {sum:08x}, expected {crc:08x}")));
    }
    Ok(Some(file.split_off(HEAD)))
}

/// A number in its own file.
pub(super) fn write_number(disk: &dyn Disk, path: &Path, sort: Sort, number: u64) -> Result<(), StoreError> {
    write(disk, path, sort, &number.to_le_bytes())
}

pub(super) fn read_number(disk: &dyn Disk, path: &Path, sort: Sort) -> Result<Option<u64>, StoreError> {
    let Some(bytes) = read(disk, path, sort)? else { return Ok(None) };
    match <[u8; 8]>::try_from(bytes.as_slice()) {
        Ok(bytes) => Ok(Some(u64::from_le_bytes(bytes))),
        Err(_) => Err(disk::damaged(path, HEAD as u64, format!("{} bytes, expected 8", bytes.len()))),
    }
}
