//! Texts of `time-outside-spans` findings.

use narrows_model::finding::evidence::time_outside_spans::{EndToEnd, GapPattern, TimeOutsideSpans};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level, operation};

/// Response size from which sending may take long, bytes.
const LARGE_BYTES: f64 = 100_000.0;

impl Words for TimeOutsideSpans {
    fn title(&self, finding: &Finding) -> String {
        if self.acknowledged_ns.is_some() {
            return format!("{}: responses wait 40 ms for an acknowledgement (Nagle's algorithm)", finding.resource);
        }
        format!(
            "{} of the {} that users wait for {} pass outside the spans of {}",
            units::duration(self.heaviest.gap_ns()),
            units::duration(self.heaviest.client_ns),
            operation(finding),
            finding.resource
        )
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the time that users wait for {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        if let Some(acknowledged_ns) = self.acknowledged_ns {
            return by_sockets(self, acknowledged_ns, &finding.resource);
        }
        let mut reasons = vec![both_ends(&self.heaviest, &finding.resource)];
        reasons.extend(self.lightest.as_ref().map(|lightest| both_ends(lightest, &finding.resource)));
        reasons.extend(match self.pattern {
            GapPattern::Unknown => None,
            GapPattern::Grows => Some("The gap grows with the load, as a queue does.".to_owned()),
            GapPattern::Constant => Some("The gap is the same under every load, so it is no queue.".to_owned()),
            GapPattern::DelayedAcknowledgement => Some(
                "The gap is about 40 ms under every load: Linux delays acknowledgements by this time, and a sender with \
                 Nagle's algorithm waits for them before it sends the rest of a response."
                    .to_owned(),
            ),
        });
        if !self.in_front.is_empty() {
            let services = self.in_front.join(", ");
            reasons.push(format!("{services} may stand in front and sends no spans, so the time may pass there."));
        }
        if self.response_bytes >= LARGE_BYTES {
            reasons.push(format!(
                "A response has {} (mean), which may be sent after the span has ended.",
                units::bytes(self.response_bytes)
            ));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let figure = |name: &str, value| Figure::new(name, value, "ns");
        if let Some(acknowledged_ns) = self.acknowledged_ns {
            return vec![
                figure("time from send to response, median", self.heaviest.client_ns),
                figure("time from send to acknowledgement, mean", acknowledged_ns),
                Figure::new("size of a response, mean", self.response_bytes, "B"),
            ];
        }
        let mut figures = vec![
            figure("time from send to response, mean", self.heaviest.client_ns),
            figure("time of the span, mean", self.heaviest.span_ns),
            figure("time outside the span, mean", self.heaviest.gap_ns()),
        ];
        figures.extend(self.lightest.map(|one| figure("the same under the lightest load", one.gap_ns())));
        figures.push(Figure::new("size of a response, mean", self.response_bytes, "B"));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.acknowledged_ns.is_some() {
            return vec![
                "Work, a sleep or a call of the service: the kernel would acknowledge its requests after 40 ms."
                    .to_owned(),
            ];
        }
        let mut ruled_out = vec![
            "The generator: it sent on time and had CPU to spare. The wait for a free user is not part of this time."
                .to_owned(),
            "A mixture of requests: the load has only one, and there are as many spans as responses.".to_owned(),
        ];
        if !self.cpu_unknown {
            ruled_out.push("CPU: neither the machine nor the service was full under these loads.".into());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        if self.acknowledged_ns.is_some() {
            return format!("With TCP_NODELAY at {}, responses take as long.", finding.resource);
        }
        format!(
            "A capture of packets at {} shows that responses leave as soon after their requests arrive as the spans last: \
             then the time passes on the way.",
            finding.resource
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if !self.in_front.is_empty() {
            let services = self.in_front.join(", ");
            return format!(
                "Switch on tracing in {services}, or send the same load to {service} directly, to see which of them takes \
                 the time."
            );
        }
        match self.pattern {
            GapPattern::Grows => format!(
                "Requests wait before {service} accepts them. Give it more workers, threads or processes, or make what they \
                 wait for shorter. Look at the accept queue (`ss -lnt`: Recv-Q of the listening socket) under this load."
            ),
            GapPattern::DelayedAcknowledgement => format!(
                "Set TCP_NODELAY on the connections of {service}, and write head and body of a response at once (a \
                 buffered writer)."
            ),
            GapPattern::Constant | GapPattern::Unknown => format!(
                "Find out where the time passes: capture packets at {service}; look for a new connection or a TLS handshake \
                 for each request, for middleware that runs before the span begins, and for a body that is sent after it \
                 ended."
            ),
        }
    }
}

/// Reasons for a delay that sockets show.
fn by_sockets(outside: &TimeOutsideSpans, acknowledged_ns: f64, service: &str) -> Vec<String> {
    let loads = outside.lightest.iter().chain([&outside.heaviest]);
    let medians = loads.map(|one| format!("{} at {}", units::duration(one.client_ns), level(&one.load)));
    let medians: Vec<String> = medians.collect();
    vec![
        format!("Half of the responses take {} or more.", medians.join(" and ")),
        format!(
            "The kernel of {service} acknowledges a request after {} (mean), so the first part of the response comes at \
             once: it acknowledges a request whose response takes longer only after 40 ms.",
            units::duration(acknowledged_ns)
        ),
        format!(
            "A response has {} (mean). Linux delays acknowledgements by 40 ms, and a sender with Nagle's algorithm waits \
             for them before it sends the rest of a response.",
            units::bytes(outside.response_bytes)
        ),
    ]
}

fn both_ends(at: &EndToEnd, service: &str) -> String {
    format!(
        "At {}, a response takes {} from its request's send, and the span of {service} {} (means): {} are outside.",
        level(&at.load),
        units::duration(at.client_ns),
        units::duration(at.span_ns),
        units::duration(at.gap_ns())
    )
}
