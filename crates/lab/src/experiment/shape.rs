//! The closed set of shapes that a part of an experiment file can have.
//!
//! `grammar.rs` describes the whole file once in these words. The check of a file, the defaults, the scope of `${…}`
//! and the published JSON Schema all come from that one description, so they cannot say different things. A shape
//! knows nothing of what a key means; that is for the modules that read the checked tree.

use super::kind::Kind;
use super::tree::{Form, Node};

/// What a part of the file looks like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A map with known keys.
    Map(Map),
    /// A map with known keys, which keys depending on the value of one of them.
    Tagged(Tagged),
    /// A map from names of the user's choice to values of one shape.
    Named(Named),
    /// A list of values of one shape.
    List {
        /// The shape of each.
        item: &'static Shape,
        /// Fewest items.
        least: usize,
        /// Most items.
        most: usize,
    },
    /// A program and its arguments: a list of texts, never one text for a shell to take apart.
    Arguments(Scope),
    /// One of several shapes, told apart by being a scalar, a list or a map.
    Either(&'static [Shape]),
    /// A single value.
    Scalar(Kind, Scope),
    /// Anything: it is sent as JSON.
    Json(Scope),
}

/// A map with known keys.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) fields: &'static [Field],
    pub(crate) rules: &'static [Rule],
    /// The shape of values under any other key; without it, other keys are mistakes.
    pub(crate) others: Option<&'static Shape>,
}

/// Which of a map's keys go together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// At most one of these two is given.
    AtMostOne([Given; 2]),
    /// Exactly one of these is given.
    ExactlyOne(&'static [Given]),
    /// The first says nothing without the second.
    Needs(&'static str, &'static str),
    /// The first few say something only beside the last.
    OnlyBeside(&'static [&'static str], &'static str),
}

/// A key that is there, perhaps in one form only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) key: &'static str,
    pub(crate) written: Written,
}

/// In which form a key is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// In any.
    Anyhow,
    AsList,
    AsMap,
}

/// A map whose key `tag` says which further keys it has.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) tag: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) common: &'static [Field],
    /// Which keys go together, whatever the case.
    pub(crate) rules: &'static [Rule],
    pub(crate) cases: &'static [Case],
}

/// What a [`Tagged`] map has for one value of its tag.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) value: &'static str,
    pub(crate) map: Map,
}

/// A map from names to values.
#[derive(Debug)]
pub(crate) struct Named {
    /// What a name stands for, such as `service`.
    pub(crate) what: &'static str,
    /// What a name looks like.
    pub(crate) name: Kind,
    pub(crate) value: &'static Shape,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// A key of a map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) shape: &'static Shape,
    pub(crate) need: Need,
    /// One or two sentences for the JSON Schema.
    pub(crate) doc: &'static str,
}

/// Whether a key must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It must.
    Required,
    /// Without it, there is none.
    Optional,
    /// As [`Need::Optional`], and it says something only beside one of these keys.
    OptionalBeside(&'static [&'static str]),
    /// Without it, this YAML stands.
    Default(&'static str),
}

/// Which names `${…}` may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// None: the text is taken as it is, and `${` in it is a mistake.
    Literal,
    /// The experiment's parameters.
    Parameters,
    /// Parameters and what is known about the trial: services' addresses, the OTLP endpoint, the trial's folder.
    Trial,
    /// All of those and the replica's own number and port.
    Replica,
}

impl Shape {
    /// Whether a part of the document has keys that this shape does not know. One of them may be a known key
    /// misspelt, so a key that is not there may have been meant to be.
    pub(crate) fn has_strangers(&self, node: &Node) -> bool {
        match self {
            Shape::Map(map) => node.entries().iter().any(|entry| map.fields.iter().all(|field| field.key != entry.key)),
            _ => false,
        }
    }

    /// The shape among several that is a scalar, a list or a map as this part is.
    pub(crate) fn choose(shapes: &'static [Shape], form: &Form) -> Option<&'static Shape> {
        shapes.iter().find(|shape| {
            matches!(
                (form, shape),
                (Form::Map(_), Shape::Map(_) | Shape::Named(_) | Shape::Tagged(_))
                    | (Form::List(_), Shape::List { .. } | Shape::Arguments(_))
                    | (Form::Scalar(_), Shape::Scalar(..))
            )
        })
    }
}

impl Map {
    /// A map in which any keys go together and no others are known.
    pub(crate) const fn of(fields: &'static [Field]) -> Self {
        Self { fields, rules: &[], others: None }
    }
}

/// A key in whatever form.
pub(crate) const fn key(key: &'static str) -> Given {
    Given { key, written: Written::Anyhow }
}

impl Given {
    /// Whether it is there.
    pub(crate) fn is_in(self, node: &Node) -> bool {
        node.get(self.key).is_some_and(|value| match self.written {
            Written::Anyhow => true,
            Written::AsList => matches!(value.form, Form::List(_)),
            Written::AsMap => matches!(value.form, Form::Map(_)),
        })
    }

    /// As messages have it.
    pub(crate) fn shown(self) -> String {
        match self.written {
            Written::Anyhow => format!("`{}`", self.key),
            Written::AsList => format!("`{}` (a list)", self.key),
            Written::AsMap => format!("`{}` (a map)", self.key),
        }
    }
}

impl Tagged {
    /// The case with this value of the tag.
    pub(crate) fn case(&self, value: &str) -> Option<&'static Case> {
        self.cases.iter().find(|case| case.value == value)
    }

    /// The keys of a case, those common to all included.
    pub(crate) fn fields_of(&self, case: &'static Case) -> impl Iterator<Item = &'static Field> + Clone {
        self.common.iter().chain(case.map.fields)
    }
}
