//! `narrows capacity FILE`: the highest rate of arrivals that keeps the experiment's objectives.

mod sizes;

use std::path::PathBuf;
use std::time::Duration;

use narrows_diagnose::words::misfit;
use narrows_lab::capacity::{Capacity, Fate, Probe, SearchEnd, SearchRequest, Verdict, search};
use narrows_model::run::RunState;
use narrows_model::units;

use crate::agents::AgentsArguments;
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::running::{guard_command, unfinished};
use crate::wrapping::wrapped_to;
use crate::{Outcome, complete, runs_folder};

/// Where a table has nothing to say.
const NONE: &str = "–";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The experiment file; the search keeps its objectives
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
    /// Search only this variant; may be given several times
    #[arg(long, value_name = "NAME", add = complete::variants())]
    variant: Vec<String>,
    /// The first rate, in arrivals per second [default: a quarter of what a 3 s closed loop reaches]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    from: Option<f64>,
    /// The lowest rate to try when the first breaks the objectives [default: 10 arrivals in a probe]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    floor: Option<f64>,
    /// The highest rate to try, in arrivals per second
    #[arg(long, value_name = "RATE", default_value = "1000000", value_parser = rate)]
    to: f64,
    /// How close the rates that keep and that break the objectives must come
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = precision)]
    precision: f64,
    /// How long each rate is counted, 2s to 1h; a fifth of it, 1 s to 5 s, goes before to settle
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = probe_time)]
    probe: Duration,
    /// Repeat the search this many times, for the 95 % interval
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=20))]
    repeat: u32,
    /// Find the smallest size that keeps the objectives at --to, instead of the highest rate: one value of this parameter, such
    /// as replicas=1,2,3, and of those of further --size. Sizes are ordered by the product of their values
    #[arg(long, value_name = "PARAMETER=VALUES", value_parser = sizes::dimension, requires = "to")]
    size: Vec<sizes::Dimension>,
    /// The run file [default: runs/EXPERIMENT-DATE-TIME.narrows]; with --size, the folder of the run files
    /// [default: runs/capacity-DATE-TIME]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) agents: AgentsArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.trim_end_matches("/s").parse::<f64>() {
        Ok(rate) if (narrows_load::RATE_MIN..=narrows_load::RATE_MAX).contains(&rate) => Ok(rate),
        _ => Err(format!(
            "expected arrivals per second from {} to {}, such as 200 or 0.5",
            narrows_load::RATE_MIN,
            narrows_load::RATE_MAX
        )),
    }
}

fn precision(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match share {
        Ok(share) if (0.005..=0.5).contains(&share) => Ok(share),
        _ => Err("expected a share from 0.5% to 50%, such as 5% or 0.05".to_owned()),
    }
}

fn probe_time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(2)..=Duration::from_secs(3600);
    match narrows_lab::experiment::parse_duration(text) {
        Some(time) if range.contains(&time) => Ok(time),
        _ => Err("expected a duration from 2s to 1h, such as 10s".to_owned()),
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    if arguments.from.is_some_and(|from| from > arguments.to) {
        return Err(Failure::new("--from is above --to").hint("the search goes up from --from"));
    }
    if arguments.floor.is_some_and(|floor| floor > arguments.from.unwrap_or(arguments.to)) {
        let first = if arguments.from.is_some() { "--from" } else { "--to" };
        return Err(Failure::new(format!("--floor is above {first}"))
            .hint("--floor is where the search ends that goes down from the first rate"));
    }
    if !arguments.size.is_empty() {
        return sizes::execute(arguments);
    }
    let experiment = super::read_experiment(&arguments.file)?;
    let path = arguments.out.clone().unwrap_or_else(|| runs_folder::new_path(&experiment.name));
    let wanted = SearchRequest {
        experiment: &experiment,
        variants: arguments.variant.clone(),
        from: arguments.from,
        to: arguments.to,
        floor: arguments.floor,
        precision: arguments.precision,
        probe: arguments.probe,
        repeats: arguments.repeat,
        path: path.clone(),
        guard_command: guard_command()?,
        agents: arguments.agents.request(&experiment)?,
    };
    let stop =
        crate::signals::stop_flag().map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
    let mut live = Live::new();
    let searched = search(&wanted, &stop, &mut live);
    live.finish();
    let SearchEnd { ended, capacities } = searched?;
    if arguments.json {
        super::print_json(json(&capacities))?;
    } else {
        super::print(&wrapped_to(&text(&capacities), super::stdout_width()))?;
    }
    if ended.state != RunState::Complete {
        return Err(unfinished(ended, &path, "a search cannot be resumed: start a new one with another `--out`"));
    }
    super::say_where(&path);
    Ok(if capacities.iter().all(Capacity::is_found) { Exit::Fine } else { Exit::VerdictFailed })
}

fn json(capacities: &[Capacity]) -> String {
    let objects = capacities.iter().map(|capacity| {
        let mut value = serde_json::json!(capacity);
        value["sentence"] = capacity.sentence().into();
        value
    });
    format!("{:#}\n", serde_json::json!({ "capacities": objects.collect::<Vec<_>>() }))
}

fn text(capacities: &[Capacity]) -> String {
    let name =
        |capacity: &Capacity| if capacities.len() > 1 { format!("{}\n", capacity.variant) } else { String::new() };
    let each: String =
        capacities.iter().map(|capacity| format!("\n{}{}", name(capacity), describe(capacity))).collect();
    if capacities.len() > 1 { format!("{each}\n{}", compared(capacities)) } else { each }
}

/// The variants beside each other, and how many times the first one's capacity each has.
fn compared(capacities: &[Capacity]) -> String {
    let first = capacities.first().and_then(kept_up_to);
    let head = ["variant", "keeps up to", "between", "× the first", "gives way first"].map(str::to_owned);
    let rows = capacities.iter().map(|capacity| {
        let (rate, between) = match &capacity.verdict {
            Verdict::Found(found) => {
                (units::rate(found.rate), format!("{} – {}", units::rate(found.low), units::rate(found.high)))
            }
            Verdict::AtLeast { rate, .. } => (format!("≥ {}", units::rate(*rate)), NONE.to_owned()),
            Verdict::Nowhere { rate } => (format!("< {}", units::rate(*rate)), NONE.to_owned()),
        };
        let times = match (&capacity.verdict, kept_up_to(capacity), first) {
            (Verdict::Found(_), Some(rate), Some(first)) => format!("{:.2}", rate / first),
            _ => NONE.to_owned(),
        };
        let gives_way = capacity.gives_way.as_ref().map_or(NONE, |reason| reason.what.as_str());
        [capacity.variant.clone(), rate, between, times, gives_way.to_owned()]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 5]| {
        let numbers: String =
            (1..4).map(|column| format!("  {:>width$}", row[column], width = widths[column])).collect();
        format!("  {:<width$}{numbers}  {}\n", row[0], row[4], width = widths[0])
    };
    rows.iter().map(line).collect()
}

/// The capacity, where one was found.
fn kept_up_to(capacity: &Capacity) -> Option<f64> {
    match &capacity.verdict {
        Verdict::Found(found) => Some(found.rate),
        Verdict::AtLeast { .. } | Verdict::Nowhere { .. } => None,
    }
}

/// One variant: its probes by rate, the curve, the sentence, and what limits it.
fn describe(capacity: &Capacity) -> String {
    let mut probes: Vec<&Probe> = capacity.probes.iter().collect();
    probes.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let mut lines = table(&probes);
    lines.push(String::new());
    lines.extend(curve(&probes));
    lines.push(String::new());
    lines.push(capacity.sentence());
    lines.extend(beside(capacity));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn table(probes: &[&Probe]) -> Vec<String> {
    let head = ["offered", "achieved", "p50", "p95", "p99", "errors", "kept"].map(str::to_owned);
    let ns = |ns: u64| units::duration(ns as f64);
    let rows = probes.iter().map(|probe| {
        let has_latency = probe.p99_ns > 0;
        let latency = |value| if has_latency { ns(value) } else { NONE.to_owned() };
        [
            units::rate(probe.offered),
            units::rate(probe.achieved),
            latency(probe.p50_ns),
            latency(probe.p95_ns),
            latency(probe.p99_ns),
            units::percent(probe.error_rate),
            fate(probe),
        ]
    });
    let rows: Vec<[String; 7]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}  "));
        format!("  {}{}", cells.collect::<String>(), row[6])
    };
    rows.iter().map(line).collect()
}

fn fate(probe: &Probe) -> String {
    let what: Vec<&str> = probe.reasons.iter().map(|reason| reason.what.as_str()).collect();
    match probe.fate {
        Fate::Kept => "yes".to_owned(),
        Fate::Broken => format!("no: {}", what.join(", ")),
        Fate::GeneratorLimited => "? the generator was the limit".to_owned(),
    }
}

/// 95 % latency over the rate as bars, one for each rate.
fn curve(probes: &[&Probe]) -> Vec<String> {
    const BAR: usize = 40;
    let is_told = |probe: &&&Probe| probe.p99_ns > 0 && probe.fate != Fate::GeneratorLimited;
    let mut shown: Vec<&&Probe> = probes.iter().filter(is_told).collect();
    let highest = shown.iter().map(|probe| probe.p95_ns).max().unwrap_or(0).max(1);
    shown.dedup_by(|a, b| a.offered == b.offered);
    let width = shown.iter().map(|probe| units::rate(probe.offered).len()).max().unwrap_or(0);
    let bar = |probe: &&&Probe| {
        let length = (probe.p95_ns as f64 / highest as f64 * BAR as f64).ceil() as usize;
        let block = if probe.fate == Fate::Kept { "█" } else { "░" };
        let p95 = units::duration(probe.p95_ns as f64);
        format!("  {:>width$}  {} {p95}", units::rate(probe.offered), block.repeat(length.clamp(1, BAR)))
    };
    let title = (!shown.is_empty()).then(|| "  p95 by rate (█ kept, ░ broken)".to_owned());
    title.into_iter().chain(shown.iter().map(bar)).collect()
}

/// How the interval came about, the knee, the law, and what was left out.
fn beside(capacity: &Capacity) -> Vec<String> {
    let mut lines = Vec::new();
    if let Verdict::Found(interval) = &capacity.verdict {
        lines.push(format!("  interval: {}", interval.method()));
    }
    lines.push(match capacity.knee {
        Some(knee) => format!("  knee: p95 is over twice that of the lowest rate from {} on", units::rate(knee)),
        None => "  knee: none; p95 is never over twice that of the lowest rate".to_owned(),
    });
    lines.push(format!("  universal scalability law: {}", law(capacity)));
    if !capacity.left_out.is_empty() {
        lines.push(format!("  not judged, as every low rate breaks it: {}", capacity.left_out.join(", ")));
    }
    lines.extend(capacity.notes.iter().map(|note| format!("  note: {note}")));
    lines
}

fn law(capacity: &Capacity) -> String {
    let Some(law) = &capacity.law else { return "too few rates to fit it".to_owned() };
    let peak = law.peak.map_or_else(|| "no peak".to_owned(), |peak| format!("a peak of {}", units::rate(peak)));
    match &law.poor {
        Some(why) => format!("it fits poorly ({}), so its prediction, {peak}, is unreliable", misfit(*why)),
        None => format!(
            "predicts {peak} (λ {}, σ {:.3}, κ {:.5}; latencies off by {} in the middle)",
            units::rate(law.lambda),
            law.sigma,
            law.kappa,
            units::percent(law.error)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_within_their_ranges() {
        assert_eq!((rate("200/s"), rate("0.5")), (Ok(200.0), Ok(0.5)));
        assert_eq!((precision("5%"), precision("0.1")), (Ok(0.05), Ok(0.1)));
        assert_eq!(probe_time("2s"), Ok(Duration::from_secs(2)));
        for wrong in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(rate(wrong).is_err() && precision(wrong).is_err() && probe_time(wrong).is_err(), "{wrong}");
        }
        assert!(precision("51%").is_err() && precision("0.1%").is_err() && probe_time("2h").is_err());
    }

    fn probe(offered: f64, p95_ns: u64, fate: Fate) -> Probe {
        let broken = narrows_lab::capacity::Reason { what: "p95".into(), text: "p95 < 10ms: 20 ms".into() };
        Probe {
            offered,
            achieved: offered,
            mean_ns: 1e6,
            p50_ns: p95_ns / 2,
            p95_ns,
            p99_ns: p95_ns,
            errors: 0,
            error_rate: 0.0,
            reasons: if fate == Fate::Kept { Vec::new() } else { vec![broken] },
            fate,
        }
    }

    #[test]
    fn probes_stand_in_the_order_of_their_rates_and_each_rate_has_one_bar() {
        let probes = [
            probe(1_000.0, 5_000_000, Fate::Kept),
            probe(1_050.0, 20_000_000, Fate::Broken),
            probe(1_050.0, 21_000_000, Fate::Broken),
        ];
        let probes: Vec<&Probe> = probes.iter().collect();
        let table = table(&probes);
        assert_eq!(table.len(), 4);
        assert!(table[1].ends_with("yes") && table[2].ends_with("no: p95"), "{table:?}");
        let curve = curve(&probes);
        assert_eq!(curve.len(), 3);
        assert!(curve[1].contains("1,000/s  ██████████ 5.00 ms"), "{curve:?}");
        assert!(curve[2].contains('░'), "{curve:?}");
    }

    #[test]
    fn variants_stand_beside_the_first() {
        let found = |rate: f64| {
            Verdict::Found(narrows_lab::capacity::Interval { rate, low: rate, high: rate * 1.05, edges: 4 })
        };
        let capacity = |variant: &str, verdict: Verdict| Capacity {
            variant: variant.to_owned(),
            objectives: Vec::new(),
            left_out: Vec::new(),
            probes: Vec::new(),
            gives_way: None,
            verdict,
            knee: None,
            law: None,
            notes: Vec::new(),
        };
        let ceiling = narrows_lab::capacity::Ceiling::Generator;
        let all = [
            capacity("as-is", found(200.0)),
            capacity("wider", found(500.0)),
            capacity("huge", Verdict::AtLeast { rate: 9_000.0, ceiling }),
            capacity("none", Verdict::Nowhere { rate: 1.0 }),
        ];
        insta::assert_snapshot!(compared(&all), @r"
          variant  keeps up to        between  × the first  gives way first
          as-is          200/s  200/s – 210/s         1.00  –
          wider          500/s  500/s – 525/s         2.50  –
          huge       ≥ 9,000/s              –            –  –
          none        < 1.00/s              –            –  –
        ");
    }
}
