//! Everything that keeps a load from being divided over agents, or an agent from working.

use std::time::Duration;

/// Why agents cannot be used. Agents that are lost while the load runs are no errors: the merged load says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection, or one that the server refused.
    #[error("cannot connect to {server}: {reason}")]
    Connect {
        /// The servers, without passwords.
        server: String,
        /// Words of the server or the system.
        reason: String,
    },
    /// A request to the server failed.
    #[error("{server}: cannot {action}: {reason}")]
    Server {
        /// The servers.
        server: String,
        /// Attempt.
        action: &'static str,
        /// Words of the server or its client.
        reason: String,
    },
    /// The server keeps no streams.
    #[error("{server} has no JetStream, which keeps what agents report; start it with `nats-server --jetstream`")]
    NoJetStream {
        /// The servers.
        server: String,
    },
    /// Too few agents are there.
    #[error("{found} of {wanted} are there{}", within(.waited, .hint))]
    TooFew {
        /// How many fit, in words.
        found: String,
        /// Which were asked for.
        wanted: String,
        /// How long they were waited for.
        waited: Duration,
        /// Agents that were found and not chosen, with reasons; empty without any.
        hint: String,
    },
    /// An agent that fits is of another version.
    #[error("agent {agent} is of version {theirs}, expected {ours}: install the same version there")]
    OtherVersion {
        /// Its name.
        agent: String,
        /// Its version.
        theirs: String,
        /// The version of this program.
        ours: String,
    },
    /// Two agents have one name.
    #[error("two agents are named {agent}; give one of them another with `--name`")]
    SameName {
        /// The name.
        agent: String,
    },
    /// The clock of an agent's machine is far off.
    #[error("the clock of agent {agent} is {} s {} this one's, expected at most {} s: set both by NTP", .offset_ns.unsigned_abs() / 1_000_000_000, if *.offset_ns > 0 { "ahead of" } else { "behind" }, .most.as_secs())]
    Clock {
        /// Its name.
        agent: String,
        /// Its clock less this one, in nanoseconds.
        offset_ns: i64,
        /// Limit.
        most: Duration,
    },
    /// An agent refused its part of the load, or could not run it.
    #[error("agent {agent}: {reason}")]
    Refused {
        /// Its name.
        agent: String,
        /// Its words.
        reason: String,
    },
    /// An agent did not respond in time.
    #[error("agent {agent} has not responded within {} s when asked to {action}", .waited.as_secs())]
    Silent {
        /// Its name.
        agent: String,
        /// Attempt.
        action: &'static str,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Every agent was lost.
    #[error("no agent is left: {reason}")]
    AllLost {
        /// Fate of the last one.
        reason: String,
    },
    /// Rows that are drawn once are fewer than agents: some would have nothing to send.
    #[error(
        "data `{data}` has {rows} rows to be picked once by {agents} agents, expected at least one for each: choose fewer agents"
    )]
    TooFewRows {
        /// Its name.
        data: String,
        /// Its rows.
        rows: usize,
        /// Agents of the load.
        agents: usize,
    },
    /// A plan that does not fit into messages.
    #[error("the load's plan with its data takes {bytes} bytes, expected {most} at most")]
    PlanSize {
        /// Its size.
        bytes: usize,
        /// Limit.
        most: usize,
    },
    /// A text that chooses agents, or names one, says nothing that could be followed.
    #[error("{0}")]
    Words(String),
    /// The system refused something.
    #[error("cannot {action}")]
    System {
        /// Attempt.
        action: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
}

fn within(waited: &Duration, hint: &str) -> String {
    let waited = format!(" after {} s", waited.as_secs());
    if hint.is_empty() { waited } else { format!("{waited} ({hint})") }
}
