//! Texts of `stall` findings.

use narrows_model::finding::evidence::stall::Stall;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for Stall {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "{} stands still for {}, {}, and all requests of that time wait",
            finding.resource,
            units::duration(self.length_ns),
            frequency(self)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the latency of all requests together".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let times: Vec<String> = self.first_ns.iter().map(|at| units::duration(*at as f64)).collect();
        vec![
            format!(
                "{} times {} sent no response for {} (median; at most {}), first {} into the load.",
                self.stalls,
                finding.resource,
                units::duration(self.length_ns),
                units::duration(self.longest_ns),
                times.join(", ")
            ),
            format!(
                "Each time, several requests got their responses at the same moment. Of the sampled requests, {} quick \
                 ones would lie within these times if they were as frequent as at others, and {} do.",
                units::number(self.quick_expected),
                units::number(self.quick_seen)
            ),
            format!(
                "Half of all requests take {} or less, and {} take as long as those that waited (95 %: {}).",
                units::duration(self.p50_ns),
                units::percent(self.slow_share),
                units::duration(self.p95_ns)
            ),
        ]
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("stalls", self.stalls as f64, ""),
            Figure::new("length, median", self.length_ns, "ns"),
            Figure::new("length, longest", self.longest_ns, "ns"),
        ];
        figures.extend(self.apart_ns.map(|apart| Figure::new("from one to the next, median", apart, "ns")));
        figures.push(Figure::new("time in stalls", self.time_share * 100.0, "%"));
        figures.push(Figure::new("requests that waited", self.slow_share * 100.0, "%"));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec!["Requests with more work than others: quick ones would be served beside them.".into()]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "A second client that sends a trivial request to {} every 5 ms gets its responses at once during the stalls.",
            finding.resource
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let rhythm = if self.is_regular {
            "They follow a rhythm, as timers do: look for work that is done in the background at that interval (a flush, a \
             snapshot, a report, a clean-up) under a lock or on the thread that serves."
        } else {
            "Look for what stops every request: a collection of garbage, a lock held over slow work, a blocking call on \
             the event loop, a file that is synced."
        };
        format!(
            "Find out what {service} does at those times: write a stack of all threads when a trivial request takes longer \
             than {}. {rhythm}",
            units::duration(self.length_ns / 2.0)
        )
    }
}

/// `every 1.00 s`, `24 times`.
fn frequency(stall: &Stall) -> String {
    match stall.apart_ns.filter(|_| stall.is_regular) {
        Some(apart_ns) => format!("every {}", units::duration(apart_ns)),
        None => format!("{} times", stall.stalls),
    }
}
