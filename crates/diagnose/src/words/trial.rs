//! Texts of limits of a trial: each one whole sentence or a few. Those about instrumentation are beside their checks.

use narrows_model::caveat::{EndpointFault, FaultAction, Law, RequestBasis, SocketGap, SpanSource, TrialCaveat as C};
use narrows_model::load::{ErrorCounts, PartSummary, Recovery, RecoveryEnd, ReportedLoad};
use narrows_model::units;

use crate::instrumentation::{
    clock_skew, doubled_spans, impossible_durations, missing_database_spans, missing_parents, nested_doubles,
    pool_spans, repeated_ids, sampled_traces, start_up_spans, traces_without_request,
};

/// Services that a caveat names; more are counted.
const SERVICES_NAMED_MAX: usize = 5;

/// Text of a limit.
pub fn trial_caveat(caveat: &C) -> String {
    match caveat {
        C::ParameterByEarlierRates { parameter, value, wanted, reduced_to, is_known, missing } => {
            let why = match reduced_to {
                Some((share, variant, rate)) => format!(
                    "{} of the {} that {variant} reached, which is less than {wanted}",
                    units::percent(*share),
                    units::rate(*rate)
                ),
                None if *is_known => "as wanted: each of the variants that must hold it reached it".to_owned(),
                None => "as wanted".to_owned(),
            };
            let unknown = match missing.as_slice() {
                [] => String::new(),
                names => {
                    format!("; whether {} could hold it is not known, as it did not run before", names.join(" and "))
                }
            };
            format!("{parameter} is {value}, {why}{unknown}.")
        }
        C::ParameterByUsedCpu { parameter, value, times, service, variant, cores } => match cores {
            Some(cores) => {
                let of = if *times == 1.0 { String::new() } else { format!("{times} times the ") };
                format!(
                    "{parameter} is {value}, {of}{} that each replica of {service} used in {variant}.",
                    units::cores(*cores)
                )
            }
            None => format!(
                "{parameter} is {value}, as written: what {service} uses in {variant} is not known, as it did not run before."
            ),
        },
        C::CapacitySearch { probes, above } => format!(
            "This trial searched for the capacity in {probes} probes, {above} of them above it: read its windows one by one, \
             because its totals and objectives mix them."
        ),
        C::ServiceElsewhere { service, places, .. } => format!(
            "Narrows did not start {service}, which is at {}: its CPU and memory are known only as far as it or its platform \
             reports them.",
            units::names(places, SERVICES_NAMED_MAX)
        ),
        C::PodsChanged { changes } => format!(
            "Pods changed under load, so the figures are of different sets of them: {}.",
            units::names(changes, SERVICES_NAMED_MAX)
        ),
        C::WithoutCaps { service, reason } => format!("{service} runs without its CPU and memory caps: {reason}."),
        C::KilledAtStop { replica, signal, after_ns, reason } => {
            let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
            let after = units::duration(*after_ns);
            format!(
                "{replica} did not end within {after} of {signal} and was killed{reason}. Its last spans may be missing."
            )
        }
        C::ReplicaEnded { replica, end, after_ns, is_restarted } => {
            let then =
                if *is_restarted { "was started again" } else { "was not started again, because the load was over" };
            format!("{replica} {end} after {} of load and {then}.", units::duration(*after_ns))
        }
        C::SentByAgent { part } => sent_by_agent(part),
        C::RecordsDropped { agent, records } => format!(
            "Agent {agent} had no room for {} records of the services that it looked at: figures of these are missing.",
            units::count(*records)
        ),
        C::Fault { replica, action, after_ns, at_ns, recovery } => {
            format!("{}: {}", fault(replica, *action, *after_ns), recovered(recovery, *at_ns))
        }
        C::FaultNotReached { service, after_ns } => format!(
            "A fault of {service} after {} did not happen, because the load was over.",
            units::duration(*after_ns)
        ),
        C::LoadEndedEarly { objective, measured, after_ns } => format!(
            "The load was ended early, {} after it began, because an objective was broken: \"{objective}\", which stood at \
             {measured}.",
            units::duration(*after_ns)
        ),
        C::Undrained { requests, drain_ns, timeout_ns } => format!(
            "Without a response {} after the last request (`drain`), before the `timeout` of {}: {} of the errors of kind \
             timeout.",
            units::duration(*drain_ns),
            units::duration(*timeout_ns),
            units::count(*requests)
        ),
        C::MetricsNotReported { replica, failed, queries, error } => {
            let error = error.trim_end_matches('.');
            format!("{replica} did not respond to {failed} of {queries} metric queries; the last error: {error}.")
        }
        C::LoadCommandEnded { program, limit_ns } => {
            format!("`{program}` was ended after {}, as the experiment specifies.", units::duration(*limit_ns))
        }
        C::K6ThresholdsCrossed => {
            "k6 says that thresholds of its script were crossed (it exited with code 99).".to_owned()
        }
        C::K6Totals { load, latency_of } => format!(
            "k6 itself counts {}. These totals over all it sent are the figures of this trial; the latency is that of \
             {latency_of}.",
            totals(load)
        ),
        C::K6SummaryUnreadable { path, reason } => format!("k6's summary {path} cannot be read: {reason}."),
        C::RequestsCountedFromSpans { requests, spans, has_totals } => {
            counted_from_spans(*requests, spans, *has_totals)
        }
        C::NoSpanBeginsRequest { service, has_totals } => {
            let lost = if *has_totals {
                "how the load went over time is not known, nor what limits it"
            } else {
                "the requests of this trial could not be counted"
            };
            format!("No server span{} arrived, so {lost}.", of(service.as_deref()))
        }
        C::RequestsOfOthers { requests: 0, service, has_server_spans, .. } => {
            let hint = match (has_server_spans, service) {
                (false, _) => "",
                (true, None) => {
                    " All server spans continue a trace from elsewhere; `--target SERVICE` names the service whose spans \
                     are the requests."
                }
                (true, Some(_)) => " Other services sent server spans.",
            };
            let of_service = of(service.as_deref());
            format!("No span{of_service} that begins a request arrived, so requests could not be counted.{hint}")
        }
        C::RequestsOfOthers { requests, service, basis, left_out, .. } => {
            let of_service = of(service.as_deref());
            let spans = match basis {
                RequestBasis::Roots => format!("server spans{of_service} that no other span caused"),
                RequestBasis::Continued => format!("server spans{of_service}, which continue traces from elsewhere"),
                RequestBasis::AnyRoots => {
                    format!("roots of traces{of_service}, since no span says that it is a server's")
                }
            };
            let more = match left_out {
                0 => String::new(),
                left_out => format!(" {} more are not counted second by second.", units::count(*left_out)),
            };
            format!(
                "Another program made the load: its {} counted from the {spans}, and latency is the time spent there, without \
                 the path to it. The number of users is not known.{more}",
                requests_are(*requests)
            )
        }
        C::MachineNotKnown => {
            "This run shows the machine that imported it; the machines its services ran on are not known.".to_owned()
        }
        C::FileUnreadable { error } => format!("{error}."),
        C::IntervalsNotCounted { intervals } => format!("{intervals} shorter, separate intervals are not counted."),
        C::RecordsMalformed { records, first } => format!(
            "{} malformed and left out; the first: {first}.",
            counted(*records, "line, trace or record was", "lines, traces or records were")
        ),
        C::RecordsOverLimit { records } => {
            format!("{} beyond the run file's limits and left out.", counted(*records, "record was", "records were"))
        }
        C::SpansRepeated { spans } => {
            let is_several = counted(*spans, "span came more than once and is", "spans came more than once and are");
            format!("{is_several} kept once.")
        }
        C::SpanKindsConcluded { spans } => format!(
            "{}: a span below one of another service is taken for a server's, the one above it for a client's.",
            counted(*spans, "span does not say its kind", "spans do not say their kind")
        ),
        C::ProcessEnded { pid, service, after_ns } => format!(
            "Process {pid} of {service} ended {} after the beginning; its samples stop there.",
            units::duration(*after_ns)
        ),
        C::CollectionEnded { after_ns, duration_ns } => format!(
            "Collection was ended after {} of the requested {} by a signal.",
            units::duration(*after_ns),
            units::duration(*duration_ns)
        ),
        C::NothingSent { listening } => format!(
            "Nothing was sent to {}: services export there with OTEL_EXPORTER_OTLP_ENDPOINT=http://{}.",
            listening.join(" or "),
            listening.first().map_or("", String::as_str)
        ),
        C::Endpoint { url, fault } => match fault {
            EndpointFault::Scrapes { failed, scrapes, failure } => {
                format!("{url} returned no metrics in {failed} of {scrapes} scrapes: {failure}.")
            }
            EndpointFault::Lines { malformed, first } => {
                format!("{malformed} lines of {url} could not be parsed and were left out; the first: {first}.")
            }
            EndpointFault::Points { refused } => {
                format!("{} points of {url} exceeded the run file's limits and were left out.", units::count(*refused))
            }
        },
        C::TelemetryMalformed { requests } => format!(
            "{requests} telemetry requests were refused because they were not whole OTLP requests (protobuf or JSON over HTTP, \
             or gRPC) within the limits of size and time; their data is missing. The sender's log has the reason."
        ),
        C::TelemetryUnauthenticated { requests } => format!(
            "{requests} telemetry requests without the token were refused, and their data is missing. Senders need \
             OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN."
        ),
        C::TelemetryRejected { requests, is_load_traced } => {
            let fewer = if *is_load_traced {
                "A lower `tracing: { sample: … }` helps."
            } else {
                "Sampling in the services helps: OTEL_TRACES_SAMPLER=parentbased_traceidratio and, for one trace in ten, \
                 OTEL_TRACES_SAMPLER_ARG=0.1."
            };
            format!(
                "{requests} telemetry requests arrived faster than they could be stored and were rejected; data that their \
                 senders did not resend is missing. {fewer}"
            )
        }
        C::TelemetryInvalid { records } => {
            format!(
                "{records} spans, points or log records were invalid, such as spans without an id, and were left out."
            )
        }
        C::TelemetryOverLimit { records } => {
            format!("{} records exceeded the run file's limits and were left out.", units::count(*records))
        }
        C::ReadingsLost { readings } => {
            format!("{readings} readings of the sampler were lost because the run file was busy.")
        }
        C::SocketsNotSampled { gap } => sockets_not_sampled(*gap),
        C::SpansWaiting { spans } => {
            format!("{spans} spans came that cannot be read yet: they are put into tables when their trial ends.")
        }
        C::SpansThinned { spans, one_in, is_slow_preferred } => {
            let (preferred, rare) = if *is_slow_preferred {
                (" and most of the failed and the slowest ones", "counts by `span_counts` are exact")
            } else {
                ("", "what is rare may be missing")
            };
            format!(
                "The run file neared its limit of size: {spans} spans were counted but not kept. Whole traces stand for them \
                 by their weight, at the end 1 of {one_in}{preferred}; {rare}."
            )
        }
        C::SpansRefused { refused, kept } => format!(
            "{} spans were refused because a limit was reached ({} were kept), so traces may have gaps.",
            units::count(*refused),
            units::count(*kept)
        ),
        C::TraceTooLarge { service, operation, spans, others } => {
            let others = match others {
                0 => String::new(),
                others => format!(" {others} more operations show the same."),
            };
            format!(
                "{} spans in traces of {service} {operation} are not counted, because a trace has too many: it makes more \
                 calls than its figures say.{others}",
                units::count(*spans)
            )
        }
        C::NoSpans => {
            "No spans arrived from any service, so Narrows cannot see what happens inside a request. The services \
                       were started with OTEL_EXPORTER_OTLP_ENDPOINT: are they instrumented?"
                .to_owned()
        }
        C::ServiceSilent { service, traces } => format!(
            "No spans of {service} are among the {traces} traces looked at, though it was started with \
             OTEL_EXPORTER_OTLP_ENDPOINT: is it instrumented, and does it pass the trace context on?"
        ),
        C::ServicesSilent { services } => format!(
            "No span shows what happens inside {}. Narrows did not start {}.",
            units::names(services, SERVICES_NAMED_MAX),
            if services.len() == 1 { "it" } else { "them" }
        ),
        C::CallsWithoutSpans { service, peer, unseen, waiting } => format!(
            "The sockets of {service} show {} requests that wait for {peer} at any moment; its spans show {} fewer. Is the \
             client instrumented with which it calls {peer}?",
            units::number(*waiting),
            units::number(*unseen)
        ),
        C::QueryTextsMissing { services } => format!(
            "Database spans of {} never have a query text, so repeated queries cannot be seen. Does the \
             instrumentation support the version of the database library, and is query text switched on?",
            units::names(services, SERVICES_NAMED_MAX)
        ),
        C::DatabaseNotCalled { database } => format!(
            "{database} ran, but no service sent a database span, so its queries cannot be examined. Does the \
             instrumentation support the version of the database library?"
        ),
        C::CpuNotSampled { services, points, span_ns } => format!(
            "Whether CPU limited {} is unknown: no window has {points} CPU samples over {} s.",
            units::names(services, SERVICES_NAMED_MAX),
            span_ns / 1_000_000_000
        ),
        C::MachineCrowded { foreign_cores, cores } => format!(
            "Programs outside this run used {} of the machine's {} while it was full, so figures are worse than the system's \
             own.",
            units::number(*foreign_cores),
            units::cores(*cores)
        ),
        C::CpuStolen { share } => format!(
            "The hypervisor took up to {} of the machine's CPU time, so every latency includes waiting that is not the \
             system's own.",
            units::percent(*share)
        ),
        C::TooManyUnderWay { law, users } => format!(
            "Little's law is broken: {}, but there are only {users} users. A latency or a throughput of this trial is not what \
             it seems.",
            little(law)
        ),
        C::TooFewUnderWay { law, users, lightest } => format!(
            "Little's law is broken: {}, but {users} users that do not think in {lightest}. What the others do is not in the \
             figures: requests that never ended, or time that the generator itself needs.",
            little(law)
        ),
        C::CpuBeyondLimit { service, cores, window, limit } => format!(
            "The utilisation law is broken: {service} used {} in {window}, but its limit is {}. The limit is not in force, or \
             the samples are wrong.",
            units::cores(*cores),
            units::number(*limit)
        ),
        C::CpuBeyondMachine { cores, window, machine } => format!(
            "The utilisation law is broken: the services and the generator used {} in {window}, but the machine only {}. The \
             samples of one of them are wrong.",
            units::cores(*cores),
            units::number(*machine)
        ),
        C::CpuOffLine { service, cores, rate, window, line } => format!(
            "The utilisation law has no single cost of a request in {service}: {} at {} in {window}, where a line through all \
             loads has {}. Something else than requests uses its CPU, or requests cost more in one load than in another, so \
             what one load costs does not tell what another will.",
            units::cores(*cores),
            units::rate(*rate),
            units::number(*line)
        ),
        C::CallsLost { service, called, handled } => format!(
            "Forced flow is broken: {service} responded to {} calls, but its own spans show {} requests. Spans of {service} \
             are missing, so its time and its calls are counted too low.",
            units::count(*called),
            units::count(*handled)
        ),
        C::SampledTraces(sampled) => sampled_traces::text(sampled),
        C::UnmarkedSample { seen, responses } => sampled_traces::unmarked_text(*seen, *responses),
        C::MissingParents(missing) => missing_parents::text(missing),
        C::RepeatedIds(repeated) => repeated_ids::text(repeated),
        C::OwnParents(own) => missing_parents::own_parents_text(own),
        C::TracesWithoutRequest(traces) => traces_without_request::text(traces),
        C::StartUpSpans { outside, spans } => start_up_spans::text(*outside, *spans),
        C::UnseenDatabaseCalls(calls) => missing_database_spans::text(calls),
        C::DifferentClocks(clocks) => clock_skew::text(clocks),
        C::NegativeDurations(negative) => impossible_durations::negative_text(negative),
        C::ZeroDurations(zero) => impossible_durations::zero_text(zero),
        C::EndlessCalls(calls) => impossible_durations::endless_text(calls),
        C::DoubledSpans(doubled) => doubled_spans::text(doubled),
        C::NestedDoubles(doubles) => nested_doubles::text(doubles),
        C::PoolSpans(spans) => pool_spans::text(spans),
        C::MorePlaces { check, places } => {
            format!("{} the same ({check}).", counted(*places as u64, "more place shows", "more places show"))
        }
    }
}

/// A fault, in a clause: `store was killed 3.00 s into the load, as the experiment specifies`.
pub fn fault(replica: &str, action: FaultAction, after_ns: f64) -> String {
    let action = match action {
        FaultAction::Killed => "was killed".to_owned(),
        FaultAction::Restarted => "was stopped to be started again".to_owned(),
        FaultAction::Started => "was down and was started again".to_owned(),
        FaultAction::Paused(ns) => format!("was paused for {}", units::duration(ns)),
        FaultAction::NotRunning => "was not running when its fault was due".to_owned(),
    };
    format!("{replica} {action} {} into the load, as the experiment specifies", units::duration(after_ns))
}

/// Recovery from a fault at an instant, in a sentence that goes on from what was done.
fn recovered(recovery: &Recovery, at_ns: i64) -> String {
    let failed = failed(recovery.errors);
    let Some(usual) = recovery.usual else {
        return format!("no whole second before it shows the usual rate, and {failed} until the load's end.");
    };
    let (rate, silence) = (units::rate(usual), silence(recovery.silent_seconds));
    let time = units::duration(recovery.until_ns.saturating_sub(at_ns).max(0) as f64);
    match recovery.end {
        RecoveryEnd::Unfelt => format!("the load was not affected: {rate} succeeded as before."),
        RecoveryEnd::Recovered => format!("{failed}{silence} until, {time} later, {rate} succeeded again as before."),
        RecoveryEnd::LoadEnded => {
            format!("{failed}{silence} in the {time} to the load's end, without {rate} succeeding again as before.")
        }
    }
}

fn failed(errors: ErrorCounts) -> String {
    match errors.total() {
        0 => "no request failed".to_owned(),
        total => format!("{} failed ({})", counted(total, "request", "requests"), errors.by_kind()),
    }
}

/// Whole seconds after the fault in which nothing succeeded.
fn silence(seconds: usize) -> String {
    match seconds {
        0 => String::new(),
        seconds => {
            format!(" and none succeeded in {}", counted(seconds as u64, "whole second", "whole seconds"))
        }
    }
}

fn counted_from_spans(requests: u64, spans: &SpanSource, has_totals: bool) -> String {
    let context = if spans.is_continued { ", which continue the load command's own trace context" } else { "" };
    let source = format!("server spans{}{context}", of(spans.service.as_deref()));
    if has_totals {
        format!(
            "How the load went over time is counted from the {source}: {} requests, their latency the time spent there. The \
             number of users is not known.",
            units::count(requests)
        )
    } else {
        format!(
            "The load came from another program: its {} counted from the {source}, and latency is the time spent there, \
             without the path to it. The number of users is not known.",
            requests_are(requests)
        )
    }
}

/// Totals, as in `200 requests, 99.5/s, 10 % failed, mean 11.5 ms`.
fn totals(load: &ReportedLoad) -> String {
    let mut parts = vec![format!("{} requests", units::count(load.requests))];
    if load.seconds > 0.0 {
        parts.push(units::rate(load.requests as f64 / load.seconds));
    }
    parts.extend(load.error_rate().map(|share| format!("{} failed", units::percent(share))));
    let latency = &load.latency;
    let figures = [
        ("mean", latency.mean_ns),
        ("p50", latency.p50_ns),
        ("p90", latency.p90_ns),
        ("p95", latency.p95_ns),
        ("p99", latency.p99_ns),
        ("max", latency.max_ns),
    ];
    parts.extend(figures.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", units::duration(ns?)))));
    parts.join(", ")
}

fn little(law: &Law) -> String {
    format!(
        "{} × {} = {} requests under way in {}",
        units::rate(law.rate),
        units::duration(law.latency_ns),
        units::number(law.under_way),
        law.window
    )
}

fn of(service: Option<&str>) -> String {
    service.map_or_else(String::new, |service| format!(" of {service}"))
}

fn requests_are(requests: u64) -> String {
    counted(requests, "request is", "requests are")
}

fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{} {several}", units::count(count)),
    }
}

fn sockets_not_sampled(gap: SocketGap) -> String {
    match gap {
        SocketGap::NoDiagnostics => {
            "The kernel gives no socket diagnostics here, so it is unknown which service waits for which. Load its modules \
             tcp_diag and udp_diag, or let the container open netlink sockets."
                .to_owned()
        }
        SocketGap::Namespaces(count) => format!(
            "The sockets of {} could not be sampled, so calls from there are missing: run Narrows as root, which may enter \
             them.",
            counted(count, "network namespace", "network namespaces")
        ),
        SocketGap::Connections(count) => format!(
            "Up to {} at once were beyond the limits of the sampler, so calls between services are counted too low.",
            counted(count, "connection", "connections")
        ),
        SocketGap::UnixSockets(count) => format!(
            "Services accepted up to {} over Unix sockets, for which the kernel records no times: these calls are missing \
             where sockets show who waits. Connect over TCP to see them.",
            counted(count, "connection", "connections")
        ),
    }
}

fn sent_by_agent(part: &PartSummary) -> String {
    let PartSummary { agent, threads, of, clock, .. } = part;
    let offset = units::duration(clock.offset_ns.unsigned_abs() as f64);
    let side = if clock.offset_ns < 0 { "behind" } else { "ahead" };
    let sent = units::count(part.sent);
    format!("Agent {agent} sent {sent} requests with {threads} of {of} load threads; its clock was {offset} {side}.")
}

#[cfg(test)]
mod tests {
    use narrows_model::caveat::SampledTraces;

    use super::*;

    #[test]
    fn counts_of_one_and_of_several_are_sentences() {
        let cases = [
            (C::SpansRepeated { spans: 1 }, "1 span came more than once and is kept once."),
            (C::SpansRepeated { spans: 1_200 }, "1,200 spans came more than once and are kept once."),
            (C::MorePlaces { check: "clock-skew".into(), places: 1 }, "1 more place shows the same (clock-skew)."),
            (C::RecordsOverLimit { records: 2 }, "2 records were beyond the run file's limits and left out."),
        ];
        for (caveat, text) in cases {
            assert_eq!(trial_caveat(&caveat), text);
        }
    }

    #[test]
    fn caveats_are_read_back_as_they_were_written() {
        let recovery = Recovery {
            usual: Some(100.0),
            errors: ErrorCounts::default(),
            ended: 3,
            silent_seconds: 0,
            until_ns: 2,
            end: RecoveryEnd::Recovered,
        };
        let sampled = SampledTraces { least: 1.0, usual: 10.0, most: 10.0, thinned: 0, is_sampler: true };
        let action = FaultAction::Paused(1e9);
        let caveats = [
            C::NoSpans,
            C::SampledTraces(sampled),
            C::Fault { replica: "a".into(), action, after_ns: 1.0, at_ns: 1, recovery },
            C::Endpoint { url: "u".into(), fault: EndpointFault::Points { refused: 1 } },
            C::SocketsNotSampled { gap: SocketGap::Namespaces(2) },
        ];
        for caveat in caveats {
            let mut json = serde_json::to_value(&caveat).unwrap();
            json["text"] = trial_caveat(&caveat).into();
            assert_eq!(serde_json::from_value::<C>(json).unwrap(), caveat);
        }
    }
}
