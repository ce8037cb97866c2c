//! Gaps in a trial's evidence, so that silence of a detector is not taken for health.
//!
//! Only what can be concluded from the evidence is said. That a service has spans but none to a database proves nothing
//! (it may have none), so it is said only where database spans arrive maimed or a database is known to be there. What is
//! wrong with the traces themselves is the business of [`instrumentation`].

use std::collections::BTreeSet;

use narrows_model::caveat::TrialCaveat;
use narrows_model::finding::Finding;
use narrows_model::run::{Machine, ServiceInstance, TrialState};
use narrows_model::series::names;
use narrows_model::trace::{Span, SpanKind};

use crate::detectors::instrumentation_gap::is_missed_by;
use crate::instrumentation;
use crate::laws;
use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::requests::{is_database, query_text};
use crate::read::silent_services::{silent_services, unseen_databases};
use crate::read::unseen_calls::{UnseenCalls, unseen_calls};

/// Limits of the reading of a trial; may be empty. What a finding of `instrumentation-gap` says is not said again.
pub(crate) fn caveats(reading: &Reading<'_>, findings: &[Finding]) -> Vec<TrialCaveat> {
    if reading.trial.trial.state == TrialState::Planned {
        return Vec::new();
    }
    let scene = Scene { reading, findings };
    let mut caveats = laws::broken(reading);
    caveats.extend(scene.refused());
    caveats.extend(scene.uncounted_calls());
    caveats.extend(scene.no_spans());
    caveats.extend(scene.silent_services());
    caveats.extend(scene.unseen_calls());
    caveats.extend(scene.maimed_queries());
    caveats.extend(scene.unseen_database());
    caveats.extend(scene.unsampled_cpu());
    caveats.extend(scene.crowded_host());
    caveats.extend(scene.stolen_cpu());
    caveats.extend(instrumentation::caveats(reading, findings));
    caveats
}

struct Scene<'r, 'a> {
    reading: &'r Reading<'a>,
    findings: &'r [Finding],
}

impl<'a> Scene<'_, 'a> {
    fn spans(&self) -> impl Iterator<Item = &'a Span> {
        self.reading.trial.traces.iter().flat_map(|trace| &trace.spans)
    }

    fn refused(&self) -> Option<TrialCaveat> {
        let (refused, kept) = (self.reading.trial.spans_refused, self.reading.trial.spans_total);
        (refused > 0).then_some(TrialCaveat::SpansRefused { refused, kept })
    }

    /// Operations whose traces have spans that are not counted.
    fn uncounted_calls(&self) -> Option<TrialCaveat> {
        let cut = || self.reading.trial.operations.iter().filter(|operation| operation.spans_left_out > 0);
        let worst = cut().max_by_key(|operation| operation.spans_left_out)?;
        Some(TrialCaveat::TraceTooLarge {
            service: worst.service.clone(),
            operation: worst.name.clone(),
            spans: worst.spans_left_out,
            others: cut().count() - 1,
        })
    }

    fn no_spans(&self) -> Option<TrialCaveat> {
        let trial = self.reading.trial;
        let is_silent = trial.spans_total == 0 && trial.services.iter().any(ServiceInstance::is_started);
        is_silent.then_some(TrialCaveat::NoSpans)
    }

    /// Services that ran and sent no spans: those that Narrows started one by one, those that it only watched together.
    /// A service known only by its own figures is no gap: its spans may never have been asked for.
    fn silent_services(&self) -> Vec<TrialCaveat> {
        let is_told = |service: &&str| self.findings.iter().any(|finding| is_missed_by(finding, service));
        let silent: Vec<&str> = silent_services(self.reading).into_iter().filter(|service| !is_told(service)).collect();
        let traces = self.reading.trial.traces.len();
        let started = silent.iter().filter(|service| self.has(service, ServiceInstance::is_started));
        let caveats = started.map(|service| TrialCaveat::ServiceSilent { service: (*service).to_owned(), traces });
        let is_watched = |instance: &ServiceInstance| !instance.is_started() && instance.machine == Machine::Here;
        let watched = silent.iter().filter(|service| self.has(service, is_watched));
        let services: Vec<String> = watched.map(|service| (*service).to_owned()).collect();
        caveats.chain((!services.is_empty()).then_some(TrialCaveat::ServicesSilent { services })).collect()
    }

    /// True if an instance of this service is such a one.
    fn has(&self, service: &str, is_such: impl Fn(&ServiceInstance) -> bool) -> bool {
        self.reading.trial.services.iter().any(|instance| instance.service == service && is_such(instance))
    }

    /// Calls that sockets show and spans do not, unless a finding names the service or the peer.
    fn unseen_calls(&self) -> Vec<TrialCaveat> {
        let services = self.reading.trial.service_names().into_iter();
        let unseen = services.filter_map(|service| Some((service, unseen_calls(self.reading, service)?)));
        let is_told = |place: &str| self.findings.iter().any(|finding| finding.resource == place);
        let untold = unseen.filter(|(service, calls)| !is_told(service) && !is_told(&calls.peer));
        let caveat = |(service, calls): (&str, UnseenCalls)| TrialCaveat::CallsWithoutSpans {
            service: service.to_owned(),
            peer: calls.peer,
            unseen: calls.unseen,
            waiting: calls.waiting,
        };
        untold.map(caveat).collect()
    }

    /// Services whose database spans never carry a query.
    fn maimed_queries(&self) -> Option<TrialCaveat> {
        let database = || self.spans().filter(|span| is_database(span) && span.kind != SpanKind::Server);
        let with_query: BTreeSet<&str> =
            database().filter(|span| query_text(span).is_some()).map(|span| span.service.as_str()).collect();
        let without: BTreeSet<&str> =
            database().map(|span| span.service.as_str()).filter(|service| !with_query.contains(service)).collect();
        let services: Vec<String> = without.into_iter().map(str::to_owned).collect();
        (!services.is_empty()).then_some(TrialCaveat::QueryTextsMissing { services })
    }

    /// A database that ran while nobody reported a call to one, unless a finding says what waits for it.
    fn unseen_database(&self) -> Vec<TrialCaveat> {
        let is_told = |service: &&str| self.findings.iter().any(|finding| is_missed_by(finding, service));
        let databases = unseen_databases(self.reading).into_iter().filter(|service| !is_told(service));
        databases.map(|database| TrialCaveat::DatabaseNotCalled { database: database.to_owned() }).collect()
    }

    /// A full machine that was mostly not the run's.
    fn crowded_host(&self) -> Option<TrialCaveat> {
        let full = self.reading.thresholds.cpu_host_share;
        let cpu = Cpu::new(self.reading);
        let machines = self.reading.intervals.iter().filter_map(|interval| cpu.machine(interval));
        let crowded = machines.filter(|machine| machine.used_share() >= full && machine.is_mostly_foreign());
        let worst = crowded.max_by(|a, b| a.foreign().total_cmp(&b.foreign()))?;
        Some(TrialCaveat::MachineCrowded { foreign_cores: worst.foreign(), cores: worst.all })
    }

    /// The hypervisor gave the machine's CPU to others.
    fn stolen_cpu(&self) -> Option<TrialCaveat> {
        let cpu = Cpu::new(self.reading);
        let stolen = |interval: &Interval| cpu.cores_of(names::HOST_CPU_STEAL, "", 0, interval);
        let worst = self.reading.intervals.iter().filter_map(stolen).max_by(f64::total_cmp)?;
        (worst >= self.reading.thresholds.cpu_steal_share).then_some(TrialCaveat::CpuStolen { share: worst })
    }

    /// Services for which CPU saturation cannot be determined.
    fn unsampled_cpu(&self) -> Option<TrialCaveat> {
        let (trial, thresholds, intervals) = (self.reading.trial, self.reading.thresholds, self.reading.intervals);
        let is_sampled = |service: &str| {
            let replicas = trial.services.iter().filter(|instance| instance.service == service);
            let mut keys = replicas.map(|instance| (names::CPU_CORES, service, instance.replica));
            keys.any(|key| intervals.iter().any(|interval| interval.median_of(trial, key, thresholds).is_some()))
        };
        let unsampled = trial.service_names().into_iter().filter(|service| !is_sampled(service));
        let services: Vec<String> = unsampled.map(str::to_owned).collect();
        let (points, span_ns) = (thresholds.cpu_points, thresholds.cpu_span_ns);
        (!services.is_empty()).then_some(TrialCaveat::CpuNotSampled { services, points, span_ns })
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::call_graph::CallFigures;
    use narrows_model::evidence::TrialEvidence;
    use narrows_model::trace::Trace;
    use narrows_testkit::spans::{SpanBuilder, client, database, query, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;
    use crate::thresholds::Thresholds;
    use crate::words::trial_caveat;

    fn trial() -> TrialBuilder {
        TrialBuilder::new("a").steady(10, Load { vus: 1, rate: 10.0, latency_ms: 5.0 })
    }

    fn traces(root: SpanBuilder) -> Vec<Trace> {
        (0..30).map(|number| root.clone().trace(number)).collect()
    }

    fn said(trial: TrialBuilder) -> Vec<String> {
        caveats_of(&trial.build())
    }

    fn caveats_of(trial: &TrialEvidence) -> Vec<String> {
        let thresholds = Thresholds::default();
        let caveats = Reading::with(trial, &thresholds, |reading| caveats(reading, &crate::findings(reading)));
        caveats.iter().map(trial_caveat).collect()
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
        let elsewhere = |machine| {
            let mut trial = both().traces(traces(server("shop", "GET /"))).build();
            for instance in &mut trial.services {
                (instance.port, instance.machine) = (0, machine);
            }
            caveats_of(&trial)
        };
        let watched = elsewhere(Machine::Here);
        assert!(
            is_one_about(&watched, "No span shows what happens inside stock. Narrows did not start it."),
            "{watched:?}"
        );
        assert_eq!(elsewhere(Machine::Unknown), [""; 0], "its spans may never have been asked for");
        let few: Vec<Trace> = traces(server("shop", "GET /")).into_iter().take(5).collect();
        assert_eq!(said(both().traces(few)), [""; 0]);
        let proxy = trial().service("shop", None).service("nginx", None).cpu("shop", 0, |_| 0.1);
        let beside_proxy = said(proxy.cpu("nginx", 0, |_| 0.1).traces(traces(server("shop", "GET /"))));
        assert_eq!(beside_proxy, [""; 0], "NGINX has no tracing");
        let broker = trial().service("shop", None).service("nats-server", None).cpu("shop", 0, |_| 0.1);
        let beside_broker = said(broker.cpu("nats-server", 0, |_| 0.1).traces(traces(server("shop", "GET /"))));
        assert_eq!(beside_broker, [""; 0], "NATS has no tracing, and its clients send no database spans");
    }

    #[test]
    fn calls_that_only_sockets_show_are_said() {
        let calls = |outstanding| CallFigures { connections: 8.0, outstanding, rate: 400.0, ..CallFigures::default() };
        let root = server("shop", "GET /").at(0.0, 20.0).child(client("GET").url("http://a.example/").at(1.0, 8.0));
        let load = Load { vus: 8, rate: 400.0, latency_ms: 20.0 };
        let shop = TrialBuilder::new("a").steady(10, load).service("shop", None).cpu("shop", 0, |_| 0.1);
        let running = [(names::THREAD_STATE, "running")];
        let shop = shop.labelled_series(names::THREAD_STATES, ("shop", 0), &running, |_| 0.1);
        let shop = shop.calls(names::GENERATOR, 0, &format!("127.0.0.1:{FIRST_PORT}"), move |_| calls(8.0));
        let said = said(shop.calls("shop", 0, "10.0.0.9:443", move |_| calls(6.0)).traces(traces(root)));
        assert!(is_one_about(&said, "show 6 requests that wait for 10.0.0.9:443 at any moment"), "{said:?}");
    }

    #[test]
    fn database_spans_without_queries_are_said() {
        let root = server("shop", "GET /").child(database("connect"));
        let said = said(trial().service("shop", None).cpu("shop", 0, |_| 0.1).traces(traces(root)));
        assert!(is_one_about(&said, "Database spans of shop never have a query text"), "{said:?}");
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
    fn time_that_the_hypervisor_took_is_said() {
        let shop = |steal| {
            let trial = trial().service("shop", None).cpu("shop", 0, |_| 0.4);
            let trial = trial.series(names::HOST_CPU_STEAL, "", 0, move |_| steal);
            said(trial.traces(traces(server("shop", "GET /"))))
        };
        let stolen = shop(0.12);
        assert!(is_one_about(&stolen, "The hypervisor took up to 12 % of the machine's CPU time"), "{stolen:?}");
        assert_eq!(shop(0.02), [""; 0]);
    }

    #[test]
    fn too_few_cpu_samples_are_said() {
        let said = said(trial().service("shop", None).traces(traces(server("shop", "GET /"))));
        assert!(is_one_about(&said, "Whether CPU limited shop is unknown"), "{said:?}");
    }
}
