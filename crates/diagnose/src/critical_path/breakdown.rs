//! Where the time of each operation's requests goes: their critical paths, added up by category.
//!
//! Every nanosecond of a request is one category's, so that the parts make up its latency. Time in a span is what the
//! span's category says, with three exceptions. A wait between an attempt that went wrong and its repetition is
//! back-off, where the path leads through the repetition. What passes in a call before its server span begins, beyond
//! what passes after it ends, is a wait for a connection or for a place in the server's queue: the way there and the
//! way back are taken to be equally long. And work while a span of unknown parentage is under way is unknown.
//!
//! A service's own time is then divided by what its threads did (`own.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};

use narrows_model::breakdown::{Breakdown, OwnTime, ServiceThreads, TimeCategory, TimePart};

use super::category::{Names, OWN, categories, is_work};
use super::lost::OrphanSpans;
use super::own::{OwnTimes, shares};
use super::timed_forest::TimedForest;
use super::times::is_call;
use super::waits::{Wait, waits};
use super::walk::{CriticalPath, PathPosition, Section};
use super::{InTrace, by_trace};
use crate::read::Reading;
use crate::read::calls::{Handled, Times};

/// Operations reported: those whose requests took most time together.
const OPERATIONS_MAX: usize = 20;
/// Categories of one operation; the smallest beyond are reported as one.
const PARTS_MAX: usize = 12;
/// Name of the group of the smallest dependencies.
const OTHERS: &str = "others";

/// Time spent in a trial.
#[derive(Debug, Default)]
pub(crate) struct TimeUse {
    /// Time breakdowns of the busiest operations, the largest first.
    pub(crate) breakdowns: Vec<Breakdown>,
    /// Thread activity of each service, by interval.
    pub(crate) threads: Vec<Vec<ServiceThreads>>,
}

/// Walks the critical paths of a trial's requests.
pub(crate) fn spent(reading: &Reading<'_>) -> TimeUse {
    let busiest = busiest(reading);
    let names = Names::new(reading.trial);
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    let mut own = OwnTimes::new(reading);
    for (forest, requests) in by_trace(reading) {
        let at = own.begin(&requests);
        if !requests.iter().any(|(service, operation, _)| busiest.contains(&(*service, *operation))) {
            continue;
        }
        let tree = TimedForest::new(forest);
        let view = TraceView {
            tree: &tree,
            names: &names,
            waits: waits(&tree, &requests, reading.thresholds),
            lost: OrphanSpans::new(&tree),
        };
        add_requests(&view, &requests, at, &busiest, &mut sums, &mut own);
    }
    let threads = own.threads();
    let breakdown =
        |(key, sum): ((&str, &str), Sum)| sum.breakdown(key.0, key.1, &shares(key.0, &threads, reading.intervals));
    let mut breakdowns: Vec<Breakdown> = sums.into_iter().filter_map(breakdown).collect();
    breakdowns.sort_by(|a, b| (b.requests * b.mean_ns).total_cmp(&(a.requests * a.mean_ns)));
    TimeUse { breakdowns, threads }
}

/// The operations whose requests took most time together.
fn busiest<'r>(reading: &Reading<'r>) -> HashSet<(&'r str, &'r str)> {
    let time_of = |all: &[Handled<'_>]| all.iter().map(|handled| handled.weight() * handled.latency_ns()).sum::<f64>();
    let times = reading.operations.iter().map(|((service, operation), all)| (time_of(all), *service, operation));
    let mut times: Vec<(f64, &str, &str)> =
        times.map(|(time, service, operation)| (time, service, &**operation)).collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    times.into_iter().take(OPERATIONS_MAX).map(|(_, service, operation)| (service, operation)).collect()
}

fn add_requests<'r>(
    view: &TraceView<'_>,
    requests: &InTrace<'r>,
    at: Option<usize>,
    busiest: &HashSet<(&str, &str)>,
    sums: &mut BTreeMap<(&'r str, &'r str), Sum>,
    own: &mut OwnTimes<'r>,
) {
    for (service, operation, handled) in
        requests.iter().filter(|(service, operation, _)| busiest.contains(&(*service, *operation)))
    {
        let Some(entry) = view.tree.find(handled.request.entry.span_id) else { continue };
        let sum = sums.entry((*service, *operation)).or_default();
        sum.requests += handled.weight();
        let spent = view.spent(entry);
        if let Some(at) = at {
            own.add(at, service, handled, &spent, view.tree, view.names);
        }
        for (category, ns) in spent {
            *sum.spent.entry(category).or_default() += ns * handled.weight();
        }
    }
}

/// The paths of one operation's requests, added up.
#[derive(Debug, Default)]
struct Sum {
    requests: f64,
    /// Nanoseconds, each as often as its request stands for.
    spent: BTreeMap<TimeCategory, f64>,
}

impl Sum {
    /// `None` if the requests took no time. Own time is divided by these shares.
    fn breakdown(mut self, service: &str, operation: &str, own: &[(OwnTime, f64)]) -> Option<Breakdown> {
        let whole: f64 = self.spent.values().sum();
        if whole <= 0.0 || self.requests <= 0.0 {
            return None;
        }
        if let Some(own_ns) = self.spent.remove(&OWN) {
            self.spent.extend(own.iter().map(|(what, share)| (TimeCategory::Own(what.clone()), own_ns * share)));
        }
        let mut spent: Vec<(TimeCategory, f64)> = self.spent.into_iter().collect();
        spent.sort_by(|a, b| b.1.total_cmp(&a.1));
        if spent.len() > PARTS_MAX {
            let rest = spent.split_off(PARTS_MAX - 1).into_iter().map(|(_, ns)| ns).sum();
            spent.push((TimeCategory::Dependency(OTHERS.into()), rest));
        }
        let part =
            |(category, ns): (TimeCategory, f64)| TimePart { category, mean_ns: ns / self.requests, share: ns / whole };
        Some(Breakdown {
            service: service.into(),
            operation: operation.into(),
            requests: self.requests,
            mean_ns: whole / self.requests,
            parts: spent.into_iter().map(part).collect(),
        })
    }
}

/// A trace with the facts that its tree does not hold.
struct TraceView<'t> {
    tree: &'t TimedForest<'t>,
    names: &'t Names,
    waits: Vec<Wait>,
    lost: OrphanSpans,
}

impl TraceView<'_> {
    /// Time of one request by category, nanoseconds.
    fn spent(&self, entry: usize) -> BTreeMap<TimeCategory, f64> {
        let path = self.tree.path(entry);
        let categories = categories(self.tree, &path, self.names);
        let queued = self.queued(&path);
        let lost = self.lost.within(self.tree, entry);
        let waits = self.waits_on(&path);
        let mut spent: BTreeMap<TimeCategory, f64> = BTreeMap::new();
        for section in &path.sections {
            let Some(category) = categories.get(&section.span) else { continue };
            let mut left = Times::union_of([(section.start_ns, section.end_ns)]);
            let mut take = |category: TimeCategory, times: &Times, left: &mut Times| {
                let rest = left.without(times);
                let ns = left.length_ns() - rest.length_ns();
                if ns > 0.0 {
                    *spent.entry(category).or_default() += ns;
                }
                *left = rest;
            };
            for wait in self.in_section(&waits, section) {
                let refused = TimeCategory::BackOff(self.names.refuser(self.tree, wait.failed));
                take(refused, &Times::union_of([(wait.start_ns, wait.end_ns)]), &mut left);
            }
            if let Some(until_ns) = queued.get(&(section.span, section.end_ns)) {
                take(TimeCategory::Pool, &Times::union_of([(*until_ns, section.end_ns)]), &mut left);
            }
            if is_work(self.tree.span(section.span)) {
                take(TimeCategory::Unknown, &lost, &mut left);
            }
            let all = Times::union_of([(section.start_ns, section.end_ns)]);
            take(category.clone(), &all, &mut left);
        }
        spent
    }

    /// The waits whose repetition this path leads through, in order of start.
    fn waits_on(&self, path: &CriticalPath) -> Vec<Wait> {
        if self.waits.is_empty() {
            return Vec::new();
        }
        let is_on = |standing: &&super::PathSpan| matches!(standing.place, PathPosition::OnPath { .. });
        let on_path: HashSet<usize> = path.standings.iter().filter(is_on).map(|standing| standing.span).collect();
        self.waits.iter().filter(|wait| on_path.contains(&wait.next)).copied().collect()
    }

    /// Those waits that pass in this section: its span is above the repetition.
    fn in_section<'w>(&'w self, waits: &'w [Wait], section: &'w Section) -> impl Iterator<Item = &'w Wait> {
        let before_end = &waits[..waits.partition_point(|wait| wait.start_ns < section.end_ns)];
        let is_above = |wait: &&Wait| {
            std::iter::successors(self.tree.parent(wait.next), |at| self.tree.parent(*at)).any(|at| at == section.span)
        };
        before_end.iter().rev().take_while(|wait| wait.end_ns > section.start_ns).filter(is_above)
    }

    /// The sections of calls that pass before the called service begins: since when the call waits there, by span and
    /// end of the section.
    fn queued(&self, path: &CriticalPath) -> HashMap<(usize, i64), i64> {
        let mut calls: HashMap<usize, (i64, f64)> = HashMap::new();
        for standing in path.standings.iter().filter(|standing| matches!(standing.place, PathPosition::OnPath { .. })) {
            let Some(parent) = self.tree.parent(standing.span) else { continue };
            if is_call(self.tree.span(parent), self.tree.span(standing.span)) {
                calls.insert(parent, (self.tree.placed(standing.span).start_ns, 0.0));
            }
        }
        for section in &path.sections {
            if let Some((begins_ns, after)) = calls.get_mut(&section.span)
                && section.start_ns >= *begins_ns
            {
                *after += (section.end_ns - section.start_ns) as f64;
            }
        }
        let before = path.sections.iter().filter_map(|section| {
            let (begins_ns, after) = calls.get(&section.span)?;
            let queued = (section.end_ns - section.start_ns) as f64 - after;
            let is_before = section.end_ns == *begins_ns && queued > 0.0;
            is_before.then(|| ((section.span, section.end_ns), section.end_ns - queued as i64))
        });
        before.collect()
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::series::ThreadState;
    use narrows_testkit::spans::{SpanBuilder, client, database, document_query, internal, query, server};
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;
    use crate::thresholds::Thresholds;

    fn breakdowns(trial: TrialBuilder) -> Vec<Breakdown> {
        let trial = trial.build();
        let all = Reading::with(&trial, &Thresholds::default(), spent).breakdowns;
        for one in &all {
            let (shares, means) = one.parts.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.share, sum.1 + p.mean_ns));
            assert!((shares - 1.0).abs() < 1e-9 && (means - one.mean_ns).abs() < 1.0, "{one:?}");
        }
        all
    }

    /// The parts of the trace's first operation in milliseconds, by category.
    fn parts(root: SpanBuilder) -> Vec<(TimeCategory, f64)> {
        let trial = TrialBuilder::new("a").service("documents", None).traces([root.trace(1)]);
        let all = breakdowns(trial);
        let first = all.into_iter().find(|one| one.service == "shop").unwrap();
        let mut parts: Vec<_> = first.parts.into_iter().map(|part| (part.category, part.mean_ns / 1e6)).collect();
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        parts
    }

    fn request() -> SpanBuilder {
        server("shop", "GET /orders").at(0.0, 100.0)
    }

    fn to(name: &str) -> TimeCategory {
        TimeCategory::Dependency(name.into())
    }

    #[test]
    fn work_and_dependencies_make_up_a_request() {
        let store = query("SELECT a FROM t").at(30.0, 20.0);
        let parts_below = client("GET").at(20.0, 40.0).child(server("parts", "GET /parts").at(25.0, 30.0).child(store));
        let view = parts(request().children([internal("render").at(80.0, 10.0), parts_below]));
        assert_eq!(view, [(OWN, 60.0), (to("parts"), 20.0), (to("postgresql"), 20.0)]);
        let named = document_query("SELECT a FROM t", "0").to_port(FIRST_PORT).at(10.0, 30.0);
        let carried = named.clone().child(client("POST").url("http://127.0.0.1:1/").at(12.0, 20.0));
        let expected = [(OWN, 70.0), (to("documents"), 30.0)];
        assert_eq!(parts(request().child(named)), expected, "by its port");
        assert_eq!(parts(request().child(carried)), expected, "what carries a query is part of it");
        let outside = client("GET").url("https://api.example/v1?x=1").at(10.0, 30.0);
        assert_eq!(parts(request().child(outside)), [(OWN, 70.0), (to("api.example"), 30.0)], "no spans of its own");
    }

    #[test]
    fn behind_a_sidecar_a_database_is_called_as_without_one() {
        let through = query("SELECT a FROM t").to_port(FIRST_PORT + 7).at(10.0, 30.0);
        let trial = TrialBuilder::new("a").service("store", None).stand_in_port(FIRST_PORT + 7);
        let view = breakdowns(trial.traces([request().child(through).trace(1)])).remove(0).parts;
        assert!(view.iter().any(|part| part.category == to("store") && part.mean_ns == 30e6), "{view:?}");
    }

    #[test]
    fn each_service_has_its_own_view() {
        let trace = request()
            .child(
                client("GET")
                    .at(10.0, 80.0)
                    .child(server("parts", "GET /parts").at(20.0, 60.0).child(query("SELECT a FROM t").at(30.0, 40.0))),
            )
            .trace(1);
        let all = breakdowns(TrialBuilder::new("a").traces([trace]));
        let view: Vec<_> =
            all.iter().map(|one| (one.service.as_str(), one.operation.as_str(), one.mean_ns / 1e6)).collect();
        assert_eq!(view, [("shop", "GET /orders", 100.0), ("parts", "GET /parts", 60.0)]);
        let shares: Vec<_> = all[1].parts.iter().map(|part| (part.category.clone(), part.share)).collect();
        assert_eq!(shares, [(to("postgresql"), 40.0 / 60.0), (OWN, 20.0 / 60.0)]);
    }

    #[test]
    fn own_time_is_divided_by_what_threads_do() {
        let root = |start_ms: f64| {
            server("shop", "GET /orders").at(start_ms, 80.0).child(query("SELECT a FROM t").at(start_ms + 20.0, 40.0))
        };
        let load = Load { vus: 4, rate: 50.0, latency_ms: 80.0 };
        let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.5).steady(20, load);
        let trial =
            trial.threads("shop", 0, &[(ThreadState::Lock, "", 9.0), (ThreadState::Network, "10.0.0.5:5432", 2.0)]);
        let all = breakdowns(trial.traces((0..20).map(|n| root(1000.0 * f64::from(n)).trace(n))));
        let parts: Vec<_> =
            all[0].parts.iter().map(|part| (part.category.clone(), part.mean_ns.round() / 1e6)).collect();
        // Of two requests in own time at any moment, half a one is on a processor; two threads are in the queries.
        let own = |what| TimeCategory::Own(what);
        assert_eq!(parts, [(to("postgresql"), 40.0), (own(OwnTime::Lock), 30.0), (own(OwnTime::OnCpu), 10.0)]);
    }

    #[test]
    fn waits_for_connections_are_distinguished() {
        use TimeCategory::Pool;
        let pool = internal("pg-pool.connect").at(10.0, 30.0);
        let view = parts(request().children([pool, query("SELECT a FROM t").at(40.0, 20.0)]));
        assert_eq!(view, [(OWN, 50.0), (Pool, 30.0), (to("postgresql"), 20.0)]);
        let inside = query("SELECT a FROM t").at(10.0, 60.0).child(database("connect").at(10.0, 40.0));
        assert_eq!(parts(request().child(inside)), [(OWN, 40.0), (Pool, 40.0), (to("postgresql"), 20.0)]);
        let call =
            |server_at: f64| client("GET").at(10.0, 80.0).child(server("parts", "GET /parts").at(server_at, 20.0));
        let queued = [(OWN, 20.0), (Pool, 50.0), (to("parts"), 30.0)];
        assert_eq!(parts(request().child(call(65.0))), queued, "55 ms before, 5 ms after");
        assert_eq!(parts(request().child(call(40.0))), [(OWN, 20.0), (to("parts"), 80.0)], "the way there and back");
        assert_eq!(parts(request().child(call(5_000.0))), [(OWN, 20.0), (to("parts"), 80.0)], "another clock");
    }

    #[test]
    fn waits_after_refusals_are_back_off() {
        use TimeCategory::BackOff;
        let attempt = |start_ms| document_query("SELECT a FROM t", "0").to_port(FIRST_PORT).at(start_ms, 10.0);
        let back_off = || BackOff("documents".into());
        let refused = request().children([attempt(10.0).throttled(Some(30.0)), attempt(50.0)]);
        assert_eq!(parts(refused), [(OWN, 50.0), (back_off(), 30.0), (to("documents"), 20.0)]);
        let failed = request().children([attempt(10.0).failed(), attempt(50.0)]);
        assert_eq!(parts(failed), [(OWN, 50.0), (back_off(), 30.0), (to("documents"), 20.0)]);
        let beside = request().children([attempt(10.0).failed(), attempt(50.0), internal("work").at(5.0, 90.0)]);
        assert_eq!(parts(beside), [(OWN, 100.0)], "it is off the critical path");
        let fine = request().children([attempt(10.0), attempt(50.0)]);
        assert_eq!(parts(fine), [(OWN, 80.0), (to("documents"), 20.0)]);
        let below =
            server("parts", "GET /parts").at(5.0, 80.0).children([attempt(10.0).throttled(None), attempt(50.0)]);
        let view = parts(request().child(client("GET").at(5.0, 80.0).child(below)));
        assert_eq!(view, [(OWN, 20.0), (back_off(), 30.0), (to("documents"), 20.0), (to("parts"), 30.0)]);
    }

    #[test]
    fn a_span_without_its_parent_leaves_time_unknown() {
        use TimeCategory::Unknown;
        let lost_call = |other: Option<[u8; 8]>| {
            let mut trace = request()
                .child(client("GET").at(10.0, 60.0).child(server("parts", "GET /parts").at(20.0, 40.0)))
                .trace(1);
            trace.spans.remove(1);
            trace.spans[0].parent_id = other;
            let parent = trace.spans[1].parent_id;
            let all = breakdowns(TrialBuilder::new("a").traces([trace]));
            (all[0].parts.iter().map(|part| (part.category.clone(), part.mean_ns / 1e6)).collect::<Vec<_>>(), parent)
        };
        let (view, missing) = lost_call(None);
        assert_eq!(view, [(OWN, 60.0), (Unknown, 40.0)]);
        assert_eq!(lost_call(Some([9; 8])).0, view, "a caller that sends no spans");
        assert_eq!(lost_call(missing).0, [(OWN, 100.0)], "another call of that caller");
    }

    #[test]
    fn what_goes_on_after_the_response_costs_nothing() {
        let background = client("POST").url("http://audit/").at(90.0, 400.0);
        assert_eq!(parts(request().children([background])), [(OWN, 100.0)]);
    }

    #[test]
    fn traces_count_as_often_as_they_stand_for_and_the_rest_is_folded() {
        let many = |n: u32| {
            let calls = (0..30)
                .map(|i| client("GET").url(&format!("http://host-{i}/")).at(f64::from(i) * 3.0, 2.0 + f64::from(n)));
            request().children(calls)
        };
        let traces = [many(0).weighted_trace(1, 3.0), many(1).weighted_trace(2, 1.0)];
        let all = breakdowns(TrialBuilder::new("a").traces(traces));
        assert_eq!((all.len(), all[0].requests, all[0].parts.len()), (1, 4.0, PARTS_MAX));
        assert!(all[0].parts.iter().any(|part| part.category == to(OTHERS)));
        assert!((all[0].parts[0].mean_ns - (3.0 * 40.0 + 10.0) / 4.0 * 1e6).abs() < 1.0, "{:?}", all[0].parts[0]);
    }
}
