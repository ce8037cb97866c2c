//! Texts of `event-loop-lag` findings.

use narrows_model::finding::evidence::event_loop_lag::EventLoopLag;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, proof};

impl Words for EventLoopLag {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "callbacks block the event loop of {}: an event waits {} for it",
            finding.resource,
            units::duration(self.wait_ns)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the mean latency".to_owned()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let replicas = if self.replicas > 1 {
            format!(" ({} of {} replicas)", self.hot_replicas, self.replicas)
        } else {
            String::new()
        };
        let p99 = self.p99_ns.map_or(String::new(), |ns| format!(", one in a hundred {}", units::duration(ns)));
        let mut reasons = vec![
            format!(
                "In {} a turn of the loop takes {} on average{p99}; of an idle loop it takes {}{replicas}.",
                self.interval,
                units::duration(self.mean_ns),
                units::duration(self.least_ns)
            ),
            format!(
                "The mean latency is {}, and each request waits for the loop at least once.",
                units::duration(self.latency_ns)
            ),
        ];
        if let (true, Some(active), Some(cores)) = (self.is_waiting(), self.utilization, self.thread_cores) {
            reasons.push(format!(
                "The loop runs callbacks {} of the time, but its thread uses {} of a core: callbacks wait for \
                 something, such as a file.",
                units::percent(active),
                units::percent(cores)
            ));
        }
        reasons.extend(self.proof.as_ref().map(|shown| proof(Some(shown))));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("wait for the loop, mean, estimated", self.wait_ns, "ns"),
            Figure::new("delay of the loop, mean", self.mean_ns, "ns"),
        ];
        figures.extend(self.p99_ns.map(|ns| Figure::new("delay of the loop, 99th percentile", ns, "ns")));
        figures.push(Figure::new("time in which it is blocked", self.blocked_share * 100.0, "%"));
        figures.extend(self.utilization.map(|share| Figure::new("time in callbacks", share * 100.0, "%")));
        figures.extend(self.thread_cores.map(|cores| Figure::new("CPU of the busiest thread", cores, "{cores}")));
        figures.push(Figure::new("throughput at that time", self.rate, "/s"));
        figures.push(Figure::new("mean latency at that time", self.latency_ns, "ns"));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec![
            format!("A single long callback: this is the median of {} readings.", self.readings),
            "A machine or a CPU limit that keeps the thread from running: it does not wait for a processor.".to_owned(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With the longest callbacks of {} moved off the loop, the latency stays the same.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if self.is_waiting() {
            return format!(
                "Find calls in {service} that wait on the loop (`readFileSync`, `execSync`, a synchronous driver) and use \
                 their asynchronous forms."
            );
        }
        format!(
            "Find the longest callbacks of {service} with a CPU profile (synchronous hashing or compression, large JSON, \
             long loops), and use asynchronous forms, worker threads or smaller parts. More processes spread the wait \
             but do not remove it."
        )
    }
}
