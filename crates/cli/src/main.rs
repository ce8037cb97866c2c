//! The `narrows` binary: a table of contents. Each subcommand is a file in `commands/`.

mod agents;
mod args;
mod commands;
mod complete;
mod exit;
mod live;
mod page;
mod run_address;
mod running;
mod runs_folder;
mod signals;
mod stderr;
#[cfg(feature = "reference-systems")]
mod systems;
mod watched;
mod wrapping;

use clap::Parser;

use args::{Args, Command};
use exit::Exit;

fn main() -> std::process::ExitCode {
    complete::propose();
    // A reader that went away is not a fault: `narrows schema | head` ends quietly.
    let arguments = commands::load::with_two_dashes(std::env::args_os());
    let exit = match Args::try_parse_from(arguments).unwrap_or_else(|error| args::printable(error).exit()).command {
        Command::Run(arguments) => commands::run::execute(&arguments),
        Command::Agent(arguments) => commands::agent::execute(&arguments),
        Command::Load(arguments) => commands::load::execute(&arguments),
        Command::Capacity(arguments) => commands::capacity::execute(&arguments),
        Command::Diagnose(arguments) => commands::diagnose::execute(&arguments),
        Command::Diff(arguments) => commands::diff::execute(&arguments),
        Command::Compare(arguments) => commands::compare::execute(&arguments),
        Command::Baseline(command) => commands::baseline::execute(&command),
        Command::Predict(arguments) => commands::predict::execute(&arguments),
        Command::Report(arguments) => commands::report::execute(&arguments),
        Command::Mcp(arguments) => commands::mcp::execute(&arguments),
        Command::Serve(arguments) => commands::serve::execute(&arguments),
        Command::Query(arguments) => commands::query::execute(&arguments),
        Command::Attach(arguments) => commands::attach::execute(&arguments),
        Command::Import(arguments) => commands::import::execute(&arguments),
        Command::Export(arguments) => commands::export::execute(&arguments),
        #[cfg(feature = "reference-systems")]
        Command::Orchestrations(action) => commands::orchestrations::execute(&action),
        Command::Kubernetes(action) => commands::kubernetes::execute(&action),
        Command::Init(arguments) => commands::init::execute(&arguments),
        Command::Check(arguments) => commands::check::execute(&arguments),
        Command::Docs(arguments) => commands::docs::execute(&arguments),
        Command::Schema => commands::schema::execute(),
        Command::Sensitivity(arguments) => commands::sensitivity::execute(&arguments),
        Command::Doctor => commands::doctor::execute(),
        Command::Completions(arguments) => commands::completions::execute(&arguments),
        Command::Man(arguments) => commands::man::execute(&arguments),
        #[cfg(feature = "reference-systems")]
        Command::Demo(arguments) => commands::demo::execute(&arguments),
        #[cfg(feature = "reference-systems")]
        Command::Engine(engine) => commands::engine::execute(&engine),
        #[cfg(feature = "reference-systems")]
        Command::System(system) => commands::system::execute(system),
        Command::Guard => commands::guard::execute(),
    };
    exit.unwrap_or_else(|failure| failure.print()).into()
}

/// Result of a subcommand.
type Outcome = Result<Exit, exit::Failure>;
