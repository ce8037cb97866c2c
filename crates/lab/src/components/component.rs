//! Behaviour of a component on a machine, and a component with its settings in one trial.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;

use crate::Error;
use crate::components::account::Account;
use crate::components::container::{Container, Endpoint};
use crate::components::entry::Entry;
use crate::components::gauges::Gauges;
use crate::components::place::Place;
use crate::components::workshop::Workshop;
use crate::experiment::{Ready, Settings};
use crate::programs::Program;

/// How a replica is started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Launch {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Where it runs. A component's processes stay in its folder: by that they are found should all else fail.
    pub(crate) cwd: PathBuf,
    /// Variables beside those of every service. The experiment's own win.
    pub(crate) env: Vec<(String, String)>,
    /// Whose rights it gets; this process's own without.
    pub(crate) account: Option<Account>,
    /// Sign that it can be used.
    pub(crate) ready: Ready,
}

/// The settings of a component, which say how its replicas are started, filled and measured.
pub(crate) trait Component: Any + fmt::Debug + Send + Sync {
    /// Makes what it needs in its folder, which does not exist yet, and says how it is started. Called once in a trial
    /// for each replica, after the replicas before it are ready.
    fn prepare(&self, place: &Place<'_>, workshop: &mut Workshop<'_>) -> Result<Launch, Error>;

    /// How it is started again in the same folder after it ended. As the first time, unless it says otherwise.
    fn again(&self, _: &Place<'_>, first: &Launch) -> Launch {
        first.clone()
    }

    /// Whether it can be used, asked again and again once what its launch waits for has come. Errors say what is lacking.
    fn is_usable(&self, _: &Place<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Does what can only be done once it is ready, before the next replica is started.
    fn once_ready(&self, _: &Place<'_>, _: &mut Workshop<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Its server as a container of a cluster; an error says why it cannot be one.
    fn container(&self, _: Endpoint<'_>) -> Result<Container, String> {
        Err("such a server is described for processes only".to_owned())
    }

    /// Its gauges, read once a second under load.
    fn gauges(&self, _: &Place<'_>) -> Option<Box<dyn Gauges>> {
        None
    }
}

/// A component with its settings in one trial.
pub(crate) struct BoundComponent {
    entry: &'static Entry,
    settings: Box<dyn Component>,
}

impl BoundComponent {
    /// The component of an entry, with what was read from the file.
    pub(super) fn new(entry: &'static Entry, settings: impl Component) -> Self {
        Self { entry, settings: Box::new(settings) }
    }

    /// The component that an experiment's settings are of.
    ///
    /// # Panics
    /// When they were not made by [`Entry::settings`], as those of every entry are.
    pub(crate) fn of(settings: &Settings) -> &Self {
        settings.get().unwrap_or_else(|| panic!("settings of no component: {settings:?}"))
    }

    /// Meaning of its settings on a machine.
    pub(crate) fn settings(&self) -> &dyn Component {
        &*self.settings
    }

    /// Programs it needs. A trial does not begin without them.
    pub(crate) fn programs(&self) -> &'static [&'static Program] {
        self.entry.programs
    }
}

#[cfg(test)]
impl Settings {
    /// The settings as the type that they have in the component's folder.
    pub(crate) fn settings_as<T: Component>(&self) -> &T {
        let settings: &dyn Any = &*BoundComponent::of(self).settings;
        settings.downcast_ref().unwrap_or_else(|| panic!("other settings: {self:?}"))
    }
}

impl fmt::Debug for BoundComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}
