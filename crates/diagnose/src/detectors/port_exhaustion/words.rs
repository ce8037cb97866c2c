//! Texts of `port-exhaustion` findings.

use narrows_model::finding::evidence::port_exhaustion::{PortExhaustion, PortSearch};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for PortExhaustion {
    fn title(&self, finding: &Finding) -> String {
        match &self.search {
            Some(PortSearch { rates: (before, after), .. }) => format!(
                "{} searches for free local ports: throughput falls from {} to {}",
                finding.resource,
                units::rate(*before),
                units::rate(*after)
            ),
            None => {
                format!("{} has no local port left: {} of requests fail", finding.resource, units::percent(self.share))
            }
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        if self.search.is_some() { "of the throughput before".to_owned() } else { "of the requests fail".to_owned() }
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.search.is_none() {
            let peer = self.peer.as_ref().map_or(String::new(), |peer| format!(" to {peer}"));
            reasons.push(format!(
                "{} of the requests meet an error of {} that says “{}” when it opens a connection{peer}.",
                units::percent(self.share),
                finding.resource,
                self.name
            ));
        }
        reasons.extend(self.time_wait.zip(self.ports).map(|(held, ports)| {
            format!(
                "Up to {} closed connections were in TIME_WAIT, each of which holds its port for a minute; there are {} ports \
                 for connections to one peer.",
                units::count(held as u64),
                units::count(ports as u64)
            )
        }));
        if let Some(PortSearch { peers, cpu_ms: (before, after), .. }) = &self.search {
            let peers = match peers {
                1 => "one address".to_owned(),
                peers => format!("{peers} addresses"),
            };
            reasons.push(format!(
                "It opens connections to {peers}. Linux looks through every second port first, so from half of them on each new \
                 connection walks past thousands that are taken: CPU of {} for a request grows from {} to {}.",
                finding.resource,
                units::duration(before * 1e6),
                units::duration(after * 1e6)
            ));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = Vec::new();
        match &self.search {
            Some(search) => {
                figures.push(Figure::new("throughput before", search.rates.0, "/s"));
                figures.push(Figure::new("throughput after", search.rates.1, "/s"));
            }
            None => figures.push(Figure::new("requests that fail", self.share * 100.0, "%")),
        }
        figures.extend(self.time_wait.map(|held| Figure::new("connections in TIME_WAIT, at most", held, "")));
        figures.extend(self.ports.map(|ports| Figure::new("local ports", ports, "")));
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.text.clone()
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let as_before = if self.search.is_some() { "throughput falls as far" } else { "as many requests fail" };
        format!("With connections of {} that are kept and used again, {as_before}.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "Keep connections of {} and use them again: one client with a pool for all requests, responses read to their end, \
             and keep-alive on both sides (NGINX: `keepalive` in the upstream). Until then, a wider \
             `net.ipv4.ip_local_port_range` or another address of the peer gives more ports.",
            finding.resource
        )
    }
}
