//! Rights and missing programs of this machine, before a run finds out half-way.
//!
//! Everything is tried, not guessed: a control group is really made, ports are really bound, the clock is really
//! watched. Nothing is left behind, nothing is installed.

mod machine;
mod programs;

pub use programs::missing_program;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Subject.
    pub name: String,
    /// How it stands.
    pub standing: CheckStatus,
    /// Result.
    pub detail: String,
    /// Advice, if there is any.
    pub hint: Option<String>,
}

/// How a checked thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckStatus {
    /// As it should be.
    Fine,
    /// Works, with a limit that is named.
    Limited,
    /// Not there; only what needs it will not work.
    Missing,
}

/// All checks, machine first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Processor, memory, control groups, ports, noise.
    pub machine: Vec<Check>,
    /// Servers and tools that experiments may start.
    pub programs: Vec<Check>,
}

/// Looks at everything. Takes about a second, most of it watching how quiet the machine is.
pub fn examine() -> Report {
    Report { machine: machine::checks(), programs: programs::checks() }
}

fn check(name: &str, standing: CheckStatus, detail: impl Into<String>, hint: Option<&str>) -> Check {
    Check { name: name.to_owned(), standing, detail: detail.into(), hint: hint.map(str::to_owned) }
}
