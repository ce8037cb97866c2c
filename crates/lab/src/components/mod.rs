//! What an experiment can start. Today: operating-system processes; a component is one file here.

pub mod output;
pub mod process;
pub mod ready;
