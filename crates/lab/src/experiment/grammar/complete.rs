//! Makes a part of the document whole: defaults where keys are missing, values where `${…}` stands.
//!
//! The result has the same places as what it was made from, so that an error in the value of one variant is
//! reported at the line that holds its `${…}`.

use super::shape::{Field, Need, Scope, Shape};
use crate::experiment::document::tree::{Entry, Form, Node, Origin, Place, Scalar, parse};
use crate::experiment::error::Report;
use crate::experiment::placeholders::names::Values;
use crate::experiment::placeholders::syntax::{self, TrialPiece};

/// A whole copy of a part of the document.
pub(crate) fn complete(node: &Node, shape: &'static Shape, values: &Values<'_>) -> Node {
    let form = match (&node.form, shape) {
        (Form::Map(entries), Shape::Map(map)) => {
            with_defaults(node.place, entries, map.fields.iter(), map.others, values)
        }
        (Form::Map(entries), Shape::Tagged(tagged)) => {
            let branch = node.get(tagged.tag.key).and_then(|tag| match &tag.form {
                Form::Scalar(scalar) => tagged.branch(&scalar.text),
                _ => None,
            });
            match branch {
                Some(branch) => with_defaults(node.place, entries, tagged.fields_of(branch), None, values),
                None => with_defaults(node.place, entries, tagged.common.iter(), None, values),
            }
        }
        (Form::Map(entries), Shape::Named(named)) => {
            Form::Map(entries.iter().map(|entry| filled(entry, named.value, values)).collect())
        }
        (Form::List(items), Shape::List { item, .. }) => {
            Form::List(items.iter().map(|node| complete(node, item, values)).collect())
        }
        (form, Shape::Either(shapes)) => {
            return Shape::choose(shapes, form).map_or_else(|| node.clone(), |shape| complete(node, shape, values));
        }
        (Form::List(_), Shape::Arguments(scope)) | (_, Shape::Json(scope)) => {
            return replaced_below(node, *scope, values);
        }
        (Form::Scalar(scalar), Shape::Scalar(_, scope)) => Form::Scalar(replaced(scalar, *scope, values)),
        (form, _) => form.clone(),
    };
    Node { place: node.place, form }
}

fn filled(entry: &Entry, shape: &'static Shape, values: &Values<'_>) -> Entry {
    with_value(entry, complete(&entry.value, shape, values))
}

fn with_value(entry: &Entry, value: Node) -> Entry {
    Entry { key: entry.key.clone(), key_place: entry.key_place, value }
}

fn with_defaults(
    place: Place,
    entries: &[Entry],
    fields: impl Iterator<Item = &'static Field> + Clone,
    others: Option<&'static Shape>,
    values: &Values<'_>,
) -> Form {
    let shape_of = |key: &str| fields.clone().find(|field| field.key == key).map(|field| &field.shape).or(others);
    let given = entries.iter().map(|entry| match shape_of(&entry.key) {
        Some(shape) => filled(entry, shape, values),
        None => entry.clone(),
    });
    let missing = fields.clone().filter(|field| entries.iter().all(|entry| entry.key != field.key));
    let defaults = missing.filter_map(|field| {
        let value = complete(&default_of(field)?, &field.shape, values);
        Some(Entry { key: field.key.to_owned(), key_place: place, value })
    });
    Form::Map(given.chain(defaults).collect())
}

/// Placeholder for a key that is not given.
pub(crate) fn default_of(field: &Field) -> Option<Node> {
    match field.need {
        Need::Default(yaml) => parse(yaml, &mut Report::new("default")),
        Need::Required | Need::Optional | Need::OptionalBeside(_) => None,
    }
}

fn replaced_below(node: &Node, scope: Scope, values: &Values<'_>) -> Node {
    let form = match &node.form {
        Form::Scalar(scalar) => Form::Scalar(replaced(scalar, scope, values)),
        Form::List(items) => Form::List(items.iter().map(|item| replaced_below(item, scope, values)).collect()),
        Form::Map(entries) => {
            let entry = |entry: &Entry| with_value(entry, replaced_below(&entry.value, scope, values));
            Form::Map(entries.iter().map(entry).collect())
        }
    };
    Node { place: node.place, form }
}

fn replaced(scalar: &Scalar, scope: Scope, values: &Values<'_>) -> Scalar {
    if scope == Scope::Literal || !scalar.text.contains('$') {
        return scalar.clone();
    }
    let broken = || Scalar { text: String::new(), origin: Origin::Broken };
    let Ok(pieces) = syntax::trial_pieces(&scalar.text) else { return broken() };
    let is_bound = pieces.iter().any(|piece| matches!(piece, TrialPiece::Name(_)));
    match syntax::filled(pieces, values) {
        Some(text) if is_bound => Scalar { text, origin: Origin::Bound },
        Some(text) => Scalar { text, origin: scalar.origin },
        None => broken(),
    }
}
