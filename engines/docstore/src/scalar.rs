//! The values a partition key, a predicate or an index entry can have, and the one byte form that serves all three.
//!
//! The form is Cosmos DB's "hashing v2": a type tag, then a number's eight bytes or a text's bytes ended by 0xFF (which
//! UTF-8 never holds), so one encoding is never the beginning of another. Numbers are doubles, as in the original.

use serde_json::Value;

/// One comparable JSON value; `Undefined` is the value of a property that is not there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
}

impl Scalar {
    /// `None` if the value is an array or an object.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self::Null),
            Value::Bool(flag) => Some(Self::Bool(*flag)),
            Value::Number(number) => number.as_f64().map(Self::Number),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Appends the tagged bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Undefined => out.push(0x00),
            Self::Null => out.push(0x01),
            Self::Bool(false) => out.push(0x02),
            Self::Bool(true) => out.push(0x03),
            Self::Number(number) => {
                out.push(0x05);
                // Adding zero turns -0 into 0: equal numbers must have equal bytes.
                out.extend_from_slice(&(number + 0.0).to_le_bytes());
            }
            Self::Text(text) => {
                out.push(0x08);
                out.extend_from_slice(text.as_bytes());
                out.push(0xFF);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        Scalar::from_json(value).unwrap().encode(&mut out);
        out
    }

    #[test]
    fn equal_numbers_have_equal_bytes_however_they_are_written() {
        assert_eq!(bytes(&json!(5)), bytes(&json!(5.0)));
        assert_eq!(bytes(&json!(0)), bytes(&json!(-0.0)));
        assert_ne!(bytes(&json!(5)), bytes(&json!("5")));
    }

    #[test]
    fn a_text_is_tagged_and_ended() {
        assert_eq!(bytes(&json!("o0")), [0x08, b'o', b'0', 0xFF]);
    }

    #[test]
    fn arrays_and_objects_are_no_scalars() {
        assert_eq!(Scalar::from_json(&json!([])), None);
        assert_eq!(Scalar::from_json(&json!({})), None);
    }
}
