//! What an experiment can start: operating-system processes, and servers that it names by a key, one file here for each.
//!
//! A component is its settings (`crate::experiment`, by the same name) with what this trait says they mean on a machine.
//! It is a service like any other: it is started in its turn, capped, sampled and stopped as a service with `run`, and
//! nothing of it is left. What it needs besides (a data folder, a configuration) lies in a folder of its own below the
//! trial's, which goes with the trial; what is to be done there is done by short commands in a [`Workshop`].

pub(crate) mod account;
pub(crate) mod galera;
pub(crate) mod gauges;
mod haproxy;
pub(crate) mod mariadb;
pub(crate) mod nginx;
pub(crate) mod output;
mod place;
pub(crate) mod postgres;
pub(crate) mod process;
mod proxy;
pub(crate) mod ready;
pub(crate) mod sidecar;
pub(crate) mod workshop;

use std::path::PathBuf;

use account::Account;
use gauges::Gauges;
pub(crate) use place::Place;
use workshop::Workshop;

use crate::Error;
use crate::experiment::{BoundComponent, Ready};
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
    /// What tells that it can be used.
    pub(crate) ready: Ready,
}

/// A kind of server that an experiment names by a key.
pub(crate) trait Component {
    /// Programs it needs. A trial does not begin without them; `narrows doctor` lists them.
    fn programs(&self) -> &'static [&'static Program];

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

    /// What is asked of it once a second while it is under load.
    fn gauges(&self, _: &Place<'_>) -> Option<Box<dyn Gauges>> {
        None
    }
}

/// What the settings mean. A new component has its line here.
pub(crate) fn of(component: &BoundComponent) -> &dyn Component {
    match component {
        BoundComponent::Postgres(postgres) => postgres,
        BoundComponent::Mariadb(mariadb) => mariadb,
        BoundComponent::Galera(galera) => galera,
        BoundComponent::Nginx(nginx) => nginx,
        BoundComponent::Haproxy(haproxy) => haproxy,
    }
}
