//! Options of commands whose load agents may send.

use narrows_agents::{Selector, WhenLost};
use narrows_lab::agents::AgentsRequest;
use narrows_lab::experiment::Experiment;
use narrows_nats::NatsAddress;

use crate::exit::Failure;

/// Where the address of NATS may be given, since other users can read an argument in the output of `ps`.
pub(crate) const NATS_VARIABLE: &str = "NARROWS_NATS";

#[derive(Debug, Default, clap::Args)]
pub(crate) struct AgentsArguments {
    /// Have agents send the load: so many, those with a label, or both, as in `3,zone=a`. Without `--nats` a NATS server and
    /// so many agents are started here, to try it
    #[arg(long, value_name = "N|LABELS", value_parser = Selector::parse)]
    agents: Option<Selector>,
    /// Where agents wait: nats://USER:PASSWORD@HOST:PORT, or tls://… with ?ca=FILE, ?creds=FILE or ?nkey=FILE. Other users of
    /// this machine can read it in the output of `ps`: the environment variable NARROWS_NATS sets it too
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// Fate of the load of an agent that is lost: the others `go-on` without it, or one of them will `take-over` it
    /// [default: go-on]
    #[arg(long, value_name = "WORD", value_parser = when_lost)]
    when_lost: Option<WhenLost>,
}

impl AgentsArguments {
    /// Agents to send the load of an experiment, if that is wanted here or there.
    pub(crate) fn request(&self, experiment: &Experiment) -> Result<Option<AgentsRequest>, Failure> {
        let own = experiment.load.agents.as_ref();
        let Some(selector) = self.agents.as_ref().or(own.map(|own| &own.selector)) else {
            return match self.nats {
                Some(_) => Err(Failure::new("`--nats` needs `--agents`, or `agents` in the experiment's load")),
                None => Ok(None),
            };
        };
        let program = std::env::current_exe();
        let program = program.map_err(|error| Failure::new(format!("cannot find the narrows binary: {error}")))?;
        Ok(Some(AgentsRequest {
            selector: selector.clone(),
            nats: nats(self.nats.as_deref())?,
            when_lost: self.when_lost.or(own.map(|own| own.when_lost)).unwrap_or_default(),
            agent_command: vec![program.to_string_lossy().into_owned(), "agent".to_owned()],
        }))
    }
}

fn when_lost(text: &str) -> Result<WhenLost, String> {
    match text {
        "go-on" => Ok(WhenLost::GoOn),
        "take-over" => Ok(WhenLost::TakeOver),
        _ => Err("expected `go-on` or `take-over`".to_owned()),
    }
}

/// The address that was given, by an argument or by the environment.
pub(crate) fn nats(argument: Option<&str>) -> Result<Option<NatsAddress>, Failure> {
    let variable = std::env::var(NATS_VARIABLE).ok();
    let (source, text) = match (argument, &variable) {
        (Some(text), _) => ("--nats", text),
        (None, Some(text)) => (NATS_VARIABLE, text.as_str()),
        (None, None) => return Ok(None),
    };
    NatsAddress::parse(text).map(Some).map_err(|problem| Failure::new(format!("{source}: {problem}")))
}
