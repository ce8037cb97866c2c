//! Texts of `dns` findings.

use narrows_model::finding::evidence::dns::{Dns, DnsSign};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, bounds, operation};

/// Default timeout after which a resolver repeats a query, nanoseconds.
const REPEATED_AFTER_NS: f64 = 5e9;
/// Fraction of the timeout from which it is the likely reason for slow look-ups.
const REPEATED_PART: f64 = 0.9;
/// Look-ups per request from which most requests make one.
const EACH: f64 = 0.5;

fn by_sockets(service: &str, dns: &Dns) -> String {
    let sockets = dns.sockets.clone().unwrap_or_default();
    format!(
        "In {}, {} of {} requests under way wait for a response of the name server, as the sockets of {service} show.",
        sockets.interval,
        bounds(sockets.waiting),
        units::number(sockets.in_flight)
    )
}

impl Words for Dns {
    fn title(&self, finding: &Finding) -> String {
        let of = match self.sign {
            DnsSign::Spans => format!("of {}", operation(finding)),
            DnsSign::Metric | DnsSign::Sockets => "of a request".to_owned(),
        };
        format!("{}: name look-ups take {} {of}", finding.resource, units::duration(self.request_ns))
    }

    fn cost_of(&self, finding: &Finding) -> String {
        match self.sign {
            DnsSign::Spans => format!("of the time of {}", operation(finding)),
            DnsSign::Metric | DnsSign::Sockets => "of the time that requests are under way".to_owned(),
        }
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let service = &finding.resource;
        let names = match &self.names[..] {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        let each = units::duration(self.lookup_ns);
        let rate = units::number(self.per_request);
        let mut reasons = vec![match self.sign {
            DnsSign::Spans => format!(
                "Requests wait for name look-ups of {service}{names}: {rate} per request, {each} each (median)."
            ),
            DnsSign::Metric => format!(
                "`dns.lookup.duration` counts {rate} look-ups of {service} per request of the load, {each} each (mean). Whether \
                 requests wait for them is not shown."
            ),
            DnsSign::Sockets => by_sockets(service, self),
        }];
        reasons.extend(
            self.failed_share
                .filter(|share| *share > 0.0)
                .map(|share| format!("{} of the look-ups fail.", units::percent(share))),
        );
        if self.lookup_ns >= REPEATED_PART * REPEATED_AFTER_NS {
            reasons.push(
                "A resolver repeats a question after 5 s: a packet is lost, or a name server does not respond."
                    .to_owned(),
            );
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let known = |figure: &Figure| figure.value > 0.0;
        let figures = [
            Figure::new("time in look-ups per request, mean", self.request_ns, "ns"),
            Figure::new("time of one look-up", self.lookup_ns, "ns"),
            Figure::new("look-ups per request", self.per_request, ""),
        ];
        figures.into_iter().filter(known).collect()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        match self.sign {
            DnsSign::Spans => {
                vec!["Look-ups that delay no response: only the critical path of requests counts.".to_owned()]
            }
            DnsSign::Metric | DnsSign::Sockets => Vec::new(),
        }
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With the addresses in the hosts file of {}, its requests take as long.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let keep = if self.per_request >= EACH {
            format!(
                "Keep connections of {service} open between requests: a new one needs a look-up, a kept one does not. "
            )
        } else {
            String::new()
        };
        format!(
            "{keep}Cache addresses near {service} (nscd, systemd-resolved, NodeLocal DNSCache), end full names with a dot or lower \
             `ndots`, so that search domains are not tried first, and check that each name server responds."
        )
    }
}
