//! The entry of a component: its declaration for the experiment language, and the programs it needs.

use crate::components::component::{BoundComponent, Component};
use crate::components::sidecar;
use crate::experiment::{Declaration, Settings};
use crate::programs::Program;

/// A kind of component.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its part of the experiment language.
    pub(crate) declaration: Declaration,
    /// The programs it needs. A trial does not start without them; `narrows doctor` lists them.
    pub(crate) programs: &'static [&'static Program],
    /// How its program stands beside a replica as a sidecar; `None` if it cannot.
    pub(crate) sidecar: Option<&'static sidecar::Kind>,
}

impl Entry {
    /// Settings of the component in the form in which the language hands them on.
    pub(crate) fn settings(&'static self, settings: impl Component) -> Settings {
        Settings::new(BoundComponent::new(self, settings))
    }
}
