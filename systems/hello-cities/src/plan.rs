//! Plan of a run: a workload, how much of it, and how it is launched.

use std::str::FromStr;

use crate::Error;

/// Launcher entities; each starts its share of the orchestrations.
pub(crate) const LAUNCHERS: u64 = 50;
/// Orchestrations that are started directly unless more are requested; from here on, launchers start them.
const LAUNCHED_FROM: u64 = 10_000;
/// Entities that the orchestrations of `entity-calls` share.
pub(crate) const CALLED_ENTITIES: u64 = 50;
const N_MAX: u64 = 10_000_000;
/// Activities, timers or calls of one orchestration.
const EACH_MAX: u64 = 100_000;
/// Events of one workload.
const EVENTS_MAX: u64 = 100_000_000;

/// A named workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Orchestrations of five activities in a row.
    HelloCities,
    /// Orchestrations that call activities all at once and wait for all of them.
    FanOutFanIn,
    /// Orchestrations that call sub-orchestrations, one after another.
    SubOrchestrations,
    /// Orchestrations that call operations of an entity, one after another; 50 entities serve all of them.
    EntityCalls,
    /// Signals to one entity, which adds them up.
    Counter,
    /// Orchestrations that wait for one timer after another and continue as new after each.
    Periodic,
    /// Orchestrations that all wait for an event from outside, which comes once all of them wait.
    Waiting,
}

impl Workload {
    /// All, in the order they are documented.
    pub const ALL: [Self; 7] = [
        Self::HelloCities,
        Self::FanOutFanIn,
        Self::SubOrchestrations,
        Self::EntityCalls,
        Self::Counter,
        Self::Periodic,
        Self::Waiting,
    ];

    /// Its name in commands and paths.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HelloCities => "hello-cities",
            Self::FanOutFanIn => "fan-out-fan-in",
            Self::SubOrchestrations => "sub-orchestrations",
            Self::EntityCalls => "entity-calls",
            Self::Counter => "counter",
            Self::Periodic => "periodic",
            Self::Waiting => "waiting",
        }
    }

    /// How many there are of it unless somebody says otherwise: orchestrations, or signals of the counter.
    #[must_use]
    pub fn n_default(self) -> u64 {
        match self {
            Self::FanOutFanIn => 200,
            Self::Counter => 100_000,
            Self::HelloCities | Self::SubOrchestrations | Self::EntityCalls | Self::Periodic | Self::Waiting => 1_000,
        }
    }

    /// Default number of activities, calls or timers of each orchestration. Workloads without such a number have 1.
    #[must_use]
    pub fn each_default(self) -> u64 {
        match self {
            Self::FanOutFanIn => 1_000,
            Self::SubOrchestrations | Self::EntityCalls => 5,
            Self::Periodic => 10,
            Self::HelloCities | Self::Counter | Self::Waiting => 1,
        }
    }

    /// Events of one unit with `each` activities, calls or timers, as the published comparison counts: an activity,
    /// sub-orchestration or operation called and completed is 2, a signal 1, an event from outside 1, an expired timer
    /// 1. Those that launchers cost do not count.
    #[must_use]
    pub fn events(self, each: u64) -> u64 {
        match self {
            Self::HelloCities => 10,
            Self::FanOutFanIn | Self::SubOrchestrations | Self::EntityCalls => 2 * each,
            Self::Periodic => each,
            Self::Counter | Self::Waiting => 1,
        }
    }
}

impl FromStr for Workload {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|workload| workload.as_str() == text).ok_or_else(|| Error::Setting {
            name: "workload",
            value: text.to_owned(),
            expected: "hello-cities, fan-out-fan-in, sub-orchestrations, entity-calls, counter, periodic or waiting",
        })
    }
}

/// How orchestrations are started. Workloads other than `hello-cities` are always launched directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launch {
    /// By this process, all at once.
    Direct,
    /// By 50 entities; each is signalled to start its share.
    Entities,
    /// By this process, each when the one before it has ended: their latency is reported.
    OneByOne,
}

impl Launch {
    /// Its name in commands and paths.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Entities => "entities",
            Self::OneByOne => "one-by-one",
        }
    }
}

impl FromStr for Launch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        [Self::Direct, Self::Entities, Self::OneByOne].into_iter().find(|launch| launch.as_str() == text).ok_or_else(
            || Error::Setting { name: "launch", value: text.to_owned(), expected: "direct, entities or one-by-one" },
        )
    }
}

/// Plan of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub(crate) workload: Workload,
    pub(crate) n: u64,
    pub(crate) each: u64,
    pub(crate) launch: Launch,
}

impl Plan {
    /// A workload with what is not said as the published comparison has it: fewer than 10,000 orchestrations of
    /// HelloCities5 are started directly, others by launchers.
    ///
    /// # Errors
    /// [`Error::Setting`] for a number outside its range, or a launch that the workload does not have.
    pub fn new(workload: Workload, n: Option<u64>, each: Option<u64>, launch: Option<Launch>) -> Result<Self, Error> {
        let n = n.unwrap_or(workload.n_default());
        let by_size = match workload {
            Workload::HelloCities if n >= LAUNCHED_FROM => Launch::Entities,
            _ => Launch::Direct,
        };
        let plan =
            Self { workload, n, each: each.unwrap_or(workload.each_default()), launch: launch.unwrap_or(by_size) };
        plan.check(each.is_some())?;
        Ok(plan)
    }

    fn check(&self, is_each_said: bool) -> Result<(), Error> {
        let has_each = !matches!(self.workload, Workload::HelloCities | Workload::Counter | Workload::Waiting);
        let wrong = |name, value: String, expected| Err(Error::Setting { name, value, expected });
        if !(1..=N_MAX).contains(&self.n) {
            return wrong("n", self.n.to_string(), "1 to 10000000");
        }
        if is_each_said && !has_each {
            return wrong("each", self.each.to_string(), "none: hello-cities, counter and waiting have no such number");
        }
        if !(1..=EACH_MAX).contains(&self.each) {
            return wrong("each", self.each.to_string(), "1 to 100000");
        }
        if self.launch != Launch::Direct && self.workload != Workload::HelloCities {
            return wrong("launch", self.launch.as_str().to_owned(), "direct: only hello-cities has others");
        }
        if self.launch == Launch::Entities && self.n < LAUNCHERS {
            return wrong("n", self.n.to_string(), "50 or more, one for each launcher");
        }
        if self.events() > EVENTS_MAX {
            return wrong("number of events", self.events().to_string(), "at most 100000000");
        }
        Ok(())
    }

    /// Events of all of it.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.n.saturating_mul(self.workload.events(self.each))
    }

    /// Orchestrations of it; 0 for signals.
    pub(crate) fn orchestrations(&self) -> u64 {
        if self.workload == Workload::Counter { 0 } else { self.n }
    }

    /// Instances that end, sub-orchestrations included.
    pub(crate) fn instances(&self) -> u64 {
        match self.workload {
            Workload::SubOrchestrations => self.n * (1 + self.each),
            _ => self.n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_as_published() {
        for (workload, n, each, events) in [
            (Workload::HelloCities, 1_000, None, 10_000),
            (Workload::FanOutFanIn, 200, Some(1_000), 400_000),
            (Workload::SubOrchestrations, 10, None, 100),
            (Workload::EntityCalls, 10, Some(3), 60),
            (Workload::Counter, 7, None, 7),
            (Workload::Periodic, 3, Some(4), 12),
            (Workload::Waiting, 5, None, 5),
        ] {
            assert_eq!(Plan::new(workload, Some(n), each, None).unwrap().events(), events, "{workload:?}");
        }
    }

    #[test]
    fn ten_thousand_are_launched_by_entities() {
        let launch = |n| Plan::new(Workload::HelloCities, Some(n), None, None).unwrap().launch;
        assert_eq!((launch(9_999), launch(10_000)), (Launch::Direct, Launch::Entities));
        assert_eq!(Plan::new(Workload::Waiting, Some(10_000), None, None).unwrap().launch, Launch::Direct);
    }

    #[test]
    fn numbers_have_ranges() {
        let hello = |n, launch| Plan::new(Workload::HelloCities, Some(n), None, Some(launch));
        let wrong = [
            (hello(0, Launch::Direct), "n is \"0\", expected 1 to 10000000"),
            (hello(49, Launch::Entities), "n is \"49\", expected 50 or more, one for each launcher"),
            (
                Plan::new(Workload::Counter, None, Some(2), None),
                "each is \"2\", expected none: hello-cities, counter and waiting have no such number",
            ),
            (Plan::new(Workload::FanOutFanIn, None, Some(0), None), "each is \"0\", expected 1 to 100000"),
            (
                Plan::new(Workload::Periodic, None, None, Some(Launch::Entities)),
                "launch is \"entities\", expected direct: only hello-cities has others",
            ),
            (
                Plan::new(Workload::FanOutFanIn, Some(10_000_000), None, None),
                "number of events is \"20000000000\", expected at most 100000000",
            ),
        ];
        for (plan, message) in wrong {
            assert_eq!(plan.unwrap_err().to_string(), message);
        }
        assert!("hello".parse::<Workload>().unwrap_err().to_string().starts_with("workload is \"hello\", expected "));
        assert!("all".parse::<Launch>().unwrap_err().to_string().starts_with("launch is \"all\", expected "));
    }
}
