//! Texts of `unequal-rates` findings.

use narrows_model::finding::evidence::unequal_rates::UnequalRates;
use narrows_model::finding::evidence::variant::VariantFigures;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for UnequalRates {
    fn title(&self, _finding: &Finding) -> String {
        format!(
            "{} completes {} and {} {}, so their total CPU and latency do not show what {}",
            self.other.variant,
            units::rate(self.other.rate),
            self.first.variant,
            units::rate(self.first.rate),
            costs(self)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the larger throughput: the difference between the two".into()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let mut reasons = vec![if self.is_open {
            "The load has a fixed rate, and not both complete all of it.".to_owned()
        } else {
            "The load is closed: faster responses lead to more requests, so each variant sets its own rate.".into()
        }];
        let cpu = self.first.cpu_seconds_per_request.zip(self.other.cpu_seconds_per_request);
        reasons.extend(cpu.map(|(first, other)| {
            format!(
                "What can be compared: CPU for each request is {} in {} and {} in {}.",
                units::duration(first * 1e9),
                self.first.variant,
                units::duration(other * 1e9),
                self.other.variant
            )
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        [&self.first, &self.other].into_iter().flat_map(figures_of).collect()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec!["Noise: the throughputs are further apart than noise explains.".into()]
    }

    fn clause(&self, _finding: &Finding) -> String {
        "the rates differ, so only CPU per request can be compared".to_owned()
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        format!(
            "With one rate for both, {} and {} differ as much in latency and in CPU.",
            self.other.variant, self.first.variant
        )
    }

    fn advice(&self, _finding: &Finding) -> String {
        "Compare them at one rate that both can carry, such as 60 % of the throughput of the slower one here \
         (`constant-arrival-rate`, or a `pace` for each user). Until then only CPU for each request can be compared."
            .into()
    }
}

/// Subject and verb for the added parts: `it costs`, `sidecars cost`, `gateway costs`, `sidecars, gateway and cache
/// cost`.
fn costs(evidence: &UnequalRates) -> String {
    let sidecars = evidence.adds_sidecars.then_some("sidecars");
    let added: Vec<&str> = sidecars.into_iter().chain(evidence.added_services.iter().map(String::as_str)).collect();
    match &added[..] {
        [] => "it costs".to_owned(),
        [one] if evidence.adds_sidecars => format!("{one} cost"),
        [one] => format!("{one} costs"),
        [all @ .., last] => format!("{} and {last} cost", all.join(", ")),
    }
}

fn figures_of(variant: &VariantFigures) -> Vec<Figure> {
    let name = &variant.variant;
    let mut figures = vec![Figure::new(format!("throughput, {name}"), variant.rate, "/s")];
    let cpu = variant.cpu_seconds_per_request;
    figures.extend(cpu.map(|seconds| Figure::new(format!("CPU for each request, {name}"), seconds, "s")));
    figures
}
