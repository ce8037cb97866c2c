//! A document as its writer gave it: JSON whose properties keep their order.
//!
//! System properties that a client sends back with a document it has read are taken off; the store writes its own after the
//! document's.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// The properties that are the store's.
pub(crate) const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// A JSON value with the properties of its objects in the order of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// Neither an array nor an object.
    Scalar(Value),
    Array(Vec<Node>),
    Object(Properties),
}

/// The properties of an object, each name once.
pub(crate) type Properties = Vec<(String, Node)>;

/// A document without system properties.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    properties: Properties,
    /// Number of properties at the top, system properties included; a write is charged by it.
    sent: usize,
}

impl Document {
    pub(crate) fn new(mut properties: Properties) -> Self {
        let sent = properties.len();
        properties.retain(|(name, _)| !SYSTEM_PROPERTIES.contains(&name.as_str()));
        Self { properties, sent }
    }

    /// Reads a body that must be a JSON object; the error names line and column.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, String> {
        match serde_json::from_slice(body) {
            Ok(Node::Object(properties)) => Ok(Self::new(properties)),
            Ok(_) => Err("the body is not an object at line 1 column 1, expected {".to_owned()),
            Err(error) => Err(format!("the body is not JSON: {error}")),
        }
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The number of properties a write is charged by.
    pub(crate) fn sent(&self) -> usize {
        self.sent
    }

    /// The same properties for those who look them up by name.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        self.properties.iter().map(|(name, node)| (name.clone(), node.to_value())).collect()
    }

    /// The text of the document with `system`, the properties of the store as JSON without braces, at its end.
    pub(crate) fn text_with(&self, system: &str) -> Box<str> {
        // A node always has a JSON text.
        let mut text = serde_json::to_string(&Object(&self.properties)).unwrap_or_default();
        text.pop();
        if !self.properties.is_empty() {
            text.push(',');
        }
        text.push_str(system);
        text.push('}');
        text.into_boxed_str()
    }
}

impl From<Map<String, Value>> for Document {
    fn from(fields: Map<String, Value>) -> Self {
        Self::new(fields.into_iter().map(|(name, value)| (name, Node::from(value))).collect())
    }
}

impl Node {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Scalar(value) => value.clone(),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(properties) => {
                Value::Object(properties.iter().map(|(name, node)| (name.clone(), node.to_value())).collect())
            }
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Object(fields.into_iter().map(|(name, value)| (name, Self::from(value))).collect())
            }
            scalar => Self::Scalar(scalar),
        }
    }
}

/// Sets a property in its place, or after the others.
pub(crate) fn set(properties: &mut Properties, name: String, node: Node) {
    match properties.iter_mut().find(|(existing, _)| *existing == name) {
        Some((_, existing)) => *existing = node,
        None => properties.push((name, node)),
    }
}

struct Object<'a>(&'a Properties);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, node) in self.0 {
            map.serialize_entry(name, node)?;
        }
        map.end()
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(value) => value.serialize(serializer),
            Self::Object(properties) => Object(properties).serialize(serializer),
            Self::Array(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(number)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(text)))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Scalar(Value::from(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Node::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut properties = Properties::new();
        while let Some((name, node)) = map.next_entry::<String, Node>()? {
            properties.push((name, node));
        }
        Ok(Node::Object(each_once(properties)))
    }
}

/// Of properties with the same name, the last one counts.
fn each_once(properties: Properties) -> Properties {
    let mut seen = std::collections::HashSet::new();
    let is_last: Vec<bool> = properties.iter().rev().map(|(name, _)| seen.insert(name.clone())).collect();
    properties
        .into_iter()
        .zip(is_last.into_iter().rev())
        .filter(|(_, is_last)| *is_last)
        .map(|(pair, _)| pair)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> String {
        Document::parse(body.as_bytes()).unwrap().text_with(r#""_ts":1"#).into_string()
    }

    #[test]
    fn properties_keep_their_order_and_their_system_properties_not() {
        let body = r#"{ "z": {"b": 1, "a": [2.50, "x"]}, "_ts": 9, "id": "1", "_etag": "e" }"#;
        assert_eq!(text(body), r#"{"z":{"b":1,"a":[2.5,"x"]},"id":"1","_ts":1}"#);
        assert_eq!(Document::parse(body.as_bytes()).unwrap().sent(), 4);
        assert_eq!(text("{}"), r#"{"_ts":1}"#);
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        assert_eq!(text(r#"{"a":1,"b":2,"a":3}"#), r#"{"b":2,"a":3,"_ts":1}"#);
    }

    #[test]
    fn numbers_are_written_as_they_are_by_the_json_library() {
        for number in ["0", "-7", "18446744073709551615", "0.1", "1e300", "-0.0"] {
            let expected = serde_json::from_str::<Value>(number).unwrap().to_string();
            assert_eq!(text(&format!("{{\"n\":{number}}}")), format!("{{\"n\":{expected},\"_ts\":1}}"));
        }
    }

    #[test]
    fn a_text_that_is_too_deep_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(500), "]".repeat(500));
        assert!(Document::parse(deep.as_bytes()).unwrap_err().contains("recursion limit"));
        assert!(Document::parse(b"[]").unwrap_err().contains("expected {"));
    }
}
