//! Texts of verdicts on limits: the verdict, its reason, and advice.

use narrows_model::breakdown::{OwnTime, TimeCategory};
use narrows_model::finding::FindingKind;
use narrows_model::finding::evidence::cpu::LoadPoint;
use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::finding::evidence::offered_load_limited::{Room, RoomOf};
use narrows_model::limit::{Ask, LimitSign, LimitVerdict, MachineCpu, Unclear, WaitingPlace};
use narrows_model::units;

use super::kind::cause_name;
use crate::detectors::words::level;

/// A user of the machine is named from this share of it on.
const NAMED_SHARE_MIN: f64 = 0.005;

/// From this share of the machine on, programs beside the system are the first to be sent away.
const FOREIGN_SHARE_MIN: f64 = 0.1;
const ELSEWHERE: &str = "run it on a machine that does nothing else";

/// Verdict on a trial, to follow "is": `below its limit`.
pub fn limit_headline(verdict: &LimitVerdict) -> String {
    match verdict {
        LimitVerdict::BelowLimit { .. } => "below its limit".to_owned(),
        LimitVerdict::AsksNoMore { .. } => "not asked for more".to_owned(),
        LimitVerdict::CannotTell { .. } => "not judged".to_owned(),
        limit => format!("limited by {}", limit_name(limit)),
    }
}

/// Limit of a trial in few words: `the CPU of shop`; the headline if none is known.
pub fn limit_name(verdict: &LimitVerdict) -> String {
    match verdict {
        LimitVerdict::Finding { finding, resource, .. } => format!("{} at {resource}", cause_name(*finding)),
        LimitVerdict::Cpu { service: Some(service), .. } => format!("the CPU of {service}"),
        LimitVerdict::Cpu { service: None, .. } => "the CPU of the machine".to_owned(),
        LimitVerdict::NotCpu { place: Some(place), .. } => match cause(place) {
            Some(cause) => format!("{cause} at {}", place.name),
            None => format!("something at {} that is not CPU", place.name),
        },
        LimitVerdict::NotCpu { place: None, .. } => "something that is not CPU".to_owned(),
        LimitVerdict::BelowLimit { .. } | LimitVerdict::AsksNoMore { .. } | LimitVerdict::CannotTell { .. } => {
            limit_headline(verdict)
        }
    }
}

/// Verdict with its reason and advice, in sentences that follow "is".
pub fn limit_text(verdict: &LimitVerdict) -> String {
    let sentence = match limit_reason(verdict) {
        reason if reason.is_empty() => format!("{}.", limit_headline(verdict)),
        reason => format!("{}: {reason}.", limit_headline(verdict)),
    };
    let advice = limit_advice(verdict);
    match advice.chars().next() {
        Some(first) => format!("{sentence} {}{}.", first.to_uppercase(), &advice[first.len_utf8()..]),
        None => sentence,
    }
}

/// Reason of a verdict, a clause without a full stop; empty where the finding says all.
pub fn limit_reason(verdict: &LimitVerdict) -> String {
    match verdict {
        LimitVerdict::Finding { machine, .. } => {
            machine.as_ref().map_or_else(String::new, |machine| format!("the machine is full ({})", divided(machine)))
        }
        LimitVerdict::Cpu { share, mostly, waiting, machine, .. } => {
            let mostly = mostly
                .as_ref()
                .map(|service| format!("; {service} uses most of the services' share"))
                .unwrap_or_default();
            let divided =
                machine.as_ref().map(|machine| format!(" ({}{mostly})", divided(machine))).unwrap_or_default();
            let threads =
                |waiting: &f64| format!(", with {} waiting for a processor", units::counted(*waiting, "thread"));
            let waiting = waiting.as_ref().map(threads).unwrap_or_default();
            format!("{} of it is in use{divided}{waiting}", units::percent(share.min(1.0)))
        }
        LimitVerdict::NotCpu { sign, place } => match place.as_ref().and_then(seen) {
            Some(seen) => format!("{}; {seen}", law(sign)),
            None => law(sign),
        },
        LimitVerdict::BelowLimit { lighter, heavier } => {
            format!("throughput still grew with the load, from {} to {}", rate(lighter), rate(heavier))
        }
        LimitVerdict::AsksNoMore { because, costs } => asked(because, *costs),
        LimitVerdict::CannotTell { because } => unclear(because),
    }
}

/// Advice on a limit, in the imperative and without a full stop; empty if there is nothing to do.
pub fn limit_advice(verdict: &LimitVerdict) -> &'static str {
    match verdict {
        LimitVerdict::NotCpu { place: Some(place), .. } if cause(place).is_some() => "",
        LimitVerdict::NotCpu { .. } => {
            "look for a lock, a pool, a single connection, a sleep, a disk, or calls that send no spans"
        }
        LimitVerdict::BelowLimit { .. } => "add heavier levels to find the limit",
        LimitVerdict::Cpu { machine: Some(machine), .. } if machine.foreign() >= FOREIGN_SHARE_MIN * machine.all => {
            ELSEWHERE
        }
        LimitVerdict::Cpu { .. } => "add a lighter level, which proves whether throughput follows the CPU",
        LimitVerdict::CannotTell { because: Unclear::Neighbours { .. } } => ELSEWHERE,
        LimitVerdict::CannotTell { because: Unclear::OneLevel { at, .. } } if is_unknown(&at.level) => {
            "record it under a heavier or a lighter load too"
        }
        LimitVerdict::CannotTell { because: Unclear::OneLevel { .. } } => {
            "run it under at least two loads, such as 1 user and as many as now"
        }
        LimitVerdict::CannotTell { because: Unclear::NotSteady | Unclear::ShortSteps { .. } } => {
            "hold each level of the load for ten seconds or more"
        }
        LimitVerdict::Finding { .. } | LimitVerdict::AsksNoMore { .. } | LimitVerdict::CannotTell { .. } => "",
    }
}

/// `176/s with 16 users`.
fn rate(point: &LoadPoint) -> String {
    format!("{} {}", units::rate(point.rate), load(&point.level))
}

/// `with 1 user`, `at 50.0/s`.
fn load(of: &LoadLevel) -> String {
    match of.arrivals {
        None if of.users > 0 => format!("with {}", level(of)),
        _ => format!("at {}", level(of)),
    }
}

/// Users of the machine, the system first.
fn divided(machine: &MachineCpu) -> String {
    let parts = [
        ("services", machine.services),
        ("Narrows", machine.narrows),
        ("other programs", machine.others),
        ("hypervisor", machine.stolen),
    ];
    let is_named = |(name, cores): &(&str, f64)| *name == "services" || *cores >= NAMED_SHARE_MIN * machine.all;
    let named = parts.into_iter().filter(is_named);
    named.map(|(name, cores)| format!("{name} {}", units::percent(cores / machine.all))).collect::<Vec<_>>().join(", ")
}

/// The cause of most waits at a place, to follow "limited by"; `None` if its threads do not show it.
fn cause(place: &WaitingPlace) -> Option<String> {
    let (most, _) = place.waits.as_ref()?;
    match &most.what {
        OwnTime::WaitingForCpu => Some("waits for a processor".to_owned()),
        OwnTime::Disk => Some("waits for the disk".to_owned()),
        OwnTime::Sleep => Some("sleeps".to_owned()),
        OwnTime::Network(peer) => Some(format!("waits for {peer}")),
        OwnTime::Connection(peer) => Some(format!("waits for a connection to {peer}")),
        OwnTime::Lock => Some("waits for a lock".to_owned()),
        OwnTime::OnCpu | OwnTime::Unseen | OwnTime::NotSampled => None,
    }
}

/// `its threads wait for a lock (7.0 of 8.0 requests)`.
fn waits(place: &WaitingPlace) -> Option<String> {
    let (most, all) = place.waits.as_ref()?;
    let what = match &most.what {
        OwnTime::WaitingForCpu => "its threads wait for a processor".to_owned(),
        OwnTime::Disk => "its threads wait for the disk".to_owned(),
        OwnTime::Sleep => "its threads sleep".to_owned(),
        OwnTime::Network(peer) => format!("its requests wait for {peer}"),
        OwnTime::Connection(peer) => format!("its requests wait for a connection to {peer}, and all are in use"),
        OwnTime::Lock => "its threads wait for a lock".to_owned(),
        OwnTime::Unseen => "no thread waits with them, as with asynchronous timers and event loops".to_owned(),
        OwnTime::OnCpu | OwnTime::NotSampled => return None,
    };
    Some(format!("{what} ({} of {} requests)", units::number(most.requests), units::number(*all)))
}

/// A wait as part of a time; `None` for what is no wait.
fn part_in_words(category: &TimeCategory) -> Option<String> {
    match category {
        TimeCategory::Own(OwnTime::WaitingForCpu) => Some("waiting for a processor".to_owned()),
        TimeCategory::Own(OwnTime::Disk) => Some("waiting for the disk".to_owned()),
        TimeCategory::Own(OwnTime::Sleep) => Some("sleeping".to_owned()),
        TimeCategory::Own(OwnTime::Network(peer)) => Some(format!("waiting for {peer}")),
        TimeCategory::Own(OwnTime::Connection(peer)) => Some(format!("waiting for a connection to {peer}")),
        TimeCategory::Own(OwnTime::Lock) => Some("waiting for a lock".to_owned()),
        TimeCategory::Pool => Some("waiting for a connection".to_owned()),
        TimeCategory::BackOff(name) => Some(format!("waiting to retry {name}")),
        TimeCategory::Dependency(name) => Some(format!("in calls to {name}")),
        TimeCategory::Own(OwnTime::OnCpu | OwnTime::Unseen | OwnTime::NotSampled) | TimeCategory::Unknown => None,
    }
}

/// Evidence about a place from spans and samples.
fn seen(place: &WaitingPlace) -> Option<String> {
    let spent = place.share.map(|share| {
        let what = match place.category {
            Some(TimeCategory::Own(_)) | None => "in it",
            Some(TimeCategory::Pool) => "waiting for a connection",
            Some(TimeCategory::BackOff(_)) => "waiting to retry it",
            Some(TimeCategory::Dependency(_)) => "in calls to it",
            Some(TimeCategory::Unknown) => "before its spans begin or after they end",
        };
        format!("{} of the latency passes {what}", units::percent(share))
    });
    let used = place.cores.map(|cores| format!("it uses {}", units::cores(cores)));
    let all: Vec<String> = [spent, waits(place), used].into_iter().flatten().collect();
    let (last, others) = all.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{}, and {last}", others.join(", ")) })
}

/// The comparison that shows a limit and, for flat throughput of users, from how many requests on latency only grows.
fn law(sign: &LimitSign) -> String {
    let compared = compared(sign);
    match sign {
        LimitSign::FlatThroughput { lighter, heavier } if lighter.level.arrivals.is_none() => {
            // Little's law: as many as its throughput is, if each took as long as under the lighter load.
            let enough = (heavier.rate * lighter.request_ns / 1e9).round();
            let beyond = if enough <= 1.0 { String::new() } else { format!(" beyond {enough}") };
            format!("{compared}, so latency grows in proportion to the requests in flight{beyond}")
        }
        _ => compared,
    }
}

/// The comparison that shows a limit.
fn compared(sign: &LimitSign) -> String {
    match sign {
        LimitSign::FlatThroughput { lighter, heavier } => same_rate(lighter, heavier),
        LimitSign::Queueing { lighter, heavier } => format!(
            "requests queue: they take {} {} and {} {}",
            units::duration(lighter.request_ns),
            load(&lighter.level),
            units::duration(heavier.request_ns),
            load(&heavier.level)
        ),
        LimitSign::Behind { at } => {
            let offered = units::rate(at.level.arrivals.unwrap_or(0.0));
            format!("of {offered} only {} are completed", units::rate(at.rate))
        }
        LimitSign::UsersWait { at } => {
            format!("{} users wait {} for each response", at.level.users, units::duration(at.request_ns))
        }
    }
}

/// The throughput of two levels, once where it reads the same.
fn same_rate(lighter: &LoadPoint, heavier: &LoadPoint) -> String {
    let (before, now) = (units::rate(lighter.rate), units::rate(heavier.rate));
    let (light, heavy) = (load(&lighter.level), load(&heavier.level));
    if before == now { format!("{now} {light} and {heavy}") } else { format!("{before} {light} and {now} {heavy}") }
}

fn asked(because: &Ask, costs: Option<FindingKind>) -> String {
    let text = match because {
        Ask::Room(Room { of: RoomOf::Thinking, share }) => {
            format!("{} of the users think at any time", units::percent(share.min(1.0)))
        }
        Ask::Room(Room { of: RoomOf::Completed, .. }) => "every arrival was completed".to_owned(),
        Ask::OneUser { at, wait } => {
            let part = wait.as_ref().and_then(|part| Some((part.share, part_in_words(&part.category)?)));
            let part = part.map(|(share, words)| format!(", {} of it {words}", units::percent(share)));
            format!(
                "the only user waits {} for each response{}",
                units::duration(at.request_ns),
                part.unwrap_or_default()
            )
        }
    };
    costs.map_or_else(|| text.clone(), |finding| format!("{text}; what costs most is {}", cause_name(finding)))
}

/// `50 users`, or `397/s` where another program made the load and its users are not known.
fn only_load(point: &LoadPoint) -> String {
    if is_unknown(&point.level) { units::rate(point.rate) } else { level(&point.level) }
}

/// True if another program made the load and its users are not known.
fn is_unknown(level: &LoadLevel) -> bool {
    *level == LoadLevel { users: 0, arrivals: None }
}

fn unclear(because: &Unclear) -> String {
    match because {
        Unclear::NoLoad => "Narrows recorded no load".to_owned(),
        Unclear::OnlyTotals => "only totals of the load are known, and no server span arrived".to_owned(),
        Unclear::NotSteady => "the heaviest part of the load was not steady".to_owned(),
        Unclear::ShortSteps { sign } => format!("{}, but the steps are too short to show why", compared(sign)),
        Unclear::Invalid { finding } => format!("{} makes the figures invalid", cause_name(*finding)),
        Unclear::Failures { share } => format!("{} of the requests failed", units::percent(*share)),
        Unclear::Neighbours { machine } => {
            format!("the machine was full, and other programs had much of it ({})", divided(machine))
        }
        Unclear::OneLevel { at, busiest } => {
            let cpu = busiest.map_or_else(String::new, |share| {
                format!(", under which the busiest service used {} of its CPU", units::percent(share))
            });
            format!("the only load was {}{cpu}", only_load(at))
        }
    }
}
