//! Keys of the load that name agents to send it.

use narrows_agents::{Selector, WhenLost};
use serde_json::json;

use crate::experiment::document::at::At;
use crate::experiment::document::tree::Origin;
use crate::experiment::error::Problem;
use crate::experiment::grammar::key::{Key, literal};
use crate::experiment::grammar::kind::{Simple, Words, no_hint};

/// Choice of agents.
static AGENTS_KIND: Simple<Selector> = Simple {
    expected: "a number of agents, labels as in `zone=a`, or both as in `3,zone=a`",
    name: "number, labels, or both",
    written: &[Origin::Integer, Origin::String],
    read: |text| Selector::parse(text).map_err(|problem| Some(Problem::new(problem))),
    hint: no_hint,
    schema: || json!({ "type": ["integer", "string"] }),
};

pub(super) const AGENTS: Key<Selector> = Key::optional(
    "agents",
    literal(&AGENTS_KIND),
    "Which agents send the load, each a part: so many, those with these labels, or both. Without it, this machine does.",
);

pub(super) const WHEN_AGENT_LOST: Key<WhenLost> = Key::default(
    "when_agent_lost",
    literal(&Words(&[("go-on", WhenLost::GoOn), ("take-over", WhenLost::TakeOver)])),
    "go-on",
    "What becomes of the part of an agent that is lost: the others go on without it, or one of them takes it over.",
);

/// Agents that an experiment has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadAgents {
    /// Which.
    pub selector: Selector,
    /// Fate of the part of one that is lost.
    pub when_lost: WhenLost,
}

/// Agents that a load section names.
pub(crate) fn agents(at: At<'_>) -> Option<LoadAgents> {
    let selector = at.read(&AGENTS)?;
    Some(LoadAgents { selector, when_lost: at.read(&WHEN_AGENT_LOST).unwrap_or_default() })
}
