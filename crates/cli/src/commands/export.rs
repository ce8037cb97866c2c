//! `narrows export RUN`: the telemetry of a run, as a file that other programs read, or sent to one of them.
//!
//! Measurements of the load generator are exported where they are reported (`narrows load`, `narrows report`).

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use narrows_model::evidence::RunEvidence;
use narrows_model::printable;
use narrows_model::run::Trial;
use narrows_model::table::Cell;
use narrows_model::units;
use narrows_report::table::ParquetRows;
use narrows_telemetry::exchange::{
    EVIDENCE_TRACES, ExportCounts, ExportError, RowFormat, SendError, Signal, send, write_evidence, write_jaeger,
    write_otlp, write_rows,
};
use narrows_telemetry::http::Url;
use narrows_telemetry::run_file::{EXPORTED_VIEWS, Reader};

use crate::exit::{Exit, Failure, with_causes};
use crate::{Outcome, runs_folder, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run file, or its name in the runs folder, and one of its variants [default: the newest, all variants]
    #[arg(value_name = "RUN[:VARIANT]", add = crate::complete::addresses())]
    run: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, required_unless_present = "to", conflicts_with = "to")]
    format: Option<Format>,
    /// spans, metrics, logs; for csv, jsonl and parquet one of these or another view, such as requests [default: spans, for
    /// otlp-json and --to all three]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(EXPORTED_VIEWS))]
    what: Vec<String>,
    /// Write here; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "-", conflicts_with = "to")]
    out: PathBuf,
    /// Send it by OTLP over HTTP to this address instead, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL", value_parser = url)]
    to: Option<Url>,
}

/// Format of an exported file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines of OTLP's JSON, as the Collector's file exporter writes them
    OtlpJson,
    /// Jaeger's JSON, as its user interface loads it
    JaegerJson,
    /// A view's rows as comma-separated values
    Csv,
    /// A view's rows, an object a line
    Jsonl,
    /// A view's rows, as Apache Parquet
    Parquet,
    /// All that the findings are made from, with some of the traces, as gzip: for a report of a wrong finding
    Evidence,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let (path, variant) = run_and_variant(arguments.run.as_deref())?;
    let reader = Reader::open(&path)?;
    let trials = selected(&reader, &path, variant.as_deref())?;
    match (&arguments.to, arguments.format) {
        (Some(url), _) => send_all(&reader, &trials, &signals(&arguments.what)?, url),
        (None, Some(format)) => {
            spare(&path, &arguments.out)?;
            write_all(&path, &reader, &trials, format, arguments)
        }
        (None, None) => Err(Failure::new("--format or --to is required")),
    }
}

/// `RUN:VARIANT` where there is no file of that whole name.
fn run_and_variant(run: Option<&Path>) -> Result<(PathBuf, Option<String>), Failure> {
    let whole = runs_folder::find(run);
    let parts = run.and_then(|run| run.to_str()?.rsplit_once(':'));
    match (whole, parts) {
        (Err(_), Some((run, variant))) if !variant.is_empty() => {
            let run = (!run.is_empty()).then(|| Path::new(run));
            Ok((runs_folder::find(run)?, Some(variant.to_owned())))
        }
        (whole, _) => Ok((whole?, None)),
    }
}

/// The trials of a variant, or the one that is labelled so (`variant#2`); all without one.
fn selected(reader: &Reader, path: &Path, variant: Option<&str>) -> Result<Vec<(i64, String)>, Failure> {
    let trials = reader.trials()?;
    let is_it = |trial: &&Trial| variant.is_none_or(|name| trial.variant == name || trial.label() == name);
    let found: Vec<(i64, String)> = trials.iter().filter(is_it).map(|trial| (trial.id, trial.label())).collect();
    match (found.is_empty(), variant) {
        (false, _) => Ok(found),
        (true, None) => Err(Failure::new(format!("{} holds no trial", path.display()))),
        (true, Some(variant)) => {
            let known: Vec<String> = trials.iter().map(|trial| format!("`{}`", trial.label())).collect();
            Err(Failure::new(format!("{} has no variant `{variant}`; it has {}", path.display(), known.join(", "))))
        }
    }
}

/// The requested kinds of telemetry; all when none is given.
fn signals(what: &[String]) -> Result<Vec<Signal>, Failure> {
    if what.is_empty() {
        return Ok(vec![Signal::Spans, Signal::Metrics, Signal::Logs]);
    }
    let signal = |name: &String| match name.as_str() {
        "spans" => Ok(Signal::Spans),
        "metrics" => Ok(Signal::Metrics),
        "logs" => Ok(Signal::Logs),
        other => Err(Failure::new(format!("--what {other} has no OTLP, expected spans, metrics or logs"))
            .hint("`--format csv`, `jsonl` and `parquet` write any view")),
    };
    what.iter().map(signal).collect()
}

fn write_all(path: &Path, reader: &Reader, trials: &[(i64, String)], format: Format, arguments: &Arguments) -> Outcome {
    let what = &arguments.what;
    let is_all = |name: &str| what.iter().all(|asked| asked == name);
    if format == Format::JaegerJson && !is_all("spans") {
        return Err(Failure::new("Jaeger's JSON holds spans only, so --what can only be spans"));
    }
    if matches!(format, Format::Csv | Format::Jsonl | Format::Parquet) && what.len() > 1 {
        return Err(Failure::new("csv, jsonl and parquet hold one view, so --what can only be given once"));
    }
    if format == Format::Evidence && !what.is_empty() {
        return Err(Failure::new("evidence is written as a whole, so --what cannot be given"));
    }
    let signals = if format == Format::OtlpJson { signals(what)? } else { Vec::new() };
    let view = what.first().map_or("spans", String::as_str);
    let ids: Vec<i64> = trials.iter().map(|(id, _)| *id).collect();
    let mut out = open(&arguments.out, format)?;
    let written = match format {
        Format::OtlpJson => write_signals(reader, trials, &signals, &mut out),
        Format::JaegerJson => write_jaeger(reader, trials, &mut out),
        Format::Csv => write_rows(reader, view, &ids, RowFormat::Csv, &mut out),
        Format::Jsonl => write_rows(reader, view, &ids, RowFormat::JsonLines, &mut out),
        Format::Parquet => write_parquet(reader, view, &ids, &mut *out),
        Format::Evidence => write_evidence(evidence_of(path, &ids)?, &mut out),
    };
    let written = written.and_then(|written| out.flush().map(|()| written).map_err(ExportError::from));
    match written {
        Ok(written) => {
            say_written(&arguments.out, written);
            Ok(Exit::Fine)
        }
        // Who read standard output has seen enough.
        Err(ExportError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Fine),
        Err(ExportError::RunFile(error)) => Err(error.into()),
        Err(ExportError::Write(error)) => {
            Err(Failure::new(format!("cannot write {}: {error}", arguments.out.display())))
        }
    }
}

/// The evidence of some trials of a run.
fn evidence_of(path: &Path, trials: &[i64]) -> Result<RunEvidence, Failure> {
    let mut evidence = narrows_lab::conclude::evidence(path, EVIDENCE_TRACES)?;
    evidence.trials.retain(|trial| trials.contains(&trial.trial.id));
    Ok(evidence)
}

/// Writes the rows of a view, of the trials in turn, as one Parquet file.
fn write_parquet(
    reader: &Reader,
    view: &str,
    trials: &[i64],
    out: &mut (dyn Write + Send),
) -> Result<ExportCounts, ExportError> {
    let mut written = ExportCounts::default();
    let rows = RefCell::new(ParquetRows::new(view, out));
    for trial in trials {
        let mut head = |names: Vec<String>| -> io::Result<()> {
            rows.borrow_mut().name(names);
            Ok(())
        };
        let mut row = |cells: Vec<Cell>| {
            written.records += 1;
            rows.borrow_mut().push(cells)
        };
        reader.each_row(view, *trial, &mut head, &mut row)??;
    }
    rows.into_inner().close()?;
    Ok(written)
}

fn write_signals(
    reader: &Reader,
    trials: &[(i64, String)],
    signals: &[Signal],
    out: &mut dyn Write,
) -> Result<ExportCounts, ExportError> {
    let mut all = ExportCounts::default();
    for (trial, label) in trials {
        for signal in signals {
            let written = write_otlp(reader, *trial, label, *signal, out)?;
            all.records += written.records;
            all.left_out += written.left_out;
        }
    }
    Ok(all)
}

/// The run file is read while it is written from: an export over it would be the end of both.
fn spare(run: &Path, out: &Path) -> Result<(), Failure> {
    let id = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let is_same = id(run).is_some_and(|run| id(out) == Some(run));
    let failure = || Failure::new(format!("--out {} is the run file itself", out.display()));
    if is_same { Err(failure().hint("write to another file, or to standard output with `--out -`")) } else { Ok(()) }
}

fn open(path: &Path, format: Format) -> Result<Box<dyn Write + Send>, Failure> {
    if path.as_os_str() == "-" {
        let stdout = io::stdout();
        return match format {
            Format::OtlpJson | Format::JaegerJson | Format::Jsonl => {
                Ok(Box::new(BufWriter::new(PrintableJson { out: stdout, rest: Vec::new() })))
            }
            // The CSV writer has already replaced terminal control characters.
            Format::Csv => Ok(Box::new(BufWriter::new(stdout))),
            Format::Evidence | Format::Parquet if stdout.is_terminal() => {
                Err(Failure::new("it is compressed and cannot be shown on a terminal").hint("name a file with `--out`"))
            }
            Format::Evidence | Format::Parquet => Ok(Box::new(BufWriter::new(stdout))),
        };
    }
    let file = File::create(path).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    Ok(Box::new(BufWriter::new(file)))
}

/// Writes JSON and escapes terminal control characters.
struct PrintableJson<W> {
    out: W,
    /// Bytes of an incomplete character.
    rest: Vec<u8>,
}

impl<W: Write> Write for PrintableJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let valid = str::from_utf8(&self.rest).map_or_else(|error| error.valid_up_to(), str::len);
        let whole: Vec<u8> = self.rest.drain(..valid).collect();
        let text = str::from_utf8(&whole).map_err(io::Error::other)?;
        self.out.write_all(printable::json(text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn say_written(path: &Path, written: ExportCounts) {
    if path.as_os_str() != "-" {
        stderr::say(&format!("wrote {} records to {}", units::count(written.records), path.display()));
    }
    if written.left_out > 0 {
        stderr::say(&format!("caveat: {} spans of traces too large for Jaeger were left out", written.left_out));
    }
}

fn send_all(reader: &Reader, trials: &[(i64, String)], signals: &[Signal], url: &Url) -> Outcome {
    let name = |signal: Signal| match signal {
        Signal::Spans => "spans",
        Signal::Metrics => "metric points",
        Signal::Logs => "log records",
    };
    for signal in signals {
        let (mut accepted, mut rejected, mut repeated, mut why) = (0, 0, 0, None);
        for (trial, label) in trials {
            let sent = send(reader, *trial, label, *signal, url).map_err(|error| unsent(&error))?;
            accepted += sent.accepted;
            rejected += sent.rejected;
            repeated += sent.repeated;
            why = why.or(sent.why);
        }
        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
        let again = if repeated > 0 { format!("; {repeated} requests were sent again") } else { String::new() };
        stderr::say(&format!(
            "{url}: {} {} accepted, {} refused{why}{again}",
            units::count(accepted),
            name(*signal),
            units::count(rejected),
        ));
    }
    Ok(Exit::Fine)
}

fn unsent(error: &SendError) -> Failure {
    let failure = Failure::new(with_causes(error));
    match error {
        SendError::Receiver { why, .. } if why.contains("404") => {
            failure.hint("if the receiver accepts only some signals, select them, such as with `--what spans`")
        }
        SendError::Receiver { why, .. } if why.starts_with("cannot connect") => {
            failure.hint("OTLP over HTTP is usually on port 4318")
        }
        _ => failure,
    }
}

fn url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_printable_however_it_is_cut() {
        let json = "{\"a\u{202e}\":\"é\u{9b}\"}\n";
        for at in 0..json.len() {
            let mut out = PrintableJson { out: Vec::new(), rest: Vec::new() };
            out.write_all(&json.as_bytes()[..at]).and_then(|()| out.write_all(&json.as_bytes()[at..])).unwrap();
            assert_eq!(String::from_utf8(out.out).unwrap(), "{\"a\\u202e\":\"é\\u009b\"}\n");
        }
    }
}
