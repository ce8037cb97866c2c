//! Index of a partition: the documents that hold a value at a path. Every scalar outside arrays is indexed, as in Cosmos DB.
//!
//! An entry is the 128-bit hash of path and value, so its size does not grow with either. The index only proposes: the
//! reader confirms each proposal on the document itself, which is what makes a collision harmless.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::murmur::murmur3_x64_128;
use crate::scalar::Scalar;

/// Ascending document positions for each entry.
#[derive(Debug, Default)]
pub(crate) struct Index {
    postings: HashMap<u128, Vec<u32>>,
}

impl Index {
    /// Adds every scalar of `document`, which is at `position`.
    pub(crate) fn add(&mut self, position: u32, document: &Map<String, Value>) {
        self.insert(position, entries_of(document));
    }

    /// Adds the entries of the document at `position`.
    pub(crate) fn insert(&mut self, position: u32, entries: Vec<u128>) {
        for entry in entries {
            let positions = self.postings.entry(entry).or_default();
            if let Err(place) = positions.binary_search(&position) {
                positions.insert(place, position);
            }
        }
    }

    /// Takes out what [`Index::add`] has put in for the same document.
    pub(crate) fn remove(&mut self, position: u32, document: &Map<String, Value>) {
        for entry in entries_of(document) {
            let Some(positions) = self.postings.get_mut(&entry) else { continue };
            if let Ok(place) = positions.binary_search(&position) {
                positions.remove(place);
            }
            if positions.is_empty() {
                self.postings.remove(&entry);
            }
        }
    }

    /// The positions that may hold `value` at `path`, ascending.
    pub(crate) fn proposals(&self, path: &[String], value: &Scalar) -> &[u32] {
        let path = path.iter().fold(0, |parent, step| step_down(parent, step));
        self.postings.get(&leaf(path, value)).map_or(&[], Vec::as_slice)
    }
}

/// The entries of all scalars in a document.
pub(crate) fn entries_of(document: &Map<String, Value>) -> Vec<u128> {
    let mut entries = Vec::new();
    collect(0, document, &mut entries);
    entries
}

/// The recursion is bounded by the depth the JSON parser accepts (128).
fn collect(parent: u128, object: &Map<String, Value>, entries: &mut Vec<u128>) {
    for (step, value) in object {
        let path = step_down(parent, step);
        if let Value::Object(inner) = value {
            collect(path, inner, entries);
        } else if let Some(scalar) = Scalar::from_json(value) {
            entries.push(leaf(path, &scalar));
        }
    }
}

fn step_down(parent: u128, step: &str) -> u128 {
    hash([parent.to_le_bytes().as_slice(), step.as_bytes()].concat())
}

fn leaf(path: u128, value: &Scalar) -> u128 {
    let mut bytes = path.to_le_bytes().to_vec();
    value.encode(&mut bytes);
    hash(bytes)
}

fn hash(bytes: Vec<u8>) -> u128 {
    let (h1, h2) = murmur3_x64_128(&bytes);
    (u128::from(h1) << 64) | u128::from(h2)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_nested_value_is_found_until_it_is_removed() {
        let mut index = Index::default();
        let document = object(json!({"a": {"b": 7}, "c": [1]}));
        let path = ["a".to_owned(), "b".to_owned()];
        index.add(3, &document);
        index.add(1, &document);
        assert_eq!(index.proposals(&path, &Scalar::Number(7.0)), [1, 3]);
        assert_eq!(index.proposals(&path, &Scalar::Number(8.0)), [0_u32; 0]);
        assert_eq!(index.proposals(&["a".to_owned()], &Scalar::Number(7.0)), [0_u32; 0]);
        index.remove(3, &document);
        index.remove(1, &document);
        assert!(index.postings.is_empty());
    }
}
