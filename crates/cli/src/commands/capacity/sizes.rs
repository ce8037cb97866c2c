//! `narrows capacity --size`: the smallest of several sizes that keeps the objectives at a rate.
//!
//! A size is one value for each of some parameters, such as replicas and cores. Sizes are tried at that rate from the smallest to
//! the largest, each in a separate run. The first that keeps the objectives is the result; larger ones are not tried.
//! Where none does, the rate is searched that the best of them keeps.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use narrows_lab::capacity::{Capacity, Ceiling, Probe, SearchEnd, SearchRequest, Verdict, search};
use narrows_lab::experiment::Experiment;
use narrows_model::run::RunState;
use narrows_model::units;

use super::{Arguments, fate};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::running::{guard_command, unfinished};
use crate::wrapping::wrapped_to;
use crate::{Outcome, runs_folder, stderr};

/// Sizes of one search at most: each takes a start of the system and a probe.
const SIZES_MAX: usize = 100;
/// Share of the rate that a system which keeps up completes: a probe passes with 5 % of its requests under way.
const KEEPS_UP: f64 = 0.95;

/// A parameter and the values that a search tries.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dimension {
    parameter: String,
    /// As they are written, at least one.
    values: Vec<String>,
}

/// Reads `replicas=1,2,3`.
pub(super) fn dimension(text: &str) -> Result<Dimension, String> {
    let (parameter, values) = text.split_once('=').ok_or("expected PARAMETER=VALUE,VALUE, such as replicas=1,2,3")?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    match values.iter().find(|value| amount(value).is_none()) {
        Some(value) => Err(format!("`{value}` is no number above 0, so sizes cannot be ordered by it")),
        None => Ok(Dimension { parameter: parameter.trim().to_owned(), values }),
    }
}

fn amount(value: &str) -> Option<f64> {
    value.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0)
}

/// One value for each parameter.
#[derive(Debug, Clone, PartialEq)]
struct Size {
    values: Vec<(String, String)>,
}

impl Size {
    /// Product of the values: replicas times cores are the cores of a service.
    fn cost(&self) -> f64 {
        self.values.iter().filter_map(|(_, value)| amount(value)).product()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        f.write_str(&values.join(", "))
    }
}

/// Every size, from the smallest to the largest. Sizes of one cost keep the order in which they are written.
fn sizes(dimensions: &[Dimension]) -> Result<Vec<Size>, Failure> {
    let count: usize = dimensions.iter().map(|dimension| dimension.values.len()).product();
    if count > SIZES_MAX {
        return Err(Failure::new(format!("{count} sizes, expected {SIZES_MAX} at most")));
    }
    let mut all = vec![Size { values: Vec::new() }];
    for Dimension { parameter, values } in dimensions {
        let with = |size: &Size, value: &String| {
            let own = [(parameter.clone(), value.clone())];
            Size { values: size.values.iter().cloned().chain(own).collect() }
        };
        all = all.iter().flat_map(|size| values.iter().map(move |value| with(size, value))).collect();
    }
    all.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
    Ok(all)
}

/// A size with what is run for it.
struct Prepared<'a> {
    size: &'a Size,
    experiment: Experiment,
    variant: String,
}

impl<'a> Prepared<'a> {
    fn new(arguments: &Arguments, size: &'a Size) -> Result<Self, Failure> {
        let experiment = super::super::read_experiment_with(&arguments.file, &size.values)?;
        let variant = match (&arguments.variant[..], experiment.variants.first()) {
            ([named], _) => named.clone(),
            ([], Some(first)) => first.name.clone(),
            _ => return Err(Failure::new("expected one `--variant` beside `--size`")),
        };
        Ok(Self { size, experiment, variant })
    }
}

/// A size that was tried.
struct Tried<'a> {
    prepared: &'a Prepared<'a>,
    capacity: Capacity,
}

impl Tried<'_> {
    /// The probe at the requested rate.
    fn probe(&self) -> Option<&Probe> {
        self.capacity.probes.last()
    }

    /// True if the objectives were kept at that rate.
    fn is_kept(&self) -> bool {
        matches!(self.capacity.verdict, Verdict::AtLeast { ceiling: Ceiling::Highest, .. })
    }

    /// Responses per second at a rate; those that keep up with it, as a passing probe must, are equal.
    fn achieved(&self, rate: f64) -> f64 {
        self.probe().map_or(0.0, |probe| probe.achieved.min(rate * KEEPS_UP))
    }

    fn p95_ns(&self) -> u64 {
        self.probe().map_or(u64::MAX, |probe| probe.p95_ns)
    }
}

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    let sizes = sizes(&arguments.size)?;
    // A mistake in the last size is known before the first one is measured.
    let sizes = sizes.iter().map(|size| Prepared::new(arguments, size)).collect::<Result<Vec<_>, _>>()?;
    let out = arguments.out.clone().unwrap_or_else(|| runs_folder::new_path("capacity").with_extension(""));
    let stop =
        crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let mut tried: Vec<Tried<'_>> = Vec::new();
    for (n, prepared) in (1..).zip(&sizes) {
        stderr::say(&format!("\nsize {n} of {}: {}", sizes.len(), prepared.size));
        let bounds = Bounds { from: Some(arguments.to), floor: Some(arguments.to), repeats: 0 };
        let path = out.join(format!("{n:02}.narrows"));
        tried.push(Tried { prepared, capacity: searched(arguments, prepared, &bounds, path, &stop)? });
        if tried.last().is_some_and(Tried::is_kept) {
            break;
        }
    }
    let is_kept = tried.last().is_some_and(Tried::is_kept);
    let best = if is_kept { None } else { best(arguments, &tried, &out, &stop)? };
    let result = SizeResult { rate: arguments.to, tried, best };
    if arguments.json {
        super::super::print_json(result.json())?;
    } else {
        super::super::print(&wrapped_to(&result.text(), super::super::stdout_width()))?;
    }
    stderr::say(&format!("\nrun files: {}", out.display()));
    Ok(if is_kept { Exit::Fine } else { Exit::VerdictFailed })
}

/// The capacity of the size that came nearest to the rate: by its responses, and among those that keep up by the latency.
fn best<'a>(
    arguments: &Arguments,
    tried: &[Tried<'a>],
    out: &Path,
    stop: &AtomicBool,
) -> Result<Option<Tried<'a>>, Failure> {
    let nearer = |a: &&Tried<'_>, b: &&Tried<'_>| {
        let responses = a.achieved(arguments.to).total_cmp(&b.achieved(arguments.to));
        responses.then(b.p95_ns().cmp(&a.p95_ns()))
    };
    let Some(best) = tried.iter().max_by(nearer) else { return Ok(None) };
    stderr::say(&format!(
        "\nno size keeps the objectives at {}; the best is searched: {}",
        units::rate(arguments.to),
        best.prepared.size
    ));
    let bounds = Bounds { from: arguments.from, floor: arguments.floor, repeats: arguments.repeat };
    let capacity = searched(arguments, best.prepared, &bounds, out.join("best.narrows"), stop)?;
    Ok(Some(Tried { prepared: best.prepared, capacity }))
}

/// Bounds of a search below `--to`.
struct Bounds {
    from: Option<f64>,
    floor: Option<f64>,
    repeats: u32,
}

/// The capacity of a size, measured in a separate run file.
fn searched(
    arguments: &Arguments,
    prepared: &Prepared<'_>,
    bounds: &Bounds,
    path: PathBuf,
    stop: &AtomicBool,
) -> Result<Capacity, Failure> {
    let wanted = SearchRequest {
        experiment: &prepared.experiment,
        variants: vec![prepared.variant.clone()],
        from: bounds.from,
        to: arguments.to,
        floor: bounds.floor,
        precision: arguments.precision,
        probe: arguments.probe,
        repeats: bounds.repeats,
        path: path.clone(),
        guard_command: guard_command()?,
        agents: arguments.agents.request(&prepared.experiment)?,
    };
    let mut live = Live::new();
    let searched = search(&wanted, stop, &mut live);
    live.finish();
    let SearchEnd { ended, capacities } = searched?;
    match capacities.into_iter().next() {
        Some(capacity) if ended.state == RunState::Complete => Ok(capacity),
        _ => Err(unfinished(ended, &path, "a search cannot be resumed: start a new one with another `--out`")),
    }
}

/// Result of a search for the smallest size.
struct SizeResult<'a> {
    rate: f64,
    tried: Vec<Tried<'a>>,
    /// The best of the sizes with its capacity, if none keeps the objectives at the rate.
    best: Option<Tried<'a>>,
}

impl SizeResult<'_> {
    fn text(&self) -> String {
        let width = self.tried.iter().map(|tried| tried.prepared.size.to_string().chars().count()).max().unwrap_or(0);
        let row = |tried: &Tried<'_>| {
            let Some(probe) = tried.probe() else { return String::new() };
            let (achieved, p95) = (units::rate(probe.achieved), units::duration(probe.p95_ns as f64));
            format!("  {:<width$}  {achieved:>10}  {p95:>8}  {}\n", tried.prepared.size.to_string(), fate(probe))
        };
        let head = format!("  {:<width$}  {:>10}  {:>8}  kept\n", "size", "achieved", "p95");
        let rows: String = self.tried.iter().map(row).collect();
        format!("\n{head}{rows}\n{}\n", self.sentence())
    }

    fn sentence(&self) -> String {
        let rate = units::rate(self.rate);
        let quoted = |capacity: &Capacity| {
            let texts: Vec<String> = capacity.objectives.iter().map(|text| format!("\"{text}\"")).collect();
            texts.join(" and ")
        };
        match (&self.best, self.tried.last()) {
            (Some(best), _) => {
                let largest =
                    format!("No size keeps {} at {rate}. Best is {}.", quoted(&best.capacity), best.prepared.size);
                format!("{largest} {}", best.capacity.sentence())
            }
            (None, Some(last)) => {
                format!("The smallest size that keeps {} at {rate} is {}.", quoted(&last.capacity), last.prepared.size)
            }
            (None, None) => format!("No size was tried at {rate}."),
        }
    }

    fn json(&self) -> String {
        let tried = |tried: &Tried<'_>| {
            let values = tried.prepared.size.values.iter().map(|(name, value)| (name.clone(), value.clone().into()));
            let size: serde_json::Map<String, serde_json::Value> = values.collect();
            serde_json::json!({ "size": size, "capacity": tried.capacity })
        };
        let all: Vec<serde_json::Value> = self.tried.iter().map(tried).collect();
        let best = self.best.as_ref().map(tried);
        format!("{:#}\n", serde_json::json!({ "sizes": all, "best": best, "sentence": self.sentence() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Vec<String> {
        let dimensions: Vec<Dimension> = texts.iter().map(|text| dimension(text).unwrap()).collect();
        sizes(&dimensions).unwrap().iter().map(Size::to_string).collect()
    }

    #[test]
    fn sizes_go_from_the_smallest_to_the_largest() {
        assert_eq!(
            read(&["replicas=1,2,3", "cpus=0.5, 1"]),
            [
                "replicas 1, cpus 0.5",
                "replicas 1, cpus 1",
                "replicas 2, cpus 0.5",
                "replicas 3, cpus 0.5",
                "replicas 2, cpus 1",
                "replicas 3, cpus 1",
            ]
        );
        assert_eq!(read(&["pool=10,5"]), ["pool 5", "pool 10"]);
    }

    #[test]
    fn a_size_is_a_parameter_with_numbers() {
        for wrong in ["replicas", "replicas=", "replicas=1,", "replicas=two", "cpus=0", "cpus=-1", "cpus=inf"] {
            assert!(dimension(wrong).is_err(), "{wrong}");
        }
        let many = dimension(&format!("n={}", vec!["1"; 101].join(","))).unwrap();
        assert!(sizes(&[many]).is_err());
    }
}
