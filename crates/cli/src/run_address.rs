//! `RUN`, `RUN:VARIANT`, `RUN:VARIANT#2`, `RUN@09:00..09:10`: a run file, perhaps limited to a variant, a
//! trial or a part of the time.

use std::path::{Path, PathBuf};

use narrows_lab::conclude::{RunPart, Selection};
use narrows_model::time_range::{Moment, TimeRange};

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

impl RunAddress {
    /// The trials that it means, under a label.
    pub(crate) fn part<'a>(&'a self, label: &'a str) -> RunPart<'a> {
        RunPart { path: &self.path, selection: &self.selection, label }
    }
}

/// Finds the run file that an address names; without a run before the colon, or without any address, the newest.
pub(crate) fn find(address: Option<&str>) -> Result<RunAddress, Failure> {
    let (run, selection) = parse(address.unwrap_or_default())?;
    // A name may hold a colon itself: what is a file as a whole is one.
    if let Some(whole) = address.filter(|whole| selection != Selection::default() && Path::new(whole).is_file()) {
        return Ok(RunAddress { path: whole.into(), selection: Selection::default(), label: whole.into() });
    }
    let path = runs_folder::find(run.map(Path::new))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut label = match (&selection.variant, selection.repetition) {
        (Some(variant), Some(repetition)) => format!("{name}:{variant}#{repetition}"),
        (Some(variant), None) => format!("{name}:{variant}"),
        _ => name,
    };
    if let (_, Some(time)) = split_time(address.unwrap_or_default()) {
        label = format!("{label}@{time}");
    }
    Ok(RunAddress { path, selection, label })
}

fn parse(address: &str) -> Result<(Option<&str>, Selection), Failure> {
    let (address, time) = split_time(address);
    let within = time.map_or(Ok(TimeRange::default()), time_range)?;
    let (run, trial) = match address.rsplit_once(':') {
        Some((run, trial)) if !trial.is_empty() && !trial.contains('/') => (run, Some(trial)),
        _ => (address, None),
    };
    let (variant, repetition) = match trial.and_then(|trial| trial.rsplit_once('#')) {
        Some((variant, number)) if number.parse::<u32>().is_ok() => (Some(variant), number.parse().ok()),
        _ => (trial, None),
    };
    let run = Some(run).filter(|run| !run.is_empty());
    Ok((run, Selection { variant: variant.map(str::to_owned), repetition, within }))
}

/// `a@b..c` is `a` and `b..c`. An `@` may also be part of a name.
fn split_time(address: &str) -> (&str, Option<&str>) {
    match address.rsplit_once('@') {
        Some((rest, time)) if time.contains("..") && !time.contains('/') => (rest, Some(time)),
        _ => (address, None),
    }
}

fn time_range(text: &str) -> Result<TimeRange, Failure> {
    let (from, until) = text.split_once("..").unwrap_or((text, ""));
    let side = |text: &str| if text.is_empty() { Ok(None) } else { moment(text).map(Some) };
    Ok(TimeRange { from: side(from)?, until: side(until)? })
}

/// `5m` since the start, `09:10` or `09:10:30` in UTC, or an instant.
fn moment(text: &str) -> Result<Moment, Failure> {
    let nanoseconds = |length: i128| i64::try_from(length).ok();
    let since_start = || {
        let length = narrows_lab::experiment::parse_duration(text)?;
        nanoseconds(i128::try_from(length.as_nanos()).ok()?).map(Moment::SinceStart)
    };
    let time_of_day = || {
        let time: jiff::civil::Time = text.parse().ok()?;
        nanoseconds(time.duration_since(jiff::civil::Time::midnight()).as_nanos()).map(Moment::TimeOfDay)
    };
    let instant = || nanoseconds(text.parse::<jiff::Timestamp>().ok()?.as_nanosecond()).map(Moment::At);
    since_start().or_else(instant).or_else(time_of_day).ok_or_else(|| {
        Failure::new(format!("`{text}` is no moment of a run"))
            .hint("a time of day in UTC such as 09:10, an instant such as 2026-11-23T09:10:00Z, or 5m from the start")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_run_a_variant_and_a_repetition() {
        let selection = |variant: Option<&str>, repetition| Selection {
            variant: variant.map(Into::into),
            repetition,
            within: TimeRange::default(),
        };
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
            assert_eq!(parse(address).unwrap(), (run, expected), "{address}");
        }
    }

    #[test]
    fn an_address_names_a_part_of_the_time() {
        const MINUTE_NS: i64 = 60_000_000_000;
        let within = |address| {
            let (run, selection) = parse(address).unwrap();
            (run.unwrap_or_default(), selection.variant, selection.within.from, selection.within.until)
        };
        let (from, until) = (Moment::SinceStart(5 * MINUTE_NS), Moment::SinceStart(10 * MINUTE_NS));
        assert_eq!(within("shop@5m..10m"), ("shop", None, Some(from), Some(until)));
        assert_eq!(within("shop:as-is@..10m"), ("shop", Some("as-is".into()), None, Some(until)));
        let nine = |minutes: i64| Some(Moment::TimeOfDay((9 * 60 + minutes) * MINUTE_NS));
        assert_eq!(within("shop@09:00..09:10:00"), ("shop", None, nine(0), nine(10)));
        let instant = Some(Moment::At(MINUTE_NS));
        assert_eq!(within("@1970-01-01T00:01:00Z.."), ("", None, instant, None));
        assert_eq!(within("me@home"), ("me@home", None, None, None));
        let failure = format!("{:?}", parse("shop@tea..10m").unwrap_err());
        assert!(failure.contains("`tea` is no moment of a run") && failure.contains("09:10"), "{failure}");
    }
}
