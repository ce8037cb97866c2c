//! Tests of the verdict on the limit of a trial.

use narrows_model::finding::FindingKind;
use narrows_model::limit::{Ask, LimitSign, LimitVerdict, Unclear};
use narrows_model::run::{Verdict, WindowKind};
use narrows_model::series::{ThreadState, names};
use narrows_testkit::spans::{client, server};
use narrows_testkit::trial::{Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::{limit_advice, limit_headline, limit_reason};

fn judged(trial: TrialBuilder) -> Limit {
    Reading::with(&trial.build(), &Thresholds::default(), |reading| {
        let findings = crate::findings(reading);
        limit(reading, &findings)
    })
}

/// Twenty seconds for each of users, rate and latency; the system's CPU is idle.
fn closed(levels: &[(u32, f64, f64)]) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.2).host_cpu(|_| 0.1);
    levels.iter().fold(trial, |trial, (vus, rate, latency_ms)| {
        trial.steady(20, Load { vus: *vus, rate: *rate, latency_ms: *latency_ms })
    })
}

fn open(offered: f64, rate: f64, latency_ms: f64) -> TrialBuilder {
    let trial = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.2).host_cpu(|_| 0.1);
    trial.arrivals(20, offered, Load { vus: 8, rate, latency_ms })
}

/// Traces of requests that take `latency_ms`, all but a tenth of it in a call to `bank`.
fn calls_to_the_bank(trial: TrialBuilder, latency_ms: f64) -> TrialBuilder {
    let call = || {
        client("POST").at(0.05 * latency_ms, 0.9 * latency_ms).facts(|facts| {
            facts.server_address = Some("bank".to_owned());
        })
    };
    trial.traces((0..20).map(|n| server("shop", "GET /").at(0.0, latency_ms).child(call()).trace(n)))
}

#[test]
fn flat_throughput_with_an_idle_cpu_is_latency_in_proportion() {
    let limit = judged(closed(&[(1, 176.0, 5.68), (4, 177.0, 22.6), (16, 176.0, 90.9)]));
    let LimitVerdict::NotCpu { sign: LimitSign::FlatThroughput { lighter, heavier }, place } = &limit.verdict else {
        panic!("{limit:?}")
    };
    assert_eq!((lighter.level.users, heavier.level.users), (1, 16));
    assert_eq!(place.as_ref().map(|place| place.name.as_str()), Some("shop"));
    assert!(
        limit_reason(&limit.verdict)
            .starts_with("176/s with 1 user and with 16 users, so latency grows in proportion to the requests in flight; it uses 0.20"),
        "{}",
        limit_reason(&limit.verdict)
    );
    assert_eq!(limit_headline(&limit.verdict), "limited by something at shop that is not CPU");
    assert!(limit_advice(&limit.verdict).starts_with("look for a lock"), "{}", limit_advice(&limit.verdict));
    assert_eq!(limit.knee, Some(0));
}

#[test]
fn throughput_that_falls_behind_thinking_users_is_not_below_the_limit() {
    let limit = judged(closed(&[(1, 7.3, 41.0), (6, 21.7, 178.0), (16, 36.3, 322.0)]));
    assert!(
        matches!(&limit.verdict, LimitVerdict::NotCpu { sign: LimitSign::Queueing { .. }, .. }),
        "{:?}",
        limit.verdict
    );
    let followed = judged(closed(&[(1, 7.3, 41.0), (6, 43.0, 42.0), (16, 105.0, 51.0)]));
    assert!(matches!(followed.verdict, LimitVerdict::BelowLimit { .. }), "{:?}", followed.verdict);
}

#[test]
fn a_full_machine_is_a_limit_though_the_first_level_was_no_faster() {
    let full = |prices: f64| {
        let trial = TrialBuilder::new("a").service("prices", None).cores(2).cpu("prices", 0, move |_| prices);
        let levels = [(1, 21.0, 47.0), (6, 154.0, 38.5), (11, 224.0, 49.0), (16, 265.0, 59.5)];
        let steps = levels.iter().fold(trial.host_cpu(|_| 1.0), |trial, (vus, rate, latency_ms)| {
            trial.steady(20, Load { vus: *vus, rate: *rate, latency_ms: *latency_ms })
        });
        judged(steps.series(names::CPU_WAIT, "prices", 0, |_| 1.0))
    };
    let limit = full(1.6);
    assert!(matches!(&limit.verdict, LimitVerdict::Cpu { mostly: Some(most), .. } if most == "prices"), "{limit:?}");
    assert!(
        limit_reason(&limit.verdict)
            .contains("(services 80 %, other programs 20 %; prices uses most of the services' share)"),
        "{}",
        limit_reason(&limit.verdict)
    );
    assert_eq!(limit_advice(&limit.verdict), "run it on a machine that does nothing else");
    let limit = full(0.9);
    assert!(matches!(limit.verdict, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } }), "{limit:?}");
}

#[test]
fn a_lighter_load_of_several_users_is_where_latency_begins_to_grow() {
    let limit = judged(closed(&[(4, 176.0, 22.7), (16, 177.0, 90.4)]));
    assert!(
        limit_reason(&limit.verdict).contains("grows in proportion to the requests in flight beyond 4;"),
        "{}",
        limit_reason(&limit.verdict)
    );
    assert_eq!(limit.knee, None, "two levels have no knee");
}

#[test]
fn the_place_is_where_the_critical_path_spends_its_time() {
    let limit = judged(calls_to_the_bank(closed(&[(1, 50.0, 20.0), (8, 51.0, 157.0)]), 90.0));
    assert_eq!(limit_headline(&limit.verdict), "limited by something at bank that is not CPU");
    assert!(
        limit_reason(&limit.verdict).ends_with("90 % of the latency passes in calls to it"),
        "{}",
        limit_reason(&limit.verdict)
    );
}

#[test]
fn time_outside_the_spans_is_named() {
    let limit = judged(calls_to_the_bank(closed(&[(1, 50.0, 20.0), (8, 51.0, 157.0)]), 15.0));
    assert_eq!(limit_headline(&limit.verdict), "limited by something at shop that is not CPU");
    assert!(
        limit_reason(&limit.verdict).contains("90 % of the latency passes before its spans begin or after they end"),
        "{}",
        limit_reason(&limit.verdict)
    );
}

#[test]
fn what_threads_wait_for_is_named() {
    // Four at work: one would be a finding.
    let stepped = || closed(&[(1, 44.0, 22.7), (4, 176.0, 22.7), (16, 177.0, 90.4)]);
    let limit = |states: &[(ThreadState, &str, f64)]| judged(stepped().threads("shop", 0, states));
    // Threads in a state under 16 users; fewer users leave none there.
    let waiting = |trial: TrialBuilder, state: ThreadState, threads: f64| {
        let label = [(names::THREAD_STATE, state.as_str())];
        let under = move |second: u32| if second < 40 { 0.0 } else { threads };
        trial.labelled_series(names::THREAD_STATES, ("shop", 0), &label, under)
    };
    let idle = || stepped().threads("shop", 0, &[]);
    let locked = waiting(waiting(idle(), ThreadState::Sleep, 3.8), ThreadState::Lock, 12.0);
    let locked = judged(locked);
    assert_eq!(limit_headline(&locked.verdict), "limited by waits for a lock at shop");
    assert!(
        limit_reason(&locked.verdict)
            .ends_with("its threads wait for a lock (12 of 16 requests), and it uses 0.20 cores"),
        "{}",
        limit_reason(&locked.verdict)
    );
    assert_eq!(limit_advice(&locked.verdict), "");
    let sleeping = judged(waiting(waiting(idle(), ThreadState::Lock, 2.0), ThreadState::Sleep, 13.0));
    assert_eq!(limit_headline(&sleeping.verdict), "limited by sleeps at shop");
    let bank = limit(&[(ThreadState::Network, "10.0.0.5:443", 15.0)]);
    assert_eq!(limit_headline(&bank.verdict), "limited by waits for 10.0.0.5:443 at shop");
    let unseen = limit(&[(ThreadState::Events, "", 4.0)]);
    assert_eq!(limit_headline(&unseen.verdict), "limited by something at shop that is not CPU");
    assert!(limit_reason(&unseen.verdict).contains("no thread waits with them"), "{}", limit_reason(&unseen.verdict));
    let level = &locked.levels[2].threads[0];
    assert_eq!((level.service.as_str(), level.threads.lock, level.own.len()), ("shop", 12.0, 3));
}

#[test]
fn growing_throughput_is_below_the_limit() {
    let limit = judged(closed(&[(1, 100.0, 10.0), (4, 400.0, 10.0), (8, 790.0, 10.1)]));
    assert!(matches!(limit.verdict, LimitVerdict::BelowLimit { .. }), "{limit:?}");
    assert_eq!(limit_headline(&limit.verdict), "below its limit");
    assert_eq!(limit.knee, None, "the last level is the best");
}

/// Two seconds each, joined to intervals of several loads because that is too short for a median.
fn short_steps(levels: &[(u32, f64, f64)], shop_cores: f64, host_share: f64) -> Limit {
    steps_of(2, levels, shop_cores, host_share)
}

fn steps_of(seconds: usize, levels: &[(u32, f64, f64)], shop_cores: f64, host_share: f64) -> Limit {
    let trial = TrialBuilder::new("a").service("shop", None).cores(2);
    let trial = trial.cpu("shop", 0, move |_| shop_cores).host_cpu(move |_| host_share);
    let load = |(vus, rate, latency_ms): &(u32, f64, f64)| Load { vus: *vus, rate: *rate, latency_ms: *latency_ms };
    judged(levels.iter().fold(trial, |trial, level| trial.steady(seconds, load(level))))
}

/// Users who think for 200 ms, as many as the system carries.
const CARRIED: [(u32, f64, f64); 6] =
    [(1, 3.0, 130.0), (5, 15.0, 130.0), (9, 27.0, 130.0), (20, 60.0, 133.0), (30, 90.0, 135.0), (40, 119.0, 137.0)];

#[test]
fn short_steps_whose_throughput_follows_the_users_are_below_the_limit() {
    let limit = short_steps(&CARRIED, 0.4, 0.6);
    assert!(limit.levels.iter().all(|level| !level.is_steady), "{:?}", limit.levels);
    assert_eq!(limit_headline(&limit.verdict), "below its limit");
    assert_eq!(
        limit_reason(&limit.verdict),
        "throughput still grew with the load, from 3.00/s with 1 user to 119/s with 40 users"
    );
    assert_eq!(limit_headline(&steps_of(1, &CARRIED, 0.4, 0.6).verdict), "not judged", "a second may be of two steps");
    let full = short_steps(&CARRIED, 1.9, 0.99);
    assert_ne!(limit_headline(&full.verdict), limit_headline(&limit.verdict));
    let less = short_steps(&CARRIED.map(|(vus, rate, latency_ms)| (vus, rate.powf(0.8), latency_ms)), 0.4, 0.6);
    assert_eq!(
        limit_headline(&less.verdict),
        "not judged",
        "throughput grew by half of what the load grew by: {less:?}"
    );
}

#[test]
fn short_steps_show_that_there_is_a_limit_and_not_where() {
    let slower =
        CARRIED.map(|(vus, rate, latency_ms)| if vus < 30 { (vus, rate, latency_ms) } else { (vus, 62.0, 430.0) });
    let limit = short_steps(&slower, 0.4, 0.6);
    assert_eq!(limit_headline(&limit.verdict), "not judged");
    assert_eq!(
        limit_reason(&limit.verdict),
        "60.0/s with 20 users and 62.0/s with 40 users, but the steps are too short to show why"
    );
    assert_eq!(limit_advice(&limit.verdict), "hold each level of the load for ten seconds or more");
    let crowded = short_steps(&slower, 1.2, 0.95).verdict;
    assert!(matches!(crowded, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } }), "{crowded:?}");
}

#[test]
fn throughput_that_grew_until_no_processor_was_left_is_not_below_the_limit() {
    let used = |share: f64| {
        let trial = TrialBuilder::new("a").service("shop", None).cores(2).cpu("shop", 0, |_| 0.9);
        let lighter = trial.host_cpu(move |_| share).steady(20, Load { vus: 6, rate: 173.0, latency_ms: 34.6 });
        judged(lighter.steady(20, Load { vus: 16, rate: 344.0, latency_ms: 46.7 }))
    };
    let full = used(1.0);
    assert!(matches!(full.verdict, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } }), "{full:?}");
    assert_eq!(limit_headline(&used(0.95).verdict), "below its limit");
}

#[test]
fn cpu_in_use_is_named_and_divided() {
    let limit = judged(closed(&[(8, 400.0, 20.0)]).cores(2).series(names::HOST_CPU_STEAL, "", 0, |_| 0.05));
    assert!(matches!(limit.verdict, LimitVerdict::CannotTell { because: Unclear::OneLevel { .. } }), "{limit:?}");
    let full = TrialBuilder::new("a").service("shop", None).service("db", None).cores(2);
    let full = full.steady(20, Load { vus: 8, rate: 400.0, latency_ms: 20.0 });
    let full = full.cpu("shop", 0, |_| 0.8).cpu("db", 0, |_| 0.6).cpu(names::GENERATOR, 0, |_| 0.4).host_cpu(|_| 0.98);
    let limit = judged(full);
    assert_eq!(limit_headline(&limit.verdict), "limited by used-up CPU at host");
    assert_eq!(limit_reason(&limit.verdict), "the machine is full (services 70 %, Narrows 20 %, other programs 8.0 %)");
}

#[test]
fn processors_that_threads_wait_for_are_the_limit_though_some_of_their_time_is_lost() {
    let waiting = |threads: f64| {
        let trial = TrialBuilder::new("a").service("shop", None).service("stock", None).cores(2);
        let trial = trial.steady(20, Load { vus: 50, rate: 18_000.0, latency_ms: 2.7 }).host_cpu(|_| 0.8);
        let trial = trial.cpu("shop", 0, |_| 0.8).cpu("stock", 0, |_| 0.6).cpu(names::GENERATOR, 0, |_| 0.2);
        let trial = trial.threads("shop", 0, &[(ThreadState::Events, "", 2.0)]);
        judged(trial.series(names::CPU_WAIT, "shop", 0, move |_| threads))
    };
    let pressed = waiting(0.6);
    assert_eq!(limit_headline(&pressed.verdict), "limited by the CPU of the machine");
    assert_eq!(
        limit_reason(&pressed.verdict),
        "80 % of it is in use (services 70 %, Narrows 10 %; shop uses most of the services' share), \
         with 0.60 threads waiting for a processor"
    );
    assert_ne!(limit_headline(&waiting(0.4).verdict), limit_headline(&pressed.verdict));
}

#[test]
fn neighbours_who_have_the_machine_are_no_limit_of_the_system() {
    let trial = TrialBuilder::new("a").service("shop", None).cores(2).cpu("shop", 0, |_| 0.3).host_cpu(|_| 1.0);
    let limit = judged(
        trial
            .steady(20, Load { vus: 1, rate: 100.0, latency_ms: 10.0 })
            .steady(20, Load { vus: 8, rate: 104.0, latency_ms: 77.0 }),
    );
    assert!(matches!(limit.verdict, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } }), "{limit:?}");
    assert!(limit_reason(&limit.verdict).contains("other programs 85 %"), "{}", limit_reason(&limit.verdict));
}

#[test]
fn neighbours_excuse_no_load_that_would_fill_the_machine_without_them() {
    let verdict = |(cores, waiting): (f64, f64), rates: (f64, f64)| {
        let trial = TrialBuilder::new("a").service("shop", None).cores(2).host_cpu(|_| 1.0);
        let trial = trial.cpu("shop", 0, move |_| cores).threads("shop", 0, &[(ThreadState::Lock, "", 6.0)]);
        let load = |vus: u32, rate: f64| Load { vus, rate, latency_ms: 1e3 * f64::from(vus) / rate };
        let trial = trial.series(names::CPU_WAIT, "shop", 0, move |_| waiting);
        judged(trial.steady(20, load(1, rates.0)).steady(20, load(8, rates.1)))
    };
    // 20 ms of CPU for each request: eight users would use three cores.
    let full = verdict((0.8, 1.2), (20.0, 40.0));
    assert_eq!(limit_headline(&full.verdict), "limited by the CPU of the machine");
    assert!(
        limit_reason(&full.verdict).contains("services 40 %, other programs 60 %"),
        "{}",
        limit_reason(&full.verdict)
    );
    let is_excused = |(threads, rates)| {
        let verdict = verdict(threads, rates).verdict;
        matches!(verdict, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } })
    };
    assert!(is_excused(((0.8, 0.6), (20.0, 40.0))), "something else holds threads");
    assert!(is_excused(((0.2, 1.9), (20.0, 40.0))), "eight users would use less than a core");
    assert!(is_excused(((0.2, 1.9), (40.0, 20.0))), "CPU per response is large where responses are few");
}

#[test]
fn neighbours_with_most_of_the_machine_excuse_a_load_that_would_leave_some_of_it() {
    let verdict = |cores: f64, users: u32| {
        let trial = TrialBuilder::new("a").service("shop", None).cores(2).cpu("shop", 0, move |_| cores);
        let trial = trial.host_cpu(|_| 1.0).threads("shop", 0, &[(ThreadState::Lock, "", 6.0)]);
        let trial = trial.series(names::CPU_WAIT, "shop", 0, |_| 3.0);
        let load = |vus, rate, latency_ms| Load { vus, rate, latency_ms };
        judged(
            trial.steady(20, load(4, 9.0, 37.0)).steady(20, load(12, 23.0, 120.0)).steady(20, load(users, 27.0, 187.0)),
        )
    };
    // 33 ms of CPU for each request: 16 users would use 1.2 of two cores, and 32 users all of them.
    let shared = verdict(0.9, 16).verdict;
    assert!(matches!(shared, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } }), "{shared:?}");
    assert_eq!(limit_headline(&verdict(0.9, 32).verdict), "limited by the CPU of the machine");
    let own = verdict(1.1, 16);
    assert_eq!(limit_headline(&own.verdict), "limited by the CPU of the machine");
    assert_eq!(limit_advice(&own.verdict), "run it on a machine that does nothing else");
}

#[test]
fn a_service_whose_few_samples_differ_is_not_taken_for_a_neighbour() {
    let trial = TrialBuilder::new("a").service("shop", None).cores(2).host_cpu(|_| 0.75);
    let trial = trial.cpu("shop", 0, |second| [0.2, 1.6, 1.0][second as usize % 3]);
    let steps = (1..=4).map(|users| Load { vus: users, rate: 100.0 * f64::from(users), latency_ms: 10.0 });
    let limit = judged(steps.fold(trial, |trial, load| trial.steady(3, load)));
    let machine = limit.levels[3].machine.unwrap();
    assert!(limit.levels[3].services.is_empty(), "too few samples that agree: {:?}", limit.levels[3].services);
    assert_eq!((machine.services, machine.others), (1.0, 0.5), "{machine:?}");
}

#[test]
fn neighbours_who_have_the_machine_excuse_nothing_while_no_thread_waits_for_a_processor() {
    let waiting = |threads: f64| {
        let trial = TrialBuilder::new("a").service("shop", None).cores(2).cpu("shop", 0, |_| 0.1).host_cpu(|_| 1.0);
        let trial = trial.threads("shop", 0, &[(ThreadState::Lock, "", 16.0)]);
        judged(
            trial
                .series(names::CPU_WAIT, "shop", 0, move |_| threads)
                .steady(20, Load { vus: 1, rate: 48.0, latency_ms: 20.8 })
                .steady(20, Load { vus: 16, rate: 48.0, latency_ms: 333.0 }),
        )
    };
    assert_eq!(limit_headline(&waiting(0.1).verdict), "limited by requests that take turns at shop");
    for threads in [0.8, 4.0] {
        let starved = waiting(threads).verdict;
        assert!(matches!(starved, LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } }), "{starved:?}");
    }
}

#[test]
fn users_that_wait_at_a_place_without_using_its_cpu_show_a_limit() {
    let limit =
        judged(calls_to_the_bank(closed(&[(16, 160.0, 100.0)]), 100.0).service("bank", None).cpu("bank", 0, |_| 0.1));
    assert!(
        matches!(&limit.verdict, LimitVerdict::NotCpu { sign: LimitSign::UsersWait { .. }, place: Some(_) }),
        "{limit:?}"
    );
}

#[test]
fn a_load_that_is_carried_asks_for_no_more() {
    let verdict = |trial| judged(trial).verdict;
    assert!(matches!(verdict(open(100.0, 100.0, 8.0)), LimitVerdict::AsksNoMore { because: Ask::Room(_), .. }));
    let thinking = closed(&[(100, 50.0, 20.0)]);
    assert!(matches!(verdict(thinking), LimitVerdict::AsksNoMore { because: Ask::Room(_), costs: None }));
    let alone = closed(&[(1, 100.0, 9.9)]);
    assert!(matches!(verdict(alone), LimitVerdict::AsksNoMore { because: Ask::OneUser { .. }, .. }));
}

#[test]
fn responses_that_fall_behind_arrivals_show_a_limit() {
    let limit = judged(open(200.0, 120.0, 900.0));
    assert!(matches!(&limit.verdict, LimitVerdict::NotCpu { sign: LimitSign::Behind { .. }, .. }), "{limit:?}");
    assert!(
        limit_reason(&limit.verdict).contains("of 200/s only 120/s are completed"),
        "{}",
        limit_reason(&limit.verdict)
    );
}

#[test]
fn what_was_found_is_the_limit() {
    let limit = judged(
        TrialBuilder::new("a")
            .service("shop", Some(0.5))
            .cpu("shop", 0, |_| 0.495)
            .steady(20, Load { vus: 2, rate: 100.0, latency_ms: 20.0 })
            .steady(20, Load { vus: 8, rate: 101.0, latency_ms: 79.0 }),
    );
    let finding = FindingKind::CpuSaturation;
    assert_eq!(limit.verdict, LimitVerdict::Finding { finding, resource: "shop".to_owned(), machine: None });
    assert_eq!(limit_headline(&limit.verdict), "limited by used-up CPU at shop");
}

#[test]
fn what_allows_no_verdict_is_named() {
    let because = |trial| match judged(trial).verdict {
        LimitVerdict::CannotTell { because } => because,
        other => panic!("{other:?}"),
    };
    assert_eq!(because(TrialBuilder::new("a")), Unclear::NoLoad);
    let invalid = closed(&[(8, 100.0, 80.0)]).verdict(Verdict::Invalid, "Late.");
    assert_eq!(because(invalid), Unclear::Invalid { finding: FindingKind::GeneratorLimited });
    let ramp = TrialBuilder::new("a").service("shop", None).cpu("shop", 0, |_| 0.1);
    let ramp = ramp.window(WindowKind::Ramp, 40, (0..24).map(|s| (10.0 * f64::from(s + 1), 20.0)));
    assert_eq!(because(ramp), Unclear::NotSteady);
    let one = because(closed(&[(8, 400.0, 20.0)]));
    assert!(matches!(one, Unclear::OneLevel { busiest: Some(_), .. }), "{one:?}");
    let foreign = judged(closed(&[(0, 400.0, 20.0)]));
    assert!(
        limit_reason(&foreign.verdict).starts_with("the only load was 400/s, under which"),
        "{}",
        limit_reason(&foreign.verdict)
    );
    assert_eq!(limit_advice(&foreign.verdict), "record it under a heavier or a lighter load too");
}

#[test]
fn levels_have_their_figures() {
    let limit = judged(closed(&[(1, 100.0, 10.0), (4, 380.0, 10.5)]).cores(2).cpu(names::GENERATOR, 0, |_| 0.1));
    let level = &limit.levels[1];
    assert_eq!((level.load.users, level.rate, level.error_rate), (4, 380.0, 0.0));
    assert!((level.mean_ns / 1e6 - 10.5).abs() < 0.2 && level.p95_ns >= level.p50_ns, "{level:?}");
    assert_eq!(level.services[0].service, "shop");
    let machine = level.machine.unwrap();
    assert_eq!((machine.all, machine.services, machine.narrows, machine.others), (2.0, 0.2, 0.1, 0.0));
}
