//! The text of an experiment file: its YAML as a tree with places, and its scalars for changing the text.

pub(crate) mod at;
pub(crate) mod scalars;
pub(crate) mod tree;
