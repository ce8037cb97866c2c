//! Places to fill in, `${name}` and `{{name}}`: how they are written, and the names that `${…}` may use.

pub(crate) mod names;
pub(crate) mod syntax;
