//! What an experiment can start. Today: operating-system processes; a component is one file here.

pub(crate) mod output;
pub(crate) mod process;
pub(crate) mod ready;
