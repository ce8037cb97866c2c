//! `cpu-saturation`: a service that uses all the CPU it may or can use.
//!
//! Three limits are looked at, per replica and stretch of load: the cap in force, one core for the busiest thread (an
//! event loop, an interpreter lock; for one without a cap, waiting for a processor counts as being busy), and, for a service without a cap, the whole machine. When no single service is at a
//! limit but the host is, the host is named with its largest consumers. Medians over stretches count, so a peak or a
//! start does not; where programs outside the run use most of it, that is a caveat and not a finding; and where another stretch carried as much load with clearly less CPU, the CPU was not the limit.
//!
//! Use of CPU alone does not prove that CPU is what holds the throughput back: confidence is high only when throughput
//! stopped growing with users or with the rate offered, or when requests queue: by Little's law where users are given,
//! by the time that requests take once sent where a rate is.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::{Confidence, Figure, Finding};
use narrows_model::run::ServiceInstance;
use narrows_model::series::names;
use narrows_model::units;

use crate::Detector;
use crate::reading::Reading;
use crate::stretches::{HostUse, Stretch};
use crate::thresholds::Thresholds;

/// See the module.
#[derive(Debug)]
pub struct CpuSaturation;

/// A thread that is ready to run and waits for a processor is as busy as one that runs. No more than this share of the
/// time counts so: a thread that waits for longer is held by the machine.
const WAITING_SHARE_MAX: f64 = 0.15;
/// Another stretch refutes a limit when it carried as much with less than this share of the threshold.
const REFUTING_SHARE: f64 = 0.9;
/// A replica is limited by one thread when all others together use no more than this share of its CPU.
const OTHER_THREADS_SHARE: f64 = 0.25;
/// Users or the rate offered must have grown by this factor between two stretches before these are compared.
const DEMAND_GROWTH_MIN: f64 = 1.25;
const CONSUMERS_MAX: usize = 3;
/// The resource of a finding about the machine as a whole.
pub(crate) const HOST: &str = "host";

impl Detector for CpuSaturation {
    fn id(&self) -> &'static str {
        "cpu-saturation"
    }

    fn version(&self) -> u32 {
        4
    }

    fn detect(&self, reading: &Reading<'_>) -> Vec<Finding> {
        let scene = Scene { trial: reading.trial, thresholds: reading.thresholds, stretches: reading.stretches };
        let services = reading.trial.service_names().into_iter().filter_map(|service| scene.of_service(service));
        let found: Vec<Saturation<'_>> = services.collect();
        let host = scene.of_host().filter(|_| found.is_empty());
        found.into_iter().chain(host).map(|saturation| scene.finding(self, &saturation)).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    Cap(f64),
    Thread,
    Machine,
    Host,
}

struct Saturation<'a> {
    service: &'a str,
    limit: Limit,
    /// Share of the limit, 0 to about 1.
    level: f64,
    at: usize,
    replicas: (usize, usize),
}

struct Scene<'a> {
    trial: &'a TrialEvidence,
    thresholds: &'a Thresholds,
    stretches: &'a [Stretch],
}

impl<'a> Scene<'a> {
    fn cores_of(&self, name: &str, service: &str, replica: u32, stretch: &Stretch) -> Option<f64> {
        stretch.median_of(self.trial, (name, service, replica), self.thresholds)
    }

    fn service_cores(&self, service: &str, stretch: &Stretch) -> Option<f64> {
        let replicas = self.trial.services.iter().filter(|instance| instance.service == service);
        replicas.map(|instance| self.cores_of(names::CPU_CORES, service, instance.replica, stretch)).sum()
    }

    /// The replica closest to its limit speaks for the service.
    fn of_service(&self, service: &'a str) -> Option<Saturation<'a>> {
        let replicas: Vec<&ServiceInstance> = self.trial.services.iter().filter(|i| i.service == service).collect();
        let mut found: Vec<Saturation<'a>> = replicas.iter().filter_map(|i| self.of_replica(service, i)).collect();
        let count = found.len();
        found.sort_by(|a, b| b.level.total_cmp(&a.level));
        let worst = found.into_iter().next().map(|worst| Saturation { replicas: (count, replicas.len()), ..worst });
        worst.or_else(|| self.of_machine(service, replicas.len()))
    }

    fn of_replica(&self, service: &'a str, instance: &ServiceInstance) -> Option<Saturation<'a>> {
        let cpu = |stretch: &Stretch| self.cores_of(names::CPU_CORES, service, instance.replica, stretch);
        let of_thread = |name: &str, stretch: &Stretch| self.cores_of(name, service, instance.replica, stretch);
        let thread = |stretch: &Stretch| of_thread(names::BUSIEST_THREAD_CORES, stretch);
        let cap = instance.cpu_limit_cores.filter(|cap| *cap > 0.0);
        let by_cap = cap.and_then(|cap| self.saturated(|s| Some(cpu(s)? / cap), self.thresholds.cpu_limit_share));
        let busy = |stretch: &Stretch| {
            // Under a cap, it is the cap that a thread waits for.
            let wait = of_thread(names::BUSIEST_THREAD_WAIT, stretch).filter(|_| cap.is_none()).unwrap_or(0.0);
            Some(thread(stretch)? + wait.min(WAITING_SHARE_MAX))
        };
        let by_thread = self.saturated(busy, self.thresholds.cpu_thread_share);
        let by_thread = by_thread.map(|(at, level)| (at, thread(&self.stretches[at]).unwrap_or(level)));
        let is_one_thread = |at: usize, level: f64| {
            cpu(&self.stretches[at]).is_none_or(|cores| cores - level <= OTHER_THREADS_SHARE * cores)
        };
        let (limit, at, level) = match (by_cap, by_thread, cap) {
            (Some(_), Some((at, level)), _) if is_one_thread(at, level) => (Limit::Thread, at, level),
            (Some((at, level)), _, Some(cap)) => (Limit::Cap(cap), at, level),
            (_, Some((at, level)), _) => (Limit::Thread, at, level),
            _ => return None,
        };
        Some(Saturation { service, limit, level, at, replicas: (1, 1) })
    }

    fn of_machine(&self, service: &'a str, replicas: usize) -> Option<Saturation<'a>> {
        let cores = f64::from(self.trial.cores.max(1));
        let share = |stretch: &Stretch| Some(self.service_cores(service, stretch)? / cores);
        let (at, level) = self.saturated(share, self.thresholds.cpu_limit_share)?;
        Some(Saturation { service, limit: Limit::Machine, level, at, replicas: (replicas, replicas) })
    }

    fn of_host(&self) -> Option<Saturation<'a>> {
        let share = |stretch: &Stretch| Some(self.host_use(stretch).filter(|used| !used.is_mostly_others)?.share);
        let (at, level) = self.saturated(share, self.thresholds.cpu_host_share)?;
        Some(Saturation { service: HOST, limit: Limit::Host, level, at, replicas: (1, 1) })
    }

    fn host_use(&self, stretch: &Stretch) -> Option<HostUse> {
        stretch.host_use(self.trial, self.thresholds)
    }

    /// The saturated stretch that asks for most, the later of equals, unless another stretch refutes it.
    fn saturated(&self, level: impl Fn(&Stretch) -> Option<f64>, threshold: f64) -> Option<(usize, f64)> {
        let levels: Vec<Option<f64>> = self.stretches.iter().map(level).collect();
        let known = || levels.iter().enumerate().filter_map(|(at, level)| Some((at, (*level)?)));
        let is_refuted = |at: usize| {
            known().any(|(other, level)| {
                level < REFUTING_SHARE * threshold && self.stretches[other].rate >= self.stretches[at].rate
            })
        };
        known()
            .filter(|(at, level)| *level >= threshold && !is_refuted(*at))
            .max_by(|(a, _), (b, _)| self.stretches[*a].by_demand(&self.stretches[*b]).then(a.cmp(b)))
    }

    fn finding(&self, detector: &CpuSaturation, saturation: &Saturation<'_>) -> Finding {
        let stretch = &self.stretches[saturation.at];
        let proof = self.proof(saturation.at);
        let confidence = if proof.is_some() { Confidence::High } else { Confidence::Medium };
        let words = Words { scene: self, saturation, stretch };
        let mut reasons = vec![words.observation()];
        reasons.push(proof.unwrap_or_else(|| {
            "Whether more CPU would carry more load is not shown: no lighter steady load was measured beside it.".into()
        }));
        Finding {
            detector: detector.id().into(),
            version: detector.version(),
            title: words.title(),
            resource: saturation.service.into(),
            operation: None,
            cost_share: saturation.level.min(1.0),
            cost_of: words.cost_of(),
            confidence,
            reasons,
            numbers: words.numbers(),
            evidence_text: None,
            exemplars: Vec::new(),
            ruled_out: words.ruled_out(),
            falsified_by: words.falsified_by(),
            advice: words.advice(),
            caveats: words.caveats(),
            ..Finding::default()
        }
    }

    /// What shows that requests wait for CPU, in a sentence.
    fn proof(&self, at: usize) -> Option<String> {
        let here = self.stretches.get(at).filter(|stretch| stretch.is_steady)?;
        let is_lighter = |other: &&Stretch| {
            let growth = here.demand_over(other).filter(|_| other.is_steady && other.rate > 0.0);
            growth.is_some_and(|growth| growth >= DEMAND_GROWTH_MIN)
        };
        let below = self.stretches.iter().filter(is_lighter).max_by(|a, b| a.by_demand(b))?;
        let lightest = self.stretches.iter().filter(is_lighter).min_by(|a, b| a.by_demand(b))?;
        if here.offered.is_some() {
            return self.flat_against_offered(here, below).or_else(|| self.slower_once_sent(here, lightest));
        }
        self.flat_against(here, below).or_else(|| self.queueing_against(here, lightest))
    }

    fn flat_against(&self, here: &Stretch, below: &Stretch) -> Option<String> {
        let users = here.demand_over(below)? - 1.0;
        let rate = here.rate / below.rate - 1.0;
        (rate < self.thresholds.flat_growth_share * users).then(|| {
            format!(
                "Throughput no longer follows the users: from {} to {} users it went from {} to {}.",
                below.vus,
                here.vus,
                units::rate(below.rate),
                units::rate(here.rate)
            )
        })
    }

    /// What the generator held back proves nothing, so the requests sent must have grown too.
    fn flat_against_offered(&self, here: &Stretch, below: &Stretch) -> Option<String> {
        let asked = here.demand_over(below)?.min(here.sent / below.sent) - 1.0;
        let answered = here.rate / below.rate - 1.0;
        let is_flat = asked >= DEMAND_GROWTH_MIN - 1.0 && answered < self.thresholds.flat_growth_share * asked;
        is_flat.then(|| {
            format!(
                "Throughput no longer follows the rate offered: from {} to {} it went from {} to {}.",
                below.demand(),
                here.demand(),
                units::rate(below.rate),
                units::rate(here.rate)
            )
        })
    }

    /// With a rate given, the requests under way follow from the time each takes (Little's law). That time would not
    /// depend on the rate if none had to queue.
    fn slower_once_sent(&self, here: &Stretch, lightest: &Stretch) -> Option<String> {
        let is_longer = here.service_ns >= self.thresholds.queueing_latency_factor * lightest.service_ns;
        (is_longer && lightest.service_ns > 0.0).then(|| {
            format!(
                "Requests queue: at {} {} of them are under way at any time ({} × {}), each {} times as long as at {}.",
                here.demand(),
                units::three(here.in_flight()),
                units::rate(here.rate),
                units::duration(here.service_ns),
                units::three(here.service_ns / lightest.service_ns),
                lightest.demand()
            )
        })
    }

    /// Little's law: users = throughput × latency while nobody thinks.
    fn queueing_against(&self, here: &Stretch, lightest: &Stretch) -> Option<String> {
        let in_flight = here.rate * here.latency_ns / 1e9;
        let is_little = (in_flight / f64::from(here.vus.max(1)) - 1.0).abs() <= self.thresholds.little_tolerance;
        let is_longer = here.latency_ns >= self.thresholds.queueing_latency_factor * lightest.latency_ns;
        (is_little && is_longer && lightest.latency_ns > 0.0).then(|| {
            format!(
                "Requests queue: all {} users wait at any time ({} × {}), each {} times as long as under {} users.",
                here.vus,
                units::rate(here.rate),
                units::duration(here.latency_ns),
                units::three(here.latency_ns / lightest.latency_ns),
                lightest.vus
            )
        })
    }

    /// Name and cores of whoever used most in a stretch, the generator among them.
    fn consumers(&self, stretch: &Stretch) -> Vec<(String, f64)> {
        let generator = self.cores_of(names::CPU_CORES, names::GENERATOR, 0, stretch);
        let services = self.trial.service_names().into_iter();
        let mut consumers: Vec<(String, f64)> = services
            .filter_map(|service| Some((service.to_owned(), self.service_cores(service, stretch)?)))
            .chain(generator.map(|cores| ("the load generator".to_owned(), cores)))
            .collect();
        consumers.sort_by(|a, b| b.1.total_cmp(&a.1));
        consumers.truncate(CONSUMERS_MAX);
        consumers
    }
}

struct Words<'a> {
    scene: &'a Scene<'a>,
    saturation: &'a Saturation<'a>,
    stretch: &'a Stretch,
}

impl Words<'_> {
    fn title(&self) -> String {
        let (service, level) = (self.saturation.service, units::percent(self.saturation.level));
        match self.saturation.limit {
            Limit::Cap(cap) => format!("{service} uses up its CPU limit: {level} of {} cores", units::three(cap)),
            Limit::Thread => format!("{service} is held by one thread, which uses {level} of a core"),
            Limit::Machine => format!("{service} fills the machine: {level} of {} cores", self.scene.trial.cores),
            Limit::Host => format!("the machine's CPU is full: {level} of {} cores", self.scene.trial.cores),
        }
    }

    fn cost_of(&self) -> String {
        let service = self.saturation.service;
        match self.saturation.limit {
            Limit::Cap(cap) => format!("of the CPU limit of {service} ({} cores)", units::three(cap)),
            Limit::Thread => format!("of one core, by the busiest thread of {service}"),
            Limit::Machine | Limit::Host => format!("of the machine's {} cores", self.scene.trial.cores),
        }
    }

    fn observation(&self) -> String {
        let (hot, all) = self.saturation.replicas;
        let replicas = if all > 1 { format!(" ({hot} of {all} replicas)") } else { String::new() };
        format!(
            "Half of the time or more in {} it stood at {} or above{replicas}.",
            self.stretch.label,
            units::percent(self.saturation.level)
        )
    }

    fn numbers(&self) -> Vec<Figure> {
        let mut numbers = vec![
            Figure::new("share of the limit, median", self.saturation.level * 100.0, "%"),
            match self.stretch.offered {
                Some(offered) => Figure::new("arrivals offered at that time", offered, "/s"),
                None => Figure::new("users at that time", f64::from(self.stretch.vus), ""),
            },
            Figure::new("throughput at that time", self.stretch.rate, "/s"),
            Figure::new("mean latency at that time", self.stretch.latency_ns, "ns"),
        ];
        if let Some(cores) = self.scene.service_cores(self.saturation.service, self.stretch).filter(|c| *c > 0.0) {
            numbers.push(Figure::new("CPU, all replicas, median", cores, "{cores}"));
            if self.stretch.rate > 0.0 {
                numbers.push(Figure::new("CPU for each request", cores / self.stretch.rate, "s"));
            }
        }
        if self.saturation.limit == Limit::Host {
            let consumers = self.scene.consumers(self.stretch).into_iter();
            numbers
                .extend(consumers.map(|(name, cores)| Figure::new(format!("CPU of {name}, median"), cores, "{cores}")));
        }
        numbers
    }

    fn ruled_out(&self) -> Vec<String> {
        let generator = self.scene.cores_of(names::CPU_CORES, names::GENERATOR, 0, self.stretch);
        let mut ruled_out = vec![
            "A peak or a start: the median over a stretch of counted load is meant, not the largest value.".to_owned(),
            "Idle CPU at the same load: no other stretch carried as much with clearly less.".to_owned(),
        ];
        if let Some(cores) = generator.filter(|_| self.saturation.limit != Limit::Host) {
            ruled_out.push(format!("The load generator: it used {} cores.", units::three(cores)));
        }
        ruled_out
    }

    fn falsified_by(&self) -> String {
        let service = self.saturation.service;
        match self.saturation.limit {
            Limit::Cap(_) => format!("A higher CPU limit for {service} does not raise throughput."),
            Limit::Thread => format!("Another worker process or replica of {service} does not raise throughput."),
            Limit::Machine => format!("A machine with more cores does not raise the throughput of {service}."),
            Limit::Host => "The same load on a larger machine is no faster.".into(),
        }
    }

    fn advice(&self) -> String {
        let service = self.saturation.service;
        match self.saturation.limit {
            Limit::Cap(cap) => format!(
                "Take work out of the request in {service} first; then raise its limit of {} cores or add a replica.",
                units::three(cap)
            ),
            Limit::Thread => format!(
                "Take work out of the request in {service} first; then spread it over more threads: more worker processes or \
                 replicas, and no long computation on an event loop or under an interpreter lock. A larger machine or a \
                 higher limit will not help."
            ),
            Limit::Machine => {
                format!("Take work out of the request in {service} first; then give it more cores or machines.")
            }
            Limit::Host => format!(
                "Give the services more cores, or move one of the largest consumers elsewhere: {}.",
                self.consumer_list()
            ),
        }
    }

    fn consumer_list(&self) -> String {
        let consumers = self.scene.consumers(self.stretch);
        if consumers.is_empty() {
            return "which they are was not sampled".into();
        }
        let each = consumers.iter().map(|(name, cores)| format!("{name} ({} cores)", units::three(*cores)));
        each.collect::<Vec<_>>().join(", ")
    }

    fn caveats(&self) -> Vec<String> {
        let host =
            self.scene.host_use(self.stretch).map(|used| used.share).filter(|_| self.saturation.limit != Limit::Host);
        host.filter(|share| *share >= self.scene.thresholds.cpu_host_share)
            .map(|share| {
                format!(
                    "The machine itself was {} busy, so what one gains another may lose: {}.",
                    units::percent(share),
                    self.consumer_list()
                )
            })
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::run::WindowKind;
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    fn load(vus: u32, rate: f64, latency_ms: f64) -> Load {
        Load { vus, rate, latency_ms }
    }

    fn detect(trial: TrialBuilder) -> Vec<Finding> {
        crate::detect(&CpuSaturation, &trial.build(), &Thresholds::default())
    }

    /// Three steps of ten seconds in which throughput stops growing.
    fn steps(cap: Option<f64>) -> TrialBuilder {
        let trial = TrialBuilder::new("a").service("shop", cap).warmup(10, load(1, 50.0, 20.0));
        trial.steady(10, load(1, 50.0, 20.0)).steady(10, load(4, 100.0, 40.0)).steady(10, load(8, 101.0, 79.0))
    }

    #[test]
    fn a_cap_that_is_used_up_is_named() {
        let findings = detect(steps(Some(0.5)).cpu("shop", 0, |second| if second < 20 { 0.25 } else { 0.49 }));
        let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
        assert_eq!(finding.title, "shop uses up its CPU limit: 98 % of 0.50 cores");
        assert_eq!(finding.confidence, Confidence::High);
        assert!(finding.reasons[1].contains("from 4 to 8 users it went from 100/s to 101/s"), "{:?}", finding.reasons);
        assert_eq!(finding.cost_share, 0.98);
    }

    #[test]
    fn one_busy_thread_is_named_with_and_without_a_cap() {
        for cap in [None, Some(1.0)] {
            let trial = steps(cap).cpu("shop", 0, |_| 1.0).busiest_thread("shop", 0, |_| 0.97);
            let findings = detect(trial);
            assert_eq!(findings.len(), 1);
            assert_eq!(findings[0].title, "shop is held by one thread, which uses 97 % of a core");
        }
    }

    #[test]
    fn many_busy_threads_under_a_cap_are_the_cap() {
        let findings = detect(steps(Some(2.0)).cpu("shop", 0, |_| 1.95).busiest_thread("shop", 0, |_| 0.95));
        assert_eq!(findings[0].title, "shop uses up its CPU limit: 98 % of 2.00 cores");
    }

    #[test]
    fn a_service_without_a_cap_can_fill_the_machine() {
        let findings = detect(steps(None).cpu("shop", 0, |_| 3.6).host_cpu(|_| 0.95));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].title, "shop fills the machine: 90 % of 4 cores");
        assert!(findings[0].caveats[0].contains("95 % busy"));
    }

    #[test]
    fn a_full_host_names_its_consumers() {
        let trial = steps(None).service("stock", None).host_cpu(|_| 0.97);
        let findings = detect(trial.cpu("shop", 0, |_| 1.5).cpu("stock", 0, |_| 1.2).cpu(names::GENERATOR, 0, |_| 0.9));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].resource, "host");
        assert!(findings[0].advice.contains("shop (1.50 cores), stock (1.20 cores), the load generator (0.90 cores)"));
    }

    #[test]
    fn one_hot_replica_of_two_is_said() {
        let trial = steps(Some(0.5)).service("shop", Some(0.5));
        let findings = detect(trial.cpu("shop", 0, |_| 0.49).cpu("shop", 1, |_| 0.1));
        assert!(findings[0].reasons[0].ends_with("(1 of 2 replicas)."), "{:?}", findings[0].reasons);
    }

    #[test]
    fn the_end_of_a_ramp_is_seen() {
        let ramp = (0..40).map(|s| (50.0 + f64::from(s), 20.0));
        let trial = TrialBuilder::new("a").service("shop", Some(0.5)).window(WindowKind::Ramp, 40, ramp);
        let findings = detect(trial.cpu("shop", 0, |second| 0.5 * f64::from(second + 1) / 40.0));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].confidence, Confidence::Medium);
        assert!(findings[0].reasons[0].contains("part 4 of 4"), "{:?}", findings[0].reasons);
    }

    #[test]
    fn queueing_is_proof_where_throughput_still_grows_a_little() {
        let trial = TrialBuilder::new("a").service("shop", Some(0.5)).steady(10, load(1, 20.0, 50.0));
        let findings =
            detect(trial.steady(10, load(4, 46.0, 87.0)).cpu("shop", 0, |s| if s < 10 { 0.2 } else { 0.48 }));
        assert_eq!(findings[0].confidence, Confidence::High);
        assert!(findings[0].reasons[1].starts_with("Requests queue"), "{:?}", findings[0].reasons);
    }

    /// Eleven steps of two seconds; the busiest thread by step, as the samples of a short run show it.
    fn short_steps(thread: [f64; 11]) -> TrialBuilder {
        let rates = (0..11).map(|step| load(1 + 4 * step, 20.0 + 3.0 * f64::from(step), 100.0));
        let trial = rates.fold(TrialBuilder::new("a").service("shop", None), |trial, load| trial.steady(2, load));
        trial.busiest_thread("shop", 0, move |second| thread[second as usize / 2])
    }

    #[test]
    fn the_last_of_short_steps_are_enough() {
        let rising = |last: [f64; 4]| {
            let mut thread = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.0, 0.0, 0.0, 0.0];
            thread[7..].copy_from_slice(&last);
            detect(short_steps(thread))
        };
        for last in [[0.80, 0.95, 0.97, 0.99], [0.80, 0.86, 0.96, 0.98]] {
            let findings = rising(last);
            assert_eq!(findings.len(), 1, "{last:?}");
            assert!(findings[0].reasons[0].contains("in “33 to 41 users” it stood"), "{:?}", findings[0].reasons);
            assert_eq!(findings[0].confidence, Confidence::Medium);
        }
        for last in [[0.75, 0.78, 0.81, 0.84], [0.70, 0.75, 0.80, 0.98]] {
            assert_eq!(rising(last), [], "{last:?}");
        }
    }

    /// Two levels of an open load: what is offered, answered and takes how long.
    fn open(levels: [(f64, f64, f64); 2]) -> TrialBuilder {
        let step = |trial: TrialBuilder, (offered, rate, latency_ms): (f64, f64, f64)| {
            trial.arrivals(10, offered, load((rate * latency_ms / 1e3) as u32, rate, latency_ms))
        };
        let trial = levels.into_iter().fold(TrialBuilder::new("a").service("shop", Some(0.5)), step);
        trial.cpu("shop", 0, |second| if second < 10 { 0.2 } else { 0.49 })
    }

    #[test]
    fn an_open_load_proves_saturation_by_what_it_offered() {
        let flat = "Throughput no longer follows the rate offered: from 100/s to 200/s it went from 100/s to 110/s.";
        let queues = "Requests queue: at 200/s 11.0 of them are under way at any time (110/s × 100 ms), each 10.0 times as \
                      long as at 100/s.";
        let cases = [
            (open([(100.0, 100.0, 10.0), (200.0, 110.0, 400.0)]), Some(flat)),
            (open([(100.0, 100.0, 10.0), (200.0, 110.0, 100.0)]).held_back(100, 90), Some(queues)),
            (open([(100.0, 100.0, 10.0), (200.0, 199.0, 11.0)]), None),
            (open([(100.0, 100.0, 10.0), (110.0, 101.0, 40.0)]), None),
        ];
        for (trial, proof) in cases {
            let findings = detect(trial);
            let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
            let expected = if proof.is_some() { Confidence::High } else { Confidence::Medium };
            assert_eq!(finding.confidence, expected, "{:?}", finding.reasons);
            assert!(proof.is_none_or(|proof| finding.reasons[1] == proof), "{:?}", finding.reasons);
            assert_eq!(finding.numbers[1].name, "arrivals offered at that time");
        }
    }

    #[test]
    fn one_load_level_is_no_proof() {
        let trial = TrialBuilder::new("a").service("shop", Some(0.5)).steady(30, load(4, 50.0, 80.0));
        assert_eq!(detect(trial.cpu("shop", 0, |_| 0.49))[0].confidence, Confidence::Medium);
    }

    #[test]
    fn healthy_and_unknown_are_silent() {
        let few = TrialBuilder::new("a").service("shop", Some(0.5)).steady(4, load(4, 50.0, 80.0));
        let cases = [
            ("room to spare", steps(Some(0.5)).cpu("shop", 0, |_| 0.4).busiest_thread("shop", 0, |_| 0.3)),
            ("peaks", steps(Some(0.5)).cpu("shop", 0, |second| if second % 3 == 0 { 0.5 } else { 0.2 })),
            ("warm-up", steps(Some(0.5)).cpu("shop", 0, |second| if second < 10 { 0.5 } else { 0.2 })),
            ("a start that later load refutes", steps(Some(0.5)).cpu("shop", 0, |s| if s < 20 { 0.5 } else { 0.3 })),
            ("no series", steps(Some(0.5))),
            ("too few points", few.cpu("shop", 0, |_| 0.5)),
            (
                "several threads on a large machine",
                steps(None).cpu("shop", 0, |_| 2.0).busiest_thread("shop", 0, |_| 0.6),
            ),
            ("a host full of others", steps(None).cpu("shop", 0, |_| 1.0).host_cpu(|_| 1.0)),
            ("a busy host with room", steps(None).cpu("shop", 0, |_| 2.0).host_cpu(|_| 0.7)),
            ("the generator's own thread", steps(None).busiest_thread(names::GENERATOR, 0, |_| 0.99)),
            ("no windows", TrialBuilder::new("a").service("shop", Some(0.5))),
        ];
        for (name, trial) in cases {
            assert_eq!(detect(trial), [], "with {name}");
        }
    }

    #[test]
    fn a_thread_without_a_cap_that_waits_for_a_processor_is_busy_all_the_same() {
        let with = |cap, ran: f64, waited: f64| {
            let trial = steps(cap)
                .cpu("shop", 0, move |_| ran)
                .busiest_thread("shop", 0, move |second| if second < 20 { 0.3 } else { ran });
            detect(trial.busiest_thread_wait("shop", 0, move |_| waited))
        };
        let found = with(None, 0.84, 0.1);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].title, "shop is held by one thread, which uses 84 % of a core");
        assert_eq!(with(None, 0.84, 0.01), []);
        assert_eq!(with(None, 0.6, 0.4), [], "the machine holds it, not the thread");
        assert_eq!(with(Some(2.0), 0.84, 0.1), [], "it waits for its cap");
    }
}
