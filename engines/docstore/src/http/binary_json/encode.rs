//! Encoding of documents as binary JSON, in the forms that every client reads: numbers in their widest form unless they
//! are one byte, strings as they are, and containers with length and count.

use serde_json::Value;

use super::PREAMBLE;
use crate::document::Node;

/// The bytes that begin arrays with a length and a count of 1, 2 and 4 bytes.
const ARRAYS: [u8; 3] = [0xE5, 0xE6, 0xE7];
const OBJECTS: [u8; 3] = [0xED, 0xEE, 0xEF];

/// A JSON text as binary JSON.
///
/// # Errors
///
/// That it is not JSON.
pub(in super::super) fn encoded(text: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(text.len());
    bytes.push(PREAMBLE);
    node(&serde_json::from_slice(text)?, &mut bytes);
    Ok(bytes)
}

fn node(node: &Node, out: &mut Vec<u8>) {
    let mut content = Vec::new();
    match node {
        Node::Scalar(value) => scalar(value, out),
        Node::Array(items) => {
            items.iter().for_each(|item| self::node(item, &mut content));
            container(ARRAYS, items.len(), &content, out);
        }
        Node::Object(properties) => {
            for (name, value) in properties {
                string(name, &mut content);
                self::node(value, &mut content);
            }
            container(OBJECTS, properties.len(), &content, out);
        }
    }
}

fn container(markers: [u8; 3], count: usize, content: &[u8], out: &mut Vec<u8>) {
    // An item has at least one byte, so that a count needs no more bytes than a length.
    let width = width(content.len());
    out.push(markers[width / 2]);
    size(content.len(), width, out);
    size(count, width, out);
    out.extend_from_slice(content);
}

fn scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(false) => out.push(0xD1),
        Value::Bool(true) => out.push(0xD2),
        Value::String(text) => string(text, out),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(small @ 0..=0x1F), ..) => out.push(small as u8),
            (Some(integer), ..) => fixed(0xCB, integer.to_le_bytes(), out),
            (None, Some(integer), _) => fixed(0xC7, integer.to_le_bytes(), out),
            (None, None, double) => fixed(0xCC, double.unwrap_or_default().to_le_bytes(), out),
        },
        // A scalar is no array and no object.
        Value::Null | Value::Array(_) | Value::Object(_) => out.push(0xD0),
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    if text.len() < 0x40 {
        out.push(0x80 | text.len() as u8);
    } else {
        let width = width(text.len());
        out.push(0xC0 + (width / 2) as u8);
        size(text.len(), width, out);
    }
    out.extend_from_slice(text.as_bytes());
}

fn fixed(marker: u8, bytes: [u8; 8], out: &mut Vec<u8>) {
    out.push(marker);
    out.extend_from_slice(&bytes);
}

/// The bytes that a length takes: 1, 2 or 4. A document is far below what 4 can say.
fn width(length: usize) -> usize {
    match length {
        0..=0xFF => 1,
        0x100..=0xFFFF => 2,
        _ => 4,
    }
}

fn size(size: usize, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&size.to_le_bytes()[..width]);
}
