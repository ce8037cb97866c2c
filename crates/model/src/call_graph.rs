//! Calls between processes as their sockets show them, without spans.

use serde::{Deserialize, Serialize};

/// Name of the node of all name servers: peers at port 53.
pub const NAME_SERVER: &str = "name server";
/// Name of the node of clients whose own end is not sampled.
pub const CLIENTS: &str = "clients";

/// Calls between the load, the services of a trial and addresses outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallGraph {
    /// Nodes, in order of their names; empty if no sockets were sampled.
    pub nodes: Vec<CallNode>,
    /// Edges, in order of caller and callee.
    pub edges: Vec<CallEdge>,
}

/// An end of calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallNode {
    /// As [`CallEdge::caller`] and [`CallEdge::callee`] name it.
    pub name: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Requests in the node that wait for no other, a mean for each level; empty for callers alone.
    pub requests: Vec<f64>,
}

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// The load generator, or clients that are not sampled.
    Client,
    /// A service of the trial.
    Service,
    /// A service of the trial whose program is a database or a message broker.
    Store,
    /// Something outside the trial.
    Outside,
}

impl NodeKind {
    /// Its name in data.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Service => "service",
            Self::Store => "store",
            Self::Outside => "outside",
        }
    }
}

/// Calls from one node to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallEdge {
    /// A service, the load generator ([`names::GENERATOR`](crate::series::names::GENERATOR)) or [`CLIENTS`].
    pub caller: String,
    /// A service, an address and port outside the trial, [`NAME_SERVER`], or
    /// [`names::OTHER_PEERS`](crate::series::names::OTHER_PEERS).
    pub callee: String,
    /// One for each of [`Limit::levels`](crate::limit::Limit::levels).
    pub levels: Vec<CallLevel>,
}

/// Calls over one edge under one load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallLevel {
    /// All of them.
    pub all: CallFigures,
    /// Those to each replica of the callee, in order; empty if it has one or is no service of the trial.
    pub replicas: Vec<CallFigures>,
    /// True if the calls take longer than any request of the load, such as a consumer's wait for messages: no request of
    /// the load waits for them.
    pub is_background: bool,
}

/// Figures of calls, means over an interval and sums over the replicas of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CallFigures {
    /// Requests sent that have no response yet.
    pub outstanding: f64,
    /// By how much these may be more, because the state of so many connections was undecided.
    pub undecided: f64,
    /// Responses that the caller has received and not read.
    pub unread: f64,
    /// Requests per second.
    pub rate: f64,
    /// Connections open.
    pub connections: f64,
    /// Connections that carry data one way only, without requests.
    pub one_way: f64,
    /// Connections opened per second.
    pub opened: f64,
    /// The kernel's own count of the requests outstanding, by the time for which data was unacknowledged: right for calls
    /// below 40 ms, too low for longer ones.
    pub busy: f64,
    /// Bytes sent per second.
    pub sent_bytes: f64,
    /// Bytes received per second.
    pub received_bytes: f64,
}

/// Bounds of a value that samples do not decide exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

impl Bounds {
    /// Middle of the bounds.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// The bounds, none of them above a value.
    #[must_use]
    pub fn at_most(self, most: f64) -> Self {
        Self { low: self.low.min(most), high: self.high.min(most) }
    }

    /// Whether the bounds lie apart by no more than this share of the upper one.
    pub fn is_narrow(self, share: f64) -> bool {
        self.high - self.low <= share * self.high
    }
}

impl CallFigures {
    /// Requests outstanding. The kernel's own count raises the lower bound where samples are undecided.
    pub fn requests(&self) -> Bounds {
        let high = self.outstanding + self.undecided;
        Bounds { low: self.outstanding.max(self.busy.min(high)), high }
    }

    /// Wait per call, nanoseconds, by Little's law: outstanding ÷ rate; `None` without calls.
    pub fn wait_ns(&self) -> Option<Bounds> {
        let Bounds { low, high } = self.requests();
        let per_call = |requests: f64| requests / self.rate * 1e9;
        (self.rate > 0.0).then(|| Bounds { low: per_call(low), high: per_call(high) })
    }

    /// Connections without a request or an unread response, from 0.
    pub fn idle(&self) -> f64 {
        (self.connections - self.one_way - self.outstanding - self.undecided - self.unread).max(0.0)
    }

    /// Adds other calls.
    pub fn add(&mut self, other: &Self) {
        self.outstanding += other.outstanding;
        self.undecided += other.undecided;
        self.unread += other.unread;
        self.rate += other.rate;
        self.connections += other.connections;
        self.one_way += other.one_way;
        self.opened += other.opened;
        self.busy += other.busy;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }
}

impl CallGraph {
    /// The node of a name.
    pub fn node(&self, name: &str) -> Option<&CallNode> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The edges from a node.
    pub fn from<'g, 'n>(&'g self, caller: &'n str) -> impl Iterator<Item = &'g CallEdge> + use<'g, 'n> {
        self.edges.iter().filter(move |edge| edge.caller == caller)
    }

    /// The edges to a node.
    pub fn to<'g, 'n>(&'g self, callee: &'n str) -> impl Iterator<Item = &'g CallEdge> + use<'g, 'n> {
        self.edges.iter().filter(move |edge| edge.callee == callee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_of_a_call_follows_from_littles_law() {
        let calls =
            CallFigures { outstanding: 4.0, undecided: 1.0, rate: 400.0, connections: 8.0, ..Default::default() };
        assert_eq!(calls.wait_ns(), Some(Bounds { low: 10e6, high: 12.5e6 }));
        assert_eq!((calls.idle(), CallFigures::default().wait_ns()), (3.0, None));
    }

    #[test]
    fn the_kernels_count_narrows_what_samples_leave_open() {
        let requests = |busy| CallFigures { outstanding: 1.0, undecided: 2.0, busy, ..Default::default() }.requests();
        assert_eq!(requests(2.5), Bounds { low: 2.5, high: 3.0 });
        assert_eq!(requests(0.1), Bounds { low: 1.0, high: 3.0 }, "calls of 40 ms and more");
        assert_eq!(requests(4.0), Bounds { low: 3.0, high: 3.0 });
    }
}
