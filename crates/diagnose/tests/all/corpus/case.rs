//! A case as it stands in its file. What each field means: `docs/reference/corpus.md`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Spans of one file would otherwise be without end.
const SAMPLE_MAX: u32 = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Case {
    pub(crate) case: String,
    pub(crate) what: String,
    pub(crate) source: String,
    /// The detectors that the case is about, as one text with spaces.
    pub(crate) about: String,
    pub(crate) trap: YesNo,
    pub(crate) expect: Expect,
    pub(crate) narrow_place: Option<String>,
    #[serde(default)]
    pub(crate) allow: Vec<String>,
    #[serde(default)]
    pub(crate) simulate: Option<Value>,
    #[serde(default)]
    pub(crate) services: BTreeMap<String, Service>,
    #[serde(default)]
    pub(crate) stores: BTreeMap<String, Store>,
    #[serde(default)]
    pub(crate) load: Vec<Step>,
    #[serde(default)]
    pub(crate) requests: Vec<Request>,
    /// A single request's tree.
    pub(crate) traces: Option<String>,
    /// CPU demand of each service, milliseconds per request of the load.
    #[serde(default)]
    pub(crate) cpu: BTreeMap<String, f64>,
    #[serde(default)]
    pub(crate) series: Vec<ExtraSeries>,
    /// Connections between processes, and the calls over them.
    #[serde(default)]
    pub(crate) calls: Vec<Calls>,
    /// Whether services send spans; without, the traces only say how long requests take.
    #[serde(default = "yes")]
    pub(crate) spans: YesNo,
    #[serde(default)]
    pub(crate) generator: Generator,
    /// Between a response and the user's next request, milliseconds.
    #[serde(default)]
    pub(crate) think: f64,
    #[serde(default = "default_cores")]
    pub(crate) cores: u32,
    #[serde(default = "default_jitter")]
    pub(crate) jitter: f64,
    /// Traces of each step.
    #[serde(default = "default_sample")]
    pub(crate) sample: u32,
    /// Whether the evidence is the first trace alone, as of an imported file.
    #[serde(default = "no")]
    pub(crate) one_imported: YesNo,
    /// Times in which the system sends no response; none unless said.
    pub(crate) stalls: Option<Stalling>,
    /// Complaints of the trial about itself.
    #[serde(default)]
    pub(crate) spans_refused: u64,
    /// Different addresses that the load comes from.
    pub(crate) client_addresses: Option<u32>,
    /// Fields that replace those of this case in the variant that it is compared with.
    #[serde(default)]
    against: Option<Value>,
    /// That variant.
    #[serde(skip)]
    pub(crate) first: Option<Box<Case>>,
}

/// A system that stands still now and then.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Stalling {
    /// From the start of one time to that of the next, milliseconds.
    pub(crate) every: f64,
    /// Milliseconds.
    pub(crate) length: f64,
    /// Requests that wait each time.
    pub(crate) requests: u64,
    /// Quick requests served within these times, as a share of those at other times; 0 unless said.
    #[serde(default)]
    pub(crate) served: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum YesNo {
    Yes,
    No,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Expect {
    /// `none`.
    Word(String),
    List(Vec<String>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Service {
    /// CPU cap of each replica, cores.
    pub(crate) cap: Option<f64>,
    pub(crate) replicas: Option<u32>,
    /// The command that starts it; its name unless said.
    pub(crate) run: Option<String>,
    /// Threads that share the work of a replica; 4 unless said.
    pub(crate) threads: Option<f64>,
    /// Ports at which sidecars stand in for it.
    pub(crate) stand_in_ports: Vec<u16>,
    /// Share of the load of each replica; even by default.
    pub(crate) shares: Vec<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Store {
    /// Limit of each partition per second; `None` if the store does not report it.
    pub(crate) provisioned: Option<f64>,
    pub(crate) partitions: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Step {
    pub(crate) label: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) seconds: Option<u32>,
    pub(crate) users: Option<f64>,
    pub(crate) rate: Option<f64>,
    /// Iterations due per second of an open model; the rate unless said.
    pub(crate) offered: Option<f64>,
    /// Mean, milliseconds.
    pub(crate) latency: Option<f64>,
    /// Time that a user waits beyond the root span and the network, milliseconds.
    pub(crate) outside: f64,
    pub(crate) late: u64,
    pub(crate) dropped: u64,
    /// Requests that got no response, per second, by kind.
    pub(crate) errors: BTreeMap<String, f64>,
    /// Factors for the rate of each second, repeated cyclically.
    pub(crate) profile: Vec<f64>,
    /// Variables of the traces.
    pub(crate) set: BTreeMap<String, f64>,
    /// Cores of each replica, in place of what follows from the demand.
    pub(crate) cpu: BTreeMap<String, OneOrMany>,
    /// Cores of the busiest thread of each replica.
    pub(crate) thread: BTreeMap<String, OneOrMany>,
    /// Seconds per second that it waited for a processor.
    pub(crate) thread_wait: BTreeMap<String, OneOrMany>,
    /// Share of the host's CPU that was not idle.
    pub(crate) host: Option<f64>,
    /// Share of the host's CPU that the hypervisor took.
    pub(crate) steal: Option<f64>,
    /// Units spent by a partition in each second, repeated cyclically, instead of the sum of the charges.
    pub(crate) spent: BTreeMap<String, OneOrMany>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(f64),
    Many(Vec<f64>),
}

impl OneOrMany {
    /// The value at a place; a list begins anew at its end.
    pub(crate) fn at(&self, place: usize) -> f64 {
        match self {
            OneOrMany::One(value) => *value,
            OneOrMany::Many(values) if values.is_empty() => 0.0,
            OneOrMany::Many(values) => values[place % values.len()],
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(default = "one")]
    pub(crate) share: f64,
    pub(crate) traces: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtraSeries {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) unit: String,
    #[serde(default)]
    pub(crate) service: String,
    #[serde(default)]
    pub(crate) replica: u32,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    /// One for all, or one for each step.
    pub(crate) value: OneOrMany,
    /// The value is the increment of each second.
    #[serde(default)]
    pub(crate) cumulative: bool,
    /// Initial value of a cumulative series.
    #[serde(default)]
    pub(crate) from: f64,
    /// Factors for the value of each second, repeated cyclically.
    #[serde(default)]
    pub(crate) factors: Vec<f64>,
}

/// Connections of a replica to a peer; each value is one for all steps or one for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Calls {
    /// A service, or `narrows` for the load.
    pub(crate) from: String,
    #[serde(default)]
    pub(crate) replica: u32,
    /// A service, or an address and port.
    pub(crate) to: String,
    #[serde(default)]
    pub(crate) to_replica: u32,
    pub(crate) connections: OneOrMany,
    pub(crate) outstanding: OneOrMany,
    pub(crate) rate: OneOrMany,
    pub(crate) undecided: Option<OneOrMany>,
    pub(crate) unread: Option<OneOrMany>,
    pub(crate) opened: Option<OneOrMany>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct Generator {
    /// CPU, milliseconds per request.
    pub(crate) cpu: f64,
    pub(crate) threads: f64,
    /// Its own delay before each send.
    pub(crate) lateness_ms: f64,
    /// `valid`, `doubtful` or `invalid`, then a colon and the reason.
    pub(crate) verdict: Option<String>,
}

impl Default for Generator {
    fn default() -> Self {
        Self { cpu: 0.03, threads: 2.0, lateness_ms: 0.02, verdict: None }
    }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// Fault of the file.
    pub(crate) fn parse(source: &str) -> Result<Case, String> {
        Self::of_value(super::yaml::parse(source)?)
    }

    fn of_value(value: Value) -> Result<Case, String> {
        let mut case: Case = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        if let Some(against) = case.against.take() {
            let first = Self::of_value(replaced(value, against)?).map_err(|why| format!("`against`: {why}"))?;
            case.first = Some(Box::new(first));
        }
        if let Some(traces) = case.traces.take() {
            case.requests.push(Request { share: 1.0, traces });
        }
        let is_told = case.simulate.is_some() || !(case.load.is_empty() || case.services.is_empty());
        if !is_told {
            return Err("needs `load` and `services`, or `simulate`".into());
        }
        if case.sample == 0 || case.sample > SAMPLE_MAX {
            return Err(format!("`sample` is {}, expected 1 to {SAMPLE_MAX}", case.sample));
        }
        Ok(case)
    }
}

/// A case with some of its fields replaced, and compared with nothing.
fn replaced(mut value: Value, by: Value) -> Result<Value, String> {
    let (Some(fields), Value::Object(by)) = (value.as_object_mut(), by) else {
        return Err("`against` must be a mapping".into());
    };
    fields.remove("against");
    fields.extend(by);
    Ok(value)
}

fn default_cores() -> u32 {
    8
}

fn default_jitter() -> f64 {
    0.15
}

fn default_sample() -> u32 {
    30
}

fn yes() -> YesNo {
    YesNo::Yes
}

fn no() -> YesNo {
    YesNo::No
}

fn one() -> f64 {
    1.0
}
