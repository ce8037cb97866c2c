//! A place in a buffer that moves on as bytes are taken, and never past the end.

use super::Fault;

#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Another place in the same buffer.
    pub(super) fn moved_to(&self, at: usize) -> Self {
        Self { at, ..*self }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end).ok_or(Fault::Damaged { at: self.at, expected: "more bytes" })?;
        self.at = end;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A length, count or place of `width` bytes, at most 4.
    pub(super) fn size(&mut self, width: usize) -> Result<usize, Fault> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |size, &byte| (size << 8) | usize::from(byte)))
    }
}
