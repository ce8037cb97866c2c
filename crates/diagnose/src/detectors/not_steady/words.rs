//! Texts of `not-steady` findings.

use narrows_model::finding::evidence::not_steady::{
    Change, Disturbance, DisturbanceSource, NotSteady, Quantity, Unrest, WarmUp,
};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for NotSteady {
    fn title(&self, _finding: &Finding) -> String {
        if let Some(warm_up) = &self.warm_up {
            let (first, last) = warm_up.ends().unwrap_or_default();
            let [first, last] = [first, last].map(units::duration);
            return format!(
                "{} was still warming up: its CPU per request falls from {first} to {last}",
                warm_up.service
            );
        }
        self.worst().map_or_else(String::new, |worst| match &self.disturbance {
            Some(disturbance) => disturbed_title(disturbance.source, worst, &self.window),
            None => title(worst, &self.window),
        })
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        if self.warm_up.is_some() {
            return "of its CPU per request at the first level: the size of the fall".to_owned();
        }
        let what = self.worst().map_or("throughput", |worst| name(worst.quantity));
        format!("of the {what} in {}: the size of the change", self.window)
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        if let Some(warm_up) = &self.warm_up {
            return warm_reasons(warm_up);
        }
        let mut reasons: Vec<String> = self.changes.iter().map(|change| seen(change, &self.window)).collect();
        if let (Some(disturbance), Some(worst)) = (&self.disturbance, self.worst()) {
            reasons.extend(disturbed(disturbance, worst, &self.window));
        }
        if !self.other_windows.is_empty() {
            reasons.push(format!("It also shows, less strongly, in {}.", self.other_windows.join(", ")));
        }
        if self.is_beyond_capacity {
            reasons.push(format!(
                "More requests are offered than completed ({} offered, {} completed), so the queue grows for as long as \
                 the load lasts.",
                units::rate(self.offered.unwrap_or(0.0)),
                units::rate(self.completed)
            ));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let disturbance = self.disturbance.iter().flat_map(figures_of_disturbance);
        self.changes.iter().flat_map(figures).chain(disturbance).collect()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.warm_up.is_some() {
            return vec!["CPU that it uses without requests: that is the same all through a level.".to_owned()];
        }
        vec![
            "Noise: the confidence interval of the change, widened for the number of windows, does not include zero."
                .to_owned(),
            "A single peak: a trend must go one way over ten blocks, and a wave must repeat.".to_owned(),
        ]
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        if self.warm_up.is_some() {
            return "The first level costs as much CPU per request when it is measured again after the last."
                .to_owned();
        }
        if let Some(disturbance) = &self.disturbance {
            return format!("The same load changes in the same way without {}.", cause(disturbance.source));
        }
        "The same load for twice as long gives the same means in its first and its second half.".into()
    }

    fn advice(&self, _finding: &Finding) -> String {
        if let Some(warm_up) = &self.warm_up {
            let trust = warm_up.warm_from.as_ref().map_or_else(
                || "Trust the figures of no level: CPU per request falls to the end.".to_owned(),
                |level| format!("Trust the figures from {level} on."),
            );
            let longer = units::duration(warm_up.length_ns as f64);
            return format!(
                "{trust} Make the warm-up of the load at least {longer} longer, under a load like the heaviest."
            );
        }
        match self.worst().map(|worst| worst.unrest) {
            _ if self.is_beyond_capacity => {
                "Read its throughput, which is what the system carries, and not its latency, which grows with the \
                 length of the load; offer less load to measure a meaningful latency."
                    .into()
            }
            _ if self.disturbance.is_some() => self.disturbance.as_ref().map_or_else(String::new, advice_on),
            Some(Unrest::Start { seconds, .. }) => {
                format!("Make the warm-up at least {seconds} s longer, or the step, if its start is part of each step.")
            }
            Some(Unrest::Wave { seconds, .. }) => format!(
                "Make the window ten times that long ({} s), and look for periodic work every {seconds} s: garbage \
                 collection, checkpoints, scheduled work, autoscaling.",
                10 * seconds
            ),
            Some(Unrest::Trend { .. }) | None => {
                "Find out what keeps changing (caches that fill, data that grows, memory that leaks, a queue that \
                 builds up), make the warm-up and the window longer, and compare only windows that have settled."
                    .into()
            }
        }
    }
}

fn warm_reasons(warm_up: &WarmUp) -> Vec<String> {
    let levels = warm_up.levels.iter().map(|level| format!("{} in {}", units::duration(level.cost_ns), level.label));
    let levels: Vec<String> = levels.collect();
    vec![
        format!("{} uses this CPU per request: {}.", warm_up.service, levels.join(", ")),
        "It also falls within a level, under one load: code is still being compiled, or caches fill.".to_owned(),
    ]
}

/// The source of the disturbance.
fn disturber(source: DisturbanceSource) -> &'static str {
    match source {
        DisturbanceSource::Hypervisor => "the hypervisor",
        DisturbanceSource::OtherPrograms => "other programs",
        DisturbanceSource::Generator => "the load generator",
    }
}

/// The disturbance as a noun phrase.
fn cause(source: DisturbanceSource) -> &'static str {
    match source {
        DisturbanceSource::Hypervisor => "CPU taken by the hypervisor",
        DisturbanceSource::OtherPrograms => "CPU used by other programs",
        DisturbanceSource::Generator => "delays of the load generator",
    }
}

fn disturbed_title(source: DisturbanceSource, worst: &Change, window: &str) -> String {
    let (who, what, share) = (disturber(source), name(worst.quantity), units::percent(worst.share));
    let how = match worst.unrest {
        Unrest::Trend { first, second, .. } if second > first => format!("{what} rises by {share}"),
        Unrest::Trend { .. } => format!("{what} falls by {share}"),
        Unrest::Start { .. } => format!("{what} differs by {share} at its start"),
        Unrest::Wave { .. } => format!("{what} goes up and down by {share}"),
    };
    format!("{window} was disturbed by {who}: {how}")
}

fn disturbed(disturbance: &Disturbance, worst: &Change, window: &str) -> [String; 2] {
    let Disturbance { source, least, most, correlation, calm } = disturbance;
    let what = name(worst.quantity);
    let worse = match worst.quantity {
        Quantity::Throughput => "lower",
        Quantity::Latency => "higher",
    };
    let did = match source {
        DisturbanceSource::Generator => {
            let [least, most] = [least, most].map(|ns| units::duration(*ns));
            format!("The load generator sent requests {least} to {most} late")
        }
        _ => {
            let [least, most] = [least, most].map(|share| units::percent(*share));
            let who =
                if *source == DisturbanceSource::Hypervisor { "The hypervisor took" } else { "Other programs used" };
            format!("{who} {least} to {most} of the machine's CPU")
        }
    };
    let went_along = format!("{did}, and more of it when {what} was {worse} (rank correlation {correlation:.2}).");
    let free = match calm {
        Some(calm) => {
            let [value, rest] = [calm.value, calm.disturbed].map(|value| shown(worst.quantity, value));
            format!("In the {} s with less of it {what} is steady at {value}; in the rest it is {rest}.", calm.seconds)
        }
        None => format!("No part of {window} is long enough, free of it and steady."),
    };
    [went_along, free]
}

fn advice_on(disturbance: &Disturbance) -> String {
    let how = match disturbance.source {
        DisturbanceSource::Hypervisor => "on a machine with processors of its own, or when its neighbours are quiet",
        DisturbanceSource::OtherPrograms => "without the other programs on the machine",
        DisturbanceSource::Generator => "with more CPU for the load generator",
    };
    match disturbance.calm {
        Some(_) => {
            format!("Use the figures of the calm part, or run it again {how}. Nothing here points to the system.")
        }
        None => format!("Run it again {how}: these figures say little about the system."),
    }
}

fn figures_of_disturbance(disturbance: &Disturbance) -> Vec<Figure> {
    let what = cause(disturbance.source);
    let (factor, unit) = match disturbance.source {
        DisturbanceSource::Generator => (1.0, "ns"),
        _ => (100.0, "%"),
    };
    let figure = |which: &str, value: f64| Figure::new(format!("{what}, {which}"), value * factor, unit);
    vec![figure("least", disturbance.least), figure("most", disturbance.most)]
}

fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "throughput",
        Quantity::Latency => "mean latency",
    }
}

fn shown(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Throughput => units::rate(value),
        Quantity::Latency => units::duration(value),
    }
}

fn title(worst: &Change, window: &str) -> String {
    let what = name(worst.quantity);
    match worst.unrest {
        Unrest::Trend { first, second, .. } => {
            let way = if second > first { "rises" } else { "falls" };
            format!(
                "{window} is not steady: {what} {way} by {} from its first half to its second",
                units::percent(worst.share)
            )
        }
        Unrest::Start { seconds, .. } => {
            format!("{window} begins too soon: its first {seconds} s are not like the rest")
        }
        Unrest::Wave { seconds, .. } => {
            format!("{window} is short for a system whose {what} goes up and down every {seconds} s")
        }
    }
}

fn seen(change: &Change, window: &str) -> String {
    let what = name(change.quantity);
    let shown = |value| shown(change.quantity, value);
    match change.unrest {
        Unrest::Trend { first, second, z } => format!(
            "In {window} {what} goes from {} in the first half to {} in the second; the Mann-Kendall test shows the \
             trend at {} standard deviations.",
            shown(first),
            shown(second),
            units::number(z.abs())
        ),
        Unrest::Start { start, rest, seconds } => format!(
            "In {window} {what} is {} over the first {seconds} s and {} after, and stays there.",
            shown(start),
            shown(rest)
        ),
        Unrest::Wave { seconds, spread } => format!(
            "In {window} {what} repeats itself every {seconds} s, with a standard deviation of {} of its mean.",
            units::percent(spread)
        ),
    }
}

fn figures(change: &Change) -> Vec<Figure> {
    let what = name(change.quantity);
    let unit = match change.quantity {
        Quantity::Throughput => "/s",
        Quantity::Latency => "ns",
    };
    match change.unrest {
        Unrest::Trend { first, second, .. } => vec![
            Figure::new(format!("{what}, first half"), first, unit),
            Figure::new(format!("{what}, second half"), second, unit),
        ],
        Unrest::Start { start, rest, seconds } => vec![
            Figure::new(format!("{what}, first {seconds} s"), start, unit),
            Figure::new(format!("{what}, after that"), rest, unit),
        ],
        Unrest::Wave { seconds, spread } => vec![
            Figure::new(format!("{what}, period"), seconds as f64, "s"),
            Figure::new(format!("{what}, standard deviation"), spread * 100.0, "%"),
        ],
    }
}
