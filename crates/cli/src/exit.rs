//! Exit codes and the two lines a failure prints.

use std::process::ExitCode;

use crate::stderr;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Fine,
    /// It ran, and the verdict is "failed".
    VerdictFailed,
    /// It could not run, or not to its end.
    CouldNotRun,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::VerdictFailed => 1,
            Exit::CouldNotRun => 2,
        })
    }
}

/// Why a subcommand could not run: what failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl ToString) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// As [`Self::hint`], if there is one.
    pub(crate) fn hinted(self, hint: Option<&str>) -> Self {
        Self { hint: hint.map(str::to_owned), ..self }
    }

    /// Prints `error: …` and `hint: …` to standard error.
    pub(crate) fn print(&self) -> Exit {
        stderr::say(&format!("error: {}", self.message));
        if let Some(hint) = &self.hint {
            stderr::say(&format!("hint: {hint}"));
        }
        Exit::CouldNotRun
    }
}

impl From<narrows_lab::Error> for Failure {
    fn from(error: narrows_lab::Error) -> Self {
        Self { message: with_causes(&error), hint: error.hint() }
    }
}

impl From<narrows_telemetry::run_file::Error> for Failure {
    fn from(error: narrows_telemetry::run_file::Error) -> Self {
        narrows_lab::Error::from(error).into()
    }
}

/// An error's message and those of its sources, each as far as the ones before do not contain it already.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.contains(&text) {
            message.push_str(&format!(": {text}"));
        }
        source = cause.source();
    }
    message
}
