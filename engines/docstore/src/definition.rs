//! Definition of a container: its name, its partition key, the life of its documents and its unique keys.
//!
//! Policies that the store does not act on (indexing, conflict resolution) are kept and given back as they came.

use serde_json::{Map, Value, json};

use crate::partition_key::{KeyDefinition, path_from_text, text_from_path};

/// Cosmos DB's limit of a name.
const MAX_NAME_BYTES: usize = 255;
/// Cosmos DB's limits of a unique key policy.
const MAX_UNIQUE_KEYS: usize = 10;
const MAX_UNIQUE_PATHS: usize = 16;
/// Policies that are kept as they came.
const KEPT: [&str; 6] = [
    "indexingPolicy",
    "conflictResolutionPolicy",
    "geospatialConfig",
    "analyticalStorageTtl",
    "computedProperties",
    "vectorEmbeddingPolicy",
];

/// The definition of a container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) key: KeyDefinition,
    /// Seconds a document lives; −1 is for ever unless the document says otherwise; none is for ever.
    pub(crate) default_ttl: Option<i64>,
    /// The paths of each unique key.
    pub(crate) unique_keys: Vec<Vec<Vec<String>>>,
    kept: Map<String, Value>,
}

impl Definition {
    /// A container with a partition key and nothing else.
    pub(crate) fn plain(name: &str, key: KeyDefinition) -> Self {
        let mut kept = Map::new();
        kept.insert("indexingPolicy".to_owned(), json!({ "indexingMode": "consistent", "automatic": true }));
        Self { name: name.to_owned(), key, default_ttl: None, unique_keys: Vec::new(), kept }
    }

    /// Reads a client's request to create or change a container; the error names the part that is wrong.
    pub(crate) fn from_json(body: &Map<String, Value>) -> Result<Self, String> {
        let name = name_of(body)?;
        let key = KeyDefinition::from_json(body.get("partitionKey").unwrap_or(&Value::Null))?;
        let mut definition = Self::plain(name, key);
        definition.default_ttl = match body.get("defaultTtl") {
            None | Some(Value::Null) => None,
            Some(ttl) => Some(ttl_from_json(ttl).ok_or_else(|| format!("defaultTtl is {ttl}, expected {TTL}"))?),
        };
        if let Some(policy) = body.get("uniqueKeyPolicy").filter(|policy| !policy.is_null()) {
            definition.unique_keys = unique_keys(policy)?;
        }
        for name in KEPT {
            if let Some(policy) = body.get(name).filter(|policy| !policy.is_null()) {
                definition.kept.insert(name.to_owned(), policy.clone());
            }
        }
        Ok(definition)
    }

    /// The definition as clients read it, without system properties.
    pub(crate) fn to_json(&self) -> Map<String, Value> {
        let mut body = self.kept.clone();
        body.insert("id".to_owned(), json!(self.name));
        body.insert("partitionKey".to_owned(), self.key.to_json());
        if let Some(ttl) = self.default_ttl {
            body.insert("defaultTtl".to_owned(), json!(ttl));
        }
        if !self.unique_keys.is_empty() {
            let text = |path: &Vec<String>| text_from_path(path);
            let key = |paths: &Vec<Vec<String>>| json!({ "paths": paths.iter().map(text).collect::<Vec<_>>() });
            let keys: Vec<Value> = self.unique_keys.iter().map(key).collect();
            body.insert("uniqueKeyPolicy".to_owned(), json!({ "uniqueKeys": keys }));
        }
        body
    }

    /// Whether the container may be changed to `other`: name, partition key and unique keys are for ever.
    pub(crate) fn may_become(&self, other: &Self) -> Result<(), String> {
        if self.name != other.name {
            return Err(format!(
                "the property \"id\" is {:?}, expected {:?}, the name of the path",
                other.name, self.name
            ));
        }
        if self.key != other.key {
            return Err(format!("partitionKey cannot be changed, expected {}", self.key.to_json()));
        }
        if self.unique_keys != other.unique_keys {
            return Err("uniqueKeyPolicy cannot be changed".to_owned());
        }
        Ok(())
    }
}

/// The name of a database or container to be created.
pub(crate) fn name_of(body: &Map<String, Value>) -> Result<&str, String> {
    let Some(Value::String(name)) = body.get("id") else {
        return Err("the property \"id\" is missing or no string, expected a name".to_owned());
    };
    let is_usable = !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(['/', '\\', '?', '#']);
    if is_usable && !name.ends_with(' ') {
        return Ok(name);
    }
    Err(format!(
        "the property \"id\" is {name:?}, expected 1 to {MAX_NAME_BYTES} bytes without / \\ ? # or a space at the end"
    ))
}

/// Values that [`ttl_from_json`] accepts.
pub(crate) const TTL: &str = "-1 or seconds from 1 to 2147483647";

/// A time to live in seconds, −1 for no end.
pub(crate) fn ttl_from_json(ttl: &Value) -> Option<i64> {
    ttl.as_i64().filter(|&ttl| ttl == -1 || (1..=i64::from(i32::MAX)).contains(&ttl))
}

fn unique_keys(policy: &Value) -> Result<Vec<Vec<Vec<String>>>, String> {
    let refused = || {
        format!(
            "uniqueKeyPolicy is {policy}, expected {{\"uniqueKeys\": [{{\"paths\": [\"/a\"]}}]}} with up to \
             {MAX_UNIQUE_KEYS} keys of up to {MAX_UNIQUE_PATHS} paths"
        )
    };
    let keys = match policy.get("uniqueKeys") {
        None => return Ok(Vec::new()),
        Some(keys) => keys.as_array().filter(|keys| keys.len() <= MAX_UNIQUE_KEYS).ok_or_else(refused)?,
    };
    let paths = |key: &Value| {
        let texts = key.get("paths")?.as_array().filter(|paths| (1..=MAX_UNIQUE_PATHS).contains(&paths.len()))?;
        texts.iter().map(|text| path_from_text(text.as_str()?)).collect::<Option<Vec<_>>>()
    };
    keys.iter().map(paths).collect::<Option<Vec<_>>>().ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Definition, String> {
        Definition::from_json(body.as_object().unwrap())
    }

    fn full() -> Value {
        json!({
            "id": "c",
            "partitionKey": { "paths": ["/owner"], "kind": "Hash", "version": 2 },
            "defaultTtl": 60,
            "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/a", "/b/\"c/d\""] }] },
            "indexingPolicy": { "indexingMode": "none" },
        })
    }

    #[test]
    fn a_definition_is_given_back_as_it_came() {
        assert_eq!(Value::Object(read(full()).unwrap().to_json()), full());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("id", json!(""), "the property \"id\" is \"\", expected 1 to 255 bytes"),
            ("id", json!(1), "the property \"id\" is missing or no string"),
            ("defaultTtl", json!(0), "defaultTtl is 0, expected -1 or seconds from 1 to 2147483647"),
            ("uniqueKeyPolicy", json!({ "uniqueKeys": [{}] }), "uniqueKeyPolicy is {\"uniqueKeys\":[{}]}, expected"),
            ("partitionKey", json!(null), "partitionKey is null"),
        ];
        for (property, value, expected) in cases {
            let mut body = full();
            body[property] = value;
            let error = read(body).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn keys_are_for_ever_and_the_rest_is_not() {
        let changed = |property: &str, value: Value| {
            let mut body = full();
            body[property] = value;
            read(full()).unwrap().may_become(&read(body).unwrap())
        };
        assert_eq!(changed("defaultTtl", json!(-1)), Ok(()));
        assert!(changed("id", json!("d")).unwrap_err().contains("expected \"c\""));
        assert!(changed("partitionKey", json!({ "paths": ["/x"] })).unwrap_err().contains("cannot be changed"));
        assert!(changed("uniqueKeyPolicy", Value::Null).unwrap_err().contains("cannot be changed"));
    }
}
