//! A trial as the experiment describes it once every `${…}` is replaced.

use std::path::PathBuf;
use std::time::Duration;

use narrows_model::load::LoadPlan;
use rustix::process::Signal;

/// A replica that needs a port: its service, its number from 0, and the port when the file fixes it.
pub type Replica = (String, u32, Option<u16>);

/// What is known about a trial only when it is about to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Bindings {
    /// Service, replica from 0, and its port; the replicas of a service in order.
    pub ports: Vec<(String, u32, u16)>,
    /// Where services send their telemetry: `http://host:port`.
    pub otlp_endpoint: String,
    /// A folder that is this trial's alone.
    pub trial_dir: PathBuf,
    /// The seed of everything random.
    pub seed: u64,
    /// The factor on warm-up, durations and step times of the load, above 0.
    pub time_scale: f64,
}

impl Bindings {
    /// The ports of a service's replicas, in order.
    pub(super) fn ports_of(&self, service: &str) -> impl Iterator<Item = u16> {
        self.ports.iter().filter(move |(name, ..)| name == service).map(|(_, _, port)| *port)
    }

    /// The first four bytes of the trial's trace ids: FNV-1a (Fowler, Noll, Vo) over the folder that is its alone.
    pub(super) fn trace_tag(&self) -> [u8; 4] {
        let path = self.trial_dir.to_string_lossy();
        let hash = path.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        hash.to_be_bytes()
    }
}

/// What to start and what to send.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundTrial {
    /// The replicas of all services, in the order they are started.
    pub services: Vec<BoundService>,
    /// The load.
    pub load: BoundLoad,
}

/// What sends the load.
#[derive(Debug, Clone, PartialEq)]
pub enum BoundLoad {
    /// Narrows. The plan's targets are the target service's replicas; empty when the target is a URL, whose host is
    /// still to be resolved: see [`Load::authority`](super::Load::authority).
    Plan(LoadPlan),
    /// Another program.
    Command(BoundCommand),
}

/// A program that makes the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundCommand {
    /// Program and arguments, at least one. A program with a `/` is an absolute path.
    pub command: Vec<String>,
    /// The absolute path of the folder it is started in.
    pub cwd: PathBuf,
    /// Environment variables to set beside those it inherits.
    pub env: Vec<(String, String)>,
    /// Where its figures come from.
    pub results: Results,
    /// When it is ended if it still runs.
    pub limit: Option<Duration>,
}

/// Where the figures of a load come from that another program makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// The summary that k6 exports.
    K6Summary,
    /// The root spans of the traces that it begins.
    TraceRoots,
}

/// One replica of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundService {
    /// The service.
    pub name: String,
    /// The replica, from 0.
    pub replica: u32,
    /// The port it is to listen on.
    pub port: u16,
    /// Program and arguments, at least one. A program with a `/` is an absolute path.
    pub command: Vec<String>,
    /// The absolute path of the folder it is started in.
    pub cwd: PathBuf,
    /// Environment variables to set beside those it inherits.
    pub env: Vec<(String, String)>,
    /// Commands to run once in a run before the service's first start, each as `command` is.
    pub setup: Vec<Vec<String>>,
    /// How long all of `setup` may take together.
    pub setup_timeout: Duration,
    /// What tells that it can be used.
    pub ready: Ready,
    /// How long that may take.
    pub ready_timeout: Duration,
    /// The cap on processor time, in cores.
    pub cpus: Option<f64>,
    /// The cap on memory.
    pub memory_bytes: Option<u64>,
    /// The signal that asks it to end.
    pub stop_signal: Signal,
    /// How long it may take to end before it is killed.
    pub stop_timeout: Duration,
    /// What becomes of it when it ends by itself under load.
    pub restart: Restart,
}

/// What becomes of a replica that ends by itself under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// The run ends with it.
    Never,
    /// It is started again, a limited number of times in a trial.
    Always,
}

/// What tells that a replica can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// Its port accepts connections.
    Tcp,
    /// A request to its port is answered with a status below 400.
    Http {
        /// The method, upper case.
        method: String,
        /// Path and query.
        path: String,
    },
    /// It has printed a line with this text in it.
    Log {
        /// The text.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_have_different_tags() {
        let of = |dir: &str| {
            let dir = PathBuf::from(dir);
            Bindings { ports: Vec::new(), otlp_endpoint: String::new(), trial_dir: dir, seed: 1, time_scale: 1.0 }
                .trace_tag()
        };
        assert_ne!(of("/tmp/run-1"), of("/tmp/run-2"));
        assert_eq!(of("a"), 0xe40c_292c_u32.to_be_bytes());
    }
}
