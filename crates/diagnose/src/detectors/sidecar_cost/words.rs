//! Texts of `sidecar-cost` findings.

use narrows_model::comparison::{SidecarSummary, TraversalCount};
use narrows_model::finding::evidence::sidecar_cost::{Compared, SidecarCost};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for SidecarCost {
    fn title(&self, _finding: &Finding) -> String {
        match &self.compared {
            Some(compared) => format!(
                "the sidecars {} {} at the median and {} at p95",
                multiplied(compared).unwrap_or_else(|| "cost".to_owned()),
                signed(compared.added_p50_ns()),
                signed(compared.added_p95_ns())
            ),
            None => format!(
                "the sidecars use {} of all CPU{}",
                units::percent(self.sidecars.cpu_share),
                each(&self.sidecars)
                    .map_or_else(String::new, |each| format!(", {each} each time that a request passes one"))
            ),
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        if self.compared.is_some() { "of the CPU for each request" } else { "of the CPU of all services" }.into()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let hop = self.hop_ns.map(units::duration);
        let Some(compared) = &self.compared else {
            let mut reasons =
                vec![format!("They use {} on average.", units::cores(self.sidecars.cpu_mean)), counted(&self.sidecars)];
            reasons.extend(hop.map(|hop| format!("One hop takes {hop} (median), excluding the time behind it.")));
            return reasons;
        };
        let mut reasons = vec![counted(&self.sidecars)];
        reasons.extend(cpu(compared, self.sidecars.cpu_share));
        reasons.push(latency(compared));
        reasons.extend(hop.map(|hop| format!("One hop takes {hop} (median), by its own span.")));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let seen = &self.sidecars;
        let mut figures = vec![
            Figure::new("CPU of the sidecars", seen.cpu_mean, "{cores}"),
            Figure::new("their share of all CPU", seen.cpu_share * 100.0, "%"),
            Figure::new("sidecars passed by a request", seen.traversals_per_request, ""),
        ];
        let each = seen.cpu_seconds_per_traversal;
        figures.extend(each.map(|seconds| Figure::new("CPU for each sidecar passed", seconds, "s")));
        if let Some(compared) = &self.compared {
            if let Some((without, with)) = compared.cpu_seconds_per_request() {
                figures.push(Figure::new("CPU for each request, without", without, "s"));
                figures.push(Figure::new("CPU for each request, with", with, "s"));
            }
            figures.push(Figure::new("added to the median", compared.added_p50_ns(), "ns"));
            figures.push(Figure::new("added to p95", compared.added_p95_ns(), "ns"));
        }
        figures.extend(self.hop_ns.map(|ns| Figure::new("time of one hop, median", ns, "ns")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let another_load = self.compared.as_ref().map(|compared| {
            format!(
                "Another load: {} and {} differ by no more than {} in throughput.",
                units::rate(compared.without.rate),
                units::rate(compared.with.rate),
                units::percent(compared.rate_share_max)
            )
        });
        another_load.into_iter().collect()
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        match &self.compared {
            Some(compared) => format!(
                "{} without its sidecars, at the same rate, costs as much CPU for each request.",
                compared.with.variant
            ),
            None => "Without sidecars, at the same rate, a request costs as much CPU.".into(),
        }
    }

    fn advice(&self, _finding: &Finding) -> String {
        "Look which of it is needed: encryption between processes of one machine, an access log written for each \
         request, a span for each hop. Keep connections to the next hop open. Where a chain of services always goes \
         together, one proxy before all of them costs less than one beside each."
            .into()
    }
}

/// Sentence on the sidecars per request and the source of that count.
fn counted(seen: &SidecarSummary) -> String {
    let number = match units::number(seen.traversals_per_request).as_str() {
        "1" => "1 sidecar".to_owned(),
        number => format!("{number} sidecars"),
    };
    match seen.counted_from {
        TraversalCount::Hops => format!("A request passes {number} on average, by their own spans."),
        TraversalCount::Calls => {
            format!("A request passes {number} on average, by the calls of the services.")
        }
        TraversalCount::Services => {
            format!("A request is assumed to pass {number}, as in a chain of services: no span shows more.")
        }
    }
}

fn each(seen: &SidecarSummary) -> Option<String> {
    seen.cpu_seconds_per_traversal.map(|seconds| units::duration(seconds * 1e9))
}

/// Factor by which the sidecars multiply the CPU of a request, as a phrase; `None` if it was not sampled.
fn multiplied(compared: &Compared) -> Option<String> {
    let (without, with) = compared.cpu_seconds_per_request()?;
    let [from, to] = [without, with].map(|seconds| units::duration(seconds * 1e9));
    (without > 0.0).then(|| {
        format!("multiply the CPU of a request by {}, from {from} to {to}, and cost", units::three(with / without))
    })
}

fn cpu(compared: &Compared, cpu_share: f64) -> Option<String> {
    let (without, with) = compared.cpu_seconds_per_request()?;
    let own = with * cpu_share;
    Some(format!(
        "CPU for each request is {} in {} and {} in {}, of which the sidecars themselves use {} ({}) and the services {}.",
        units::duration(without * 1e9),
        compared.without.variant,
        units::duration(with * 1e9),
        compared.with.variant,
        units::duration(own * 1e9),
        units::percent(cpu_share),
        units::duration((with - own) * 1e9)
    ))
}

fn latency(compared: &Compared) -> String {
    format!(
        "Latency goes from {} to {} at the median and from {} to {} at p95.",
        units::duration(compared.without.p50_ns),
        units::duration(compared.with.p50_ns),
        units::duration(compared.without.p95_ns),
        units::duration(compared.with.p95_ns)
    )
}

/// Duration with its sign: `+3.20 ms`, `−0.10 ms`.
fn signed(ns: f64) -> String {
    format!("{}{}", if ns < 0.0 { "−" } else { "+" }, units::duration(ns.abs()))
}
