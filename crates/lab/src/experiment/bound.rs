//! A trial as the experiment describes it once every `${…}` is replaced.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use narrows_model::load::LoadPlan;
use narrows_telemetry::otlp::{NotAToken, Token};
use rustix::process::Signal;

use super::declaration::{Protocol, Settings};
use super::observe::ServerUrl;
use super::system::cluster::BoundCluster;
use super::system::service::SERVICE_TOKEN_VARIABLE;

/// A replica that needs ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Its service.
    pub service: String,
    /// Its number, from 0.
    pub replica: u32,
    /// The port that others know it by, when the file fixes it.
    pub port: Option<u16>,
    /// Where it is, when somebody else started it.
    pub elsewhere: Option<HostPort>,
    /// How many ports it needs besides.
    pub further: usize,
}

/// A replica and the ports it was handed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaPorts {
    /// Its service.
    pub service: String,
    /// Its number, from 0.
    pub replica: u32,
    /// The host that others know it by.
    pub host: Host,
    /// The port that others know it by.
    pub port: u16,
    /// As many more as [`Replica::further`] says.
    pub further: Vec<u16>,
}

impl ReplicaPorts {
    /// Where others reach it.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host.address, self.port)
    }
}

/// `HOST:PORT` of a service that somebody else started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an address, an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", bracketed(&self.host), self.port)
    }
}

/// A host as it stands before `:PORT`.
pub(crate) fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// A machine that replicas are reached at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// As the file has it.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
}

impl Host {
    /// This machine, at the address that services listen on.
    pub fn loopback() -> Self {
        Self { name: "127.0.0.1".to_owned(), address: IpAddr::V4(Ipv4Addr::LOCALHOST) }
    }
}

/// Facts about a trial that are known only when it is about to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Bindings {
    /// The ports of all replicas; the replicas of a service in order.
    pub ports: Vec<ReplicaPorts>,
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
    /// A service's replicas as they are known, in order.
    pub(super) fn of_service(&self, service: &str) -> impl Iterator<Item = &ReplicaPorts> {
        self.ports.iter().filter(move |one| one.service == service)
    }

    /// The first four bytes of the trial's trace ids: FNV-1a (Fowler, Noll, Vo) over the folder that is its alone.
    pub(super) fn trace_tag(&self) -> [u8; 4] {
        let path = self.trial_dir.to_string_lossy();
        let hash = path.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        hash.to_be_bytes()
    }
}

/// Services to start, and load to send.
#[derive(Debug, Clone)]
pub struct BoundTrial {
    /// Containers that are started before them.
    pub compose: Option<BoundCompose>,
    /// The replicas of all services, in the order they are started.
    pub services: Vec<BoundService>,
    /// The load.
    pub load: BoundLoad,
    /// Faults of replicas meanwhile, earliest first.
    pub faults: Vec<Fault>,
    /// The cluster in which the system runs, if it does.
    pub cluster: Option<BoundCluster>,
    /// Servers to ask about themselves that Narrows does not start, by name.
    pub observed: BTreeMap<String, ServerUrl>,
}

/// Containers to start with Compose.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundCompose {
    /// The Compose file.
    pub file: PathBuf,
    /// The services that it has.
    pub services: Vec<String>,
    /// Values for its variables.
    pub env: Vec<(String, String)>,
    /// Limits of its services.
    pub limits: Vec<ContainerLimit>,
    /// How long building and starting may take.
    pub timeout: Duration,
}

impl BoundCompose {
    /// A Compose file as it is.
    pub fn of(file: PathBuf) -> Self {
        const TIMEOUT: Duration = Duration::from_secs(600);
        Self { file, services: Vec::new(), env: Vec::new(), limits: Vec::new(), timeout: TIMEOUT }
    }
}

/// Limits of the containers of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerLimit {
    /// The service.
    pub service: String,
    /// The cap on processor time, in cores.
    pub cpus: Option<f64>,
    /// The cap on memory.
    pub memory_bytes: Option<u64>,
    /// Limits of the service in the Compose file, which these replace.
    pub written: WrittenLimits,
}

/// How a Compose file writes the limits of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenLimits {
    /// It has `cpus`.
    pub has_cpus: bool,
    /// It has `mem_limit`.
    pub has_mem_limit: bool,
    /// It has a number without quotes in `deploy.resources.limits.cpus`.
    pub has_number_in_deploy: bool,
}

/// Something that is done to a replica under load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// When, from the beginning of the load.
    pub at: Duration,
    /// What.
    pub deed: Deed,
    /// The service.
    pub service: String,
    /// Which of its replicas, from 0.
    pub replica: u32,
}

/// Effect of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// All processes of the replica are killed.
    Kill,
    /// They stand still for so long.
    Pause(Duration),
    /// The replica is stopped in order and started again; one that is down is started.
    Restart,
}

/// Sender of the load.
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
#[derive(Debug, Clone)]
pub struct BoundService {
    /// The service.
    pub name: String,
    /// The replica, from 0.
    pub replica: u32,
    /// The port it is to listen on.
    pub port: u16,
    /// Program that is started.
    pub start: Start,
    /// The absolute path of the folder that `setup` and `run` are started in.
    pub cwd: PathBuf,
    /// Environment variables to set beside those it inherits.
    pub env: Vec<(String, String)>,
    /// Commands to run once in a run before the service's first start, each a program and its arguments.
    pub setup: Vec<Vec<String>>,
    /// How long all of `setup` may take together.
    pub setup_timeout: Duration,
    /// How long it may take until it can be used.
    pub ready_timeout: Duration,
    /// The cap on processor time, in cores.
    pub cpus: Option<f64>,
    /// The cap on memory.
    pub memory_bytes: Option<u64>,
    /// The signal that stops it.
    pub stop_signal: Signal,
    /// How long it may take to end before it is killed.
    pub stop_timeout: Duration,
    /// Fate if it ends by itself under load.
    pub restart: Restart,
    /// The container image that has the program, for a cluster that starts it.
    pub image: Option<String>,
    /// The proxy beside it.
    pub sidecar: Option<BoundSidecar>,
    /// Ports of sidecars, its own and its callers', at which it is reached through them.
    pub stand_in_ports: Vec<u16>,
}

impl BoundService {
    /// The port that others know it by: its sidecar's if it has one.
    pub fn advertised_port(&self) -> u16 {
        self.sidecar.as_ref().map_or(self.port, |sidecar| sidecar.port)
    }
}

/// Kind of a replica.
#[derive(Debug, Clone)]
pub enum Start {
    /// A program.
    Run {
        /// Program and arguments, at least one. A program with a `/` is an absolute path.
        command: Vec<String>,
        /// Sign that it can be used.
        ready: Ready,
    },
    /// A component.
    Component {
        /// Its settings.
        settings: Settings,
        /// The replicas of the service in order, this one among them.
        siblings: Vec<Sibling>,
    },
    /// Nothing: somebody else has started it.
    Elsewhere {
        /// Where it is, as the file has it.
        place: HostPort,
        /// Its address.
        address: SocketAddr,
        /// Sign that it can be used.
        ready: Ready,
        /// The token that it asks for, if the file has it.
        token: Option<Token>,
    },
}

impl Start {
    /// The token that a service asks for which somebody else has started: the file's, else that of the environment.
    ///
    /// # Errors
    /// When the environment has something that is no token.
    pub fn token(&self) -> Result<Option<Token>, NotAToken> {
        match self {
            Self::Elsewhere { token: Some(token), .. } => Ok(Some(token.clone())),
            Self::Elsewhere { token: None, .. } => Token::of_variable(SERVICE_TOKEN_VARIABLE),
            Self::Run { .. } | Self::Component { .. } => Ok(None),
        }
    }
}

/// A replica of a component as the others of its service know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sibling {
    /// The port that it listens on.
    pub port: u16,
    /// The ports that the component asks for beside that.
    pub further: Vec<u16>,
}

/// The proxy beside a replica.
#[derive(Debug, Clone)]
pub struct BoundSidecar {
    /// Its name.
    pub proxy: String,
    /// Protocol of the replica.
    pub protocol: Protocol,
    /// The port that others know the replica by. What comes there goes to the replica's own.
    pub port: u16,
    /// The port for other sidecars, by mutual TLS. None without TLS.
    pub tls_port: Option<u16>,
    /// Its listeners for what the replica calls: one for each replica of every other service.
    pub outbound: Vec<Outbound>,
    /// Whether it writes a line for each request.
    pub has_access_log: bool,
    /// The cap on processor time, in cores.
    pub cpus: Option<f64>,
    /// The cap on memory.
    pub memory_bytes: Option<u64>,
}

/// A listener for what a replica calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbound {
    /// The service that is called.
    pub service: String,
    /// Which of its replicas.
    pub replica: u32,
    /// The port that the caller is told.
    pub listen: u16,
    /// Where it goes.
    pub upstream: SocketAddr,
    /// Whether it goes there by mutual TLS: both ends have a sidecar with TLS.
    pub is_secure: bool,
    /// Protocol.
    pub protocol: Protocol,
}

/// Fate of a replica that ends by itself under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// The run ends with it.
    Never,
    /// It is started again, a limited number of times in a trial.
    Always,
}

/// Sign that a replica can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// Its port accepts connections.
    Tcp,
    /// A request to its port returns a status below 400.
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
