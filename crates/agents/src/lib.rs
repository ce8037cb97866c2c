//! Load from several machines. An *agent* waits for work on each of them; the *coordinator*, in `narrows run`, divides a load
//! over them and joins what they report, as if it were one.
//!
//! They speak over NATS. What must arrive once (each second of each part of a load, and how the part ended) goes into a
//! stream of JetStream, which keeps it while the coordinator or a server is away; what is of use only now (who is there,
//! what time it is there, that one is alive) goes past it. Plans hold what requests hold, tokens included, so they go to
//! agents directly and are kept nowhere.
//!
//! Users, arrivals, iterations and rows of data belong to load threads by their numbers, and a part of a load is a range of
//! threads ([`narrows_load::LoadPart`]), so parts never overlap and agents need not coordinate while the load runs. Seconds are
//! histograms, which add up: percentiles of the merged load are those of one recording.
//!
//! Agents can look at services on their machines too: they sample them and receive their telemetry, and the coordinator keeps both
//! as if it had seen them itself, on one clock.
//!
//! An agent runs nothing but load: no message makes it start a program or open a file, nor look at what it was not started to.

mod agent;
mod clock_offset;
mod coordinator;
mod error;
mod framing;
mod link;
mod messages;
mod parts;
mod selector;
mod subjects;

pub use agent::{AgentEvent, AgentOptions, EyesOptions, serve};
pub use coordinator::{AgentsEvent, Coordinator, DividedLoad, MergedLoad, WhenLost};
pub use error::Error;
pub use messages::WatchedReplica;
pub use selector::Selector;
