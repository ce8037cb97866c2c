//! Keys of the experiment file, each declared once as a constant.
//!
//! The constant stands in its section's list of fields, from which checks, defaults, JSON Schema and the reference
//! follow, and it is how the section's reader gets the value: [`At::read`](crate::experiment::document::at::At::read) of a [`Key`] gives
//! the Rust value of its kind, [`At::get`](crate::experiment::document::at::At::get) of any [`Field`] the part of the file below it.

use std::ops::Deref;

use super::kind::{AnyKind, Kind};
use super::shape::{Field, GivenKey, KeyForm, Need, Scope, Shape};

/// A single value: its kind, and which names `${…}` may use in it.
#[derive(Debug)]
pub(crate) struct Value<T: 'static> {
    pub(crate) kind: &'static dyn Kind<Value = T>,
    scope: Scope,
}

impl<T> Clone for Value<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Value<T> {}

impl<T> Value<T> {
    /// The shape of the value.
    pub(crate) const fn shape(self) -> Shape {
        let kind: &'static dyn AnyKind = self.kind;
        Shape::Scalar(kind, self.scope)
    }
}

/// A value in which nothing is replaced.
pub(crate) const fn literal<K: Kind>(kind: &'static K) -> Value<K::Value> {
    Value { kind, scope: Scope::Literal }
}

/// A value that may hold parameters.
pub(crate) const fn parameter<K: Kind>(kind: &'static K) -> Value<K::Value> {
    Value { kind, scope: Scope::Parameters }
}

/// A value that may hold parameters and facts of the trial.
pub(crate) const fn trial<K: Kind>(kind: &'static K) -> Value<K::Value> {
    Value { kind, scope: Scope::Trial }
}

/// A value that may hold all of those and facts of its replica.
pub(crate) const fn replica<K: Kind>(kind: &'static K) -> Value<K::Value> {
    Value { kind, scope: Scope::Replica }
}

/// A key with a single value.
#[derive(Debug)]
pub(crate) struct Key<T: 'static> {
    /// The key as its section lists it.
    pub(crate) field: Field,
    pub(crate) value: Value<T>,
}

impl<T> Key<T> {
    /// A key that must be given.
    pub(crate) const fn required(key: &'static str, value: Value<T>, doc: &'static str) -> Self {
        Self { field: required(key, value.shape(), doc), value }
    }

    /// A key that may be left out.
    pub(crate) const fn optional(key: &'static str, value: Value<T>, doc: &'static str) -> Self {
        Self { field: optional(key, value.shape(), doc), value }
    }

    /// A key that stands for the YAML `yaml` when it is left out.
    pub(crate) const fn default(key: &'static str, value: Value<T>, yaml: &'static str, doc: &'static str) -> Self {
        Self { field: default(key, value.shape(), yaml, doc), value }
    }

    /// A key that is allowed only with one of `keys`.
    pub(crate) const fn beside(
        key: &'static str,
        value: Value<T>,
        keys: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self { field: beside(key, value.shape(), keys, doc), value }
    }

    /// The key as rules name it.
    pub(crate) const fn given(&self) -> GivenKey {
        self.field.given()
    }

    /// The key as it is written.
    pub(crate) const fn name(&self) -> &'static str {
        self.field.key
    }
}

impl<T> Deref for Key<T> {
    type Target = Field;

    fn deref(&self) -> &Field {
        &self.field
    }
}

impl Field {
    /// The key as rules name it, in whatever form.
    pub(crate) const fn given(&self) -> GivenKey {
        self.given_as(KeyForm::Anyhow)
    }

    /// The key as rules name it, in one form.
    pub(crate) const fn given_as(&self, written: KeyForm) -> GivenKey {
        GivenKey { key: self.key, written }
    }

    /// The key as it is written.
    pub(crate) const fn name(&self) -> &'static str {
        self.key
    }
}

/// A key with parts, which must be given.
pub(crate) const fn required(key: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Required, doc }
}

/// A key with parts, which may be left out.
pub(crate) const fn optional(key: &'static str, shape: Shape, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Optional, doc }
}

/// A key with parts, which stands for the YAML `yaml` when it is left out.
pub(crate) const fn default(key: &'static str, shape: Shape, yaml: &'static str, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Default(yaml), doc }
}

/// A key with parts, which is allowed only with one of `keys`.
pub(crate) const fn beside(key: &'static str, shape: Shape, keys: &'static [&'static str], doc: &'static str) -> Field {
    Field { key, shape, need: Need::OptionalBeside(keys), doc }
}
