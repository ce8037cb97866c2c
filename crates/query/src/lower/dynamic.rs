//! Looks into JSON: `customDimensions.key`, `customDimensions["any key"]`, `split(…)[0]`.
//!
//! A path is kept beside its document, so that a chain of keys is one look-up, whose result is JSON (`->`) or the value in
//! it (`->>`) as the place where it stands needs.

use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Constant, Value, quoted};
use crate::syntax::{Expression, Shape};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn member(
        &mut self,
        value: &Expression,
        key: &str,
        place: TextRange,
        scope: Scope<'_>,
    ) -> Result<Value, Fault> {
        if matches!(&value.kind, Shape::Name(name) if name == "$left" || name == "$right") {
            return Err(Fault::new(place, "`$left` and `$right` stand only behind the `on` of a join"));
        }
        let document = self.value(value, scope)?;
        if document.kind != Type::Dynamic {
            let message = format!("this is a {}, which has no `{key}` within", document.kind.word());
            return Err(Fault::new(place, message).hint("only a dynamic value has keys; `parse_json(…)` makes one"));
        }
        Ok(stepped(&document, &key_step(key, place)?))
    }

    pub(super) fn index(&mut self, value: &Expression, index: &Expression, scope: Scope<'_>) -> Result<Value, Fault> {
        let document = self.value(value, scope)?;
        if document.kind != Type::Dynamic {
            let message = format!("this is a {}, which has nothing at an index", document.kind.word());
            return Err(Fault::new(value.place, message).hint("only a dynamic value has; `parse_json(…)` makes one"));
        }
        let at = self.value(index, scope)?;
        match (&at.constant, at.kind) {
            (Some(Constant::Text(key)), _) => Ok(stepped(&document, &key_step(key, index.place)?)),
            (Some(Constant::Whole(position)), Type::Long) if *position >= 0 => {
                Ok(stepped(&document, &format!("[{position}]")))
            }
            (Some(Constant::Whole(position)), Type::Long) => Ok(stepped(&document, &format!("[#{position}]"))),
            (_, Type::Long | Type::Text) => {
                let sql = format!("({} -> {})", document.sql, at.sql);
                Ok(Value::new(Type::Dynamic, sql))
            }
            (_, kind) => Err(Fault::new(index.place, format!("a {} is no index", kind.word()))),
        }
    }
}

fn key_step(key: &str, place: TextRange) -> Result<String, Fault> {
    match key.contains('"') {
        true => Err(Fault::new(place, "a key with a quotation mark in it cannot be looked up")),
        false => Ok(format!(".\"{key}\"")),
    }
}

/// One step further into a document.
fn stepped(value: &Value, step: &str) -> Value {
    let (document, path) = match &value.within {
        // The path is a string in SQL; what is added stands before its closing mark.
        Some((document, path)) => {
            let inner = path.strip_suffix('\'').unwrap_or(path);
            (document.clone(), format!("{inner}{}'", step.replace('\'', "''")))
        }
        None => (value.sql.clone(), quoted(&format!("${step}"))),
    };
    let within = Some((document.clone(), path.clone()));
    Value { within, ..Value::new(Type::Dynamic, format!("({document} -> {path})")) }
}
