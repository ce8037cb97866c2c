//! Identities that hold for every system, and what it means when a trial's figures break one: the figures are wrong, or
//! are not about what they seem to be.
//!
//! - *Little's law*: requests under way = throughput × the time each takes. They can never be more than the users of a
//!   closed load, and are all of them without think time.
//! - *The utilisation law*: use of a resource = throughput × what each request costs it. So a service's CPU follows the
//!   requests along a line; and it can be no more than its limit, nor all together more than the machine's.
//! - *Forced flow*: what a service handles is what the others call. (All three: Denning and Buzen, *The Operational
//!   Analysis of Queueing Network Models*, ACM Computing Surveys 1978.)
//!
//! Every interval of load is checked; the worst violation of each law and resource is reported once. Tolerances leave
//! room for noise, short windows and sampled traces. Which figure is the wrong one is not decided here. The results are
//! caveats, reported before any finding.

use narrows_model::caveat::{Law, TrialCaveat};
use narrows_model::evidence::TrialEvidence;
use narrows_model::run::{Machine, ServiceInstance};
use narrows_model::series::names;

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::levels::{Level, levels};

/// Levels of load of which a line is drawn.
const LINE_LEVELS_MIN: usize = 4;
/// The load must spread by this factor for a line.
const LINE_SPREAD_MIN: f64 = 2.0;
/// Standard errors of a count that are noise.
const COUNT_ERRORS: f64 = 3.0;

/// Laws that this trial's figures break; empty if none is broken or too little is known.
pub(crate) fn broken(reading: &Reading<'_>) -> Vec<TrialCaveat> {
    let levels = levels(reading);
    let mut broken: Vec<TrialCaveat> = too_many_under_way(reading, &levels).into_iter().collect();
    broken.extend(too_few_under_way(reading, &levels));
    broken.extend(beyond_limits(reading));
    broken.extend(beyond_machine(reading));
    broken.extend(off_the_line(reading, &levels));
    broken.extend(lost_calls(reading));
    broken
}

/// Levels of a closed load alone, with hardly a failure: the time that failed requests take is not known.
fn closed<'l, 'a>(reading: &Reading<'_>, levels: &'l [Level<'a>]) -> impl Iterator<Item = &'l Level<'a>> {
    let failed_max = reading.thresholds.law_error_share;
    let is_closed = |interval: &Interval| interval.offered.is_none() && interval.vus > 0;
    levels.iter().filter(move |level| is_closed(level.interval) && level.error_rate() <= failed_max)
}

/// Requests that were under way when the window began count in full: as many seconds' worth as each takes.
fn tolerance(reading: &Reading<'_>, interval: &Interval) -> f64 {
    reading.thresholds.law_tolerance + interval.service_ns / 1e9 / interval.seconds().max(1.0)
}

fn little(interval: &Interval) -> Law {
    Law {
        rate: interval.rate,
        latency_ns: interval.service_ns,
        under_way: interval.in_flight(),
        window: interval.label.clone(),
    }
}

fn too_many_under_way(reading: &Reading<'_>, levels: &[Level<'_>]) -> Option<TrialCaveat> {
    let excess = |interval: &Interval| interval.share_under_way() - 1.0 - tolerance(reading, interval);
    let worst = closed(reading, levels).map(|level| level.interval).max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
    (excess(worst) > 0.0).then(|| TrialCaveat::TooManyUnderWay { law: little(worst), users: worst.vus })
}

/// Users without think time under the lightest load have none under a heavier one.
fn too_few_under_way(reading: &Reading<'_>, levels: &[Level<'_>]) -> Option<TrialCaveat> {
    let lightest = closed(reading, levels).min_by_key(|level| level.interval.vus)?.interval;
    let lacking = |interval: &Interval| 1.0 - interval.share_under_way() - tolerance(reading, interval);
    let heavier = closed(reading, levels).map(|level| level.interval).filter(|interval| interval.vus > lightest.vus);
    let worst = heavier.max_by(|a, b| lacking(a).total_cmp(&lacking(b)))?;
    (lightest.is_without_think_time() && lacking(worst) > 0.0).then(|| TrialCaveat::TooFewUnderWay {
        law: little(worst),
        users: worst.vus,
        lightest: lightest.label.clone(),
    })
}

/// Services that used more CPU than they may.
fn beyond_limits(reading: &Reading<'_>) -> Vec<TrialCaveat> {
    let cores_of = |instance: &ServiceInstance, interval: &Interval| {
        let key = (names::CPU_CORES, instance.service.as_str(), instance.replica);
        interval.median_of(reading.trial, key, reading.thresholds)
    };
    let of = |instance: &ServiceInstance| {
        let cap = instance.cpu_limit_cores.filter(|cap| *cap > 0.0)?;
        let each = reading.intervals.iter().filter_map(|interval| Some((cores_of(instance, interval)?, interval)));
        let (cores, interval) = each.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (cores > (1.0 + reading.thresholds.law_tolerance) * cap).then(|| TrialCaveat::CpuBeyondLimit {
            service: instance.service.clone(),
            cores,
            window: interval.label.clone(),
            limit: cap,
        })
    };
    let mut broken: Vec<TrialCaveat> = reading.trial.services.iter().filter_map(of).collect();
    broken.dedup();
    broken
}

/// All processes of the run together used more than the machine did.
fn beyond_machine(reading: &Reading<'_>) -> Option<TrialCaveat> {
    let trial: &TrialEvidence = reading.trial;
    let thresholds = reading.thresholds;
    let each = reading.intervals.iter().filter_map(|interval| {
        let share = interval.median_of(trial, (names::HOST_CPU_UTILIZATION, "", 0), thresholds)?;
        let of = |service: &str, replica| interval.median_of(trial, (names::CPU_CORES, service, replica), thresholds);
        let here = trial.services.iter().filter(|instance| instance.machine == Machine::Here);
        let services: f64 = here.filter_map(|i| of(&i.service, i.replica)).sum();
        Some((services + of(names::GENERATOR, 0).unwrap_or(0.0), share * f64::from(trial.cores.max(1)), interval))
    });
    let (own, machine, interval) = each.max_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1)))?;
    (own > (1.0 + thresholds.law_tolerance) * machine + thresholds.law_cores).then(|| TrialCaveat::CpuBeyondMachine {
        cores: own,
        window: interval.label.clone(),
        machine,
    })
}

/// Services whose CPU does not follow the requests along a line.
fn off_the_line(reading: &Reading<'_>, levels: &[Level<'_>]) -> Vec<TrialCaveat> {
    let cpu = Cpu::new(reading);
    let of = |service: &str| {
        let points: Vec<(&Interval, f64)> = levels
            .iter()
            .filter_map(|level| Some((level.interval, cpu.service_cores(service, level.interval)?)))
            .collect();
        let line = Line::through(&points.iter().map(|(interval, cores)| (interval.sent, *cores)).collect::<Vec<_>>())?;
        let off = |(interval, cores): &(&Interval, f64)| cores - line.at(interval.sent);
        let worst = points.iter().max_by(|a, b| off(a).abs().total_cmp(&off(b).abs()))?;
        let (interval, cores) = *worst;
        let thresholds = reading.thresholds;
        let is_far = off(worst).abs() > (thresholds.law_line_share * cores).max(thresholds.law_cores);
        is_far.then(|| TrialCaveat::CpuOffLine {
            service: service.to_owned(),
            cores,
            rate: interval.sent,
            window: interval.label.clone(),
            line: line.at(interval.sent).max(0.0),
        })
    };
    reading.trial.service_names().into_iter().filter_map(of).collect()
}

/// CPU that is used anyway, and by each request.
struct Line {
    idle: f64,
    each: f64,
}

impl Line {
    /// Least squares; none with too few points or too little spread. Neither part is below 0.
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        let most = points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
        let least = points.iter().map(|(rate, _)| *rate).fold(f64::INFINITY, f64::min);
        if points.len() < LINE_LEVELS_MIN || most <= 0.0 || most < LINE_SPREAD_MIN * least {
            return None;
        }
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (rate, cores) = (mean(|point| point.0), mean(|point| point.1));
        let squares: f64 = points.iter().map(|point| (point.0 - rate).powi(2)).sum();
        let products: f64 = points.iter().map(|point| (point.0 - rate) * (point.1 - cores)).sum();
        let each = (products / squares).max(0.0);
        let idle = cores - each * rate;
        if idle >= 0.0 {
            return Some(Self { idle, each });
        }
        let through_zero: f64 = points.iter().map(|point| point.0 * point.1).sum();
        Some(Self { idle: 0.0, each: through_zero / points.iter().map(|point| point.0.powi(2)).sum::<f64>() })
    }

    fn at(&self, rate: f64) -> f64 {
        self.idle + self.each * rate
    }
}

/// Calls to a service of the trial for which it has no server spans.
fn lost_calls(reading: &Reading<'_>) -> Vec<TrialCaveat> {
    let trial = reading.trial;
    let of = |service: &str| {
        let ports: Vec<String> =
            trial.services.iter().filter(|i| i.service == service).map(|i| format!(":{}", i.port)).collect();
        let handled: f64 =
            trial.operations.iter().filter(|o| o.service == service).map(|o| o.completed + o.failed).sum();
        let calls = trial.operations.iter().flat_map(|operation| &operation.calls);
        let is_meant = |target: &str| ports.iter().any(|port| target.ends_with(port.as_str()));
        // A call that failed may not have arrived.
        let called: f64 = calls.filter(|call| is_meant(&call.target)).map(|call| call.succeeded + call.throttled).sum();
        let weight = trial.traces.iter().map(|trace| trace.weight).fold(1.0, f64::max);
        let thresholds = reading.thresholds;
        let noise = COUNT_ERRORS * (weight / called.max(1.0)).sqrt();
        let is_lost = handled > 0.0
            && called >= thresholds.law_calls
            && handled < (1.0 - thresholds.law_flow_share - noise) * called;
        is_lost.then(|| TrialCaveat::CallsLost {
            service: service.to_owned(),
            called: called.round() as u64,
            handled: handled.round() as u64,
        })
    };
    trial.service_names().into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::operation::CallEvidence;
    use narrows_testkit::operations::operation;
    use narrows_testkit::spans::server;
    use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

    use super::*;
    use crate::thresholds::Thresholds;
    use crate::words::trial_caveat;

    fn said(trial: TrialBuilder) -> Vec<String> {
        let broken = Reading::with(&trial.build(), &Thresholds::default(), broken);
        broken.iter().map(trial_caveat).collect()
    }

    /// Ten seconds for each of users, rate and latency.
    fn steps(levels: &[(u32, f64, f64)]) -> TrialBuilder {
        let trial = TrialBuilder::new("a").service("shop", Some(1.0)).service("stock", None);
        levels.iter().fold(trial, |trial, (vus, rate, latency_ms)| {
            trial.steady(10, Load { vus: *vus, rate: *rate, latency_ms: *latency_ms })
        })
    }

    const EASY: [(u32, f64, f64); 4] = [(2, 100.0, 20.0), (4, 200.0, 20.0), (8, 380.0, 21.0), (16, 400.0, 40.0)];

    #[test]
    fn littles_law_bounds_what_is_under_way() {
        let said_of = said(steps(&[(2, 100.0, 20.0), (4, 100.0, 80.0)]));
        assert_eq!(
            said_of,
            [
                "Little's law is broken: 100/s × 80.0 ms = 8 requests under way in “4 users”, but there are only 4 users. A \
              latency or a throughput of this trial is not what it seems."
            ]
        );
        let lacking = said(steps(&[(2, 100.0, 20.0), (4, 200.0, 20.0), (40, 400.0, 60.0)]));
        assert!(
            lacking[0].contains("= 24 requests under way in “40 users”, but 40 users that do not think"),
            "{lacking:?}"
        );
    }

    #[test]
    fn the_utilisation_law_holds_for_limits_and_the_machine() {
        let over = said(steps(&EASY).cpu("shop", 0, |_| 1.3));
        assert!(over[0].contains("shop used 1.30 cores in “16 users”, but its limit is 1"), "{over:?}");
        let more = said(steps(&EASY).cpu("stock", 0, |_| 3.0).host_cpu(|_| 0.25));
        assert!(more[0].contains("used 3 cores in “16 users”, but the machine only 1"), "{more:?}");
    }

    #[test]
    fn cpu_follows_requests_along_a_line() {
        let rates = [100.0, 200.0, 380.0, 400.0];
        let with = move |of: fn(usize) -> f64| {
            said(steps(&EASY).cpu("stock", 0, move |second| {
                let level = second as usize / 10;
                0.1 + 0.002 * rates[level] + of(level)
            }))
        };
        assert_eq!(with(|_| 0.0), [""; 0]);
        assert_eq!(with(|level| 0.02 * level as f64), [""; 0]);
        let off = with(|level| if level == 1 { 1.5 } else { 0.0 });
        assert!(
            off[0].starts_with("The utilisation law has no single cost of a request in stock: 2 cores at 200/s"),
            "{off:?}"
        );
    }

    fn calls(called: f64, handled: u32) -> TrialBuilder {
        let mut orders = operation("shop", "GET /", 40, called / 40.0, 20.0);
        let target = format!("127.0.0.1:{}", FIRST_PORT + 1);
        orders.calls = vec![CallEvidence { target, name: "GET".into(), succeeded: called, ..CallEvidence::default() }];
        let stock = operation("stock", "GET /stock", 1, f64::from(handled), 5.0);
        steps(&EASY).operation(orders).operation(stock)
    }

    #[test]
    fn calls_show_up_at_the_callee() {
        let lost = said(calls(1000.0, 600));
        assert_eq!(
            lost,
            ["Forced flow is broken: stock responded to 1,000 calls, but its own spans show 600 requests. Spans \
              of stock are missing, so its time and its calls are counted too low."]
        );
        assert_eq!(said(calls(1000.0, 760)), [""; 0]);
        assert_eq!(said(calls(1000.0, 1500)), [""; 0], "others may call it too");
        assert_eq!(said(calls(100.0, 20)), [""; 0], "too few to tell");
        let weighted = calls(1000.0, 600).traces([server("shop", "GET /").weighted_trace(1, 64.0)]);
        assert_eq!(said(weighted), [""; 0], "sampling may have done that");
    }

    #[test]
    fn sound_figures_break_no_law() {
        let thinking = [(10, 20.0, 50.0), (20, 39.0, 60.0), (40, 70.0, 90.0), (80, 80.0, 400.0)];
        let open = (1..=4).fold(TrialBuilder::new("a").service("shop", None), |trial, step| {
            let rate = 50.0 * f64::from(step);
            trial.arrivals(10, rate, Load { vus: 1, rate, latency_ms: 100.0 })
        });
        for (name, trial) in [
            ("users without think time", steps(&EASY)),
            ("users think", steps(&thinking)),
            ("an open load", open),
            ("users unknown", steps(&[(0, 100.0, 80.0)])),
            ("long requests in a short window", steps(&[(8, 1.0, 9000.0)])),
            ("no load", TrialBuilder::new("a").service("shop", None)),
            ("a noisy start", steps(&EASY).cpu("stock", 0, |second| if second == 3 { 3.0 } else { 0.4 })),
        ] {
            assert_eq!(said(trial), [""; 0], "with {name}");
        }
    }
}
