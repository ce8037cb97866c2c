//! The experiment file: what to start, what to send, what to keep to, and which variants to compare.
//!
//! The file is YAML. Reading goes through it in layers: `document` (the tree with its places), `grammar` (the check of the
//! tree against the keys that sections declare), and the sections, which declare these keys, read the checked values
//! and judge what one part says about another: `system`, `load`, `variants`, and the smaller ones, a file each. A trial is
//! the same document once more with every `${…}` replaced (`placeholders`), so a value is judged by the same rules
//! whether it was written or bound. Every error of a file is reported at once with line and column.
//!
//! Nothing is started and nothing is sent here; the only files read are the experiment, its data and the authorities it
//! trusts. The folders that services are started in must exist. Components are declared by whoever runs them
//! ([`Language`]).

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use narrows_telemetry::secrets::KnownSecrets;

mod bound;
mod compose;
mod declaration;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod grammar;
mod language;
pub(crate) mod load;
mod objective;
mod observe;
pub(crate) mod paths;
mod placeholders;
mod prices;
mod published;
mod quantity;
mod recorded;
mod secrets;
pub(crate) mod system;
mod telemetry;
mod thresholds;
mod tunables;
mod variants;

pub use bound::{
    Bindings, BoundCommand, BoundCompose, BoundLoad, BoundService, BoundSidecar, BoundTrial, ContainerLimit, Deed,
    Fault, Host, HostPort, Outbound, Ready, Replica, ReplicaPorts, Restart, Results, Sibling, Start, WrittenLimits,
};
pub use compose::experiment_of;
pub(crate) use declaration::{Declaration, Url};
pub use declaration::{Protocol, Settings};
pub use error::{ExperimentError, FileError, nearest};
pub use language::Language;
pub use load::agents::LoadAgents;
pub use objective::{Abort, Metric, Objective, Op};
pub(crate) use observe::ServerKind;
pub use observe::ServerUrl;
pub(crate) use prices::costs;
pub use recorded::RecordedExperiment;
pub use secrets::redacted;
pub use system::cluster::{BoundCluster, BoundDeployment};
pub(crate) use system::service::SERVICE_TOKEN_VARIABLE;
pub use telemetry::{OTLP_TOKEN_VARIABLE, Telemetry, TelemetryError, listen_address};
pub use tunables::Tunable;
pub use variants::Variant;
pub use variants::fallback::Fallback;
pub(crate) use variants::scaled_value;
pub use variants::used::UsedCpu;

use document::at::At;
use document::tree::{self, Node};
use error::{Problem, Report};
use grammar::check::{self, Pass};
use grammar::{complete, top};
use load::address::{self, Address};
use load::data::DataFiles;
use load::{agents, command, target};
use placeholders::names::{self, Names, Values};
use secrets::Secrets;
use system::network::{self, Network};
use system::{cluster, faults, needs, service};
use variants::{fallback, used};

/// Larger experiment files are refused, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// An experiment file that has no errors.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The experiment's name.
    pub name: String,
    /// The absolute path of the folder that relative paths start from.
    pub dir: PathBuf,
    /// The file's text, to the byte, with its secrets: see [`Experiment::redacted_source`].
    pub source: String,
    /// The parameters as the file gives them, before any variant.
    pub parameters: BTreeMap<String, String>,
    /// The names of the services in the order they are started.
    pub services: Vec<String>,
    /// Parts of the load that are the same in all variants.
    pub load: Load,
    /// Objectives of the system.
    pub objectives: Vec<Objective>,
    /// The variants, at least one.
    pub variants: Vec<Variant>,
    /// The parameters whose value gives way to what variants were measured to reach.
    pub fallbacks: Vec<Fallback>,
    /// The parameters that are set to the CPU that a service used.
    pub used: Vec<UsedCpu>,
    /// The seed of everything random in a run.
    pub seed: u64,
    /// Telemetry of services that somebody else has started.
    pub telemetry: Telemetry,
    file: String,
    language: Language,
    root: Node,
    secrets: Secrets,
}

/// Parts of the load that are the same in all variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// A service's name, `http://host:port` or `https://host:port`. None only where another program makes the load.
    pub target: Option<String>,
    /// Who makes it.
    pub maker: LoadMaker,
    /// Agents that send it; this machine without.
    pub agents: Option<LoadAgents>,
}

/// Who makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadMaker {
    /// Narrows, as the scenarios say.
    Scenarios,
    /// Another program.
    Command,
}

impl Load {
    /// The `host:port` that has to be resolved; `None` if the target is a service, or there is none.
    pub fn authority(&self) -> Option<String> {
        address::parse(self.target.as_ref()?).ok().map(Address::with_port)
    }
}

impl Language {
    /// Reads an experiment file. Relative paths in it start from the folder it lies in.
    ///
    /// # Errors
    /// When the file cannot be read, and with all its errors when it has any.
    pub fn read(self, path: &Path) -> Result<Experiment, ExperimentError> {
        let io = |source| ExperimentError::Io { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        let file = narrows_files::open(path).map_err(io)?;
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(io)?;
        let name = path.to_string_lossy();
        let source = text(bytes, &name).map_err(ExperimentError::Invalid)?;
        self.parse(&source, &name, path.parent().unwrap_or(Path::new(""))).map_err(ExperimentError::Invalid)
    }

    /// Reads an experiment from its text. `file` is how errors name it; relative paths in it start from `dir`.
    ///
    /// # Errors
    /// With all errors, in the order of the text.
    pub fn parse(self, source: &str, file: &str, dir: &Path) -> Result<Experiment, Vec<FileError>> {
        let mut report = Report::new(file);
        let dir = std::path::absolute(dir.join(".")).unwrap_or_else(|_| dir.to_owned());
        let experiment = parse_into(source, self, file, dir, &mut report);
        match experiment {
            Some(experiment) if report.is_empty() => Ok(experiment),
            _ => Err(hidden(report.into_errors(), source)),
        }
    }
}

fn text(bytes: Vec<u8>, file: &str) -> Result<String, Vec<FileError>> {
    String::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let line = good.matches('\n').count() + 1;
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let mut report = Report::new(file);
        report.add((line, column), String::new(), Problem::new("a byte that is not UTF-8 text"));
        report.into_errors()
    })
}

/// Errors without the secrets that they quote.
fn hidden(mut errors: Vec<FileError>, source: &str) -> Vec<FileError> {
    let known = if source.len() > FILE_BYTES_MAX { KnownSecrets::none() } else { Secrets::of(source).known() };
    for error in &mut errors {
        known.hide_in_message(&mut error.message);
        error.hint.iter_mut().for_each(|hint| known.hide_in_message(hint));
    }
    errors
}

fn parse_into(source: &str, language: Language, file: &str, dir: PathBuf, report: &mut Report) -> Option<Experiment> {
    if source.len() > FILE_BYTES_MAX {
        report.add((1, 1), String::new(), Problem::new(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
        return None;
    }
    let mut root = tree::parse(source, report)?;
    system::compose::expand(&mut root, &dir, report)?;
    let at = At::root(&root);
    check::check(at, language.experiment, Pass::Open(&Names::of(&root, language)), report);
    check_service_names(at, report);
    service::check_readiness(at, language, report);
    thresholds::check(at, report);
    let parameters = variants::parameters(at, report);
    let variants = variants::variants(at, language, &parameters, report);
    load::check_conditions(at, &parameters, report);
    fallback::check(at, &variants, report);
    used::check(at, &Names::of(&root, language), &variants, report);
    faults::check_all(at, &variants, report);
    check_variants(at, language, &variants, &dir, report);
    published::check(at, language, &variants, report);
    objective::check(at, report);
    let objectives = at.get(&objective::OBJECTIVES).iter().flat_map(At::items).filter_map(objective::read).collect();
    Some(Experiment {
        name: at.read(&top::NAME)?,
        services: Names::of(&root, language).services()?.iter().map(|name| (*name).to_owned()).collect(),
        load: load_of(at.get(&load::LOAD)?),
        seed: seed(&root, language)?,
        telemetry: telemetry::build(at, &Values::of(&parameters), report),
        fallbacks: fallback::read(at),
        used: used::read(at),
        dir,
        source: source.to_owned(),
        parameters,
        objectives,
        variants,
        file: file.to_owned(),
        language,
        secrets: Secrets::of(source),
        root,
    })
}

fn seed(root: &Node, language: Language) -> Option<u64> {
    let parameters = BTreeMap::new();
    let values = Values::of(&parameters);
    let whole = complete::complete(root, language.experiment, &values);
    At::root(&whole).read(&top::SEED)
}

fn check_service_names(root: At<'_>, report: &mut Report) {
    let Some(system) = root.named(names::SYSTEM) else { return };
    let Some(services) = system.named(names::SERVICES) else { return };
    for (name, at) in services.entries().filter(|(name, _)| names::RESERVED_FOR_SERVICES.contains(name)) {
        let problem = Problem::new(format!("a service cannot be named `{name}`, which is reserved in `${{…}}`"));
        report.add(at.key_place(), services.path(), problem);
    }
}

/// Binds every variant to made-up addresses, which shows what only bound values show. One replica of each service is
/// enough for that.
fn check_variants(root: At<'_>, language: Language, variants: &[Variant], dir: &Path, report: &mut Report) {
    let mut files = DataFiles::new(dir);
    let mut reports = Vec::new();
    for variant in variants {
        let mut of_variant = report.sibling();
        let values = Values::of(&variant.parameters);
        let replicas = network::replicas(&needs::needs(root, language, &values, &mut of_variant));
        let first = replicas.into_iter().filter(|replica| replica.replica == 0);
        let bindings = Bindings {
            ports: first.map(made_up).collect(),
            otlp_endpoint: "http://127.0.0.1:4318".to_owned(),
            trial_dir: PathBuf::from("/tmp/narrows"),
            seed: 1,
            time_scale: 1.0,
        };
        service::check_folders(root, language, &values, dir, &mut of_variant);
        prices::check(root, &values, &mut of_variant);
        assemble(root, language, variant, &bindings, &mut files, &mut of_variant);
        reports.push((variant.name.as_str(), of_variant));
    }
    report.absorb(reports);
}

fn made_up(replica: Replica) -> ReplicaPorts {
    const PORT: u16 = 8080;
    let Replica { service, replica, port, elsewhere, further } = replica;
    // No name is looked up to check a file.
    let name = elsewhere.as_ref().map(|place| place.host.clone());
    let host = name.map_or_else(Host::loopback, |name| Host { name, ..Host::loopback() });
    let port = elsewhere.map(|place| place.port).or(port).unwrap_or(PORT);
    ReplicaPorts { service, replica, host, port, further: vec![PORT; further] }
}

fn assemble(
    root: At<'_>,
    language: Language,
    variant: &Variant,
    bindings: &Bindings,
    files: &mut DataFiles<'_>,
    report: &mut Report,
) -> Option<BoundTrial> {
    let parameters = &variant.parameters;
    let network = Network::new(needs::needs(root, language, &Values::of(parameters), &mut Report::new("")), bindings);
    let values = Values { parameters, network: Some(&network), replica: None };
    let services = service::build(root, language, &values, &network, files.dir, report);
    let load = load::build(root, language, &values, bindings, files, report);
    let faults = faults::build(root, &variant.name, &values, &network, load.as_ref(), report);
    let observed = observe::build(root, &values, report);
    let compose = system::compose::build(root, &values, files.dir, report);
    let cluster = cluster::build(root, &values, report);
    Some(BoundTrial { compose, services, load: load?, faults, cluster, observed })
}

impl Experiment {
    /// How messages name the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The replicas of a variant, which need ports, in the order they are started.
    ///
    /// # Errors
    /// When the variant's parameters do not fit; never for a variant of this experiment.
    pub fn replicas(&self, variant: &Variant) -> Result<Vec<Replica>, Vec<FileError>> {
        let mut report = Report::new(&self.file);
        let values = Values::of(&variant.parameters);
        let replicas = network::replicas(&needs::needs(At::root(&self.root), self.language, &values, &mut report));
        if report.is_empty() { Ok(replicas) } else { Err(report.into_errors()) }
    }

    /// Replaces every `${…}` and says what a trial of the variant starts and sends.
    ///
    /// # Errors
    /// With all errors: a value that does not fit its place, a CSV file that is gone, a replica without a port.
    pub fn bind(&self, variant: &Variant, bindings: &Bindings) -> Result<BoundTrial, Vec<FileError>> {
        let root = At::root(&self.root);
        let mut report = Report::new(&self.file);
        for Replica { service, replica, further, .. } in self.replicas(variant)? {
            let is_it = |one: &ReplicaPorts| one.service == service && one.replica == replica;
            let handed = bindings.ports.iter().find(|one| is_it(one));
            if handed.is_none_or(|handed| handed.further.len() < further) {
                let problem = Problem::new(format!("replica {replica} of `{service}` was assigned too few ports"));
                report.add(root.place(), "system.services".to_owned(), problem);
            }
        }
        if !report.is_empty() {
            return Err(report.into_errors());
        }
        self.bind_some(variant, bindings)
    }

    /// As [`Self::bind`], where only some replicas have ports. Services get the addresses of these only.
    ///
    /// # Errors
    /// With all errors, as [`Self::bind`].
    pub(crate) fn bind_some(&self, variant: &Variant, bindings: &Bindings) -> Result<BoundTrial, Vec<FileError>> {
        let mut report = Report::new(&self.file);
        let mut files = DataFiles::new(&self.dir);
        match assemble(At::root(&self.root), self.language, variant, bindings, &mut files, &mut report) {
            Some(trial) if report.is_empty() => Ok(trial),
            _ => Err(report.into_errors()),
        }
    }
}

fn load_of(at: At<'_>) -> Load {
    let maker = if at.has(&command::COMMAND) { LoadMaker::Command } else { LoadMaker::Scenarios };
    Load { target: at.read(&target::TARGET), maker, agents: agents::agents(at) }
}

/// A length of time as experiment files have it, such as `250ms`, `1.5s`, `1m30s`; `None` if it is not one.
pub fn parse_duration(text: &str) -> Option<std::time::Duration> {
    quantity::duration(text)
}

/// An objective as experiment files have it, such as `p95 < 300ms`.
///
/// # Errors
/// In words, when it is not one.
pub fn parse_objective(text: &str) -> Result<Objective, String> {
    objective::parse(text).map_err(|problem| match problem.hint {
        Some(hint) => format!("{} ({hint})", problem.message),
        None => problem.message,
    })
}

/// A commented experiment file to start from.
pub fn template() -> &'static str {
    include_str!("template.yaml")
}

#[cfg(test)]
pub(crate) mod tests;
