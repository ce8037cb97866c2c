//! The closed set of shapes that a part of an experiment file can have.
//!
//! Each section declares its keys once, in the file that reads it, and `top.rs` joins the sections. The check of a
//! file, the defaults, the scope of `${…}`, the JSON Schema and the reference's tables of keys all come from these
//! declarations, so they cannot contradict each other.

use super::kind::AnyKind;
use crate::experiment::document::tree::{Form, Node};

/// Shape of a part of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// A map with known keys.
    Map(Map),
    /// A map with known keys, which keys depending on the value of one of them.
    Tagged(TaggedMap),
    /// A map from names of the user's choice to values of one shape.
    Named(NamedMap),
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
    Scalar(&'static dyn AnyKind, Scope),
    /// Anything: it is sent as JSON.
    Json(Scope),
}

/// A map with known keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    pub(crate) fields: &'static [Field],
    pub(crate) rules: &'static [Rule],
    /// The shape of values under any other key; without it, other keys are errors.
    pub(crate) others: Option<&'static Shape>,
}

/// Which of a map's keys go together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// At most one of these two is given.
    AtMostOne([GivenKey; 2]),
    /// Exactly one of these is given.
    ExactlyOne(&'static [GivenKey]),
    /// The first says nothing without the second.
    Needs(&'static str, &'static str),
    /// The first few say something only beside the last.
    OnlyBeside(&'static [&'static str], &'static str),
    /// The first few say nothing beside the last.
    NotBeside(&'static [&'static str], &'static str),
}

/// A key that is there, perhaps in one form only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GivenKey {
    pub(crate) key: &'static str,
    pub(crate) written: KeyForm,
}

/// In which form a key is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// In any.
    Anyhow,
    AsList,
    AsMap,
}

/// A map with a key whose value says which further keys it has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaggedMap {
    /// The key whose value is that of one of the branches.
    pub(crate) tag: &'static Field,
    pub(crate) common: &'static [Field],
    /// Which keys go together, whatever the branch.
    pub(crate) rules: &'static [Rule],
    pub(crate) branches: &'static [Branch],
}

/// Keys of a [`TaggedMap`] for one value of its tag.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Branch {
    pub(crate) value: &'static str,
    pub(crate) map: Map,
}

/// A map from names to values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedMap {
    /// Meaning of a name, such as `service`.
    pub(crate) what: &'static str,
    /// Form of a name.
    pub(crate) name: &'static dyn AnyKind,
    pub(crate) value: &'static Shape,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// A key of a map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) shape: Shape,
    pub(crate) need: Need,
    /// One or two sentences for the JSON Schema and the reference.
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
    /// None: the text is taken as it is, and `${` in it is an error.
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
    pub(crate) const fn new(fields: &'static [Field]) -> Self {
        Self { fields, rules: &[], others: None }
    }
}

impl GivenKey {
    /// Whether it is there.
    pub(crate) fn is_in(self, node: &Node) -> bool {
        node.get(self.key).is_some_and(|value| match self.written {
            KeyForm::Anyhow => true,
            KeyForm::AsList => matches!(value.form, Form::List(_)),
            KeyForm::AsMap => matches!(value.form, Form::Map(_)),
        })
    }

    /// As messages have it.
    pub(crate) fn shown(self) -> String {
        match self.written {
            KeyForm::Anyhow => format!("`{}`", self.key),
            KeyForm::AsList => format!("`{}` (a list)", self.key),
            KeyForm::AsMap => format!("`{}` (a map)", self.key),
        }
    }
}

impl TaggedMap {
    /// The branch with this value of the tag.
    pub(crate) fn branch(&self, value: &str) -> Option<&'static Branch> {
        self.branches.iter().find(|branch| branch.value == value)
    }

    /// The keys of a branch, those common to all included.
    pub(crate) fn fields_of(&self, branch: &'static Branch) -> impl Iterator<Item = &'static Field> + Clone {
        self.common.iter().chain(branch.map.fields)
    }
}
