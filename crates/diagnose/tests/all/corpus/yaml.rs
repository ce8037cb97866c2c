//! YAML as a JSON value, for `serde`.
//!
//! The corpus needs plain maps, lists and scalars; anchors, tags and several documents are refused. A plain scalar is a
//! number, `true` or `false` where it reads as one, and text otherwise.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

/// Reads one document.
///
/// # Errors
/// Fault and its line.
pub(crate) fn parse(source: &str) -> Result<Value, String> {
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(source);
    let mut open: Vec<Open> = vec![Open::List(Vec::new())];
    for event in &mut parser {
        let (event, at) = event.map_err(|error| error.to_string())?;
        let told = |what: &str| format!("line {}: {what}", at.start.line());
        match event {
            Event::Scalar(text, style, _, None) => put(&mut open, scalar(&text, style)).map_err(|why| told(&why))?,
            Event::SequenceStart(_, None) => open.push(Open::List(Vec::new())),
            Event::MappingStart(_, None) => open.push(Open::Table(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let done = open.pop().map_or(Value::Null, Open::into_value);
                put(&mut open, done).map_err(|why| told(&why))?;
            }
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(_) => {
                return Err(told("tags and aliases have no place in a case"));
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(Open::List(mut documents)) if documents.len() == 1 => Ok(documents.remove(0)),
        _ => Err("expected one document".into()),
    }
}

enum Open {
    List(Vec<Value>),
    Table(Map<String, Value>, Option<String>),
}

impl Open {
    fn into_value(self) -> Value {
        match self {
            Open::List(items) => Value::Array(items),
            Open::Table(table, _) => Value::Object(table),
        }
    }
}

fn put(open: &mut [Open], value: Value) -> Result<(), String> {
    match open.last_mut() {
        None => return Err("an end without a beginning".into()),
        Some(Open::List(items)) => items.push(value),
        Some(Open::Table(table, key)) => match (key.take(), value) {
            (Some(key), value) => {
                if table.insert(key.clone(), value).is_some() {
                    return Err(format!("`{key}` is there twice"));
                }
            }
            (None, Value::String(text)) => *key = Some(text),
            (None, other) => *key = Some(other.to_string()),
        },
    }
    Ok(())
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::String(text.into());
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "" | "~" | "null" => Value::Null,
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => whole.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => Value::String(text.into()),
        },
    }
}
