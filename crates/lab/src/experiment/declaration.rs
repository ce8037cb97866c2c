//! Declaration of a component: its part of the grammar, and its defaults as a service.
//!
//! The language knows no component. The runner hands their declarations to [`Language`](super::Language), and
//! gets back the settings that each one read.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustix::process::Signal;

use super::document::at::At;
use super::error::Report;
use super::grammar::shape::{Field, Shape};

/// The protocol at a port, as far as a proxy in front of it must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// Bytes.
    Tcp,
}

/// The parts of a service's URL before and after `host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Url {
    /// The URL of an HTTP service.
    pub(crate) fn http() -> Self {
        Self { before: "http://".to_owned(), after: String::new() }
    }
}

/// Settings of a component in one trial. Only the component knows their type.
#[derive(Clone)]
pub struct Settings(Arc<dyn AnySettings>);

trait AnySettings: Any + fmt::Debug + Send + Sync {}

impl<T: Any + fmt::Debug + Send + Sync> AnySettings for T {}

impl Settings {
    /// Settings of some component.
    pub(crate) fn new(settings: impl Any + fmt::Debug + Send + Sync) -> Self {
        Self(Arc::new(settings))
    }

    /// The settings as the type that they were made from; `None` if they are of another.
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        let settings: &dyn Any = &*self.0;
        settings.downcast_ref()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A kind of component. The functions get the whole value under its key.
#[derive(Debug)]
pub(crate) struct Declaration {
    /// The key.
    pub(crate) key: &'static str,
    /// A sentence for the JSON Schema.
    pub(crate) doc: &'static str,
    /// The grammar of the value under the key.
    pub(crate) shape: &'static Shape,
    /// The protocol at its port.
    pub(crate) protocol: Protocol,
    /// The signal that asks it to end, unless the file says another.
    pub(crate) stop_signal: Signal,
    /// How long it may take to become ready, unless the file says otherwise.
    pub(crate) ready_timeout: &'static str,
    /// Ports of each replica beside the one that its clients use.
    pub(crate) further_ports: usize,
    /// The number of replicas from its own settings; `None` if the service's `replicas` decides.
    pub(crate) replicas: fn(At<'_>) -> Option<u32>,
    /// Its URL.
    pub(crate) url: fn(At<'_>) -> Url,
    /// Reports missing files; relative paths start from the folder.
    pub(crate) check_files: fn(At<'_>, &Path, &mut Report),
    /// Its settings; `None` if an error was reported, now or before.
    pub(crate) read: fn(At<'_>, &Path, &mut Report) -> Option<Settings>,
}

impl Declaration {
    /// Its key as the grammar of services lists it.
    pub(super) fn field(&self) -> Field {
        super::grammar::key::optional(self.key, *self.shape, self.doc)
    }
}
