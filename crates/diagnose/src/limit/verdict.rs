//! The rule: which verdict the evidence of a trial allows.
//!
//! In this order: figures that are invalid allow none; a load that leaves room asks for no more, whatever a request
//! costs; the narrow place that was found is the limit; throughput that does not follow the load, or responses that
//! fall behind arrivals, mean a limit, which is CPU where CPU is used up; what remains is a load that the system
//! carries, or one that shows too little.

use std::cmp::Ordering;

use narrows_model::breakdown::{OwnTime, TimeCategory, TimePart};
use narrows_model::finding::evidence::cpu::{Proof, ProofSign};
use narrows_model::finding::{Evidence, Finding, Role, narrow_place};
use narrows_model::limit::{Ask, LimitSign, LimitVerdict, MachineCpu, Unclear};

use super::waiting::waiting;
use crate::read::Reading;
use crate::read::cpu::{Cpu, carries_on};
use crate::read::headroom::room_in;
use crate::read::intervals::{Interval, steps};
use crate::read::machine::{threads_waiting, waits_for_cpu};

/// A trial with all that a verdict on it may use.
pub(super) struct Judge<'a, 'r> {
    pub(super) reading: &'a Reading<'r>,
    pub(super) findings: &'a [Finding],
}

impl Judge<'_, '_> {
    pub(super) fn verdict(&self) -> LimitVerdict {
        let cannot_tell = |because| LimitVerdict::CannotTell { because };
        let load = self.reading.trial.counted_load();
        if load.sent == 0 && load.ended() == 0 {
            let has_totals = self.reading.trial.reported_load().is_some_and(|load| load.requests > 0);
            return cannot_tell(if has_totals { Unclear::OnlyTotals } else { Unclear::NoLoad });
        }
        if let Some(invalid) = self.findings.iter().find(|finding| finding.role == Role::Invalidates) {
            return cannot_tell(Unclear::Invalid { finding: invalid.kind() });
        }
        if let Some(room) = room_in(self.reading.trial, self.reading.thresholds) {
            let costs = narrow_place(self.findings).filter(|finding| holds_back(finding)).map(Finding::kind);
            return LimitVerdict::AsksNoMore { because: Ask::Room(room), costs };
        }
        if let Some(finding) = narrow_place(self.findings).filter(|finding| holds_back(finding)) {
            return self.by_finding(finding);
        }
        let share = load.error_rate();
        if share > self.reading.thresholds.law_error_share {
            return cannot_tell(Unclear::Failures { share });
        }
        let steady = || self.reading.intervals.iter().enumerate().filter(|(_, interval)| interval.is_steady);
        let steps = steps(self.reading.trial);
        let is_exceeded = |level: &Interval| steps.iter().any(|step| step.by_demand(level) == Ordering::Greater);
        match steady().max_by(|(_, a), (_, b)| a.by_demand(b)) {
            Some((at, heaviest)) if !is_exceeded(heaviest) => self.of_heaviest(at, heaviest),
            _ => self.of_short_steps(&steps).unwrap_or(cannot_tell(Unclear::NotSteady)),
        }
    }

    fn by_finding(&self, finding: &Finding) -> LimitVerdict {
        let cpu = Cpu::new(self.reading);
        let heaviest = self.reading.intervals.iter().max_by(|a, b| a.by_demand(b));
        let machine = heaviest.and_then(|heaviest| cpu.machine(heaviest));
        let full = machine.filter(|machine| machine.used_share() >= self.reading.thresholds.cpu_host_share);
        LimitVerdict::Finding { finding: finding.kind(), resource: finding.resource.clone(), machine: full }
    }

    fn of_heaviest(&self, at: usize, heaviest: &Interval) -> LimitVerdict {
        let cpu = Cpu::new(self.reading);
        if let Some(sign) = self.sign(&cpu, at, heaviest) {
            return self.limited(sign, heaviest);
        }
        let Some(lighter) = cpu.lightest_below(heaviest) else { return self.of_one_level(heaviest) };
        self.used_up(heaviest).unwrap_or_else(|| below(lighter, heaviest))
    }

    /// Steps that are too short for a median are compared by what each carried. Their CPU is that of the interval to
    /// which
    /// they are joined. It is of several loads, so a service that has CPU left there may have none under the heaviest.
    fn of_short_steps(&self, steps: &[Interval]) -> Option<LimitVerdict> {
        if steps.iter().any(|step| step.seconds() < COUNTED_SECONDS) {
            return None;
        }
        let cpu = Cpu { intervals: steps, ..Cpu::new(self.reading) };
        let (at, heaviest) = steps.iter().enumerate().max_by(|(_, a), (_, b)| a.by_demand(b))?;
        let lightest = cpu.lightest_below(heaviest)?;
        let joined = self.reading.intervals.iter().max_by(|a, b| a.by_demand(b))?;
        if let Some(sign) = self.sign(&cpu, at, heaviest) {
            let too_short = LimitVerdict::CannotTell { because: Unclear::ShortSteps { sign } };
            return Some(self.by_cpu(joined).unwrap_or(too_short));
        }
        self.used_up(joined).or_else(|| carries_on(heaviest, lightest).then(|| below(lightest, heaviest)))
    }

    /// The verdict where the machine has nothing left for more load, though throughput grew up to here.
    fn used_up(&self, level: &Interval) -> Option<LimitVerdict> {
        let machine = Cpu::new(self.reading).machine(level);
        let is_used_up = machine.is_some_and(|machine| machine.used_share() >= USED_UP_SHARE);
        self.by_cpu(level).filter(|_| is_used_up)
    }

    /// Proof that the heaviest of these levels is not carried.
    fn sign(&self, cpu: &Cpu<'_>, at: usize, heaviest: &Interval) -> Option<LimitSign> {
        let proven = |Proof { sign, lighter, heavier }: Proof| match sign {
            ProofSign::FlatThroughput => LimitSign::FlatThroughput { lighter, heavier },
            ProofSign::Queueing => LimitSign::Queueing { lighter, heavier },
        };
        let behind = || {
            let least = (1.0 - self.reading.thresholds.offered_load_limited.offered_rate_share) * heaviest.offered?;
            (heaviest.rate < least).then(|| LimitSign::Behind { at: heaviest.load_point() })
        };
        let proof = || cpu.flat_since(at).or_else(|| cpu.proof(at)).or_else(|| cpu.falls_behind(at));
        proof().map(proven).or_else(behind)
    }

    /// One closed level without think time: more throughput needs less latency, or more users.
    fn of_one_level(&self, level: &Interval) -> LimitVerdict {
        match level.vus {
            1 if level.offered.is_none() => {
                let because = Ask::OneUser { at: level.load_point(), wait: longest_wait(self.reading) };
                LimitVerdict::AsksNoMore { because, costs: None }
            }
            _ if level.is_without_think_time() => self.of_waiting_users(level),
            _ => self.unclear(level),
        }
    }

    fn of_waiting_users(&self, level: &Interval) -> LimitVerdict {
        if let Some(verdict) = self.by_cpu(level) {
            return verdict;
        }
        let place = waiting(self.reading, level);
        // Time at a service that has its CPU to itself may be its work; more users would show that.
        let is_waiting = place.as_ref().and_then(|place| {
            let under_way = level.in_flight() * place.share?;
            Some(place.cores? < WORKING_SHARE * under_way)
        });
        match is_waiting {
            Some(true) => LimitVerdict::NotCpu { sign: LimitSign::UsersWait { at: level.load_point() }, place },
            _ => self.unclear(level),
        }
    }

    fn limited(&self, sign: LimitSign, heaviest: &Interval) -> LimitVerdict {
        let place = || waiting(self.reading, heaviest);
        self.by_cpu(heaviest).unwrap_or_else(|| LimitVerdict::NotCpu { sign, place: place() })
    }

    /// The verdict where CPU is used up: the neighbours' doing, a service's, or the machine's.
    fn by_cpu(&self, level: &Interval) -> Option<LimitVerdict> {
        let thresholds = self.reading.thresholds;
        let cpu = Cpu::new(self.reading);
        let machine = cpu.machine(level);
        let waiting = self.waiting_for_cpu(level);
        let full = machine.filter(|machine| self.is_full(machine, waiting));
        let is_shared = |full: &MachineCpu| full.foreign() > thresholds.cpu_saturation.cpu_foreign_share * full.all;
        let neighbours = full.filter(|full| is_shared(full) && !self.fills_it_anyway(full, level));
        if let Some(machine) =
            neighbours.filter(|_| self.place_of(level).is_none_or(|at| waits_for_cpu(self.reading, at)))
        {
            return Some(LimitVerdict::CannotTell { because: Unclear::Neighbours { machine } });
        }
        if let Some(full) = full.filter(|_| neighbours.is_none()) {
            let (service, mostly) = (None, self.largest_of(&full, level));
            return Some(LimitVerdict::Cpu { service, mostly, share: full.used_share(), waiting, machine });
        }
        let (service, share) = self.busiest(level)?;
        let is_full = share >= thresholds.cpu_saturation.cpu_limit_share;
        let service = Some(service.to_owned());
        is_full.then_some(LimitVerdict::Cpu { service, mostly: None, share, waiting: None, machine })
    }

    /// The service that uses more of the machine than all others together.
    fn largest_of(&self, machine: &MachineCpu, level: &Interval) -> Option<String> {
        let cpu = Cpu::new(self.reading);
        let mut services = self.reading.trial.service_names().into_iter();
        let has_most =
            |service: &&str| cpu.service_cores(service, level).is_some_and(|cores| cores > 0.5 * machine.services);
        services.find(has_most).map(str::to_owned)
    }

    /// True if the load uses up the machine's CPU whatever the neighbours do. Threads of the services that run or wait
    /// for a
    /// processor must be as many as it has, so that nothing else holds them. And the run must have at least as much of
    /// the
    /// CPU as the neighbours, or call for all of it without them.
    fn fills_it_anyway(&self, machine: &MachineCpu, level: &Interval) -> bool {
        let full = self.reading.thresholds.cpu_host_share * machine.all;
        let runnable = self.waiting_for_cpu(level).map_or(0.0, |waiting| machine.services + waiting);
        let has_its_part = machine.services + machine.narrows >= machine.foreign();
        let calls_for_all = || self.called_for(machine, level).is_some_and(|cores| cores >= full);
        runnable >= full && (has_its_part || calls_for_all())
    }

    /// The cores that the load would use if it had them: what a request costs × the rate at which it would be called
    /// for.
    /// Users who wait for nothing but their own request have the cycle of the lightest level, which neighbours make
    /// longer,
    /// and so the estimate lower. Where a lighter level carried more, the rate of that one counts for the cost: work in
    /// the background costs the more for each request, the fewer there are.
    fn called_for(&self, machine: &MachineCpu, level: &Interval) -> Option<f64> {
        let cpu = Cpu::new(self.reading);
        let lightest = || cpu.lightest_below(level);
        let of_users = || lightest().map(|one| f64::from(level.vus) * one.rate / f64::from(one.vus.max(1)));
        let asked = level.offered.or_else(of_users)?;
        let carried = cpu.lighter_than(level).map(|lighter| lighter.rate).fold(level.rate, f64::max);
        Some((machine.services + machine.narrows) / carried * asked)
    }

    /// True if the machine's processors are all in use, or so busy that threads often wait for one. Between the threads
    /// of
    /// several services, which wake each other, some time of each processor is always lost.
    fn is_full(&self, machine: &MachineCpu, waiting: Option<f64>) -> bool {
        let thresholds = self.reading.thresholds;
        let is_pressed = waiting.is_some_and(|threads| threads >= thresholds.cpu_pressed_threads * machine.all);
        let least = if is_pressed { thresholds.cpu_pressed_share } else { thresholds.cpu_host_share };
        machine.used_share() >= least
    }

    /// Threads of the services that wait for a processor, a mean; `None` if they were not sampled.
    fn waiting_for_cpu(&self, level: &Interval) -> Option<f64> {
        threads_waiting(self.reading, self.place_of(level)?)
    }

    fn place_of(&self, level: &Interval) -> Option<usize> {
        self.reading.intervals.iter().position(|one| one.start_ns == level.start_ns)
    }

    /// The service that uses the largest share of its CPU.
    fn busiest(&self, level: &Interval) -> Option<(&str, f64)> {
        let cpu = Cpu::new(self.reading);
        let services = self.reading.trial.service_names().into_iter();
        let shares = services.filter_map(|service| Some((service, cpu.busy_share(service, level)?)));
        shares.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn unclear(&self, level: &Interval) -> LimitVerdict {
        let busiest = self.busiest(level).map(|(_, share)| share);
        LimitVerdict::CannotTell { because: Unclear::OneLevel { at: level.load_point(), busiest } }
    }
}

fn below(lighter: &Interval, heavier: &Interval) -> LimitVerdict {
    LimitVerdict::BelowLimit { lighter: lighter.load_point(), heavier: heavier.load_point() }
}

/// The main wait of the requests that took most time: neither their service's work nor unseen time.
fn longest_wait(reading: &Reading<'_>) -> Option<TimePart> {
    use OwnTime::{NotSampled, OnCpu, Unseen};
    let is_wait = |part: &&TimePart| {
        !matches!(part.category, TimeCategory::Own(OnCpu | Unseen | NotSampled) | TimeCategory::Unknown)
    };
    let parts = reading.spent().breakdowns.first()?.parts.iter().filter(is_wait);
    parts.max_by(|a, b| a.share.total_cmp(&b.share)).filter(|part| part.share >= WAIT_SHARE_MIN).cloned()
}

/// True if a narrow place holds requests back. Memory and descriptors that only grow do so later.
fn holds_back(finding: &Finding) -> bool {
    match &finding.evidence {
        Evidence::MemoryGrowth(growth) => growth.kills > 0,
        Evidence::DescriptorExhaustion(descriptors) => descriptors.failures.is_some(),
        _ => true,
    }
}

/// The load is counted second by second, so a shorter step may have no second to itself.
const COUNTED_SECONDS: f64 = 2.0;
/// From this share of its processors on, a machine has nothing left for more load, though throughput grew up to here.
const USED_UP_SHARE: f64 = 0.97;
/// From this share of the latency on, a wait of the only user is named.
const WAIT_SHARE_MIN: f64 = 0.2;
/// Requests at a place work rather than wait when each uses at least this share of a core.
const WORKING_SHARE: f64 = 0.5;
