//! Parts of a reference system for the command line: its arguments, what they start, and its demo.
//!
//! The crate of a system exports two items:
//!
//! - `Command`, which derives [`clap::Args`]. Its doc comment is the system's help. It has
//!   `async fn run(self) -> Result<CommandOutcome, Error>`, which opens the service or work that the arguments name; [`CommandOutcome`] is either a service
//!   to run or a text to print, and the error is [`Advice`].
//! - `DEMO`, a [`Demo`].
//!
//! [`ListenArguments`] and [`milliseconds`] are the arguments that systems share, [`ServiceError`] is the error of those whose
//! services fail in no way of their own. Deliberately absent: printing, exit codes and the
//! list of systems, which belong to the command line, and HTTP, which is in `narrows_serving`.

mod advice;
mod arguments;
mod demo;
mod error;
mod started;

pub use advice::Advice;
pub use arguments::{Address, ListenArguments, ListenError, TokenArgument, milliseconds};
pub use demo::{Demo, Length};
pub use error::ServiceError;
pub use started::{BoundService, CommandOutcome};
