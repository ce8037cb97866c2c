//! Evidence of `interpreter-lock`.

use serde::{Deserialize, Serialize};

use super::one_core::OneCore;

/// The threads of an interpreter take turns at its lock.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InterpreterLock {
    /// The interpreter that the replica's command names.
    pub interpreter: Interpreter,
    /// Use of the processor.
    #[serde(flatten)]
    pub one_core: OneCore,
}

/// An interpreter in which one thread of a process computes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpreter {
    /// Its lock is called GIL, global interpreter lock.
    #[default]
    Python,
    /// Its lock is called GVL, global VM lock.
    Ruby,
}
