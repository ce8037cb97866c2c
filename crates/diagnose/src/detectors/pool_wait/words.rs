//! Texts of `pool-wait` findings.

use narrows_model::finding::evidence::pool_wait::{PoolMetrics, PoolSign, PoolWait};
use narrows_model::finding::evidence::sockets::SocketPool;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, bounds, operation};

/// Ratio from which a connection is held for other work: the time it is held to the time in queries.
const HELD_FACTOR: f64 = 2.0;

impl Words for PoolWait {
    fn title(&self, finding: &Finding) -> String {
        if let Some(pool) = &self.sockets {
            let (wait, number) = (units::duration(self.wait_ns), units::number(pool.connections));
            let in_use = match pool.calls_at_once {
                Some(calls) => format!("which makes {} calls over {number}", units::number(calls)),
                None => format!("all {number} are in use"),
            };
            return format!(
                "{} waits for a connection to {}: {wait} of each request, {in_use}",
                finding.resource, pool.peer
            );
        }
        format!(
            "{} waits for a connection: {} of each {}, its queries take {}",
            finding.resource,
            units::duration(self.wait_ns),
            operation(finding),
            units::duration(self.query_ns)
        )
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        if let Some(pool) = &self.sockets {
            return by_sockets(self, pool);
        }
        let (operation, share) = (operation(finding), units::percent(finding.cost_share));
        let mut reasons = vec![if self.sign.has_spans() {
            format!(
                "Spans of the pool take {share} of the time of {operation}, with no other call of the request in progress."
            )
        } else {
            format!(
                "Before its queries, {operation} spends {share} of its time with no call in progress, and the pool reports \
                 that requests wait."
            )
        }];
        reasons.extend(reported(&self.pool));
        reasons.push(format!(
            "The queries themselves take {} of a request (median), the wait {}.",
            units::duration(self.query_ns),
            units::duration(self.wait_ns)
        ));
        reasons
    }

    fn figures(&self, finding: &Finding) -> Vec<Figure> {
        let pool = &self.pool;
        if let Some(sockets) = &self.sockets {
            return vec![
                Figure::new("wait for connections in each request, mean", self.wait_ns, "ns"),
                Figure::new(format!("time in calls to {} in each request, mean", sockets.peer), self.query_ns, "ns"),
                Figure::new("share of the latency", finding.cost_share * 100.0, "%"),
                Figure::new("connections", sockets.connections, ""),
                Figure::new("connections with a request outstanding, mean", sockets.in_use, ""),
                Figure::new("requests that wait, at least", sockets.reading.waiting.low, ""),
                Figure::new("requests that wait, at most", sockets.reading.waiting.high, ""),
            ];
        }
        let mut figures = vec![
            Figure::new("wait for connections in each request, median", self.wait_ns, "ns"),
            Figure::new("time in queries in each request, median", self.query_ns, "ns"),
            Figure::new("share of the latency", finding.cost_share * 100.0, "%"),
        ];
        figures.extend(pool.wait_ns.map(|ns| Figure::new("wait for a connection, mean", ns, "ns")));
        figures.extend(pool.use_ns.map(|ns| Figure::new("a connection is held, mean", ns, "ns")));
        figures.extend(pool.size.map(|size| Figure::new("connections at most", size, "")));
        figures.extend(pool.taken.map(|taken| Figure::new("connections taken", taken, "")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let other = match self.sign {
            PoolSign::SpansAndMetrics | PoolSign::Spans => {
                "Opening connections: the time in spans that open them, below a span of the pool, was subtracted."
            }
            PoolSign::ReportedTimes => {
                "Work of the program before a query: no more time was counted than the pool reports."
            }
            PoolSign::ReportedState => "A gap without a wait: the pool reports that requests wait.",
            PoolSign::Sockets => {
                "Several requests at once on one connection: each call takes as long as under the lightest load."
            }
        };
        vec![
            format!(
                "A slow peer: calls over these connections take {} of a request, less than the wait.",
                units::duration(self.query_ns)
            ),
            other.to_owned(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "With twice as many connections, {} waits as long for one as before, or its queries slow down by as much.",
            operation(finding)
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let size = self.pool.size.or(self.sockets.as_ref().map(|pool| pool.connections));
        let size = size.map_or(String::new(), |size| format!(" (now {})", units::number(size)));
        format!(
            "{}{} the pool of {} larger{size}, as far as {} can run that many at once: all \
             replicas together must stay below its own limit.",
            held(self),
            if held(self).is_empty() { "Make" } else { "If that is not enough, make" },
            finding.resource,
            self.sockets.as_ref().map_or("the database", |pool| &pool.peer)
        )
    }
}

fn by_sockets(evidence: &PoolWait, pool: &SocketPool) -> Vec<String> {
    let reading = &pool.reading;
    let number = units::number(pool.connections);
    let in_use = match &pool.held_for {
        Some(other) => {
            format!("held while {other} is called: a request is outstanding on {} of them", units::number(pool.in_use))
        }
        None => format!("in use: a request is outstanding on {} of them", units::number(pool.in_use)),
    };
    let mut reasons = vec![format!(
        "In {}, all {number} connections to {} are {in_use}, and {} of {} requests wait in front.",
        reading.interval,
        pool.peer,
        bounds(reading.waiting),
        units::number(reading.in_flight)
    )];
    if let Some(calls) = pool.calls_at_once {
        reasons.push(format!(
            "Each request makes {} calls over them, several at once: more calls than requests are under way.",
            units::number(calls)
        ));
    }
    if pool.loads > 1 {
        reasons.push(format!("There are as many connections under {} loads.", pool.loads));
    }
    reasons.push(format!(
        "Calls over them take {} of a request (mean), the wait {}.",
        units::duration(evidence.query_ns),
        units::duration(evidence.wait_ns)
    ));
    reasons
}

fn reported(pool: &PoolMetrics) -> Vec<String> {
    let mut reported = Vec::new();
    reported.extend(pool.wait_ns.map(|ns| format!("The pool reports a mean wait of {}.", units::duration(ns))));
    reported.extend(pool.pending.filter(|readings| readings.share > 0.0).map(|readings| {
        format!("Requests wait in {} of the pool's {} readings.", units::percent(readings.share), readings.count)
    }));
    if let (Some(full), Some(size)) = (pool.full.filter(|readings| readings.share > 0.0), pool.size) {
        reported.push(format!(
            "All {} connections are in use in {} of {} readings.",
            units::number(size),
            units::percent(full.share),
            full.count
        ));
    }
    reported
}

/// Advice by what holds the connection.
fn held(evidence: &PoolWait) -> String {
    if let Some(pool) = &evidence.sockets {
        return match (&pool.held_for, pool.calls_at_once) {
            (Some(other), _) => format!("Return the connection to {} before {other} is called. ", pool.peer),
            (None, Some(calls)) => format!(
                "Make fewer than {} calls to {} for each request: call it once for all, or only the parts of it that have the \
                 result. ",
                units::number(calls),
                pool.peer
            ),
            (None, None) => String::new(),
        };
    }
    if evidence.other_calls_ns > evidence.query_ns {
        return format!(
            "Between its queries it calls other services for {}: return the connection before that. ",
            units::duration(evidence.other_calls_ns)
        );
    }
    match evidence.pool.use_ns.filter(|use_ns| *use_ns > HELD_FACTOR * evidence.query_ns.max(1.0)) {
        Some(use_ns) => format!(
            "A connection is held for {} while queries take {}: return it before remote calls and other work, and keep \
             transactions short. ",
            units::duration(use_ns),
            units::duration(evidence.query_ns)
        ),
        None => {
            "Take one connection per request, return it before remote calls, and keep transactions short. ".to_owned()
        }
    }
}
