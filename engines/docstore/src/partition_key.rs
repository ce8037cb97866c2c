//! Partition keys: where a container's key stands in a document, and the values it has there.
//!
//! A key is one path (`Hash`) or a hierarchy of up to three (`MultiHash`). Paths are written `/a/b`, with quotes around a
//! step that holds a slash. Only version 2 of the hash is served, which every current client asks for.

use serde_json::{Map, Value, json};

use crate::scalar::Scalar;

/// Cosmos DB's limit of a hierarchy.
const MAX_PATHS: usize = 3;

/// Where the partition key stands in the documents of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyDefinition {
    paths: Vec<Vec<String>>,
    is_hierarchical: bool,
}

/// The values of a partition key, in the order of its paths.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartitionKey(pub(crate) Vec<Scalar>);

impl KeyDefinition {
    /// The key is the top-level property `name`.
    pub(crate) fn of_property(name: &str) -> Self {
        Self { paths: vec![vec![name.to_owned()]], is_hierarchical: false }
    }

    /// Reads `{"paths": ["/a"], "kind": "Hash", "version": 2}`; the error names the part that is wrong.
    pub(crate) fn from_json(definition: &Value) -> Result<Self, String> {
        let Some(Value::Array(texts)) = definition.get("paths") else {
            return Err(format!("partitionKey is {definition}, expected an object with \"paths\""));
        };
        let is_hierarchical = match definition.get("kind").map(Value::as_str) {
            None | Some(Some("Hash")) => false,
            Some(Some("MultiHash")) => true,
            Some(_) => {
                return Err(format!("partitionKey.kind is {}, expected \"Hash\" or \"MultiHash\"", definition["kind"]));
            }
        };
        let most = if is_hierarchical { MAX_PATHS } else { 1 };
        if texts.is_empty() || texts.len() > most {
            return Err(format!("partitionKey.paths has {} paths, expected 1 to {most}", texts.len()));
        }
        match definition.get("version") {
            None | Some(Value::Null) => {}
            Some(version) if *version == 2 => {}
            Some(version) => return Err(format!("partitionKey.version is {version}, expected 2")),
        }
        let read = |text: &Value| {
            text.as_str()
                .and_then(path_from_text)
                .ok_or_else(|| format!("partitionKey.paths has {text}, expected a path such as \"/owner/id\""))
        };
        Ok(Self { paths: texts.iter().map(read).collect::<Result<_, _>>()?, is_hierarchical })
    }

    /// The definition as clients read it.
    pub(crate) fn to_json(&self) -> Value {
        let paths: Vec<String> = self.paths.iter().map(|path| text_from_path(path)).collect();
        let kind = if self.is_hierarchical { "MultiHash" } else { "Hash" };
        json!({ "paths": paths, "kind": kind, "version": 2 })
    }

    pub(crate) fn is_hierarchical(&self) -> bool {
        self.is_hierarchical
    }

    /// The steps of each path.
    pub(crate) fn paths(&self) -> &[Vec<String>] {
        &self.paths
    }

    /// The key of a document. A missing property is a distinct value; arrays and objects are errors.
    pub(crate) fn of_document(&self, document: &Map<String, Value>) -> Result<PartitionKey, String> {
        let value = |path: &Vec<String>| match value_at(document, path) {
            None => Ok(Scalar::Undefined),
            Some(value) => Scalar::from_json(value).ok_or_else(|| {
                let path = text_from_path(path);
                format!("the partition key {path:?} is an array or an object, expected a scalar")
            }),
        };
        Ok(PartitionKey(self.paths.iter().map(value).collect::<Result<_, _>>()?))
    }
}

impl PartitionKey {
    /// Appends the tagged bytes of every value.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for value in &self.0 {
            value.encode(out);
        }
    }
}

/// The value at `path`, if every step is there.
pub(crate) fn value_at<'a>(document: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(document.get(first)?, |value, step| value.get(step.as_str()))
}

/// The steps of `/a/"b/c"`; `None` if it is no path.
pub(crate) fn path_from_text(text: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.strip_prefix('/')?;
        let end = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => rest.find('/').unwrap_or(rest.len()),
        };
        let step = rest[..end].trim_matches('"');
        if step.is_empty() {
            return None;
        }
        steps.push(step.to_owned());
        rest = &rest[end..];
    }
    if steps.is_empty() { None } else { Some(steps) }
}

/// The text that [`path_from_text`] reads.
pub(crate) fn text_from_path(path: &[String]) -> String {
    let step = |step: &String| if step.contains('/') { format!("/\"{step}\"") } else { format!("/{step}") };
    path.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_at_its_paths() {
        let definition = json!({ "paths": ["/tenant", "/user/id"], "kind": "MultiHash", "version": 2 });
        let key = KeyDefinition::from_json(&definition).unwrap();
        let document = json!({ "tenant": "t", "user": { "id": 7 } });
        let found = key.of_document(document.as_object().unwrap()).unwrap();
        assert_eq!(found, PartitionKey(vec![Scalar::Text("t".into()), Scalar::Number(7.0)]));
        let absent = key.of_document(&Map::new()).unwrap();
        assert_eq!(absent, PartitionKey(vec![Scalar::Undefined, Scalar::Undefined]));
        assert_eq!(key.to_json(), definition);
    }

    #[test]
    fn a_key_that_is_no_scalar_is_an_error() {
        let key = KeyDefinition::of_property("owner");
        let error = key.of_document(json!({ "owner": [] }).as_object().unwrap()).unwrap_err();
        assert_eq!(error, "the partition key \"/owner\" is an array or an object, expected a scalar");
    }

    #[test]
    fn steps_may_be_quoted() {
        assert_eq!(path_from_text("/a/\"b/c\"/d"), Some(["a", "b/c", "d"].map(str::to_owned).to_vec()));
        for text in ["", "a", "/", "/a//b", "/\"a", "/a/"] {
            assert_eq!(path_from_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_definition_says_what_is_wrong_with_it() {
        let cases = [
            (json!(null), "partitionKey is null, expected an object with \"paths\""),
            (json!({ "paths": [] }), "partitionKey.paths has 0 paths, expected 1 to 1"),
            (json!({ "paths": ["/a", "/b"] }), "partitionKey.paths has 2 paths, expected 1 to 1"),
            (json!({ "paths": ["a"] }), "partitionKey.paths has \"a\", expected a path such as \"/owner/id\""),
            (
                json!({ "paths": ["/a"], "kind": "Range" }),
                "partitionKey.kind is \"Range\", expected \"Hash\" or \"MultiHash\"",
            ),
            (json!({ "paths": ["/a"], "version": 1 }), "partitionKey.version is 1, expected 2"),
        ];
        for (definition, expected) in cases {
            assert_eq!(KeyDefinition::from_json(&definition).unwrap_err(), expected);
        }
    }
}
