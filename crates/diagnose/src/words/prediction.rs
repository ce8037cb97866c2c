//! Texts of predictions and fits: assumptions and doubts are whole sentences, the others clauses.

use narrows_model::finding::evidence::cpu::CpuConsumers;
use narrows_model::prediction::{Assumption, Doubt, Gain, GainOutcome, Measure, PredictedGain};
use narrows_model::scalability::Misfit;
use narrows_model::units;

/// A difference of throughput below this share is not mentioned.
const RATE_NOTABLE: f64 = 0.01;

/// Text of an assumption of a prediction.
pub fn assumption(assumption: &Assumption) -> String {
    match assumption {
            Assumption::SameUsers { think_ns } if *think_ns < 1e6 => {
                "The same users send their next request at once.".to_owned()
            }
            Assumption::SameUsers { think_ns } => {
                format!("The same users think for {} between requests.", units::duration(*think_ns))
            }
            Assumption::CpuPerRequest => "A request needs as much CPU under every load.".to_owned(),
            Assumption::OneMachine { cores } => {
                format!("All services and the load generator share one machine with {}.", units::counted(f64::from(*cores), "core"))
            }
            Assumption::RestIsDelay { delay_ns, share } => format!("{} of a request ({} of its latency under the lightest load) pass in no queue and take as long under every load.",
                units::duration(*delay_ns),
                units::percent(*share)
            ),
            Assumption::WarmLevels { left_out: 1 } => {
                "The lightest load is left out: a service was still warming up under it.".to_owned()
            }
            Assumption::WarmLevels { left_out } => {
                format!("The {left_out} lightest loads are left out: a service was still warming up under them.")
            }
            Assumption::BranchesAreIndependent => {
                "Calls made at the same time take as long as they do one after another.".to_owned()
            }
            Assumption::OneCallForAll { calls } => format!("One call takes as long as one of the {} that it replaces, and for each further item no more than was measured.",
                units::number(*calls)
            ),
            Assumption::CpuFollowsCalls { callee } => {
                format!("The CPU of {callee} follows the number of calls to it.")
            }
            Assumption::OthersMayWait => "Requests that make none of these calls and yet take long may wait for those of others; the interval holds both cases.".to_owned(),
            Assumption::OnePartition => "Only the partition that has the rows is queried.".to_owned(),
            Assumption::NoRefusals { gained_ns } => format!("No call is refused any more; refused calls and the waits after them take {} of a request now.",
                units::duration(*gained_ns)
            ),
            Assumption::SidecarsOnly => {
                "Only the time that sidecars report and their CPU go with them, not the work of callers to reach them.".to_owned()
            }
            Assumption::RefusalsStay => "Calls are refused as often as they are now.".to_owned(),
            Assumption::AllOwnTime { factor } => {
                format!("All of its own time and all of its CPU shrink {} fold.", units::number(*factor))
            }
            Assumption::EvenReplicas => "Requests are spread evenly over the replicas.".to_owned(),
            Assumption::WholePartitions { partitions, replicas } => format!("Requests are spread as the {} are, of which a replica has at most {}.",
                units::counted(f64::from(*partitions), "partition"),
                partitions.div_ceil((*replicas).max(1))
            ),
            Assumption::CacheOfEachReplica { misses, misses_after } => format!("Each replica has a cache of its own, which keeps entries as long as now: at the same rate it serves all but {} of the requests, and all but {} now.",
                units::percent(*misses_after),
                units::percent(*misses)
            ),
            Assumption::ConnectionsHeldAsLong => {
                "A request holds its connection as long as now, however many others do.".to_owned()
            }
            Assumption::HitsAreIndependent { hit_rate } => format!("{} of the calls take no time, whichever they are; misses take as long as now.",
                units::percent(*hit_rate)
            ),
            Assumption::WritesOnEachNode { writes } => format!("Each node has the limit that the one has now; reads are spread evenly, and writes, {} of the work, are made on each.",
                units::percent(*writes)
            ),
            Assumption::SidecarCost { pass_ns, passes } => format!("A request passes a proxy {} times, which costs {} of CPU each time.",
                units::number(*passes),
                units::duration(*pass_ns)
            ),
            Assumption::CommitsTakeAsLong { held_ns } => {
                format!("A commit takes {}, for several requests as for one.", units::duration(*held_ns))
            }
            Assumption::SectionTakesAsLong { held_ns } => format!("What requests take turns at takes {}, however many do it at the same time.",
                units::duration(*held_ns)
            ),
            Assumption::SectionShrinks { factor } => format!("All that is done in the section, its calls and its CPU, takes {} times less.",
                units::number(*factor)
            ),
            Assumption::CpuShrinks { factor } => format!("A request needs {} times less CPU there, and waits for as long as now.",
                units::number(*factor)
            ),
            Assumption::CallsOutsideHold { calls_ns } => format!("Calls that are made during the hold take {} outside of it too.",
                units::duration(*calls_ns)
            ),
            Assumption::WaitGone { reason, wait_ns } => format!("A request no longer waits for {reason}, which takes {} of it now.",
                units::duration(*wait_ns)
            ),
            Assumption::ConnectionCost { cpu_ns } => format!("Opening and closing the connections of a request costs {} of CPU at both ends together.",
                units::duration(*cpu_ns)
            ),
    }
}

/// Text of a doubt about a prediction.
pub fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::BaselineMissed { label, measure: Measure::Rate, measured, model } => format!(
            "The model does not reproduce the run: {} at {label}, but {} were measured.",
            units::rate(*model),
            units::rate(*measured)
        ),
        Doubt::BaselineMissed { label, measure: Measure::Mean, measured, model } => format!(
            "The model does not reproduce the run: a mean of {} at {label}, but {} was measured.",
            units::duration(*model),
            units::duration(*measured)
        ),
        Doubt::OneLevel => {
            "There is one level of load only, so nothing shows whether the model holds under another one.".to_owned()
        }
        Doubt::BeyondTested { factor } => {
            format!(
                "It goes up to {} times what was tested, where something that was not seen may limit it.",
                units::number(*factor)
            )
        }
        Doubt::Failures { share } => {
            format!("{} of the requests failed, and what these cost is not known.", units::percent(*share))
        }
        Doubt::Invalid { finding } => format!("The figures of the trial are invalid ({finding})."),
        Doubt::FewTraces { traces } => format!("Only {traces} traces show what is changed."),
        Doubt::OutsideTraces { share } => format!(
            "Traces show only {} of the time that a request takes without a queue; nothing says what the change does to the rest.",
            units::percent(*share)
        ),
        Doubt::Overloaded => {
            "More arrives than would be completed: latency grows as long as the load lasts.".to_owned()
        }
        Doubt::OneThread { service } => {
            format!("{service} works in one thread, which more CPU does not speed up; more replicas do.")
        }
    }
}

/// Text of the gain of a change, in one line without a full stop.
pub fn gain(gain: &Gain) -> String {
    let name = gain.change.kind.name();
    match &gain.outcome {
        GainOutcome::NotPredicted(because) => format!("{name}: not predicted, because {because}"),
        GainOutcome::Predicted(gained) => format!("{name}: {}", gained_text(gained)),
    }
}

fn gained_text(gained: &PredictedGain) -> String {
    let (now, mean, rate) = (&gained.now, gained.after.mean_ns, gained.after.rate);
    let [before, after, low, high] = [now.mean_ns, mean.value, mean.low, mean.high].map(units::duration);
    let throughput = if (rate.value / now.rate - 1.0).abs() < RATE_NOTABLE {
        format!("unchanged at {}", units::rate(now.rate))
    } else {
        format!("{} → {}", units::rate(now.rate), units::rate(rate.value))
    };
    let limit = gained.limit_after.as_ref();
    let limit = limit.map_or_else(String::new, |it| format!("; next limit: {it} at {}", units::rate(it.rate_max)));
    format!("mean {before} → {after} ({low} to {high}), throughput {throughput}{limit}")
}

/// Why a fit of the universal scalability law should not be relied on, a clause.
pub fn misfit(misfit: Misfit) -> String {
    match misfit {
        Misfit::Off { share } => format!("half of its latencies are off by {:.0} % or more", share * 100.0),
        Misfit::NothingShared => {
            "there was never more than one request under way in the mean, so none waited for another".to_owned()
        }
        Misfit::NoSpread => "the number of requests under way hardly changed".to_owned(),
    }
}

/// The largest consumers of a machine's CPU: `shop (3.60 cores), the load generator (0.2 cores)`.
pub fn consumers(consumers: &CpuConsumers) -> String {
    let each: Vec<String> =
        consumers.0.iter().map(|consumer| format!("{} ({})", consumer.name(), units::cores(consumer.cores))).collect();
    if each.is_empty() { "they were not sampled".to_owned() } else { each.join(", ") }
}

#[cfg(test)]
mod tests {
    use narrows_model::prediction::{Change, ChangeKind, Estimate, Figures, Forecast, Resource, ResourceKind};

    use super::*;

    #[test]
    fn a_gain_is_one_line() {
        let estimate = |value: f64| Estimate { value, low: 0.9 * value, high: 1.1 * value };
        let machine = Resource { kind: ResourceKind::Machine, name: String::new(), used_share: 0.3, rate_max: 91.6 };
        let gained = PredictedGain {
            now: Figures { rate: 27.3, mean_ns: 531e6, p95_ns: 700e6 },
            after: Forecast { rate: estimate(52.8), mean_ns: estimate(171e6), p95_ns: estimate(300e6) },
            limit_after: Some(machine),
        };
        let change = Change { kind: ChangeKind::RouteQuery, target: "GET /a".into(), amount: None };
        let predicted = Gain { change: change.clone(), outcome: GainOutcome::Predicted(Box::new(gained)) };
        assert_eq!(
            gain(&predicted),
            "route-query: mean 531 ms → 171 ms (154 ms to 188 ms), throughput 27.3/s → 52.8/s; next limit: the machine's CPU at 91.6/s"
        );
        let json = serde_json::to_value(&predicted).unwrap();
        assert_eq!(json["change"]["kind"], "route-query");
        assert_eq!(json["predicted"]["after"]["rate"]["value"], 52.8);
        assert_eq!(serde_json::from_value::<Gain>(json).unwrap(), predicted);
        let unknown = Gain { change, outcome: GainOutcome::NotPredicted("no traces show it".into()) };
        assert_eq!(gain(&unknown), "route-query: not predicted, because no traces show it");
    }
}
