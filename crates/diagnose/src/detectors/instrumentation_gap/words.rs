//! Texts of `instrumentation-gap` findings.

use narrows_model::finding::evidence::instrumentation_gap::{GapSign, InstrumentationGap};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level, operation};

impl Words for InstrumentationGap {
    fn title(&self, finding: &Finding) -> String {
        let (operation, share) = (operation(finding), units::percent(finding.cost_share));
        match (&self.callee, &self.sign) {
            (Some(callee), GapSign::SeparateTraces) => {
                format!("{operation} spends {share} of its time in {callee}, whose spans are in traces of their own")
            }
            (Some(callee), _) => format!("{operation} spends {share} of its time in {callee}, which sends no spans"),
            (None, _) => {
                format!("{operation} of {} spends {share} of its time where no span shows what it does", self.service)
            }
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let whose = match &self.callee {
            Some(callee) => format!("pass in calls to {callee} without a span there"),
            None => "are under no call and no span of its parts".to_owned(),
        };
        let measured = format!(
            "Of {} (median of {} requests) {} {whose}.",
            units::duration(self.latency_ns),
            units::count(self.requests as u64),
            units::duration(self.time_ns)
        );
        vec![measured, sign(self)]
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("time without a span, median", self.time_ns, "ns"),
            Figure::new("latency, median", self.latency_ns, "ns"),
            Figure::new("processor time per request", self.cpu_ns, "ns"),
            Figure::new("requests looked at", self.requests as f64, ""),
        ]
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let cpu = units::duration(self.cpu_ns);
        let work = match &self.callee {
            Some(callee) => format!("Work of {callee}: its processor time is {cpu} for each of these requests."),
            None => format!("Work: processor time explains {cpu} of each request at most."),
        };
        vec![work, "Another finding: no other finding explains what this operation waits for.".into()]
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        "With spans around its parts, the time is that of calls that are seen already, or a pause that the program makes \
         on purpose."
            .into()
    }

    fn advice(&self, finding: &Finding) -> String {
        match (&self.sign, &self.callee) {
            (GapSign::SeparateTraces, Some(callee)) => format!(
                "Forward the trace context (the header traceparent) to {callee}: check proxies in between, at clients \
                 that are not instrumented, and at the propagators that both sides are set to. Then run this again."
            ),
            (GapSign::BusyService { service, .. }, None) => format!(
                "Instrument what {} calls {service} with, or look at the start of its log for an instrumentation that did \
                 not start, mostly because the library is newer than it supports. Then run this again.",
                self.service
            ),
            (GapSign::Sockets { peer, .. }, None) => format!(
                "Instrument the client with which {} calls {peer}, or put a span around its calls. Then run this again.",
                self.service
            ),
            (_, Some(callee)) => format!(
                "Instrument {callee}: load an OpenTelemetry SDK, which must read the trace context (traceparent) of its \
                 callers. Services that Narrows starts have OTEL_EXPORTER_OTLP_ENDPOINT set. Then run this again."
            ),
            (GapSign::Grown { .. }, None) => format!(
                "Put spans around what {} of {} may wait for: a connection of a pool, a lock, a queue, calls of clients \
                 without instrumentation. Then run this again.",
                operation(finding),
                self.service
            ),
            _ => format!(
                "Look at the start of {}'s log for an instrumentation of its database client that did not start, mostly \
                 because the library is newer than it supports; pin the library or update the instrumentation, and run \
                 this again.",
                self.service
            ),
        }
    }
}

fn sign(evidence: &InstrumentationGap) -> String {
    let service = &evidence.service;
    match &evidence.sign {
        GapSign::ClientMetric { name } => {
            format!("{service} reports {name}, so it uses a database, and no span shows that.")
        }
        GapSign::OtherOperation { name } => format!("{name} of {service} has database spans, this operation has none."),
        GapSign::Database { service } => format!("{service} ran, and no service sent a database span."),
        GapSign::BusyService { service, cpu_ns } => format!(
            "{service} ran and used {} of processor time for each of these requests, and no span shows a call to it.",
            units::duration(*cpu_ns)
        ),
        GapSign::Sockets { peer, unseen, waiting } => format!(
            "The sockets of {service} show that {} requests wait for {peer} at any moment, {} of them without a span that \
             shows it.",
            units::number(*waiting),
            units::number(*unseen)
        ),
        GapSign::SilentCallee => "It ran, and no trace has a span of it.".into(),
        GapSign::SeparateTraces => {
            "It sends spans, but they start new traces instead of joining those of its callers.".into()
        }
        GapSign::Grown { from_ns, light, heavy } => format!(
            "It grows with the load, as a wait in a queue does: {} with {}, {} with {}.",
            units::duration(*from_ns),
            level(light),
            units::duration(evidence.time_ns),
            level(heavy)
        ),
    }
}
