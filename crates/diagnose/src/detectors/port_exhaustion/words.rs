//! Texts of `port-exhaustion` findings.

use narrows_model::finding::evidence::port_exhaustion::PortExhaustion;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for PortExhaustion {
    fn title(&self, finding: &Finding) -> String {
        format!("{} has no local port left: {} of requests fail", finding.resource, units::percent(self.share))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the requests fail".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let peer = self.peer.as_ref().map_or(String::new(), |peer| format!(" to {peer}"));
        let mut reasons = vec![format!(
            "{} of the requests meet an error of {} that says “{}” when it opens a connection{peer}.",
            units::percent(self.share),
            finding.resource,
            self.name
        )];
        reasons.extend(self.time_wait.zip(self.ports).map(|(held, ports)| {
            format!(
                "Up to {} closed connections were in TIME_WAIT, each of which holds its port for a minute; there are {} ports \
                 for connections to one peer.",
                units::count(held as u64),
                units::count(ports as u64)
            )
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![Figure::new("requests that fail", self.share * 100.0, "%")];
        figures.extend(self.time_wait.map(|held| Figure::new("connections in TIME_WAIT, at most", held, "")));
        figures.extend(self.ports.map(|ports| Figure::new("local ports", ports, "")));
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.text.clone()
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With connections of {} that are kept and used again, as many requests fail.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "Keep connections of {} and use them again: one client with a pool for all requests, responses read to their end, \
             and keep-alive on both sides. Until then, a wider `net.ipv4.ip_local_port_range` or another address of the peer \
             gives more ports.",
            finding.resource
        )
    }
}
