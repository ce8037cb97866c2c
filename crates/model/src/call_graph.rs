//! Calls between processes as their sockets show them, without spans.

use serde::{Deserialize, Serialize};

/// Name of the node of all name servers: peers at port 53.
pub const NAME_SERVER: &str = "name server";
/// Name of the node of clients whose own end is not sampled.
pub const CLIENTS: &str = "clients";

/// Calls between the load, the services of a trial and addresses outside.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallGraph {
    /// Edges, in order of caller and callee; empty if no sockets were sampled.
    pub edges: Vec<CallEdge>,
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
    /// The kernel's count of the requests outstanding, for calls below 40 ms; `None` if not recorded.
    pub busy: Option<f64>,
    /// Smoothed round-trip time, nanoseconds: for calls below 40 ms the time to the response; `None` if not recorded.
    pub round_trip_ns: Option<f64>,
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

    /// Whether the bounds lie apart by no more than this share of the upper one.
    pub fn is_narrow(self, share: f64) -> bool {
        self.high - self.low <= share * self.high
    }
}

impl CallFigures {
    /// Requests outstanding.
    pub fn requests(&self) -> Bounds {
        Bounds { low: self.outstanding, high: self.outstanding + self.undecided }
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

    /// Adds other calls. Of two round-trip times, each counts by its requests.
    pub fn add(&mut self, other: &Self) {
        self.round_trip_ns = match (self.round_trip_ns, other.round_trip_ns) {
            (Some(a), Some(b)) if self.rate + other.rate > 0.0 => {
                Some((a * self.rate + b * other.rate) / (self.rate + other.rate))
            }
            (known, other) => known.or(other),
        };
        self.busy = match (self.busy, other.busy) {
            (Some(a), Some(b)) => Some(a + b),
            (known, other) => known.or(other),
        };
        self.outstanding += other.outstanding;
        self.undecided += other.undecided;
        self.unread += other.unread;
        self.rate += other.rate;
        self.connections += other.connections;
        self.one_way += other.one_way;
        self.opened += other.opened;
    }
}

impl CallGraph {
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
    fn round_trips_are_weighted_by_their_requests() {
        let of =
            |rate, ms: f64| CallFigures { rate, round_trip_ns: Some(ms * 1e6), busy: Some(1.0), ..Default::default() };
        let mut sum = of(300.0, 10.0);
        sum.add(&of(100.0, 30.0));
        assert_eq!((sum.rate, sum.round_trip_ns, sum.busy), (400.0, Some(15e6), Some(2.0)));
        sum.add(&CallFigures { rate: 100.0, ..Default::default() });
        assert_eq!((sum.round_trip_ns, sum.busy), (Some(15e6), Some(2.0)));
    }
}
