//! Why a run could not be made.

use std::path::PathBuf;

use narrows_diagnose::diff::Incomparable;

/// Why a run could not be made or go on. The message says what failed and on which value; [`Error::hint`] what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The experiment file does not bind; every error is listed.
    #[error("the experiment cannot be bound:\n{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Experiment(Vec<crate::experiment::FileError>),
    /// A variant was asked for that the experiment does not have.
    #[error("no variant is named `{name}`; the experiment has {known}")]
    UnknownVariant {
        /// Requested name.
        name: String,
        /// Names that exist.
        known: String,
    },
    /// Trials were asked for that a run does not have.
    #[error("{} has no trial {}; it has {}", path.display(), trial_name(variant, *repetition), known.join(", "))]
    NoSuchTrial {
        /// The run file.
        path: PathBuf,
        /// The variant that was asked for.
        variant: String,
        /// The repetition that was asked for.
        repetition: Option<u32>,
        /// The trials that it has.
        known: Vec<String>,
    },
    /// A part of a file of evidence was asked for.
    #[error("{} cannot be divided by time: it holds the sums of whole trials", path.display())]
    EvidenceIsWhole {
        /// The file.
        path: PathBuf,
    },
    /// A prediction was to be kept in a file of evidence.
    #[error("{} is a file of evidence, which keeps no predictions", path.display())]
    EvidenceKeepsNothing {
        /// The file.
        path: PathBuf,
    },
    /// Nothing was measured at the time that was asked for.
    #[error("{} has nothing of that time{}", path.display(), lasts(*started_ns, *ended_ns))]
    NothingThen {
        /// The run file.
        path: PathBuf,
        /// When the first of its trials started.
        started_ns: Option<i64>,
        /// When the last of them ended.
        ended_ns: Option<i64>,
    },
    /// Two things were to be compared that have nothing in common.
    #[error("cannot compare: {0}")]
    Incomparable(#[from] Incomparable),
    /// A command could not be started.
    #[error("{who}: cannot start `{program}` in {}: {source}", cwd.display())]
    Spawn {
        /// The service, or its setup.
        who: String,
        /// The program.
        program: String,
        /// Where.
        cwd: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A setup command failed.
    #[error("{service}: setup command `{command}` {how}{}", tail(.last_lines))]
    Setup {
        /// The service.
        service: String,
        /// The command.
        command: String,
        /// `exited with code 1`, `took longer than 10m`.
        how: String,
        /// Its last output.
        last_lines: Vec<String>,
    },
    /// A program that a component needs is not on this machine.
    #[error("{service}: `{program}` is not on this machine; it was looked for in {places}")]
    NoProgram {
        /// The service.
        service: String,
        /// Missing thing.
        program: String,
        /// Where it was looked for.
        places: String,
        /// Command that installs it.
        install: &'static str,
    },
    /// A component could not be made ready.
    #[error("{service}: {what}{}", tail(.last_lines))]
    Component {
        /// The service.
        service: String,
        /// Failed step.
        what: String,
        /// Last output.
        last_lines: Vec<String>,
    },
    /// A container does not respond.
    #[error("{problem}{}", tail(.last_lines))]
    Container {
        /// The service, and the finding of the last probe.
        problem: String,
        /// Last output of its containers.
        last_lines: Vec<String>,
    },
    /// Containers cannot find each other by name.
    #[error(
        "compose: the containers of {} cannot find each other by name: podman's network {network} has no name server",
        file.display()
    )]
    NoNames {
        /// The Compose file.
        file: PathBuf,
        /// A network of its containers.
        network: String,
    },
    /// A service ended instead of coming up.
    #[error("{service}: {how} before it was ready{}", tail(.last_lines))]
    EndedEarly {
        /// The service and its replica.
        service: String,
        /// `exited with code 1`.
        how: String,
        /// Its last output.
        last_lines: Vec<String>,
    },
    /// A service did not come up in time.
    #[error("{service}: {how}{}", tail(.last_lines))]
    NotReady {
        /// The service and its replica.
        service: String,
        /// Observation instead of readiness.
        how: String,
        /// The ports that it listens on instead of its own; empty where it listens on its own or on none.
        elsewhere: Vec<u16>,
        /// Its last output.
        last_lines: Vec<String>,
    },
    /// A service ended by itself.
    #[error("{service}: {how} {when}{}", tail(.last_lines))]
    Died {
        /// The service and its replica.
        service: String,
        /// `exited with code 1`.
        how: String,
        /// `while under load`.
        when: &'static str,
        /// Its last output.
        last_lines: Vec<String>,
    },
    /// The program that sends the load failed.
    #[error("the load's command `{program}` {how}{}", tail(.last_lines))]
    LoadCommand {
        /// The program.
        program: String,
        /// `exited with code 1`.
        how: String,
        /// Its last output.
        last_lines: Vec<String>,
    },
    /// The capacity of this experiment cannot be searched for.
    #[error("cannot search for the capacity: {0}")]
    Capacity(String),
    /// Two variants cannot be compared.
    #[error("cannot compare: {0}")]
    Compare(narrows_diagnose::proof::Refusal),
    /// An address names several variants where one is needed.
    #[error("{label} has {} variants, expected one to compare: {}", variants.len(), variants.join(", "))]
    SeveralVariants {
        /// The address.
        label: String,
        /// The names that it has.
        variants: Vec<String>,
    },
    /// A run cannot become a baseline.
    #[error("cannot use this run as a baseline: {0}")]
    Baseline(narrows_diagnose::baseline::Refusal),
    /// No port is free.
    #[error("no free port on 127.0.0.1 between {from} and {to}")]
    NoPort {
        /// First port tried.
        from: u16,
        /// Last port tried.
        to: u16,
    },
    /// The load's target is not an address.
    #[error("the load's target `{target}` does not resolve to an address: {reason}")]
    Target {
        /// As the experiment has it.
        target: String,
        /// Why not.
        reason: String,
    },
    /// The host of a service that somebody else has started is unknown.
    #[error("{service}: `{place}` does not resolve to an address: {reason}")]
    UnknownHost {
        /// The service.
        service: String,
        /// Where it should be.
        place: String,
        /// Why not.
        reason: String,
    },
    /// A service that somebody else has started does not respond.
    #[error("{service}: nothing usable at {place} after {}: {problem}", narrows_model::units::duration(waited.as_nanos() as f64))]
    NotReachable {
        /// The service.
        service: String,
        /// Where it should be.
        place: String,
        /// How long it was waited for.
        waited: std::time::Duration,
        /// Finding of the last probe.
        problem: String,
    },
    /// Telemetry cannot be received as the experiment says.
    #[error(transparent)]
    Telemetry(#[from] crate::experiment::TelemetryError),
    /// The environment variable with the token of services holds no token.
    #[error("invalid NARROWS_TOKEN: {0}")]
    ServiceToken(narrows_telemetry::otlp::NotAToken),
    /// The cluster in which the system runs cannot be used.
    #[error("{what}")]
    Cluster {
        /// Failed step, and why.
        what: String,
        /// Possible remedy.
        hint: Option<String>,
    },
    /// A fixed port is in use.
    #[error("{service}: port {port} on 127.0.0.1 is taken by another process")]
    PortTaken {
        /// The service.
        service: String,
        /// The port.
        port: u16,
    },
    /// A service's folder does not exist.
    #[error("{who}: its cwd {} is not a folder", cwd.display())]
    NoFolder {
        /// The service, or its setup.
        who: String,
        /// Where it was to run.
        cwd: PathBuf,
    },
    /// The guard process has ended.
    #[error("the guard process, which ends services if narrows is killed, is gone: {0}")]
    GuardGone(std::io::Error),
    /// The guard process could not be started.
    #[error("cannot start the guard process, which ends services if narrows is killed: {0}")]
    Guard(std::io::Error),
    /// A file or folder.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// `create`, `read`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Nothing to resume, or not this experiment.
    #[error("cannot resume: {0}")]
    Resume(String),
    /// The experiment file has changed since the run began.
    #[error("cannot resume: {file} is not the experiment that {} started with: line {line} differs", path.display())]
    OtherExperiment {
        /// The experiment file.
        file: String,
        /// The run file.
        path: PathBuf,
        /// The first line that differs, from 1.
        line: usize,
    },
    /// The load engine.
    #[error(transparent)]
    Load(#[from] narrows_load::Error),
    /// Agents that are to send the load.
    #[error(transparent)]
    Agents(#[from] narrows_agents::Error),
    /// Agents, where a command makes the load.
    #[error("agents send the scenarios of a load, but `load.command` makes this one")]
    AgentsForCommand,
    /// Agents of this process's own that are not just so many.
    #[error("`--agents` without `--nats` starts agents here, expected a number from 1 to {most}")]
    OwnAgents {
        /// How many it may be.
        most: usize,
    },
    /// The NATS server that this process started for its agents.
    #[error("the NATS server for the agents {how}: {said}")]
    OwnNats {
        /// Its fate, as a clause.
        how: String,
        /// Its last lines.
        said: String,
    },
    /// The run file.
    #[error(transparent)]
    RunFile(#[from] narrows_telemetry::run_file::Error),
    /// The OTLP receiver.
    #[error(transparent)]
    Otlp(#[from] narrows_telemetry::otlp::Error),
    /// The sampler.
    #[error(transparent)]
    Sampler(#[from] narrows_sampler::Error),
    /// A page of metrics.
    #[error(transparent)]
    Scrape(#[from] narrows_telemetry::scrape::Error),
    /// A file of another program's telemetry.
    #[error(transparent)]
    Import(#[from] narrows_telemetry::exchange::ImportError),
    /// A file of evidence.
    #[error("{}", path.display())]
    Evidence {
        /// The file.
        path: PathBuf,
        /// Fault.
        source: narrows_telemetry::exchange::EvidenceError,
    },
    /// A process that was to be attached to is not there.
    #[error("cannot attach to process {pid} as `{service}`: there is no such process")]
    NoProcess {
        /// The service.
        service: String,
        /// Its process.
        pid: u32,
    },
    /// A signal asked for the end.
    #[error("interrupted")]
    Interrupted,
}

/// How the C library and Go call a port that is taken, in lower case, as most servers pass it on.
const ADDRESS_IN_USE: &str = "address already in use";

impl Error {
    /// Advice for the user, if there is any.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Spawn { source, program, .. } if source.kind() == std::io::ErrorKind::NotFound => Some(format!(
                "`{program}` is looked up in PATH, or in the service's cwd when it contains a `/`; `narrows doctor` lists missing servers"
            )),
            Error::NoProgram { install, .. } => {
                Some(format!("`{install}`; `narrows doctor` lists what else is missing"))
            }
            Error::NoNames { .. } => Some(
                "install the plugin `dnsname` of podman's networks (`apt-get install golang-github-containernetworking-plugin-dnsname`), \
                 or `aardvark-dns` where they are those of netavark"
                    .into(),
            ),
            Error::NotReachable { problem, .. } if crate::components::readiness::is_about_token(problem) => Some(format!(
                "it asks for another token: correct its `token` or the variable {}",
                crate::experiment::SERVICE_TOKEN_VARIABLE
            )),
            Error::Cluster { hint, .. } => hint.clone(),
            Error::NotReachable { .. } => Some(
                "Narrows does not start a service with `address`: start it there, let this machine through its firewall, or correct \
                 `address` and `ready`"
                    .into(),
            ),
            Error::PortTaken { .. } => Some("without `port:`, Narrows assigns a free one as ${port}".into()),
            Error::EndedEarly { last_lines, .. }
                if last_lines.iter().any(|line| line.to_lowercase().contains(ADDRESS_IN_USE)) =>
            {
                Some("another process listens at its port; without `port:`, Narrows assigns one as ${port}".into())
            }
            Error::OtherExperiment { .. } => {
                Some("put the old experiment file back, with the same `--set`, or start a new run; only values of secrets may differ".into())
            }
            Error::Compare(refusal) => refusal.hint().map(str::to_owned),
            Error::SeveralVariants { variants, .. } => {
                variants.first().map(|variant| format!("name one of them, as in `:{variant}`"))
            }
            Error::Baseline(refusal) => refusal.hint(),
            Error::RunFile(error) => hint_of(error),
            Error::Otlp(narrows_telemetry::otlp::Error::Listen { source, .. })
                if source.kind() == std::io::ErrorKind::AddrInUse =>
            {
                Some(
                    "another program listens there, often a collector; listen elsewhere (`narrows attach --otlp 127.0.0.1:14318`, \
                     `telemetry.listen` of an experiment) and send there too"
                        .into(),
                )
            }
            Error::Otlp(narrows_telemetry::otlp::Error::Listen { source, .. }) => {
                narrows_telemetry::otlp::advice(source).map(str::to_owned)
            }
            Error::Telemetry(crate::experiment::TelemetryError::Exposed(_)) => Some(format!(
                "set `telemetry.token` or, so that it stands in no file, the variable {}",
                crate::experiment::OTLP_TOKEN_VARIABLE
            )),
            Error::Import(error) => error.hint(),
            Error::Evidence { .. } => Some("`narrows export RUN --format evidence --out FILE` writes such a file".into()),
            Error::EvidenceIsWhole { .. } => Some("name the run file that it was exported from".into()),
            Error::NothingThen { .. } => Some("times of day are in UTC; `5m..10m` counts from the start".into()),
            Error::Incomparable(Incomparable::Empty(_)) => {
                Some("`RUN@FROM..UNTIL` selects a part of the time; `narrows diagnose RUN` shows when it ran".into())
            }
            Error::Incomparable(Incomparable::OtherServices(_) | Incomparable::NoCommonOperation(..)) => {
                Some("`narrows diagnose RUN` shows the operations of each".into())
            }
            Error::NoProcess { .. } => Some("`pgrep -a NAME` finds process ids".into()),
            Error::NoSuchTrial { variant, known, .. } => {
                let known: Vec<&str> = known.iter().map(|label| label.split('#').next().unwrap_or(label)).collect();
                crate::experiment::nearest(variant, &known).map(|near| format!("did you mean `{near}`?"))
            }
            Error::NotReady { elsewhere, .. } if !elsewhere.is_empty() => Some(format!(
                "it listens on {}; give it its port in `run` as \"${{port}}\" or let it read the variable PORT, or fix the port \
                 with `port:`",
                ports(elsewhere)
            )),
            Error::NotReady { .. } => Some("allow a longer start in `ready:` with `timeout: 2m`".into()),
            Error::Setup { command, .. } if command.contains("-m venv") => {
                Some("on Debian, `python3 -m venv` needs the package python3-venv".into())
            }
            _ => None,
        }
    }
}

/// `port 3000`, `ports 3000 and 3001`.
fn ports(ports: &[u16]) -> String {
    let listed: Vec<String> = ports.iter().map(u16::to_string).collect();
    match listed.as_slice() {
        [only] => format!("port {only}"),
        [first @ .., last] => format!("ports {} and {last}", first.join(", ")),
        [] => "no port".to_owned(),
    }
}

fn hint_of(error: &narrows_telemetry::run_file::Error) -> Option<String> {
    use narrows_telemetry::run_file::Error::{Complete, DiskFull, Exists, Foreign, InUse, TooSlow, Unsettled, Version};
    match error {
        Exists(_) => Some("use another `--out`, or continue that run with `--resume`".into()),
        InUse { .. } => Some("wait for that run to end, or end it with Ctrl-C".into()),
        Unsettled { .. } => Some("copy it, with its -wal file, to a writable directory".into()),
        Version { .. } => Some("read it with the version of Narrows that wrote it".into()),
        Foreign { .. } => Some(
            "nothing in it was run; get the original file as Narrows wrote it, without added tables, views or triggers"
                .into(),
        ),
        TooSlow(_) => Some("the file may be damaged or malicious; if you trust it, copy it to a faster disk".into()),
        DiskFull(_) => Some(
            "free some space there, or write to another disk with `--out`; what was kept before can be read".into(),
        ),
        Complete(_) => {
            Some("nothing is left to do; start a new run, or look at this one with `narrows diagnose`".into())
        }
        _ => None,
    }
}

fn trial_name(variant: &str, repetition: Option<u32>) -> String {
    repetition.map_or_else(|| variant.to_owned(), |number| format!("{variant}#{number}"))
}

/// `; it lasts from 2026-11-23T09:00:00Z to 2026-11-23T09:20:00Z`.
fn lasts(started_ns: Option<i64>, ended_ns: Option<i64>) -> String {
    let instant = |ns: i64| {
        let instant = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
        instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    };
    match (started_ns, ended_ns) {
        (Some(started), Some(ended)) => format!("; it lasts from {} to {}", instant(started), instant(ended)),
        (Some(started), None) => format!("; it lasts since {}", instant(started)),
        _ => String::new(),
    }
}

fn tail(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let shown = lines.iter().map(|line| format!("\n    | {line}")).collect::<String>();
    format!("; it printed last:{shown}")
}
