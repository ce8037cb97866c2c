//! Where requests spend most of their time, from the critical paths or, without spans, from what the system consists of.

use narrows_model::breakdown::{Breakdown, TimeCategory, TimePart};
use narrows_model::limit::WaitingPlace;

use crate::read::Reading;
use crate::read::cpu::Cpu;
use crate::read::intervals::Interval;
use crate::read::outside;

/// From this share of the latency on, time outside the spans is most of it.
const OUTSIDE_SHARE_MIN: f64 = 0.5;

/// The place where the operation that took most time spends most of it; without spans, the only service there is.
pub(super) fn waiting(reading: &Reading<'_>, breakdowns: &[Breakdown], at: &Interval) -> Option<WaitingPlace> {
    let cores = |name: &str| Cpu::new(reading).service_cores(name, at).filter(|_| is_service(reading, name));
    if let Some(breakdown) = breakdowns.first() {
        if let Some(share) = outside(reading, breakdown, at) {
            let (name, cores) = (breakdown.service.clone(), cores(&breakdown.service));
            return Some(WaitingPlace { name, category: Some(TimeCategory::Unknown), share: Some(share), cores });
        }
        let part = breakdown.parts.iter().find(|part| part.category != TimeCategory::Unknown)?;
        let name = name_of(breakdown, part);
        let cores = cores(&name);
        return Some(WaitingPlace { name, category: Some(part.category.clone()), share: Some(part.share), cores });
    }
    match reading.trial.service_names()[..] {
        [service] => {
            Some(WaitingPlace { name: service.to_owned(), category: None, share: None, cores: cores(service) })
        }
        _ => None,
    }
}

/// The share of the latency that passes outside the spans of the request, when it is most of it.
fn outside(reading: &Reading<'_>, breakdown: &Breakdown, at: &Interval) -> Option<f64> {
    outside::share(reading, breakdown.mean_ns, at).filter(|share| *share >= OUTSIDE_SHARE_MIN)
}

fn name_of(breakdown: &Breakdown, part: &TimePart) -> String {
    match &part.category {
        TimeCategory::Own | TimeCategory::Pool | TimeCategory::Unknown => breakdown.service.clone(),
        TimeCategory::BackOff(name) | TimeCategory::Dependency(name) => name.clone(),
    }
}

fn is_service(reading: &Reading<'_>, name: &str) -> bool {
    reading.trial.services.iter().any(|instance| instance.service == name)
}
