//! Parts of a reference system for the command line: its arguments, what they start, and its demo.
//!
//! The crate of a system exports two items:
//!
//! - `Command`, which derives [`clap::Args`]. Its doc comment is the system's help. It has
//!   `async fn run(self) -> Result<CommandOutcome, Error>`, which opens the service or work that the arguments name; [`CommandOutcome`] is either a service
//!   to run or a text to print, and the error is [`Advice`].
//! - `DEMO`, a [`Demo`].
//!
//! [`ListenArguments`] and [`milliseconds`] are the arguments that systems share. Deliberately absent: printing, exit codes and the
//! list of systems, which belong to the command line, and HTTP, which is in `narrows_serving`.

mod advice;
mod arguments;
mod demo;
mod started;

pub use advice::Advice;
pub use arguments::{Address, ListenArguments, ListenError, TokenArgument, milliseconds};
pub use demo::{Demo, Length};
pub use started::{BoundService, CommandOutcome};
