//! Texts of `retrograde-throughput` findings.

use narrows_model::finding::evidence::retrograde_throughput::{Growing, Law, Level, RetrogradeThroughput};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{self, Words};

impl Words for RetrogradeThroughput {
    fn title(&self, _finding: &Finding) -> String {
        let point = |level: &Level| format!("{} at {}", units::rate(level.rate), words::level(&level.load));
        format!("throughput falls under more load, from {} to {}", point(&self.peak), point(&self.fall))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        format!("of the throughput at {}", words::level(&self.peak.load))
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let mut reasons = vec![loss(self)];
        reasons.extend(self.growing.iter().map(|growing| grown(self, growing)));
        reasons.extend(self.recovered.as_ref().map(|level| {
            format!(
                "The cause is the load, not time: later, with less load again, throughput returned to {} at {}.",
                units::rate(level.rate),
                words::level(&level.load)
            )
        }));
        reasons.extend(self.law.as_ref().and_then(law));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = figures_of(&self.peak, "at the peak");
        figures.extend(figures_of(&self.fall, "at the fall"));
        figures.push(Figure::new("throughput lost, at least", self.lost_share_low * 100.0, "%"));
        figures.push(Figure::new("throughput lost, at most", self.lost_share_high * 100.0, "%"));
        let law = self.law.as_ref().filter(|law| law.misfit.is_none());
        figures.extend(law.into_iter().flat_map(|law| {
            [("λ", law.lambda, "/s"), ("σ", law.sigma, ""), ("κ", law.kappa, "")]
                .map(|(name, value, unit)| Figure::new(format!("{name} of the scalability law"), value, unit))
        }));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Noise: the confidence interval of the loss, widened for the choice of the best level, does not include \
             zero."
                .to_owned(),
            "The start of a step: the loss holds in the second half of the heaviest one.".to_owned(),
            "The load generator: it had CPU to spare, and its requests left in time.".to_owned(),
            "A drift over time: within the levels throughput does not fall as it does between them.".to_owned(),
        ];
        if self.fall.load.arrivals.is_some() {
            ruled_out
                .push("Arrivals held back: no fewer requests were sent, or under way, than at the peak.".to_owned());
        }
        ruled_out
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        format!(
            "A trial that begins at {} carries as much there as at {}.",
            words::level(&self.fall.load),
            words::level(&self.peak.load)
        )
    }

    fn advice(&self, _finding: &Finding) -> String {
        let bound = format!(
            "Admit no more than about {} requests to the system at a time (a bounded pool, or a limit at the entrance), \
             so that more load waits outside instead of costing throughput.",
            units::number(self.peak.in_flight().max(1.0).ceil())
        );
        let first = self.growing.first().map_or_else(String::new, |growing| format!("{} ", against(growing)));
        format!("{first}{bound}")
    }
}

fn loss(evidence: &RetrogradeThroughput) -> String {
    format!(
        "Of the best throughput, {} at {}, {} is lost at {} (95 % interval {} to {}).",
        units::rate(evidence.peak.rate),
        words::level(&evidence.peak.load),
        units::percent(evidence.lost_share),
        words::level(&evidence.fall.load),
        units::percent(evidence.lost_share_low),
        units::percent(evidence.lost_share_high)
    )
}

fn grown(evidence: &RetrogradeThroughput, growing: &Growing) -> String {
    match growing {
        Growing::Rejections { target, before, now } => format!(
            "Rejections (status 429) by {target} grow from {} to {} of its calls.",
            units::percent(*before),
            units::percent(*now)
        ),
        Growing::Cpu { service, share, per_request } => {
            let cost = per_request.map_or_else(String::new, |cpu| {
                let (now, before) = (units::duration(cpu.now_ns), units::duration(cpu.before_ns));
                format!(", and each request costs it {now} of CPU, not {before}")
            });
            format!("{service} uses {} of the CPU available to it{cost}.", units::percent(*share))
        }
        Growing::Errors { before, now } => {
            format!("Failed requests grow from {} to {}.", units::percent(*before), units::percent(*now))
        }
        Growing::Waiting => format!(
            "Requests take {} instead of {}: {} of them are in progress at any time instead of {}.",
            units::duration(evidence.fall.service_ns),
            units::duration(evidence.peak.service_ns),
            units::number(evidence.fall.in_flight()),
            units::number(evidence.peak.in_flight())
        ),
    }
}

/// Advice against one of the growing quantities.
fn against(growing: &Growing) -> String {
    match growing {
        Growing::Rejections { target, .. } => {
            format!("Send less to {target} for each request, or provision more; a rejected call is retried.")
        }
        Growing::Cpu { service, .. } => format!(
            "Take work out of the request in {service}, above all what grows with the requests under way: locks, \
             garbage collection, retries, context switches."
        ),
        Growing::Errors { .. } => "Find out which call fails first; work that ends in a failure is wasted.".into(),
        Growing::Waiting => "Compare where the slowest traces of the two loads spend their time.".into(),
    }
}

fn law(law: &Law) -> Option<String> {
    let interval =
        law.kappa_interval.map_or_else(String::new, |(low, high)| format!(" (95 % interval {low:.2e} to {high:.2e})"));
    let best = law
        .best_in_flight()
        .map_or_else(String::new, |best| format!(", best with {} requests under way", units::number(best)));
    (law.misfit.is_none() && law.kappa > 0.0).then(|| {
        format!(
            "The universal scalability law fits with σ = {:.2e} and κ = {:.2e}{interval}{best}.",
            law.sigma, law.kappa
        )
    })
}

fn figures_of(level: &Level, when: &str) -> Vec<Figure> {
    let load = match level.load.arrivals {
        Some(arrivals) => Figure::new(format!("arrivals offered {when}"), arrivals, "/s"),
        None => Figure::new(format!("users {when}"), f64::from(level.load.users), ""),
    };
    vec![
        load,
        Figure::new(format!("throughput {when}"), level.rate, "/s"),
        Figure::new(format!("mean latency {when}"), level.latency_ns, "ns"),
        Figure::new(format!("failed requests {when}"), level.error_share * 100.0, "%"),
    ]
}
