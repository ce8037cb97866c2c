//! `RUN`, `RUN:VARIANT`, `RUN:VARIANT#2`: a run file and, in it, the trials that are meant.

use std::path::{Path, PathBuf};

use narrows_lab::conclude::Selection;

use crate::exit::Failure;
use crate::runs_folder;

/// A run file and what of it is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunAddress {
    pub(crate) path: PathBuf,
    pub(crate) selection: Selection,
    /// As it was written, or the name of the newest run.
    pub(crate) label: String,
}

/// Finds the run file that an address names; without a run before the colon, or without any address, the newest.
pub(crate) fn find(address: Option<&str>) -> Result<RunAddress, Failure> {
    let (run, selection) = parse(address.unwrap_or_default());
    // A name may hold a colon itself: what is a file as a whole is one.
    if let Some(whole) = address.filter(|whole| selection != Selection::default() && Path::new(whole).is_file()) {
        return Ok(RunAddress { path: whole.into(), selection: Selection::default(), label: whole.into() });
    }
    let path = runs_folder::find(run.map(Path::new))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let label = match (&selection.variant, selection.repetition) {
        (Some(variant), Some(repetition)) => format!("{name}:{variant}#{repetition}"),
        (Some(variant), None) => format!("{name}:{variant}"),
        _ => name,
    };
    Ok(RunAddress { path, selection, label })
}

fn parse(address: &str) -> (Option<&str>, Selection) {
    let (run, trial) = match address.rsplit_once(':') {
        Some((run, trial)) if !trial.is_empty() && !trial.contains('/') => (run, Some(trial)),
        _ => (address, None),
    };
    let (variant, repetition) = match trial.and_then(|trial| trial.rsplit_once('#')) {
        Some((variant, number)) if number.parse::<u32>().is_ok() => (Some(variant), number.parse().ok()),
        _ => (trial, None),
    };
    let run = Some(run).filter(|run| !run.is_empty());
    (run, Selection { variant: variant.map(str::to_owned), repetition })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_run_a_variant_and_a_repetition() {
        let selection = |variant: Option<&str>, repetition| Selection { variant: variant.map(Into::into), repetition };
        for (address, run, expected) in [
            ("", None, selection(None, None)),
            ("orders", Some("orders"), selection(None, None)),
            ("runs/a.narrows", Some("runs/a.narrows"), selection(None, None)),
            ("orders:as-is", Some("orders"), selection(Some("as-is"), None)),
            ("orders:as-is#2", Some("orders"), selection(Some("as-is"), Some(2))),
            (":fixed", None, selection(Some("fixed"), None)),
            ("orders:c#", Some("orders"), selection(Some("c#"), None)),
            ("/a:b/c.narrows", Some("/a:b/c.narrows"), selection(None, None)),
        ] {
            assert_eq!(parse(address), (run, expected), "{address}");
        }
    }
}
