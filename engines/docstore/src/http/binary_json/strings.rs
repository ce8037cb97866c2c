//! The forms that a string has in binary JSON: named by a number, as it is, packed into fewer bits, or as a reference to an
//! earlier one.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::Fault;
use super::cursor::Cursor;

/// Strings that are one byte, in the order of these bytes from 0x20 on.
const SYSTEM: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];
const LOWER_HEX: &[u8; 16] = b"0123456789abcdef";
const UPPER_HEX: &[u8; 16] = b"0123456789ABCDEF";
const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";
/// The bytes of a GUID before which a dash stands.
const DASHES: [usize; 4] = [4, 6, 8, 10];

/// The string that begins with `marker`, which is the byte before the cursor; `None` for the marker of another type.
pub(super) fn read<'a>(cursor: &mut Cursor<'a>, marker: u8) -> Result<Option<Cow<'a, str>>, Fault> {
    if !(0xC3..=0xC6).contains(&marker) {
        return plain(cursor, marker);
    }
    let at = cursor.at();
    let place = cursor.size(usize::from(marker - 0xC2))?;
    let mut target = cursor.moved_to(place);
    let dangling = Fault::Damaged { at, expected: "a reference to a string" };
    // The target of a reference is no reference itself, so there are no circles.
    match target.byte() {
        Ok(marker) => plain(&mut target, marker)?.ok_or(dangling).map(Some),
        Err(_) => Err(dangling),
    }
}

fn plain<'a>(cursor: &mut Cursor<'a>, marker: u8) -> Result<Option<Cow<'a, str>>, Fault> {
    let text = match marker {
        0x20..=0x3F => Cow::from(SYSTEM[usize::from(marker - 0x20)]),
        0x40..=0x67 => {
            let expected = "a string in the body: it names one of a dictionary";
            return Err(Fault::Damaged { at: cursor.at(), expected });
        }
        0x71 | 0x72 => base64(cursor, usize::from(marker - 0x70), &STANDARD)?.into(),
        0x73 | 0x74 => base64(cursor, usize::from(marker - 0x72), &URL_SAFE)?.into(),
        0x75 => guid_text(cursor, LOWER_HEX)?.into(),
        0x76 => guid_text(cursor, UPPER_HEX)?.into(),
        0x77 => format!("\"{}\"", guid_text(cursor, LOWER_HEX)?).into(),
        0x78 => digits(cursor, LOWER_HEX)?.into(),
        0x79 => digits(cursor, UPPER_HEX)?.into(),
        0x7A => digits(cursor, DATE_TIME)?.into(),
        0x7B..=0x7D => {
            let (length, first) = (cursor.byte()?, cursor.byte()?);
            packed(cursor, usize::from(length), u32::from(marker - 0x77), first)?.into()
        }
        0x7E | 0x7F => {
            let length = cursor.size(usize::from(marker - 0x7D))?;
            packed(cursor, length, 7, 0)?.into()
        }
        0x80..=0xBF => utf8(cursor, usize::from(marker - 0x80))?.into(),
        0xC0 => sized(cursor, 1)?.into(),
        0xC1 => sized(cursor, 2)?.into(),
        0xC2 => sized(cursor, 4)?.into(),
        0xD3 => guid(cursor)?.into(),
        0xDD => bytes(cursor, 1)?.into(),
        0xDE => bytes(cursor, 2)?.into(),
        0xDF => bytes(cursor, 4)?.into(),
        _ => return Ok(None),
    };
    Ok(Some(text))
}

fn utf8<'a>(cursor: &mut Cursor<'a>, length: usize) -> Result<&'a str, Fault> {
    let at = cursor.at();
    std::str::from_utf8(cursor.take(length)?).map_err(|_| Fault::Damaged { at, expected: "UTF-8" })
}

/// A string after its length of `width` bytes.
fn sized<'a>(cursor: &mut Cursor<'a>, width: usize) -> Result<&'a str, Fault> {
    let length = cursor.size(width)?;
    utf8(cursor, length)
}

/// Bytes after their length, which JSON has as base64.
fn bytes(cursor: &mut Cursor<'_>, width: usize) -> Result<String, Fault> {
    let length = cursor.size(width)?;
    Ok(STANDARD.encode(cursor.take(length)?))
}

/// A string that was base64, as the bytes it stood for: how many groups of four characters it had, and how many `=` at its
/// end; that number's complement if they had been left out.
fn base64(cursor: &mut Cursor<'_>, width: usize, alphabet: &impl Engine) -> Result<String, Fault> {
    let at = cursor.at();
    let (characters, padding) = (cursor.size(width)? * 4, cursor.byte()?);
    let is_left_out = padding > 2;
    let padding = usize::from(if is_left_out { !padding } else { padding });
    let length = characters.checked_sub(padding).filter(|_| padding <= 2);
    let length = length.ok_or(Fault::Damaged { at, expected: "base64 of this length" })?;
    let mut text = alphabet.encode(cursor.take(length * 3 / 4)?);
    text.truncate(if is_left_out { length } else { characters });
    Ok(text)
}

/// A GUID whose digits are packed in the order of its text.
fn guid_text(cursor: &mut Cursor<'_>, alphabet: &[u8; 16]) -> Result<String, Fault> {
    let mut text = String::with_capacity(38);
    for (place, byte) in cursor.array::<16>()?.into_iter().enumerate() {
        if DASHES.contains(&place) {
            text.push('-');
        }
        text.extend(pair(byte, alphabet));
    }
    Ok(text)
}

/// A GUID as .NET keeps it, whose first three groups are little-endian numbers.
fn guid(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let bytes = cursor.array::<16>()?;
    let mut text = String::with_capacity(36);
    for (place, from) in ORDER.into_iter().enumerate() {
        if DASHES.contains(&place) {
            text.push('-');
        }
        text.push_str(&format!("{:02x}", bytes[from]));
    }
    Ok(text)
}

/// The two characters of a byte, the low half first.
fn pair(byte: u8, alphabet: &[u8; 16]) -> [char; 2] {
    [byte & 0x0F, byte >> 4].map(|digit| char::from(alphabet[usize::from(digit)]))
}

/// A string of an alphabet of 16 characters, after its length.
fn digits(cursor: &mut Cursor<'_>, alphabet: &[u8; 16]) -> Result<String, Fault> {
    let length = usize::from(cursor.byte()?);
    let mut text: String = cursor.take(length.div_ceil(2))?.iter().flat_map(|&byte| pair(byte, alphabet)).collect();
    text.truncate(length);
    Ok(text)
}

/// A string of ASCII characters from `first` on, each in a few bits, the lowest bits of a byte first.
fn packed(cursor: &mut Cursor<'_>, length: usize, bits: u32, first: u8) -> Result<String, Fault> {
    let at = cursor.at();
    let bytes = cursor.take((length * bits as usize).div_ceil(8))?;
    let mut text = String::with_capacity(length);
    let (mut held, mut count) = (0_u32, 0);
    for &byte in bytes {
        held |= u32::from(byte) << count;
        count += 8;
        while count >= bits && text.len() < length {
            let character = u32::from(first) + (held & ((1 << bits) - 1));
            let ascii = u8::try_from(character).ok().filter(u8::is_ascii);
            text.push(ascii.ok_or(Fault::Damaged { at, expected: "packed ASCII" })?.into());
            held >>= bits;
            count -= bits;
        }
    }
    Ok(text)
}
