//! The values that expressions work on: JSON with the order of properties kept, and one more value, undefined.
//!
//! Numbers are doubles, as in Cosmos DB, and print without a fraction where they have none. A whole number of a document
//! keeps all its digits, and is computed and compared as the double next to it. Undefined is what a
//! missing property gives; it never enters an array or an object.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::scalar::Scalar;

/// The greatest magnitude below which a whole number is printed by its digits alone.
const WHOLE: f64 = 1e17;

/// A JSON value or undefined.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// A whole number that a double would not print with these digits.
    Long(i64),
    Text(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// A number, or undefined where the result is not finite: JSON has no infinity.
    pub(crate) fn number(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Undefined }
    }

    /// A whole number with all its digits.
    fn whole(number: i64) -> Self {
        let double = number as f64;
        if double.abs() < WHOLE && double as i64 == number { Self::Number(double) } else { Self::Long(number) }
    }

    /// The number to compute with.
    pub(crate) fn double(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Long(number) => Some(*number as f64),
            _ => None,
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        self.double().is_some()
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// The property `name` of an object; undefined if it has no such property.
    pub(crate) fn property(&self, name: &str) -> &Self {
        let Self::Object(properties) = self else { return &Self::Undefined };
        properties.iter().rfind(|(key, _)| key == name).map_or(&Self::Undefined, |(_, value)| value)
    }

    /// The element at this index of an array; undefined if the index is no whole number or out of range.
    pub(crate) fn element(&self, index: f64) -> &Self {
        let Self::Array(elements) = self else { return &Self::Undefined };
        if index < 0.0 || index.fract() != 0.0 {
            return &Self::Undefined;
        }
        elements.get(index as usize).unwrap_or(&Self::Undefined)
    }

    /// Whether it is neither an array nor an object.
    pub(crate) fn is_scalar(&self) -> bool {
        !matches!(self, Self::Array(_) | Self::Object(_))
    }

    /// Number of properties to search for one of them.
    pub(crate) fn properties(&self) -> usize {
        if let Self::Object(properties) = self { properties.len() } else { 0 }
    }

    /// The value as an index or a partition key knows it; `None` if it is an array or an object.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Undefined => Some(Scalar::Undefined),
            Self::Null => Some(Scalar::Null),
            Self::Bool(flag) => Some(Scalar::Bool(*flag)),
            Self::Number(number) => Some(Scalar::Number(*number)),
            Self::Long(number) => Some(Scalar::Number(*number as f64)),
            Self::Text(text) => Some(Scalar::Text(text.clone())),
            Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Memory of the value, in bytes: the measure for work on it.
    pub(crate) fn weight(&self) -> usize {
        let own = size_of::<Self>();
        match self {
            Self::Text(text) => own + text.len(),
            Self::Array(elements) => elements.iter().fold(own, |sum, element| sum + element.weight()),
            Self::Object(properties) => properties
                .iter()
                .fold(own, |sum, (name, value)| sum + size_of::<String>() + name.len() + value.weight()),
            _ => own,
        }
    }

    /// Deep equality; the order of properties does not matter.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array(one), Self::Array(other)) if one.len() != other.len() => false,
            (Self::Object(one), Self::Object(other)) if one.len() != other.len() => false,
            _ => self.order(other) == Ordering::Equal,
        }
    }

    /// The order of ORDER BY, MIN and MAX: undefined, null, booleans, numbers, texts, arrays, objects.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Array(one), Self::Array(other)) => order_arrays(one, other),
            (Self::Object(one), Self::Object(other)) => order_objects(one, other),
            _ => match (self.double(), other.double()) {
                // Adding zero turns -0 into 0.
                (Some(one), Some(other)) => (one + 0.0).total_cmp(&(other + 0.0)),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }

    /// The place of the value's type in the order of types.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Undefined => 0,
            Self::Null => 1,
            Self::Bool(_) => 2,
            Self::Number(_) | Self::Long(_) => 3,
            Self::Text(_) => 4,
            Self::Array(_) => 5,
            Self::Object(_) => 6,
        }
    }

    /// A text that equal values share and different values do not: properties sorted.
    pub(crate) fn canonical(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out, Properties::Sorted);
        out
    }

    fn write(&self, out: &mut impl Write, properties: Properties) -> fmt::Result {
        match self {
            Self::Undefined => out.write_str("undefined"),
            Self::Null => out.write_str("null"),
            Self::Bool(flag) => write!(out, "{flag}"),
            Self::Number(number) => write_number(out, *number),
            Self::Long(number) => match properties {
                Properties::AsWritten => write!(out, "{number}"),
                Properties::Sorted => write_number(out, *number as f64),
            },
            Self::Text(text) => write_text(out, text),
            Self::Array(elements) => {
                out.write_char('[')?;
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.write_char(',')?;
                    }
                    element.write(out, properties)?;
                }
                out.write_char(']')
            }
            Self::Object(pairs) => write_object(out, pairs, properties),
        }
    }
}

/// The JSON text; undefined has no JSON and prints as its name.
impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, Properties::AsWritten)
    }
}

/// In which order properties are written.
#[derive(Debug, Clone, Copy)]
enum Properties {
    AsWritten,
    Sorted,
}

fn write_object(out: &mut impl Write, pairs: &[(String, Value)], properties: Properties) -> fmt::Result {
    let mut pairs: Vec<&(String, Value)> = pairs.iter().collect();
    if matches!(properties, Properties::Sorted) {
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    out.write_char('{')?;
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write_text(out, name)?;
        out.write_char(':')?;
        value.write(out, properties)?;
    }
    out.write_char('}')
}

fn write_number(out: &mut impl Write, number: f64) -> fmt::Result {
    if number.fract() == 0.0 && number.abs() < WHOLE {
        // -0 prints as 0.
        return write!(out, "{}", number as i64);
    }
    match serde_json::to_string(&number) {
        Ok(text) => out.write_str(&text),
        Err(_) => Err(fmt::Error),
    }
}

pub(super) fn write_text(out: &mut impl Write, text: &str) -> fmt::Result {
    match serde_json::to_string(text) {
        Ok(text) => out.write_str(&text),
        Err(_) => Err(fmt::Error),
    }
}

fn order_arrays(one: &[Value], other: &[Value]) -> Ordering {
    let differing = one.iter().zip(other).map(|(one, other)| one.order(other)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| one.len().cmp(&other.len()))
}

/// The places of properties in the order of their names.
fn places_by_name(pairs: &[(String, Value)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..pairs.len()).collect();
    places.sort_by(|&left, &right| pairs[left].0.cmp(&pairs[right].0));
    places
}

fn order_objects(one: &[(String, Value)], other: &[(String, Value)]) -> Ordering {
    let (left, right) = (places_by_name(one), places_by_name(other));
    let differing = left.iter().zip(&right).map(|(&left, &right)| {
        let ((one_name, one_value), (other_name, other_value)) = (&one[left], &other[right]);
        one_name.cmp(other_name).then_with(|| one_value.order(other_value))
    });
    differing.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(flag) => Self::Bool(*flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::whole(whole),
                None => number.as_f64().map_or(Self::Undefined, Self::number),
            },
            serde_json::Value::String(text) => Self::Text(text.clone()),
            serde_json::Value::Array(elements) => Self::Array(elements.iter().map(Self::from).collect()),
            serde_json::Value::Object(properties) => {
                Self::Object(properties.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::whole(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Number(number as f64), Value::whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element()? {
            array.push(element);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut properties: A) -> Result<Value, A::Error> {
        let mut object = Vec::new();
        while let Some(property) = properties.next_entry()? {
            object.push(property);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_text_comes_back_as_it_was_written() {
        let text = r#"{"z":1,"a":[true,null,"ü\n",1.5,-3],"b":{"y":{},"x":[]}}"#;
        assert_eq!(read(text).to_string(), text);
        assert_eq!(read("[5.0,1e2,-0.0,1e300]").to_string(), "[5,100,0,1e+300]");
    }

    #[test]
    fn a_whole_number_keeps_its_digits_and_compares_as_a_double() {
        let text = "[9007199254740993,-9223372036854775807,9223372036854775807]";
        assert_eq!(read(text).to_string(), text);
        assert_eq!(
            read("[9007199254740992,1152921504606846976]").to_string(),
            "[9007199254740992,1152921504606846976]"
        );
        let (long, double) = (read("9007199254740993"), read("9007199254740992.0"));
        assert!(long.equals(&double) && long.canonical() == double.canonical() && long.scalar() == double.scalar());
        assert_eq!(long.order(&read("9007199254740995")), Ordering::Less);
        assert_eq!(long.order(&read("\"a\"")), Ordering::Less);
    }

    #[test]
    fn equality_ignores_the_order_of_properties() {
        assert!(read(r#"{"a":1,"b":[{"c":2,"d":3}]}"#).equals(&read(r#"{"b":[{"d":3,"c":2}],"a":1}"#)));
        assert!(!read(r#"{"a":1}"#).equals(&read(r#"{"a":1,"b":1}"#)));
        assert_eq!(read(r#"{"b":1,"a":2}"#).canonical(), read(r#"{"a":2.0,"b":1}"#).canonical());
    }

    #[test]
    fn types_are_ordered() {
        let ascending = ["null", "false", "true", "-1", "2", "\"A\"", "\"a\"", "[]", "[1]", "{}"].map(read);
        for pair in ascending.windows(2) {
            assert_eq!(pair[0].order(&pair[1]), Ordering::Less, "{} {}", pair[0], pair[1]);
        }
        assert_eq!(Value::Undefined.order(&Value::Null), Ordering::Less);
    }
}
