//! Evidence of `straggler-branch`.

use serde::{Deserialize, Serialize};

use super::sockets::SocketReading;

/// A branch that is nearly always the last of what the requests of an operation do in parallel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StragglerBranch {
    /// The branch.
    pub branch: Branch,
    /// Requests in the traces in which it is the last.
    pub requests: usize,
    /// Of the operation's requests, the share in which it is the last, 0 to 1.
    pub last_share: f64,
    /// Parallel branches in a request, it included, median.
    pub branches: usize,
    /// Latency of the operation, median of all its requests, nanoseconds.
    pub latency_ns: f64,
    /// Time of the branch, median, nanoseconds.
    pub length_ns: f64,
    /// Time that the request waits for it after the branch that ends next, median, nanoseconds: what a request would save
    /// if the branch took no time.
    pub drag_ns: f64,
    /// The query of the branch, or else what it calls or is named; clipped.
    pub text: String,
    /// The calls as sockets show them, where no span does: the branch is then one of them, `drag_ns` a lower bound, and the
    /// numbers of requests 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<ParallelCalls>,
}

/// Calls of a service to one peer, several at a time for each request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ParallelCalls {
    /// Calls for each request, mean.
    pub per_request: f64,
    /// Calls under way for each request at work, mean.
    pub at_once: f64,
    /// Connections for each user under the lightest load.
    pub connections_per_user: f64,
    /// The calls.
    pub reading: SocketReading,
}

/// Work that is done in parallel with other branches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Branch {
    /// Work of the service itself.
    Work {
        /// The name of its span, clipped.
        name: String,
    },
    /// A call to something else.
    Call {
        /// Callee.
        callee: String,
        /// The partition that it goes to.
        partition: Option<String>,
        /// Method and path, clipped; known only where another branch calls the same callee.
        request: Option<String>,
    },
}

impl Default for Branch {
    fn default() -> Self {
        Self::Work { name: String::new() }
    }
}
