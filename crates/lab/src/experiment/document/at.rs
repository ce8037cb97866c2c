//! A part of the document and the way to it, for readers and errors.

use super::tree::{Form, Node, Place, push_key};
use crate::experiment::grammar::key::{Key, Value};
use crate::experiment::grammar::shape::Field;

/// A part of the document together with the way to it, which is spelled out only for an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node,
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str, Place),
    Item(usize),
}

impl<'a> At<'a> {
    pub(crate) fn root(node: &'a Node) -> Self {
        Self { node, parent: None, step: Step::Root }
    }

    /// The same place with another node, such as the one in which `${…}` is replaced.
    pub(crate) fn with(self, node: &'a Node) -> Self {
        Self { node, ..self }
    }

    /// The part under a declared key, when this is a map that has it.
    pub(crate) fn get(&'a self, key: &Field) -> Option<At<'a>> {
        self.named(key.key)
    }

    /// The part under a name of the user's choice, when this is a map that has it.
    pub(crate) fn named(&'a self, name: &str) -> Option<At<'a>> {
        self.entries().find(|(key, _)| *key == name).map(|(_, at)| at)
    }

    /// Whether this is a map that has a declared key.
    pub(crate) fn has(&self, key: &Field) -> bool {
        self.node.get(key.key).is_some()
    }

    /// The value under a declared key. `None` if it is missing or not of the key's kind, which the check reports.
    pub(crate) fn read<T>(&self, key: &Key<T>) -> Option<T> {
        read_text(self.node.get(key.name())?, key.value)
    }

    /// The value of this part; `None` if it is not of that kind.
    pub(crate) fn value<T>(&self, value: Value<T>) -> Option<T> {
        read_text(self.node, value)
    }

    /// The keys and values; none unless this is a map.
    pub(crate) fn entries(&'a self) -> impl Iterator<Item = (&'a str, At<'a>)> {
        self.node.entries().iter().map(|entry| {
            let step = Step::Key(&entry.key, entry.key_place);
            (entry.key.as_str(), At { node: &entry.value, parent: Some(self), step })
        })
    }

    /// The items; none unless this is a list.
    pub(crate) fn items(&'a self) -> impl Iterator<Item = At<'a>> {
        let items: &[Node] = match &self.node.form {
            Form::List(items) => items,
            _ => &[],
        };
        items.iter().enumerate().map(|(i, node)| At { node, parent: Some(self), step: Step::Item(i) })
    }

    /// The text of a scalar that is not broken.
    pub(crate) fn text(&self) -> Option<&'a str> {
        self.node.text()
    }

    pub(crate) fn place(&self) -> Place {
        self.node.place
    }

    /// Where this begins with its key, when it has one.
    pub(crate) fn key_place(&self) -> Place {
        match self.step {
            Step::Key(_, place) => place,
            _ => self.node.place,
        }
    }

    /// `load.scenarios.list.vus`, `variants[2].name`: list items count from 0.
    pub(crate) fn path(&self) -> String {
        let mut path = self.parent.map(At::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key, _) => push_key(&mut path, key),
            Step::Item(index) => path.push_str(&format!("[{index}]")),
        }
        path
    }
}

fn read_text<T>(node: &Node, value: Value<T>) -> Option<T> {
    value.kind.read(node.text()?).ok()
}
