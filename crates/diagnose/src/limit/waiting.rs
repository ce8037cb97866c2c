//! Where requests spend most of their time, from the critical paths or, without spans, from the sockets or what the system
//! consists of; and what they wait for there, from its threads and sockets.

use narrows_model::breakdown::{Breakdown, OwnPart, OwnTime, TimeCategory};
use narrows_model::limit::WaitingPlace;

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::programs::only_service;
use crate::read::time_outside;

/// From this share of the latency on, time outside the spans is most of it.
const OUTSIDE_SHARE_MIN: f64 = 0.5;
/// From this share of a place's requests on, what they wait for is named.
const WAITS_SHARE_MIN: f64 = 0.5;

/// The place where the operation that took most time spends most of it; without spans, the one where most requests are by
/// the sockets, or the only service that is no database.
pub(super) fn waiting(reading: &Reading<'_>, at: &Interval) -> Option<WaitingPlace> {
    let place = |name: String, category: Option<TimeCategory>, share: Option<f64>| {
        let cores = Cpu::new(reading).service_cores(&name, at).filter(|_| is_service(reading, &name));
        WaitingPlace { waits: waits(reading, &name, at), name, category, share, cores }
    };
    if let Some(breakdown) = reading.spent().breakdowns.first() {
        if let Some(share) = outside(reading, breakdown, at) {
            let name = breakdown.service.clone();
            let outside = place(name, Some(TimeCategory::Unknown), Some(share));
            // Its threads do not show who waits outside its spans.
            return Some(WaitingPlace { waits: None, ..outside });
        }
        let (category, share) = largest(breakdown)?;
        return Some(place(name_of(breakdown, &category), Some(category), Some(share)));
    }
    let at_level = reading.intervals.iter().position(|interval| interval == at)?;
    if let Some((name, requests)) = reading.conversations().most_requests(at_level) {
        let share = (requests / at.in_flight()).min(1.0);
        return Some(place(name.to_owned(), None, Some(share).filter(|share| share.is_finite())));
    }
    only_service(reading.trial).map(|service| place(service.to_owned(), None, None))
}

/// The category with the largest share; all of the service's own time is one.
fn largest(breakdown: &Breakdown) -> Option<(TimeCategory, f64)> {
    let is_own = |category: &TimeCategory| matches!(category, TimeCategory::Own(_));
    let own = breakdown.parts.iter().find(|part| is_own(&part.category));
    let all_own = breakdown.parts.iter().filter(|part| is_own(&part.category)).map(|part| part.share).sum();
    let own = own.map(|part| (part.category.clone(), all_own));
    let is_other = |category: &TimeCategory| !is_own(category) && *category != TimeCategory::Unknown;
    let others = breakdown.parts.iter().filter(|part| is_other(&part.category));
    let all = others.map(|part| (part.category.clone(), part.share)).chain(own);
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Wait of most of the requests that are at a service, and their number.
fn waits(reading: &Reading<'_>, service: &str, at: &Interval) -> Option<(OwnPart, f64)> {
    let level = reading.intervals.iter().position(|interval| interval == at)?;
    let threads = reading.spent().threads.get(level)?.iter().find(|threads| threads.service == service)?;
    let requests = threads.requests?;
    let most = threads.own.iter().max_by(|a, b| a.requests.total_cmp(&b.requests))?;
    let is_wait = !matches!(most.what, OwnTime::OnCpu | OwnTime::NotSampled);
    (is_wait && most.requests >= WAITS_SHARE_MIN * requests).then(|| (most.clone(), requests))
}

/// The share of the latency that passes outside the spans of the request, when it is most of it.
fn outside(reading: &Reading<'_>, breakdown: &Breakdown, at: &Interval) -> Option<f64> {
    time_outside::share(reading, breakdown.mean_ns, at).filter(|share| *share >= OUTSIDE_SHARE_MIN)
}

fn name_of(breakdown: &Breakdown, category: &TimeCategory) -> String {
    match category {
        TimeCategory::Own(_) | TimeCategory::Pool | TimeCategory::Unknown => breakdown.service.clone(),
        TimeCategory::BackOff(name) | TimeCategory::Dependency(name) => name.clone(),
    }
}

fn is_service(reading: &Reading<'_>, name: &str) -> bool {
    reading.trial.services.iter().any(|instance| instance.service == name)
}
