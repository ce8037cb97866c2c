//! `narrows agent`: waits for work on this machine and sends parts of the loads of `narrows run --agents`.

use std::net::SocketAddr;

use narrows_agents::{AgentEvent, AgentOptions, EyesOptions, serve};
use narrows_lab::experiment::OTLP_TOKEN_VARIABLE;
use narrows_telemetry::otlp::{Token, is_loopback};

use crate::exit::{Exit, Failure};
use crate::watched::WatchedArguments;
use crate::{Outcome, agents, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to wait for work: nats://USER:PASSWORD@HOST:PORT, or tls://… with ?ca=FILE, ?creds=FILE or ?nkey=FILE. Other users
    /// of this machine can read it in the output of `ps`: the environment variable NARROWS_NATS sets it too
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// The agent's name, unlike any other's [default: the machine's, and the process's number]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A label by which it can be chosen; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// Load threads that it may use, each a core at most [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    watched: WatchedArguments,
    /// Receive OTLP of these services here, HTTP and gRPC; beyond loopback, senders present the token of the variable
    /// NARROWS_OTLP_TOKEN
    #[arg(long, value_name = "ADDRESS")]
    otlp: Vec<SocketAddr>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let nats = agents::nats(arguments.nats.as_deref())?.ok_or_else(|| {
        Failure::new("an agent needs to know where to wait for work").hint("--nats nats://HOST:4222, or NARROWS_NATS")
    })?;
    let options = AgentOptions {
        nats,
        name: arguments.name.clone(),
        labels: arguments.label.clone(),
        threads: arguments.threads.map(usize::from),
        eyes: EyesOptions {
            pids: arguments.watched.pids.clone(),
            cgroups: arguments.watched.cgroups(),
            otlp: guarded(&arguments.otlp)?,
        },
    };
    let stop = crate::running::stop_flag()?;
    serve(&options, &stop, &mut |event| stderr::say(&describe(&event))).map_err(narrows_lab::Error::from)?;
    Ok(Exit::Fine)
}

/// The addresses with the token that senders present.
fn guarded(addresses: &[SocketAddr]) -> Result<Vec<(SocketAddr, Option<Token>)>, Failure> {
    let invalid = |error| Failure::new(format!("invalid {OTLP_TOKEN_VARIABLE}: {error}"));
    let token = Token::of_variable(OTLP_TOKEN_VARIABLE).map_err(invalid)?;
    if let Some(open) = addresses.iter().find(|address| token.is_none() && !is_loopback(address.ip())) {
        let problem = format!("cannot listen on {open} without protection: other machines can reach it");
        return Err(Failure::new(problem).hint(format!("set a token with the variable {OTLP_TOKEN_VARIABLE}")));
    }
    Ok(addresses.iter().map(|address| (*address, token.clone())).collect())
}

fn describe(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Ready { name, server } => format!("agent {name} waits for work at {server}"),
        AgentEvent::Working { run, threads: (threads, of) } => {
            format!("run {run}: sends with {threads} of {of} threads")
        }
        AgentEvent::Ended { run, trouble: None } => format!("run {run}: done"),
        AgentEvent::Ended { run, trouble: Some(trouble) } => format!("run {run}: ended: {trouble}"),
    }
}
