//! Names of subjects and streams. All begin with `narrows`, so that permissions can be given to them.

/// Asks who is there.
pub(crate) const HELLO: &str = "narrows.agents";

/// Commands to an agent.
pub(crate) fn command(agent: &str, command: &str) -> String {
    format!("narrows.agent.{agent}.{command}")
}

/// Signs of life of the agents of a trial.
pub(crate) fn alive(run: &str, trial: i64) -> String {
    format!("narrows.alive.{run}.{trial}")
}

/// Signs of life of a run's coordinator.
pub(crate) fn coordinator(run: &str) -> String {
    format!("narrows.coordinator.{run}")
}

/// The stream of a trial.
pub(crate) fn stream(run: &str, trial: i64) -> String {
    format!("NARROWS-{run}-{trial}")
}

/// Reports of a trial from one sender: the number of a part, [`COORDINATOR`], or `*` for all of them, which its stream keeps.
pub(crate) fn reports(run: &str, trial: i64, sender: &str) -> String {
    format!("narrows.reports.{run}.{trial}.{sender}")
}

/// See [`reports`].
pub(crate) const COORDINATOR: &str = "coordinator";
