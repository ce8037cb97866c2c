//! What is missing from a trial's evidence, so that silence of a detector is not taken for health.
//!
//! Only what can be concluded from the evidence is said. That a service has spans but none to a database proves nothing
//! (it may have none), so it is said only where database spans arrive maimed or a database is known to be there. What is
//! wrong with the traces themselves is the business of [`instrumentation`].

use std::collections::BTreeSet;

use narrows_model::evidence::TrialEvidence;
use narrows_model::run::TrialState;
use narrows_model::series::names;
use narrows_model::trace::{Span, SpanKind};
use narrows_model::units;

use crate::instrumentation;
use crate::requests::{is_database, query_text};
use crate::stretches::stretches;
use crate::thresholds::Thresholds;

/// Traces below which the absence of a service from them means nothing.
const TRACES_MIN: usize = 20;
/// Programs that are databases, by the name of what is executed.
const DATABASES: [&str; 8] =
    ["postgres", "mysqld", "mariadbd", "mongod", "cockroach", "clickhouse-server", "sqlservr", "oracle"];

/// What limits the reading of a trial, in whole sentences; empty when nothing does.
pub fn caveats(trial: &TrialEvidence) -> Vec<String> {
    if trial.trial.state == TrialState::Planned {
        return Vec::new();
    }
    let scene = Scene::of(trial);
    let mut caveats = Vec::new();
    caveats.extend(scene.refused());
    caveats.extend(scene.no_spans());
    caveats.extend(scene.silent_services());
    caveats.extend(scene.maimed_queries());
    caveats.extend(scene.unseen_database());
    caveats.extend(scene.unsampled_cpu());
    caveats.extend(scene.crowded_host());
    caveats.extend(instrumentation::caveats(trial, &Thresholds::default()));
    caveats
}

struct Scene<'a> {
    trial: &'a TrialEvidence,
    /// Services that sent spans.
    speaking: BTreeSet<&'a str>,
}

impl<'a> Scene<'a> {
    fn of(trial: &'a TrialEvidence) -> Self {
        Self { trial, speaking: spans(trial).map(|span| span.service.as_str()).collect() }
    }

    fn refused(&self) -> Option<String> {
        let (refused, kept) = (self.trial.spans_refused, self.trial.spans_total);
        (refused > 0).then(|| {
            format!(
                "{} spans were refused because a limit was reached ({} were kept), so traces may have gaps.",
                units::count(refused),
                units::count(kept)
            )
        })
    }

    fn no_spans(&self) -> Option<String> {
        (self.trial.spans_total == 0 && !self.trial.services.is_empty()).then(|| {
            "No spans arrived from any service, so nothing is known of what a request does inside. The services were started \
             with OTEL_EXPORTER_OTLP_ENDPOINT: are they instrumented?"
                .into()
        })
    }

    /// Services that others call or that clients call, but that never spoke.
    fn silent_services(&self) -> Vec<String> {
        if self.trial.traces.len() < TRACES_MIN {
            return Vec::new();
        }
        let asked_as_database: BTreeSet<u16> =
            spans(self.trial).filter(|span| is_database(span)).filter_map(|span| span.facts.server_port).collect();
        let is_silent = |service: &&str| {
            let is_asked = |port: u16| asked_as_database.contains(&port);
            let is_store = self.trial.services.iter().any(|i| i.service == **service && is_asked(i.port));
            !self.speaking.contains(*service) && !is_store && !self.is_database_program(service)
        };
        let silent = self.trial.service_names().into_iter().filter(is_silent);
        silent
            .map(|service| {
                format!(
                    "No spans of {service} are among the {} traces looked at, though it was started with \
                     OTEL_EXPORTER_OTLP_ENDPOINT: is it instrumented, and does it pass the trace context on?",
                    self.trial.traces.len()
                )
            })
            .collect()
    }

    fn is_database_program(&self, service: &str) -> bool {
        let is_one = |command: &[String]| {
            let program = command.first().map_or("", |first| first.rsplit('/').next().unwrap_or(first));
            DATABASES.contains(&program)
        };
        self.trial.services.iter().any(|instance| instance.service == service && is_one(&instance.command))
    }

    /// Services whose database spans never carry a query.
    fn maimed_queries(&self) -> Vec<String> {
        let database = || spans(self.trial).filter(|span| is_database(span) && span.kind != SpanKind::Server);
        let with_query: BTreeSet<&str> =
            database().filter(|span| query_text(span).is_some()).map(|span| span.service.as_str()).collect();
        let without: BTreeSet<&str> =
            database().map(|span| span.service.as_str()).filter(|service| !with_query.contains(service)).collect();
        without
            .into_iter()
            .map(|service| {
                format!(
                    "{service} sends database spans without any query text, so repeated queries cannot be seen. Does its \
                     instrumentation support the version of the database library, and is query text switched on?"
                )
            })
            .collect()
    }

    /// A database that ran while nobody reported a call to one.
    fn unseen_database(&self) -> Vec<String> {
        if self.trial.traces.len() < TRACES_MIN || spans(self.trial).any(is_database) {
            return Vec::new();
        }
        let databases = self.trial.service_names().into_iter().filter(|service| self.is_database_program(service));
        databases
            .map(|service| {
                format!(
                    "{service} ran, but no service sent a database span, so nothing can be said about queries. Does the \
                     instrumentation support the version of the database library?"
                )
            })
            .collect()
    }

    /// A full machine that was mostly not the run's.
    fn crowded_host(&self) -> Option<String> {
        let thresholds = Thresholds::default();
        let stretches = stretches(self.trial);
        let used = stretches.iter().filter_map(|stretch| stretch.host_use(self.trial, &thresholds));
        let crowded = used.filter(|used| used.share >= thresholds.cpu_host_share && used.is_mostly_others);
        let worst = crowded.max_by(|a, b| a.others_cores.total_cmp(&b.others_cores))?;
        Some(format!(
            "Programs outside this run used {} of the machine's {} cores while it was full, so figures are worse than the \
             system's own.",
            units::three(worst.others_cores),
            self.trial.cores
        ))
    }

    /// Services for which CPU saturation cannot be told.
    fn unsampled_cpu(&self) -> Option<String> {
        let thresholds = Thresholds::default();
        let stretches = stretches(self.trial);
        let is_sampled = |service: &str| {
            let replicas = self.trial.services.iter().filter(|instance| instance.service == service);
            let mut keys = replicas.map(|instance| (names::CPU_CORES, service, instance.replica));
            keys.any(|key| stretches.iter().any(|stretch| stretch.median_of(self.trial, key, &thresholds).is_some()))
        };
        let unsampled: Vec<&str> =
            self.trial.service_names().into_iter().filter(|service| !is_sampled(service)).collect();
        (!unsampled.is_empty()).then(|| {
            format!(
                "Whether CPU held {} back cannot be told: no window has {} CPU samples over {} s.",
                unsampled.join(", "),
                thresholds.cpu_points,
                thresholds.cpu_span_ns / 1_000_000_000
            )
        })
    }
}

fn spans(trial: &TrialEvidence) -> impl Iterator<Item = &Span> {
    trial.traces.iter().flat_map(|trace| &trace.spans)
}

#[cfg(test)]
mod tests {
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{SpanBuilder, client, database, query, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;

    fn trial() -> TrialBuilder {
        TrialBuilder::new("a").steady(10, Load { vus: 1, rate: 10.0, latency_ms: 5.0 })
    }

    fn traces(root: SpanBuilder) -> Vec<Trace> {
        (0..30).map(|number| root.clone().trace(number)).collect()
    }

    fn said(trial: TrialBuilder) -> Vec<String> {
        caveats(&trial.build())
    }

    fn is_one_about(caveats: &[String], words: &str) -> bool {
        caveats.len() == 1 && caveats[0].contains(words)
    }

    #[test]
    fn whole_evidence_has_no_caveat() {
        let root = server("shop", "GET /").child(query("SELECT a FROM t").to_port(FIRST_PORT + 1));
        let trial = trial().service("shop", None).service("store", None).traces(traces(root));
        assert_eq!(said(trial.cpu("shop", 0, |_| 0.1).cpu("store", 0, |_| 0.1)), [""; 0]);
        assert_eq!(said(TrialBuilder::new("a").service("shop", None).state(TrialState::Planned)), [""; 0]);
    }

    #[test]
    fn refused_and_missing_spans_are_said() {
        let shop = || trial().service("shop", None).cpu("shop", 0, |_| 0.1);
        assert!(is_one_about(&said(shop()), "No spans arrived from any service"));
        let refused = said(shop().traces(traces(server("shop", "GET /"))).spans_refused(1234));
        assert!(is_one_about(&refused, "1,234 spans were refused"), "{refused:?}");
    }

    #[test]
    fn a_service_that_never_speaks_is_named() {
        let both =
            || trial().service("shop", None).service("stock", None).cpu("shop", 0, |_| 0.1).cpu("stock", 0, |_| 0.1);
        let said_of = said(both().traces(traces(server("shop", "GET /").child(client("GET")))));
        assert!(is_one_about(&said_of, "No spans of stock are among the 30 traces"), "{said_of:?}");
        let few: Vec<Trace> = traces(server("shop", "GET /")).into_iter().take(5).collect();
        assert_eq!(said(both().traces(few)), [""; 0]);
    }

    #[test]
    fn database_spans_without_queries_are_said() {
        let root = server("shop", "GET /").child(database("connect"));
        let said = said(trial().service("shop", None).cpu("shop", 0, |_| 0.1).traces(traces(root)));
        assert!(is_one_about(&said, "shop sends database spans without any query text"), "{said:?}");
    }

    #[test]
    fn a_database_that_nobody_reports_is_said() {
        let trial = trial().service("shop", None).service("postgres", None).cpu("shop", 0, |_| 0.1);
        let said = said(trial.cpu("postgres", 0, |_| 0.1).traces(traces(server("shop", "GET /"))));
        assert!(is_one_about(&said, "postgres ran, but no service sent a database span"), "{said:?}");
    }

    #[test]
    fn a_machine_full_of_others_is_said() {
        let shop = |cores| {
            let trial = trial().service("shop", None).cpu("shop", 0, move |_| cores).host_cpu(|_| 1.0);
            said(trial.traces(traces(server("shop", "GET /"))))
        };
        assert!(
            is_one_about(&shop(0.4), "Programs outside this run used 3.60 of the machine's 4 cores"),
            "{:?}",
            shop(0.4)
        );
        assert_eq!(shop(2.5), [""; 0]);
    }

    #[test]
    fn too_few_cpu_samples_are_said() {
        let said = said(trial().service("shop", None).traces(traces(server("shop", "GET /"))));
        assert!(is_one_about(&said, "Whether CPU held shop back cannot be told"), "{said:?}");
    }
}
