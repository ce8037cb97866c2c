//! Partial updates: the operations of Cosmos DB's PATCH on a document, in order, all or nothing.

use serde_json::{Value, json};

use crate::document::{Document, Node, Properties, SYSTEM_PROPERTIES, set};
use crate::query::Selection;

/// Cosmos DB's limit of a patch.
const MAX_OPERATIONS: usize = 10;

/// A patch as a client sends it.
#[derive(Debug)]
pub(crate) struct Patch {
    operations: Vec<Change>,
    condition: Option<Selection>,
}

#[derive(Debug)]
struct Change {
    kind: Kind,
    path: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Add(Node),
    Set(Node),
    Replace(Node),
    Remove,
    Increment(Value),
    Move { from: Vec<String> },
}

impl Patch {
    /// Reads `{"operations": [{"op", "path", "value"}], "condition": "from c where …"}`, or the array of operations alone;
    /// the error names the operation.
    pub(crate) fn from_json(body: &Value) -> Result<Self, String> {
        let list = if body.is_array() { body } else { &body["operations"] };
        let operations = list
            .as_array()
            .filter(|operations| (1..=MAX_OPERATIONS).contains(&operations.len()))
            .ok_or_else(|| format!("the body has no \"operations\", expected an array of 1 to {MAX_OPERATIONS}"))?;
        let read =
            |(index, operation)| Change::from_json(operation).map_err(|error| format!("operations[{index}]: {error}"));
        let operations = operations.iter().enumerate().map(read).collect::<Result<_, String>>()?;
        let condition = match &body["condition"] {
            Value::Null => None,
            Value::String(condition) => {
                let query = json!({ "query": format!("SELECT * {condition}") }).to_string();
                Some(Selection::from_body(query.as_bytes()).map_err(|error| format!("condition: {error}"))?)
            }
            other => return Err(format!("condition is {other}, expected text such as \"from c where c.a = 1\"")),
        };
        Ok(Self { operations, condition })
    }

    /// The document with this text after the patch; `None` if it does not meet the condition. Paths in `fixed` and those of
    /// the store cannot be changed.
    pub(super) fn applied_to(&self, text: &str, fixed: &[Vec<String>]) -> Result<Option<Document>, String> {
        if let Some(condition) = &self.condition {
            let is_met = condition.matches(text).map_err(|_| "condition: it does too much work for one document")?;
            if !is_met {
                return Ok(None);
            }
        }
        let mut root = Node::Object(Document::parse(text.as_bytes())?.properties().clone());
        for (index, change) in self.operations.iter().enumerate() {
            let done = change.check(fixed).and_then(|()| change.apply(&mut root));
            done.map_err(|error| format!("operations[{index}]: {error}"))?;
        }
        match root {
            Node::Object(properties) => Ok(Some(Document::new(properties))),
            Node::Array(_) | Node::Scalar(_) => Err("the document is no object".to_owned()),
        }
    }
}

impl Change {
    fn from_json(operation: &Value) -> Result<Self, String> {
        let path_of = |name: &str| {
            let text = operation[name].as_str().and_then(pointer);
            text.ok_or_else(|| format!("{name} is {}, expected a path such as \"/a/0\"", operation[name]))
        };
        let value = || {
            let value = operation.get("value").cloned();
            value.ok_or_else(|| "value is missing".to_owned())
        };
        let kind = match operation["op"].as_str() {
            Some("add") => Kind::Add(value()?.into()),
            Some("set") => Kind::Set(value()?.into()),
            Some("replace") => Kind::Replace(value()?.into()),
            Some("remove") => Kind::Remove,
            Some("incr" | "increment") => match value()? {
                number @ Value::Number(_) => Kind::Increment(number),
                other => return Err(format!("value is {other}, expected a number")),
            },
            Some("move") => Kind::Move { from: path_of("from")? },
            _ => {
                let found = &operation["op"];
                return Err(format!("op is {found}, expected add, set, replace, remove, incr or move"));
            }
        };
        Ok(Self { kind, path: path_of("path")? })
    }

    fn check(&self, fixed: &[Vec<String>]) -> Result<(), String> {
        let from = if let Kind::Move { from } = &self.kind { Some(from) } else { None };
        for path in from.into_iter().chain([&self.path]) {
            let is_system = path[0] == "id" || SYSTEM_PROPERTIES.contains(&path[0].as_str());
            // A change above the partition key changes the key, too.
            let is_fixed = fixed.iter().any(|fixed| fixed.starts_with(path) || path.starts_with(fixed));
            if is_system || is_fixed {
                let path = path.join("/");
                return Err(format!(
                    "\"/{path}\" cannot be changed: it is the id, the partition key or the store's own"
                ));
            }
        }
        match from {
            Some(from) if self.path.starts_with(from) && self.path != *from => {
                Err("path lies below from, expected another place".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn apply(&self, root: &mut Node) -> Result<(), String> {
        match &self.kind {
            Kind::Add(node) => put(root, &self.path, node.clone(), Insert::Before),
            Kind::Set(node) => put(root, &self.path, node.clone(), Insert::Over),
            Kind::Replace(node) => at(root, &self.path).map(|place| *place = node.clone()),
            Kind::Remove => take(root, &self.path).map(|_| ()),
            Kind::Increment(by) => increment(root, &self.path, by),
            Kind::Move { from } => {
                let node = take(root, from)?;
                put(root, &self.path, node, Insert::Before)
            }
        }
    }
}

/// Treatment of an element at the place of a new one.
#[derive(Clone, Copy, PartialEq)]
enum Insert {
    Before,
    Over,
}

fn put(root: &mut Node, path: &[String], node: Node, insert: Insert) -> Result<(), String> {
    let (last, parent) = path.split_last().ok_or_else(|| absent(path))?;
    match at(root, parent)? {
        Node::Object(properties) => set(properties, last.clone(), node),
        Node::Array(items) if last == "-" => items.push(node),
        Node::Array(items) => match place(last) {
            Some(index) if index < items.len() && insert == Insert::Over => items[index] = node,
            Some(index) if index <= items.len() => items.insert(index, node),
            _ => return Err(absent(path)),
        },
        Node::Scalar(_) => return Err(absent(path)),
    }
    Ok(())
}

fn take(root: &mut Node, path: &[String]) -> Result<Node, String> {
    let (last, parent) = path.split_last().ok_or_else(|| absent(path))?;
    match at(root, parent)? {
        Node::Object(properties) => {
            let index = index_of(properties, last).ok_or_else(|| absent(path))?;
            Ok(properties.remove(index).1)
        }
        Node::Array(items) => match place(last).filter(|&index| index < items.len()) {
            Some(index) => Ok(items.remove(index)),
            None => Err(absent(path)),
        },
        Node::Scalar(_) => Err(absent(path)),
    }
}

fn increment(root: &mut Node, path: &[String], by: &Value) -> Result<(), String> {
    let Ok(place) = at(root, path) else { return put(root, path, Node::Scalar(by.clone()), Insert::Over) };
    let sum = match place {
        Node::Scalar(Value::Number(number)) => match (number.as_i64(), by.as_i64()) {
            (Some(number), Some(by)) => number.checked_add(by).map(Value::from),
            _ => None,
        }
        .or_else(|| serde_json::Number::from_f64(number.as_f64()? + by.as_f64()?).map(Value::Number)),
        _ => None,
    };
    let sum = sum.ok_or_else(|| format!("\"/{}\" is no number or the sum is too large", path.join("/")))?;
    *place = Node::Scalar(sum);
    Ok(())
}

fn at<'a>(root: &'a mut Node, path: &[String]) -> Result<&'a mut Node, String> {
    path.iter()
        .try_fold(root, |node, step| match node {
            Node::Object(properties) => {
                let index = index_of(properties, step)?;
                Some(&mut properties[index].1)
            }
            Node::Array(items) => items.get_mut(place(step)?),
            Node::Scalar(_) => None,
        })
        .ok_or_else(|| absent(path))
}

fn absent(path: &[String]) -> String {
    format!("\"/{}\" does not exist", path.join("/"))
}

fn index_of(properties: &Properties, name: &str) -> Option<usize> {
    properties.iter().position(|(existing, _)| existing == name)
}

/// A place in an array: digits without a sign.
fn place(step: &str) -> Option<usize> {
    if step.bytes().all(|digit| digit.is_ascii_digit()) { step.parse().ok() } else { None }
}

/// The steps of `/a~1b/0`.
fn pointer(text: &str) -> Option<Vec<String>> {
    let steps = text.strip_prefix('/')?.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    let steps: Vec<String> = steps.collect();
    if steps.iter().any(String::is_empty) { None } else { Some(steps) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = r#"{"id":"1","key":"k","n":1,"list":[1,2],"o":{"x":1.5,"a":"t"}}"#;

    fn patched(operations: Value) -> Result<String, String> {
        let patch = Patch::from_json(&json!({ "operations": operations }))?;
        let document = patch.applied_to(BEFORE, &[vec!["key".to_owned()]])?.unwrap();
        Ok(document.text_with("\"_ts\":0").into_string())
    }

    fn after(change: &str) -> String {
        format!(r#"{{"id":"1","key":"k",{change},"_ts":0}}"#)
    }

    #[test]
    fn the_operations_may_come_without_an_object_around_them() {
        let patch = Patch::from_json(&json!([{"op":"incr","path":"/n","value":1}])).unwrap();
        let document = patch.applied_to(BEFORE, &[]).unwrap().unwrap();
        assert!(document.text_with("\"_ts\":0").contains("\"n\":2"));
    }

    #[test]
    fn every_operation_does_what_its_name_says() {
        let cases = [
            (json!([{"op":"add","path":"/list/1","value":9}]), r#""n":1,"list":[1,9,2],"o":{"x":1.5,"a":"t"}"#),
            (json!([{"op":"add","path":"/list/-","value":9}]), r#""n":1,"list":[1,2,9],"o":{"x":1.5,"a":"t"}"#),
            (json!([{"op":"set","path":"/list/1","value":9}]), r#""n":1,"list":[1,9],"o":{"x":1.5,"a":"t"}"#),
            (json!([{"op":"set","path":"/o/b","value":{}}]), r#""n":1,"list":[1,2],"o":{"x":1.5,"a":"t","b":{}}"#),
            (json!([{"op":"replace","path":"/n","value":"s"}]), r#""n":"s","list":[1,2],"o":{"x":1.5,"a":"t"}"#),
            (json!([{"op":"remove","path":"/o"}]), r#""n":1,"list":[1,2]"#),
            (json!([{"op":"remove","path":"/list/0"}]), r#""n":1,"list":[2],"o":{"x":1.5,"a":"t"}"#),
            (json!([{"op":"incr","path":"/n","value":-3}]), r#""n":-2,"list":[1,2],"o":{"x":1.5,"a":"t"}"#),
            (json!([{"op":"incr","path":"/o/x","value":1}]), r#""n":1,"list":[1,2],"o":{"x":2.5,"a":"t"}"#),
            (json!([{"op":"move","from":"/n","path":"/o/n"}]), r#""list":[1,2],"o":{"x":1.5,"a":"t","n":1}"#),
            (
                json!([{"op":"incr","path":"/new","value":2},{"op":"incr","path":"/new","value":2}]),
                r#""n":1,"list":[1,2],"o":{"x":1.5,"a":"t"},"new":4"#,
            ),
        ];
        for (operations, change) in cases {
            assert_eq!(patched(operations), Ok(after(change)));
        }
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let cases = [
            (json!([]), "expected an array of 1 to 10"),
            (json!([{"op":"drop","path":"/n"}]), "operations[0]: op is \"drop\""),
            (json!([{"op":"set","path":"n","value":1}]), "operations[0]: path is \"n\""),
            (json!([{"op":"set","path":"/n"}]), "operations[0]: value is missing"),
            (json!([{"op":"incr","path":"/n","value":"1"}]), "value is \"1\", expected a number"),
            (json!([{"op":"incr","path":"/o/a","value":1}]), "\"/o/a\" is no number"),
            (json!([{"op":"replace","path":"/x","value":1}]), "\"/x\" does not exist"),
            (json!([{"op":"remove","path":"/list/2"}]), "\"/list/2\" does not exist"),
            (json!([{"op":"add","path":"/x/y","value":1}]), "\"/x\" does not exist"),
            (json!([{"op":"set","path":"/id","value":"2"}]), "\"/id\" cannot be changed"),
            (json!([{"op":"set","path":"/key","value":"2"}]), "\"/key\" cannot be changed"),
            (json!([{"op":"remove","path":"/_etag"}]), "\"/_etag\" cannot be changed"),
            (json!([{"op":"move","from":"/o","path":"/o/x/y"}]), "path lies below from"),
        ];
        for (operations, expected) in cases {
            let error = patched(operations).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_condition_that_is_not_met_leaves_the_document() {
        let patch = |condition: &str| {
            let operations = json!([{"op":"set","path":"/n","value":2}]);
            Patch::from_json(&json!({ "operations": operations, "condition": condition })).unwrap()
        };
        assert!(patch("from c where c.n = 1").applied_to(BEFORE, &[]).unwrap().is_some());
        assert!(patch("from c where c.n = 2").applied_to(BEFORE, &[]).unwrap().is_none());
    }
}
