//! A query ready to run: the body `{"query", "parameters"}` read, its parameters put in place of their names.

use serde_json::{Map, Value};

use crate::partition_key::{KeyDefinition, PartitionKey};
use crate::scalar::Scalar;
use crate::sql::{self, Operand};

/// The equalities a document must meet.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    equalities: Vec<(Vec<String>, Scalar)>,
}

impl Selection {
    /// Reads the body of a query request; the error says what is wrong and where.
    pub(crate) fn from_body(body: &[u8]) -> Result<Self, String> {
        let body = object(body)?;
        let query = match body.get("query") {
            Some(Value::String(query)) => query,
            _ => return Err("the body has no \"query\", expected a string".to_owned()),
        };
        let statement = sql::parse(query).map_err(|error| error.to_string())?;
        let none = Vec::new();
        let parameters = match body.get("parameters") {
            None | Some(Value::Null) => &none,
            Some(Value::Array(parameters)) => parameters,
            Some(_) => return Err("\"parameters\" is no array, expected [{\"name\", \"value\"}]".to_owned()),
        };
        let mut equalities = Vec::with_capacity(statement.conditions.len() + 1);
        for condition in statement.conditions {
            let value = match condition.operand {
                Operand::Literal(value) => value,
                Operand::Parameter(name) => parameter(parameters, &name)?,
            };
            equalities.push((condition.path, value));
        }
        Ok(Self { equalities })
    }

    /// Narrows the selection to one logical partition.
    pub(crate) fn within(mut self, definition: &KeyDefinition, partition_key: PartitionKey) -> Self {
        self.equalities.extend(definition.paths().iter().cloned().zip(partition_key.0));
        self
    }

    /// The equalities an index can resolve: an absent property has no entry.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = (&[String], &Scalar)> {
        self.equalities
            .iter()
            .filter(|(_, value)| *value != Scalar::Undefined)
            .map(|(path, value)| (path.as_slice(), value))
    }

    /// Whether the document with this text meets every equality.
    pub(crate) fn matches(&self, text: &str) -> bool {
        if self.equalities.is_empty() {
            return true;
        }
        let Ok(document) = serde_json::from_str::<Value>(text) else { return false };
        self.equalities.iter().all(|(path, value)| value_at(&document, path).as_ref() == Some(value))
    }
}

/// Reads a body that must be a JSON object; the error names line and column.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("the body is not an object at line 1 column 1, expected {".to_owned()),
        Err(error) => Err(format!("the body is not JSON: {error}")),
    }
}

fn parameter(parameters: &[Value], name: &str) -> Result<Scalar, String> {
    let given = parameters
        .iter()
        .enumerate()
        .find(|(_, parameter)| parameter.get("name").and_then(Value::as_str) == Some(name));
    let Some((index, parameter)) = given else {
        return Err(format!("the query names {name}, which is not among its parameters"));
    };
    match parameter.get("value") {
        None => Err(format!("parameters[{index}] ({name}) has no \"value\", expected a scalar")),
        Some(value) => Scalar::from_json(value)
            .ok_or_else(|| format!("parameters[{index}] ({name}) is an array or an object, expected a scalar")),
    }
}

fn value_at(document: &Value, path: &[String]) -> Option<Scalar> {
    let mut value = document;
    for step in path {
        match value.get(step.as_str()) {
            Some(inner) => value = inner,
            None => return Some(Scalar::Undefined),
        }
    }
    Scalar::from_json(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_take_the_place_of_their_names() {
        let body = br#"{"query":"SELECT * FROM c WHERE c.a=@a AND c.b.d='x'","parameters":[{"name":"@a","value":1}]}"#;
        let selection = Selection::from_body(body).unwrap();
        assert!(selection.matches(r#"{"a":1.0,"b":{"d":"x"}}"#));
        assert!(!selection.matches(r#"{"a":1,"b":{"d":"y"}}"#));
        assert!(!selection.matches(r#"{"a":1}"#));
        assert!(!selection.matches(r#"{"a":[1],"b":{"d":"x"}}"#));
    }

    #[test]
    fn a_bad_body_says_what_and_where() {
        let cases = [
            ("{\"query\" 1}", "the body is not JSON: expected `:` at line 1 column 10"),
            ("[]", "the body is not an object at line 1 column 1"),
            ("{}", "the body has no \"query\""),
            (r#"{"query":"SELECT * FROM c WHERE c.a=@a"}"#, "the query names @a, which is not among its parameters"),
            (r#"{"query":"SELECT * FROM c","parameters":1}"#, "\"parameters\" is no array"),
            (
                r#"{"query":"SELECT * FROM c WHERE c.a=@a","parameters":[{"name":"@a","value":[]}]}"#,
                "parameters[0] (@a) is an array or an object",
            ),
        ];
        for (body, expected) in cases {
            let error = Selection::from_body(body.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }
}
