//! The command line. Help, man page and completions are all made from these definitions.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};
use narrows_model::printable;
use narrows_telemetry::secrets::{REDACTED, redact_text, redact_url};

use crate::commands::{
    agent, attach, baseline, capacity, check, compare, completions, diagnose, diff, docs, export, import, init,
    kubernetes, load, man, mcp, predict, query, report, run, sensitivity, serve,
};

/// Puts a distributed service under load, watches every hop, and names the place that holds it back.
#[derive(Debug, Parser)]
#[command(name = "narrows", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The error with its message made safe to print: secrets in a quoted value (a header, a URL with a user) are redacted,
/// and terminal control characters are replaced.
pub(crate) fn printable(mut error: clap::Error) -> clap::Error {
    let texts = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(printable::line(text).into_owned()))),
        _ => None,
    });
    for (kind, value) in texts.collect::<Vec<_>>() {
        error.insert(kind, value);
    }
    let context = |kind| error.get(kind).map(ToString::to_string);
    let (Some(mut value), flag) = (context(ContextKind::InvalidValue), context(ContextKind::InvalidArg)) else {
        return error;
    };
    if flag.is_some_and(|flag| flag.starts_with("-H")) {
        value = REDACTED.to_owned();
    }
    redact_text(&mut value);
    redact_url(&mut value);
    error.insert(ContextKind::InvalidValue, ContextValue::String(value));
    error
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: start its services, put them under load, report what is wrong with them
    Run(run::Arguments),
    /// Run a reference system's experiment that comes with Narrows: nothing to install, under three minutes
    #[cfg(feature = "reference-systems")]
    Demo(crate::commands::demo::Arguments),
    /// Scale the parameters that figures were fitted with, and show whether an experiment's conclusions hold
    Sensitivity(sensitivity::Arguments),
    /// Put load on one URL, with hey's flags and their meaning
    Load(Box<load::Arguments>),
    /// Wait for work on this machine: send parts of the loads of `narrows run --agents`
    Agent(agent::Arguments),
    /// Collect from a system that already runs, under any load, and report what is wrong with it
    Attach(Box<attach::Arguments>),
    /// Find the highest arrival rate that meets an experiment's objectives
    Capacity(capacity::Arguments),
    /// Show the result of a run again: table, findings, one sentence
    Diagnose(diagnose::Arguments),
    /// Show which operations, calls and findings appeared, vanished or changed from one variant to another
    Diff(diff::Arguments),
    /// Say whether one variant is faster than another, beyond the noise between their trials
    Compare(compare::Arguments),
    /// Keep the figures of a run in a file, and check later runs against it
    #[command(subcommand)]
    Baseline(baseline::Command),
    /// Predict what a change to the system would gain, and what would limit it next
    Predict(predict::Arguments),
    /// Write a run as one self-contained HTML page, or as JSON
    Report(report::Arguments),
    /// Look at runs in a browser: reports, traces, questions
    Serve(serve::Arguments),
    /// Let programs ask about runs, by the Model Context Protocol
    Mcp(mcp::Arguments),
    /// Query a run, in SQL or in KQL
    Query(query::Arguments),
    /// Make a run from traces, metrics and logs of other programs
    Import(import::Arguments),
    /// Export the telemetry of a run, or send it to another program
    Export(export::Arguments),
    /// List, show, end and delete orchestrations that the durable engine keeps
    #[cfg(feature = "reference-systems")]
    #[command(subcommand)]
    Orchestrations(crate::commands::orchestrations::Action),
    /// Print an experiment's services as manifests for a Kubernetes cluster
    #[command(subcommand)]
    Kubernetes(kubernetes::Action),
    /// Write a first experiment file
    Init(init::Arguments),
    /// Report every error in an experiment file, with line and column
    Check(check::Arguments),
    /// Print a page of the reference: commands, the experiment file, queries, each finding
    Docs(docs::Arguments),
    /// Print the JSON Schema of experiment files
    Schema,
    /// Report what this machine allows and what is missing
    Doctor,
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Write the man pages
    Man(man::Arguments),
    /// Run a server that reference systems are made of
    #[cfg(feature = "reference-systems")]
    #[command(subcommand)]
    Engine(crate::commands::engine::Engine),
    /// Run one service of a reference system
    #[cfg(feature = "reference-systems")]
    #[command(subcommand)]
    System(crate::systems::System),
    /// End what a killed run left (started by `run`; listens on standard input)
    #[command(hide = true)]
    Guard,
}

/// `RUN`: which run file a command reads.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgument {
    /// A run file, or its name in the runs folder [default: the newest]
    #[arg(value_name = "RUN", add = crate::complete::runs())]
    pub(crate) run: Option<PathBuf>,
}
