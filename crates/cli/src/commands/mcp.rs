//! `narrows mcp [DIR|RUN]`: runs for assistants, by the Model Context Protocol.

use super::serve::{PlaceArgument, cannot_serve};
use crate::Outcome;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "It speaks on standard input and output, and is started by the program that asks. Tools: docs/reference/serve.md"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: PlaceArgument,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    narrows_serve::mcp::serve(arguments.place.source()?).map(|()| Exit::Fine).map_err(|error| cannot_serve(&error))
}
