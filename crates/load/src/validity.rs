//! Whether the generator's own numbers can be trusted.
//!
//! Pure arithmetic over what the generator measured of itself. A closed loop against a fast server fills its thread
//! legitimately; the verdict is invalid all the same, because then the generator sets the rate and not the system.

use narrows_model::run::{Validity, Verdict};
use narrows_model::units;

use crate::outcome::ArrivalTotals;

/// The generator's measurements of itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneratorFigures {
    /// Requests that ended, well or not.
    pub ended: u64,
    /// Requests that ended well.
    pub succeeded: u64,
    /// 99 % of all sends were at most this late, in nanoseconds.
    pub lateness_p99_ns: u64,
    /// 99 % of all successes took at most this long from their intended send, in nanoseconds.
    pub latency_p99_ns: u64,
    /// CPU time ÷ wall time of the busiest load thread, 0 to 1.
    pub busiest_thread: f64,
    /// Fate of the iterations that were due; `None` for closed models.
    pub arrivals: Option<ArrivalTotals>,
}

impl GeneratorFigures {
    /// Whether so many iterations waited for a user that the wait shows at the quantile that is judged.
    fn waited_for_users(&self) -> bool {
        self.arrivals.is_some_and(|arrivals| share(arrivals.late, arrivals.due) >= WAITED)
    }
}

/// Lateness that is never held against the generator, and the part of the latency at the same quantile that is not
/// either.
const LATE_DOUBTFUL: Allowance = Allowance { ns: 1_000_000, part: 0.10 };
const LATE_INVALID: Allowance = Allowance { ns: 10_000_000, part: 0.50 };

/// Lateness that is allowed: so many nanoseconds or this part of the latency, whichever is more.
struct Allowance {
    ns: u64,
    part: f64,
}

impl Allowance {
    fn is_exceeded(&self, late_ns: f64, latency_ns: f64) -> bool {
        late_ns > (self.ns as f64).max(self.part * latency_ns)
    }
}
/// From this share of iterations on, the wait for a user is part of 99 % of the lateness.
const WAITED: f64 = 0.01;
/// From these shares of the iterations due on.
const LATE_SHARE_DOUBTFUL: f64 = 0.10;
const DROPPED_SHARE_INVALID: f64 = 0.01;
/// The least part of the rate offered that has to be achieved.
const ACHIEVED_MIN: f64 = 0.95;
const BUSY_DOUBTFUL: f64 = 0.80;
const BUSY_INVALID: f64 = 0.95;

/// The verdict: the worst of all reasons, and every reason in a whole sentence with its figures.
pub fn judge(measured: &GeneratorFigures) -> Validity {
    let mut validity = Validity::default();
    // If every request failed, busy users and late sends are the system's fault.
    let of_requests = match measured.succeeded {
        0 => [nothing_ended(measured), None, None],
        _ => [dropped(measured), waiting(measured), lateness(measured)],
    };
    for (verdict, reason) in of_requests.into_iter().chain([busy(measured)]).flatten() {
        validity.verdict = validity.verdict.max(verdict);
        validity.reasons.push(reason);
    }
    validity
}

fn nothing_ended(measured: &GeneratorFigures) -> Option<(Verdict, String)> {
    let reason = "No request ended, so there is nothing to measure.";
    (measured.ended == 0).then(|| (Verdict::Invalid, reason.into()))
}

fn dropped(measured: &GeneratorFigures) -> Option<(Verdict, String)> {
    let arrivals = measured.arrivals.filter(|arrivals| arrivals.dropped > 0)?;
    let dropped = share(arrivals.dropped, arrivals.due);
    let verdict = if dropped >= DROPPED_SHARE_INVALID { Verdict::Invalid } else { Verdict::Doubtful };
    let begun = if arrivals.achieved() < ACHIEVED_MIN * arrivals.offered() {
        format!("given only {} of the {} offered", units::rate(arrivals.achieved()), units::rate(arrivals.offered()))
    } else {
        "not given the whole load".into()
    };
    let reason = format!(
        "{} of {} iterations that were due ({}) never began, so the system was {begun}.",
        units::count(arrivals.dropped),
        units::count(arrivals.due),
        if dropped < 0.001 { "under 0.1 %".into() } else { units::percent(dropped) },
    );
    Some((verdict, reason))
}

fn waiting(measured: &GeneratorFigures) -> Option<(Verdict, String)> {
    let arrivals = measured.arrivals?;
    let late = share(arrivals.late, arrivals.due);
    if late < LATE_SHARE_DOUBTFUL {
        return None;
    }
    let reason = format!(
        "{} of {} iterations that were due ({}) found every user busy and had to wait, so max_vus held the load back; \
         raise max_vus, unless the system is slower than the rate requires.",
        units::count(arrivals.late),
        units::count(arrivals.due),
        units::percent(late),
    );
    Some((Verdict::Doubtful, reason))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}

fn lateness(measured: &GeneratorFigures) -> Option<(Verdict, String)> {
    let late = measured.lateness_p99_ns as f64;
    let latency = measured.latency_p99_ns as f64;
    let verdict = if LATE_INVALID.is_exceeded(late, latency) {
        Verdict::Invalid
    } else if LATE_DOUBTFUL.is_exceeded(late, latency) {
        Verdict::Doubtful
    } else {
        return None;
    };
    let whose = if measured.waited_for_users() {
        "the wait for a free user is part of the tail; raise max_vus"
    } else {
        "the generator's own delay is part of the tail"
    };
    let reason = format!(
        "1 % of the requests were sent {} or more after their time, and 1 % of the latencies are {} or more, so \
         {whose}.",
        units::duration(late),
        units::duration(latency)
    );
    Some((verdict, reason))
}

fn busy(measured: &GeneratorFigures) -> Option<(Verdict, String)> {
    let share = units::percent(measured.busiest_thread);
    if measured.busiest_thread >= BUSY_INVALID {
        let reason = format!(
            "The generator was the bottleneck: its busiest thread used {share} of a core, so the system did not get \
             more load."
        );
        Some((Verdict::Invalid, reason))
    } else if measured.busiest_thread >= BUSY_DOUBTFUL {
        let reason = format!("The generator was near its limit: its busiest thread used {share} of a core.");
        Some((Verdict::Doubtful, reason))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Doubtful, Invalid, Valid};

    const MS: u64 = 1_000_000;
    const FINE: GeneratorFigures = GeneratorFigures {
        ended: 10,
        succeeded: 9,
        lateness_p99_ns: 0,
        latency_p99_ns: 5 * MS,
        busiest_thread: 0.5,
        arrivals: None,
    };

    fn arrived(due: u64, late: u64, dropped: u64) -> GeneratorFigures {
        GeneratorFigures { arrivals: Some(ArrivalTotals { due, late, dropped, seconds: 10.0 }), ..FINE }
    }

    #[test]
    fn each_limit_is_where_it_says() {
        let late = |late_ns, p99_ns| GeneratorFigures { lateness_p99_ns: late_ns, latency_p99_ns: p99_ns, ..FINE };
        let busy = |share| GeneratorFigures { busiest_thread: share, ..FINE };
        let cases = [
            (FINE, Valid),
            (late(MS, 5 * MS), Valid),
            (late(MS + 1, 5 * MS), Doubtful),
            (late(10 * MS, 100 * MS), Valid),
            (late(10 * MS + 1, 100 * MS), Doubtful),
            (late(10 * MS, 5 * MS), Doubtful),
            (late(10 * MS + 1, 5 * MS), Invalid),
            (late(50 * MS + 1, 100 * MS), Invalid),
            (busy(0.79), Valid),
            (busy(0.80), Doubtful),
            (busy(0.95), Invalid),
            (arrived(0, 0, 0), Valid),
            (arrived(1_000, 99, 0), Valid),
            (arrived(1_000, 100, 0), Doubtful),
            (arrived(1_000, 0, 1), Doubtful),
            (arrived(1_000, 0, 9), Doubtful),
            (arrived(1_000, 0, 10), Invalid),
            (GeneratorFigures { succeeded: 0, ..FINE }, Valid),
            (GeneratorFigures { succeeded: 0, ..arrived(1_000, 900, 800) }, Valid),
            (GeneratorFigures { succeeded: 0, ..late(50 * MS, 0) }, Valid),
            (GeneratorFigures { succeeded: 0, ..busy(0.95) }, Invalid),
            (GeneratorFigures { succeeded: 0, ended: 0, ..FINE }, Invalid),
        ];
        for (measured, expected) in cases {
            let validity = judge(&measured);
            assert_eq!(validity.verdict, expected, "{measured:?}");
            assert_eq!(validity.reasons.is_empty(), expected == Valid, "{measured:?}");
        }
    }

    #[test]
    fn reasons_are_sentences_with_figures_and_the_worst_counts() {
        let measured = GeneratorFigures { lateness_p99_ns: 2 * MS, busiest_thread: 0.97, ..FINE };
        let validity = judge(&measured);
        assert_eq!(validity.verdict, Invalid);
        assert_eq!(
            validity.reasons,
            [
                "1 % of the requests were sent 2.00 ms or more after their time, and 1 % of the latencies are 5.00 ms \
                 or more, so the generator's own delay is part of the tail.",
                "The generator was the bottleneck: its busiest thread used 97 % of a core, so the system did not get \
                 more load.",
            ]
        );
    }

    #[test]
    fn an_open_load_that_was_held_back_says_by_what() {
        let reasons = |measured: &GeneratorFigures| judge(measured).reasons;
        assert_eq!(
            reasons(&arrived(60_000, 6_600, 6_000)),
            [
                "6,000 of 60,000 iterations that were due (10 %) never began, so the system was given only 5,400/s of \
                 the 6,000/s offered.",
                "6,600 of 60,000 iterations that were due (11 %) found every user busy and had to wait, so max_vus \
                 held the load back; raise max_vus, unless the system is slower than the rate requires.",
            ]
        );
        assert_eq!(
            reasons(&arrived(60_000, 0, 3)),
            [
                "3 of 60,000 iterations that were due (under 0.1 %) never began, so the system was not given the whole load."
            ]
        );
        let waits = GeneratorFigures { lateness_p99_ns: 2 * MS, ..arrived(1_000, 20, 0) };
        assert_eq!(
            reasons(&waits),
            [
                "1 % of the requests were sent 2.00 ms or more after their time, and 1 % of the latencies are 5.00 ms or \
              more, so the wait for a free user is part of the tail; raise max_vus."
            ]
        );
    }
}
