//! Texts of `accept-queue` findings.

use narrows_model::finding::evidence::accept_queue::{AcceptQueue, Drops};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level};

impl Words for AcceptQueue {
    fn title(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        match self.drops {
            Some(drops) => {
                let dropped = units::number(drops.per_second);
                format!("{service} accepts too slowly: {dropped} connections are dropped each second")
            }
            None => format!("{service} accepts too slowly: {} connections wait for it", units::number(self.queued)),
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the time that users wait".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let service = &finding.resource;
        let room = self.limit.map_or(String::new(), |limit| format!(", which has room for {}", units::number(limit)));
        let replicas = if self.replicas > 1 {
            format!(" ({} of {} replicas)", self.hot_replicas, self.replicas)
        } else {
            String::new()
        };
        let mut reasons = vec![format!(
            "At {}, {} connections wait in the accept queue of port {}{room}{replicas} (median); {} requests are under \
             way.",
            level(&self.load),
            units::number(self.queued),
            self.port,
            units::number(self.under_way)
        )];
        reasons.extend(self.drops.map(|drops| dropped(drops, service)));
        reasons.extend(self.outside.map(|outside| {
            format!(
                "A response takes {} from its request's send, and the span of {service} {} (means).",
                units::duration(outside.client_ns),
                units::duration(outside.span_ns)
            )
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![Figure::new("connections that wait, median", self.queued, "")];
        figures.extend(self.limit.map(|limit| Figure::new("room in the queue", limit, "")));
        figures.extend(self.drops.map(|drops| Figure::new("connections dropped", drops.per_second, "/s")));
        figures.push(Figure::new("requests under way", self.under_way, ""));
        figures.extend(self.outside.iter().flat_map(|outside| {
            [
                Figure::new("time from send to response, mean", outside.client_ns, "ns"),
                Figure::new("time of the span, mean", outside.span_ns, "ns"),
            ]
        }));
        figures.extend(self.cpu_share.map(|share| Figure::new("CPU, share of what it can use", share * 100.0, "%")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![format!(
            "A burst of connections: {}.",
            match self.drops {
                Some(drops) => format!("{} readings show drops", drops.readings),
                None => "this is the median over an interval of counted load".to_owned(),
            }
        )];
        if self.drops.is_none_or(|drops| drops.is_of_socket) {
            ruled_out.push("Other programs' sockets: the figures are of the service's own.".to_owned());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "With more workers of {}, as many connections wait (`ss -lnt`: Recv-Q of port {}).",
            finding.resource, self.port
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let backlog = if self.drops.is_some() {
            " A longer queue (the backlog passed to `listen`, and net.core.somaxconn) only turns drops into waiting: it \
             helps against bursts."
        } else {
            ""
        };
        format!(
            "Let {service} accept sooner: give it more workers, threads or processes, make what they wait for shorter, and \
             accept on a thread that does nothing else. Clients that keep connections open need fewer of them.{backlog}"
        )
    }
}

fn dropped(drops: Drops, service: &str) -> String {
    let whose = if drops.is_of_socket { "its socket" } else { "the network of the service" };
    format!(
        "{service} leaves no room for more: {whose} dropped {} connections each second, and a client repeats each after a \
         second or more.",
        units::number(drops.per_second)
    )
}
