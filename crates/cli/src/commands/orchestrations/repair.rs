//! `narrows orchestrations repair HUB`, a folder or the URL of a shared store: reports the lost data of a damaged hub, and
//! on request opens the hub without it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use narrows_durable::{Damage, Error, Findings, HubRepair};
use narrows_durable_servers::open_shared;

use super::store::{DATABASE, StorePath};
use crate::Outcome;
use crate::commands::{plural, print};
use crate::exit::{Exit, Failure, with_causes};

/// Instances that one line names.
const NAMED_MAX: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a hub, or the URL of one on a server: postgres://… or nats://…
    #[arg(value_name = "HUB")]
    hub: PathBuf,
    /// Open the hub without the lost data; copies of what was damaged are kept
    #[arg(long)]
    accept_loss: bool,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    match arguments.hub.to_str().filter(|text| text.contains("://")) {
        Some(url) => shared(url, arguments.accept_loss),
        None => files(folder(&arguments.hub)?, arguments.accept_loss),
    }
}

fn files(folder: &Path, accept_loss: bool) -> Outcome {
    let failed = |error: &Error| StorePath::Files(folder.to_owned()).explain(error);
    let repair = HubRepair::open(folder).map_err(|error| failed(&error))?;
    outcome(repair, &folder.display().to_string(), accept_loss, failed)
}

/// Repairs a hub on a server. Neither its name nor errors contain the password of its URL.
fn shared(url: &str, accept_loss: bool) -> Outcome {
    let failed = |error: &Error| {
        let failure = Failure::new(with_causes(error));
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    };
    let opened = || -> Result<(HubRepair, String), Error> {
        let store = open_shared(url)?;
        let name = store.describe();
        Ok((HubRepair::open_shared(store)?, name))
    };
    let (repair, name) = opened().map_err(|error| failed(&error))?;
    outcome(repair, &name, accept_loss, failed)
}

fn outcome(repair: HubRepair, name: &str, accept_loss: bool, failed: impl Fn(&Error) -> Failure) -> Outcome {
    let report = report(name, repair.findings());
    if repair.findings().is_sound() {
        print(&report)?;
        return Ok(Exit::Fine);
    }
    if !accept_loss {
        print(&format!(
            "{report}nothing was changed: restore the hub from a copy, or open it without the lost data with `--accept-loss`\n"
        ))?;
        return Ok(Exit::VerdictFailed);
    }
    let kept = repair.accept().map_err(|error| failed(&error))?;
    let kept = kept.map_or_else(String::new, |kept| format!("; copies of what was damaged are in {kept}"));
    print(&format!("{report}repaired: the hub opens without the lost data{kept}\n"))?;
    Ok(Exit::Fine)
}

/// The folder of a hub in files, which need not have all of them.
fn folder(path: &Path) -> Result<&Path, Failure> {
    if path.is_file() || path.join(DATABASE).is_file() {
        let what = format!("{} is a hub in SQLite, and only hubs in files can be repaired", path.display());
        return Err(Failure::new(what).hint("restore it from a copy, or try `.recover` of SQLite's own shell"));
    }
    if !path.is_dir() {
        return Err(Failure::new(format!("folder {} does not exist", path.display())));
    }
    Ok(path)
}

fn report(name: &str, findings: &Findings) -> String {
    let partitions = plural(usize::from(findings.partitions), "partition");
    if findings.is_sound() {
        return format!("{name} is sound: {partitions}, nothing is damaged\n");
    }
    let mut out = String::new();
    if let Some(error) = &findings.hub {
        let _ = writeln!(out, "{error}\n  no data is lost with it: the other files show a hub with {partitions}");
    }
    findings.damages.iter().for_each(|damage| out.push_str(&of(damage)));
    if !findings.waiting.is_empty() {
        let who = findings.waiting.iter().map(|(caller, called)| format!("{caller} for {called}"));
        let known = usize::try_from(findings.waiting_known).unwrap_or(usize::MAX);
        let (count, wait) = (plural(known, "orchestration"), if known == 1 { "waits" } else { "wait" });
        let who = named(who, known - findings.waiting.len());
        let _ =
            writeln!(out, "{count} {wait} for a response that may be lost; terminate those that wait for ever: {who}");
    }
    out
}

fn of(damage: &Damage) -> String {
    let mut out = format!("partition {} is damaged\n", damage.partition);
    for error in &damage.found {
        let _ = writeln!(out, "  {error}");
    }
    let mut lost: Vec<String> = Vec::new();
    if damage.is_everything {
        lost.push("all instances of the partition".to_owned());
    }
    if !damage.frames.is_empty() {
        let count = usize::try_from(damage.frames.end - damage.frames.start).unwrap_or(usize::MAX);
        let (first, last) = (damage.frames.start, damage.frames.end - 1);
        let readable = damage.frames_readable;
        lost.push(format!("at least {} of the log, {first} to {last} ({readable} readable)", plural(count, "record")));
    } else if !damage.is_everything {
        lost.push("no known record of the log".to_owned());
    }
    for (path, bytes) in &damage.bytes {
        lost.push(format!("bytes {} to {} of {}", bytes.start, bytes.end, path.display()));
    }
    let messages = |count| plural(usize::try_from(count).unwrap_or(usize::MAX), "message");
    if damage.messages_taken > 0 {
        lost.push(format!("the effect of {} from other partitions", messages(damage.messages_taken)));
    }
    if damage.messages_sent > 0 {
        lost.push(format!("the cause of {} that other partitions have processed", messages(damage.messages_sent)));
    }
    for what in lost {
        let _ = writeln!(out, "  lost: {what}");
    }
    if !damage.instances.is_empty() {
        let unlisted = usize::try_from(damage.instances_known).unwrap_or(usize::MAX) - damage.instances.len();
        let ids = named(damage.instances.iter().map(ToString::to_string), unlisted);
        let _ = writeln!(out, "  lost, or set back to an earlier state: {ids}");
    }
    out
}

/// The first few, and how many more there are besides.
fn named(names: impl ExactSizeIterator<Item = String>, unlisted: usize) -> String {
    let more = names.len().saturating_sub(NAMED_MAX) + unlisted;
    let names: Vec<String> = names.take(NAMED_MAX).collect();
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}
