//! Decoding of binary JSON to text: containers and numbers. Strings are in [`super::strings`].
//!
//! The text grows with every value, also with the references to a string and with the empty arrays that take no bytes in the
//! buffer, so its limit bounds the work.

use std::io::Write;

use super::cursor::Cursor;
use super::{Fault, MAX_DEPTH, strings};

pub(super) struct Reader<'a> {
    cursor: Cursor<'a>,
    text: Vec<u8>,
    limit_bytes: usize,
}

/// How an array or an object says where it ends.
#[derive(Clone, Copy)]
enum Extent {
    /// It has this many items or properties.
    Count(usize),
    /// It ends at this byte, and has this many items or properties if that is said.
    End(usize, Option<usize>),
}

impl<'a> Reader<'a> {
    /// A reader of the value after the preamble.
    pub(super) fn new(bytes: &'a [u8], limit_bytes: usize) -> Self {
        Self { cursor: Cursor::new(bytes, 1), text: Vec::with_capacity(bytes.len()), limit_bytes }
    }

    pub(super) fn whole(mut self) -> Result<Vec<u8>, Fault> {
        self.value(0)?;
        if self.cursor.is_at_end() { Ok(self.text) } else { Err(self.damaged("the end")) }
    }

    fn damaged(&self, expected: &'static str) -> Fault {
        Fault::Damaged { at: self.cursor.at(), expected }
    }

    fn value(&mut self, depth: usize) -> Result<(), Fault> {
        let at = self.cursor.at();
        if depth > MAX_DEPTH {
            return Err(Fault::Damaged { at, expected: "at most 128 levels" });
        }
        let marker = self.cursor.byte()?;
        match marker {
            0xD0 => self.write(b"null")?,
            0xD1 => self.write(b"false")?,
            0xD2 => self.write(b"true")?,
            0xE0..=0xE7 => {
                let extent = self.extent(marker - 0xE0)?;
                self.items(extent, depth, b"[]", Self::value)?;
            }
            0xE8..=0xEF => {
                let extent = self.extent(marker - 0xE8)?;
                self.items(extent, depth, b"{}", Self::property)?;
            }
            0xF0 | 0xF1 => {
                let (kind, count) = (self.kind()?, self.cursor.size(usize::from(marker - 0xEF))?);
                self.numbers(kind, count)?;
            }
            0xF2 | 0xF3 => self.arrays_of_numbers(marker)?,
            _ => match strings::read(&mut self.cursor, marker)? {
                Some(text) => self.string(&text)?,
                None => self.number(marker, at)?,
            },
        }
        Ok(())
    }

    /// Where a container of this form ends: 0 is empty, 1 has one item, 2 to 4 say their length, 5 to 7 also a count.
    fn extent(&mut self, form: u8) -> Result<Extent, Fault> {
        if form < 2 {
            return Ok(Extent::Count(usize::from(form)));
        }
        let width = [1, 2, 4][usize::from(form - 2) % 3];
        let length = self.cursor.size(width)?;
        let count = if form >= 5 { Some(self.cursor.size(width)?) } else { None };
        Ok(Extent::End(self.cursor.at().saturating_add(length), count))
    }

    fn items(
        &mut self,
        extent: Extent,
        depth: usize,
        [open, close]: &[u8; 2],
        item: impl Fn(&mut Self, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.write(&[*open])?;
        let mut count = 0;
        loop {
            let is_done = match extent {
                Extent::Count(expected) => count == expected,
                Extent::End(end, _) => self.cursor.at() >= end,
            };
            if is_done {
                break;
            }
            if count > 0 {
                self.write(b",")?;
            }
            item(self, depth + 1)?;
            count += 1;
        }
        if let Extent::End(end, expected) = extent
            && (self.cursor.at() != end || expected.is_some_and(|expected| expected != count))
        {
            return Err(self.damaged("an array or object of the length and count it says"));
        }
        self.write(&[*close])
    }

    fn property(&mut self, depth: usize) -> Result<(), Fault> {
        let at = self.cursor.at();
        let marker = self.cursor.byte()?;
        let name = strings::read(&mut self.cursor, marker)?.ok_or(Fault::Damaged { at, expected: "a name" })?;
        self.string(&name)?;
        self.write(b":")?;
        self.value(depth)
    }

    /// Type of all numbers of an array.
    fn kind(&mut self) -> Result<u8, Fault> {
        let at = self.cursor.at();
        match self.cursor.byte()? {
            kind @ (0xCD | 0xCE | 0xD7..=0xDC) => Ok(kind),
            _ => Err(Fault::Damaged { at, expected: "a kind of numbers" }),
        }
    }

    /// An array of `count` numbers, none of which says its kind.
    fn numbers(&mut self, kind: u8, count: usize) -> Result<(), Fault> {
        self.items(Extent::Count(count), 0, b"[]", |reader, _| reader.number(kind, reader.cursor.at()))
    }

    /// Arrays of numbers that are all of one kind and of one length.
    fn arrays_of_numbers(&mut self, marker: u8) -> Result<(), Fault> {
        if self.cursor.byte()? != marker - 2 {
            return Err(self.damaged("arrays of numbers"));
        }
        let (kind, width) = (self.kind()?, usize::from(marker - 0xF1));
        let (length, count) = (self.cursor.size(width)?, self.cursor.size(width)?);
        self.items(Extent::Count(count), 0, b"[]", |reader, _| reader.numbers(kind, length))
    }

    fn number(&mut self, marker: u8, at: usize) -> Result<(), Fault> {
        let cursor = &mut self.cursor;
        let text = match marker {
            0x00..=0x1F => marker.to_string(),
            0xC7 => u64::from_le_bytes(cursor.array()?).to_string(),
            0xC8 | 0xD7 => cursor.byte()?.to_string(),
            0xD8 => i8::from_le_bytes(cursor.array()?).to_string(),
            0xC9 | 0xD9 => i16::from_le_bytes(cursor.array()?).to_string(),
            0xCA | 0xDA => i32::from_le_bytes(cursor.array()?).to_string(),
            0xCB | 0xDB => i64::from_le_bytes(cursor.array()?).to_string(),
            0xDC => u32::from_le_bytes(cursor.array()?).to_string(),
            0xCC | 0xCE => double(f64::from_le_bytes(cursor.array()?), at)?,
            0xCD => double(f32::from_le_bytes(cursor.array()?).into(), at)?,
            _ => return Err(Fault::Damaged { at, expected: "a value" }),
        };
        self.write(text.as_bytes())
    }

    fn string(&mut self, text: &str) -> Result<(), Fault> {
        // Text always has a JSON form, and memory takes it.
        serde_json::to_writer(&mut self.text, text).map_err(|_| self.damaged("text"))?;
        self.write(b"")
    }

    fn write(&mut self, text: &[u8]) -> Result<(), Fault> {
        self.text.write_all(text).map_err(|_| Fault::TooLarge)?;
        if self.text.len() > self.limit_bytes { Err(Fault::TooLarge) } else { Ok(()) }
    }
}

/// A floating-point number as the service shows it: as an integer if it is one.
fn double(number: f64, at: usize) -> Result<String, Fault> {
    const TWO_TO_THE_63: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && number.abs() < TWO_TO_THE_63 {
        return Ok((number as i64).to_string());
    }
    let number = serde_json::Number::from_f64(number).ok_or(Fault::Damaged { at, expected: "a finite number" })?;
    Ok(number.to_string())
}
