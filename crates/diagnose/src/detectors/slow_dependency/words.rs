//! Texts of `slow-dependency` findings.

use narrows_model::finding::evidence::slow_dependency::{DependencyGrowth, DependencyLevel, SlowDependency};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, bounds, level, operation, proof};

impl Words for SlowDependency {
    fn title(&self, finding: &Finding) -> String {
        let (name, call) = (&finding.resource, units::duration(self.call_ns));
        let share = format!("{} of {}", units::percent(finding.cost_share), operation(finding));
        match extremes(self) {
            Some((lightest, heaviest)) => format!(
                "{name} takes {call} at {} and {} at {}, {share}",
                level(&heaviest.load),
                units::duration(lightest.call_ns),
                level(&lightest.load)
            ),
            None => format!("{name} takes {call} per call, {share}"),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let (name, callers) = (&finding.resource, self.callers.join(", "));
        let mut reasons = vec![match &self.sockets {
            Some(sockets) => format!(
                "In {}, {} of {} requests under way wait for it, as the sockets of {callers} show: {} per request.",
                sockets.interval,
                bounds(sockets.waiting),
                units::number(sockets.in_flight),
                units::duration(self.request_ns)
            ),
            None => format!(
                "Requests of {} wait {} for it on their critical path, in calls of {callers}.",
                operation(finding),
                units::duration(self.request_ns)
            ),
        }];
        reasons.extend(match self.growth {
            DependencyGrowth::Grows => Some(format!("Its calls take longer under more load: {}.", by_load(self))),
            DependencyGrowth::Constant => Some(format!("Its calls take as long under more load: {}.", by_load(self))),
            DependencyGrowth::Unknown => None,
        });
        reasons.extend(self.proof.as_ref().map(|found| proof(Some(found))));
        if self.failed_share > 0.0 {
            reasons.push(format!("{} of the calls to {name} failed.", units::percent(self.failed_share)));
        }
        reasons
    }

    fn figures(&self, finding: &Finding) -> Vec<Figure> {
        let (is_mean, each) = match self.sockets {
            Some(_) => ("mean", "calls per request of the load, mean"),
            None => ("median", "calls in each request that waits for one, median"),
        };
        let mut figures = vec![
            Figure::new(format!("one call, {is_mean}"), self.call_ns, "ns"),
            Figure::new(each, self.calls_per_request, ""),
            Figure::new("wait of a request, mean", self.request_ns, "ns"),
            Figure::new("share of the latency", finding.cost_share * 100.0, "%"),
        ];
        let levels = self.levels.iter();
        figures.extend(
            levels.map(|each| Figure::new(format!("one call at {}, {is_mean}", level(&each.load)), each.call_ns, "ns")),
        );
        let statuses = self.statuses.iter();
        figures.extend(
            statuses.map(|each| Figure::new(format!("calls with status {}", each.status), each.share * 100.0, "%")),
        );
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let no_wait = match self.sockets {
            Some(_) => "Waits in the background: no call takes longer than the slowest request of the load.",
            None => "Calls that delay no response: only time on the critical path counts.",
        };
        vec![no_wait.to_owned(), "A service that explains its time: none of its spans arrived.".to_owned()]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let (name, operation) = (&finding.resource, operation(finding));
        format!("With a stand-in for {name} that responds at once, {operation} takes as long as before.")
    }

    fn advice(&self, finding: &Finding) -> String {
        let name = &finding.resource;
        let first = match self.growth {
            DependencyGrowth::Grows => format!(
                "Find out what {name} can carry, and raise that: its CPU, its connections, its quota, or the number of \
                 connections that its callers open. "
            ),
            DependencyGrowth::Constant | DependencyGrowth::Unknown => String::new(),
        };
        let spans =
            if self.is_in_experiment { format!(" Let {name} send spans, to see what it does.") } else { String::new() };
        format!(
            "{first}Call {name} less often: cache its responses, call it beside other work, or after the response.{spans}"
        )
    }
}

/// The lightest and the heaviest load, if calls take longer under the heaviest.
fn extremes(evidence: &SlowDependency) -> Option<(&DependencyLevel, &DependencyLevel)> {
    let grows = evidence.growth == DependencyGrowth::Grows;
    evidence.levels.first().zip(evidence.levels.last()).filter(|_| grows)
}

fn by_load(evidence: &SlowDependency) -> String {
    let of = |each: &DependencyLevel| format!("{} at {}", units::duration(each.call_ns), level(&each.load));
    evidence.levels.iter().map(of).collect::<Vec<_>>().join(", ")
}
