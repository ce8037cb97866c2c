//! The experiment language: its grammar, with the components and proxies of the runner.

use std::fmt;

use super::declaration::Declaration;
use super::document::at::At;
use super::grammar::shape::Shape;

/// The language in which experiment files are written, over the components that a service can be.
#[derive(Clone, Copy)]
pub struct Language {
    /// The components, in the order in which messages list them.
    pub(super) components: &'static [&'static Declaration],
    /// The grammar of one service.
    pub(super) service: &'static Shape,
    /// The grammar of the whole file.
    pub(super) experiment: &'static Shape,
}

impl Language {
    /// The component of a service and the part under its key; `None` for a service with `run`.
    pub(super) fn component<'a>(&self, service: &'a At<'a>) -> Option<(&'static Declaration, At<'a>)> {
        self.components.iter().find_map(|component| Some((*component, service.named(component.key)?)))
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.components.iter().map(|component| component.key)).finish()
    }
}

/// A part of the grammar that lasts as long as the program.
pub(super) fn kept<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}
