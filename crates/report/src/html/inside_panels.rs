//! The charts of what went on inside the services: operations, responses of databases, throughput of partitions, how
//! busy replicas were. All trials share their scales.

use maud::Markup;

use super::axis::{Axis, Unit};
use super::charts::{Label, Line, Side, figure};
use super::panels::{Draw, Panel, peak};

/// Colours of the operations, slowest first.
const OPERATION_CLASSES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];
/// Provisioned throughput further above what was spent than this factor is given in the title, not drawn: it would
/// press the lines flat.
const PROVISIONED_SHOWN_TIMES: f64 = 10.0;
/// Room above the highest line.
const HEADROOM: f64 = 1.06;
/// Room above a level, for its name.
const LEVEL_HEADROOM: f64 = 1.12;

/// The scales all trials share.
pub(super) struct Scales {
    operations: Axis,
    responses: Axis,
    /// True if any call of any trial got the response 429.
    has_refusals: bool,
    throughput: Axis,
    provisioned_max: f64,
    cpu: Axis,
}

impl Scales {
    pub(super) fn new(panels: &[Panel]) -> Self {
        let all = || panels.iter().map(|panel| &panel.insides);
        let means = || all().flat_map(|insides| insides.operations.iter().map(Vec::as_slice));
        let fastest = means().flatten().map(|point| point.1).filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
        let responses = all().flat_map(|insides| insides.responses.iter().map(Vec::as_slice));
        let spent = peak(all().flat_map(|insides| {
            let partitions = insides.throughput.partitions.iter().map(|(_, line)| line.as_slice());
            partitions.chain([insides.throughput.highest.as_slice(), insides.throughput.mean.as_slice()])
        }));
        let provisioned_max = spent * PROVISIONED_SHOWN_TIMES;
        let levels = all().flat_map(|insides| insides.throughput.provisioned.iter().copied());
        let level = levels.filter(|level| *level <= provisioned_max).fold(0.0, f64::max);
        let busiest = peak(all().map(|insides| insides.cpu[1].as_slice()));
        Self {
            operations: Axis::for_range(fastest, peak(means()), Unit::Duration),
            has_refusals: all().any(|insides| insides.responses[1].iter().any(|point| point.1 > 0.0)),
            responses: Axis::linear(peak(responses) * HEADROOM, Unit::Count),
            throughput: Axis::linear((spent * HEADROOM).max(level * LEVEL_HEADROOM), Unit::Count),
            provisioned_max,
            cpu: Axis::linear(busiest.max(100.0), Unit::Percent),
        }
    }
}

impl Draw<'_> {
    pub(super) fn operations(&self, panel: &Panel) -> Markup {
        let title = format!("Mean duration of operations · {}", panel.label);
        let mut chart = self.chart(&title, &self.scales.operations, "mean in each second", panel);
        let lines = self.subjects.operations.iter().zip(&panel.insides.operations).zip(OPERATION_CLASSES);
        for (((service, name), points), class) in lines.filter(|((_, points), _)| !points.is_empty()) {
            let is_alone = self.subjects.operations.iter().filter(|(other, _)| other == service).count() == 1;
            let tail = name.rsplit('/').next().unwrap_or(name);
            chart.lines.push(Line::named(if is_alone { service } else { tail }, class, points));
            chart.legend.push((class, format!("{service} {name}")));
        }
        figure(&chart)
    }

    pub(super) fn responses(&self, panel: &Panel) -> Markup {
        let refused = if self.scales.has_refusals { ": success and 429" } else { "" };
        let title = format!("Responses of {}{refused} · {}", self.subjects.targets, panel.label);
        let mut chart = self.chart(&title, &self.scales.responses, "responses/s", panel);
        let [succeeded, throttled, failed] = &panel.insides.responses;
        chart.lines.push(Line::named("success", "c0", succeeded));
        if self.scales.has_refusals {
            chart.lines.push(Line::named("429", "bad", throttled));
        }
        if failed.iter().any(|point| point.1 > 0.0) {
            chart.lines.push(Line::named("failed", "c1", failed));
        }
        figure(&chart)
    }

    pub(super) fn throughput(&self, panel: &Panel) -> Markup {
        let throughput = &panel.insides.throughput;
        let (drawn, far): (Vec<f64>, Vec<f64>) =
            throughput.provisioned.iter().partition(|level| **level <= self.scales.provisioned_max);
        let axis = &self.scales.throughput;
        let beyond = far.first().map_or(String::new(), |level| format!(", {} provisioned", axis.label(level.round())));
        let title = format!("Throughput spent per physical partition{beyond} · {}", panel.label);
        let mut chart = self.chart(&title, axis, "request units/s", panel);
        for (name, points) in &throughput.partitions {
            chart.lines.push(Line { name, class: "part", points, side: Side::Left, label: Label::Highest });
        }
        if !throughput.highest.is_empty() {
            chart.lines.push(Line::named("highest", "part", &throughput.highest));
        }
        if !throughput.mean.is_empty() {
            chart.lines.push(Line::named("mean", "thick", &throughput.mean));
        }
        for level in drawn {
            let label = axis.label(level.round());
            chart.levels.push((level, "c3", format!("provisioned per partition: {label}")));
        }
        figure(&chart)
    }

    pub(super) fn cpu(&self, panel: &Panel) -> Markup {
        let title = format!("CPU: average and maximum over replicas, and the machine · {}", panel.label);
        let mut chart = self.chart(&title, &self.scales.cpu, "% of its limit or of one thread", panel);
        let [average, maximum] = &panel.insides.cpu;
        chart.lines.push(Line::named("average", "c0", average));
        chart.lines.push(Line::named("maximum", "c1", maximum));
        chart.lines.push(Line::named("machine", "c2", &panel.insides.machine));
        figure(&chart)
    }
}

#[cfg(test)]
mod tests {
    use super::super::panels;
    use crate::fixture::drones;

    fn charts(outcome: &narrows_model::comparison::Outcome) -> String {
        super::super::plain(&panels::section(&crate::sections::Context::for_page(outcome)))
    }

    #[test]
    fn every_trial_has_the_charts_of_its_insides() {
        let html = charts(&drones::outcome());
        for title in [
            "Mean duration of operations · parallel",
            "Responses of azure.cosmosdb: success and 429 · baseline",
            "Throughput spent per physical partition · partition-key",
            "CPU: average and maximum over replicas, and the machine · more-throughput",
        ] {
            assert_eq!(html.matches(&format!("<figcaption>{title}<")).count(), 1, "{title}");
        }
        assert_eq!(html.matches("data-name=\"partition 8\"").count(), 4);
        assert!(html.contains("provisioned per partition: 278") && html.contains("provisioned per partition: 100"));
        assert!(html.contains("<li class=\"c1\"><span>drone-scheduler GET /api/dronedeliveries/utilization</span>"));
    }

    #[test]
    fn plentiful_throughput_is_reported_and_does_not_press_the_lines_flat() {
        let mut outcome = drones::outcome();
        for trial in &mut outcome.evidence.trials {
            let gauges = trial.series.iter_mut().filter(|s| s.key.name.ends_with("provisioned"));
            gauges.flat_map(|series| &mut series.points).for_each(|point| point.value = 10_000.0);
        }
        let html = charts(&outcome);
        assert!(html.contains("per physical partition, 10,000 provisioned · baseline"));
        assert!(!html.contains("provisioned per partition:"));
    }

    #[test]
    fn a_store_that_refuses_nothing_has_no_line_of_refusals() {
        let mut outcome = drones::outcome();
        let operations = outcome.evidence.trials.iter_mut().flat_map(|trial| &mut trial.operations);
        let seconds = operations.flat_map(|operation| &mut operation.calls).flat_map(|call| &mut call.seconds);
        seconds.for_each(|second| second.throttled = 0.0);
        let html = charts(&outcome);
        assert!(html.contains("<figcaption>Responses of azure.cosmosdb · baseline<"), "{html}");
        assert!(!html.contains("data-name=\"429\""), "{html}");
    }

    #[test]
    fn what_is_not_there_is_not_drawn() {
        let mut outcome = drones::outcome();
        for trial in &mut outcome.evidence.trials {
            trial.operations.clear();
            trial.series.clear();
        }
        let html = charts(&outcome);
        for title in ["Mean duration", "Responses of", "Throughput spent", "CPU"] {
            assert!(!html.contains(title), "{title}");
        }
    }
}
