//! `narrows import FILE…`: a run made of traces, metrics and logs that other programs wrote, or of what a Prometheus server
//! has, diagnosed like any other.

use std::io::Read;
use std::path::{Path, PathBuf};

use narrows_lab::attach::{ImportCounts, ImportOptions, PrometheusQuery, import};
use narrows_model::units;
use narrows_telemetry::http::{Authorization, Url};

use crate::exit::Failure;
use crate::{Outcome, runs_folder, stderr};

/// Holds the authorisation, as the file of `--auth-file` does.
const AUTH_VARIABLE: &str = "NARROWS_PROMETHEUS_AUTH";
/// Bytes of such a file that are read; an authorisation is shorter.
const AUTH_FILE_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// JSON of OTLP, Tempo, Jaeger, Zipkin v2 or Go's stdouttrace, also as lines; metrics as Prometheus' text or JSON or as
    /// CSV; also gzip; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "prometheus")]
    files: Vec<PathBuf>,
    /// Ask this Prometheus server, such as http://127.0.0.1:9090, for the metrics of services
    #[arg(long, value_name = "URL", value_parser = Url::parse_server, requires = "from")]
    prometheus: Option<Url>,
    /// File with the bearer token, or USER:PASSWORD, that the Prometheus server wants; or in NARROWS_PROMETHEUS_AUTH
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    auth_file: Option<PathBuf>,
    /// Start of the time to import: an instant such as 2026-11-23T09:10:00Z, or `2h` for two hours ago
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "prometheus")]
    from: Option<i64>,
    /// End of the time to import [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "prometheus")]
    to: Option<i64>,
    /// A table `metric,role,service,peer,unit` of metrics whose names are not known
    #[arg(long, value_name = "FILE")]
    mapping: Option<PathBuf>,
    /// A table `caller,callee` of who calls whom
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// The service whose server spans are the requests [default: those that no other span caused]
    #[arg(long, value_name = "SERVICE")]
    target: Option<String>,
    /// The run's name
    #[arg(long, value_name = "NAME", default_value = "import", value_parser = super::attach::run_name)]
    name: String,
    /// The run file [default: runs/NAME-DATE-TIME.narrows]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let until_ns = arguments.to.unwrap_or_else(now_ns);
    if arguments.from.is_some_and(|from_ns| from_ns >= until_ns) {
        return Err(Failure::new("--from is not before --to").hint("both are in UTC"));
    }
    let authorization =
        if arguments.prometheus.is_some() { authorization(arguments.auth_file.as_deref())? } else { None };
    let query = |url: &Url| {
        let authorization = authorization.clone();
        Some(PrometheusQuery { url: url.clone(), authorization, from_ns: arguments.from?, until_ns })
    };
    let options = ImportOptions {
        files: arguments.files.clone(),
        prometheus: arguments.prometheus.as_ref().and_then(query),
        mapping: arguments.mapping.clone(),
        graph: arguments.graph.clone(),
        name: arguments.name.clone(),
        path: arguments.out.clone().unwrap_or_else(|| runs_folder::new_path(&arguments.name)),
        target: arguments.target.clone(),
    };
    let imported = import(&options)?;
    stderr::say(&summary(&imported));
    for complaint in &imported.complaints {
        stderr::say(&format!("  caveat: {complaint}"));
    }
    super::attach::conclude(&options.path, arguments.json)
}

/// The authorisation in this file, else in the environment.
fn authorization(file: Option<&Path>) -> Result<Option<Authorization>, Failure> {
    let (place, text) = match file {
        Some(path) => {
            let mut text = String::new();
            let read =
                narrows_files::open(path).and_then(|file| file.take(AUTH_FILE_BYTES_MAX).read_to_string(&mut text));
            read.map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
            (path.display().to_string(), text)
        }
        None => match std::env::var_os(AUTH_VARIABLE).filter(|value| !value.is_empty()) {
            Some(value) => (AUTH_VARIABLE.to_owned(), value.to_string_lossy().into_owned()),
            None => return Ok(None),
        },
    };
    let authorization = Authorization::parse(&text);
    authorization.map(Some).map_err(|error| Failure::new(format!("no authorisation in {place}: {error}")))
}

/// Nanoseconds since 1970 of an instant, or of a time ago.
fn instant(text: &str) -> Result<i64, String> {
    if let Some(ago) = narrows_lab::experiment::parse_duration(text) {
        return Ok(now_ns().saturating_sub(i64::try_from(ago.as_nanos()).unwrap_or(i64::MAX)));
    }
    let instant = text.parse::<jiff::Timestamp>().ok().and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
    instant.ok_or_else(|| "expected an instant such as 2026-11-23T09:10:00Z, or a time ago such as 2h".to_owned())
}

fn now_ns() -> i64 {
    i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX)
}

/// Summary of the import: numbers of records kept, left out and repeated.
fn summary(imported: &ImportCounts) -> String {
    let counted = |count: u64, one: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {one}{plural}", units::count(count))
    };
    let mut summary = format!(
        "imported {}, {}, {}; {} left out as malformed",
        counted(imported.spans, "span"),
        counted(imported.points, "metric point"),
        counted(imported.logs, "log record"),
        units::count(imported.malformed),
    );
    if imported.over_limit > 0 {
        summary += &format!(", {} beyond the run file's limits", units::count(imported.over_limit));
    }
    if imported.repeated > 0 {
        summary += &format!(
            "; {} came more than once and {} kept once",
            counted(imported.repeated, "span"),
            if imported.repeated == 1 { "is" } else { "are" }
        );
    }
    summary
}
