//! Texts of `connection-churn` findings.

use narrows_model::finding::evidence::connection_churn::ConnectionChurn;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for ConnectionChurn {
    fn title(&self, finding: &Finding) -> String {
        let number = units::number(self.per_request);
        let connections = if number == "1" || number == "1.0" { "a connection" } else { "connections" };
        let number = if connections == "connections" { format!("{number} ") } else { String::new() };
        format!("{} opens {number}{connections} to {} for each request", finding.resource, self.peer)
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        let services: Vec<&str> = self.ends.iter().map(|end| end.service.as_str()).collect();
        match services.as_slice() {
            [] => "of the CPU, which was not sampled".to_owned(),
            services => format!("of the CPU of {}, by assumption", services.join(" and ")),
        }
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "In {}, {} opens {} connections to {}, with {} exchanges over each.",
            self.interval,
            finding.resource,
            units::rate(self.opened),
            self.peer,
            units::number(self.exchanges)
        )];
        let likely = if self.is_tls_likely { "More than one exchange suggests TLS" } else { "Nothing suggests TLS" };
        let each =
            format!("{likely}: {} ms of CPU are assumed for each at either end", units::number(self.assumed_cpu_ms));
        let ends = self.ends.iter().map(|end| {
            format!("{} of the {} of {}", units::cores(end.connection_cores), units::cores(end.cores), end.service)
        });
        let ends: Vec<String> = ends.collect();
        reasons.push(if ends.is_empty() { format!("{each}.") } else { format!("{each}, {}.", ends.join(" and ")) });
        reasons.extend(self.time_wait.filter(|held| *held >= 1.0).map(|held| {
            format!("{} closed connections still hold a port (TIME_WAIT).", units::count(held.round() as u64))
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("connections opened per second", self.opened, "/s"),
            Figure::new("connections opened per request", self.per_request, ""),
            Figure::new("exchanges over each connection, mean", self.exchanges, ""),
            Figure::new("CPU assumed for each connection at either end", self.assumed_cpu_ms, "ms"),
        ];
        figures.extend(self.ends.iter().map(|end| {
            Figure::new(format!("CPU of connections at {}, by assumption", end.service), end.connection_cores, "cores")
        }));
        figures.extend(self.time_wait.map(|held| Figure::new("connections in TIME_WAIT, median", held, "")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec!["A start with empty pools: the connections are counted under a steady load.".to_owned()]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With connections to {} kept open, a request of {} takes as much CPU.", self.peer, finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "Let {} keep connections to {} open: use one client or pool for all requests, read responses to their end, \
             allow as many idle connections as requests at once (Go keeps 2 for each host), and check that {} does not \
             close them.",
            finding.resource, self.peer, self.peer
        )
    }
}
