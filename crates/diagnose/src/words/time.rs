//! Names of the categories of time.

use narrows_model::breakdown::{OwnTime, TimeCategory};

/// Name of a category of time: `waiting for a lock`.
pub fn time_category(category: &TimeCategory) -> String {
    match category {
        TimeCategory::Own(what) => own(what),
        TimeCategory::Pool => "waiting for a connection".to_owned(),
        TimeCategory::BackOff(refuser) => format!("waiting to retry {refuser}"),
        TimeCategory::Dependency(name) => name.clone(),
        TimeCategory::Unknown => "unknown".to_owned(),
    }
}

/// Name of a part of a service's own time.
fn own(what: &OwnTime) -> String {
    let name = match what {
        OwnTime::OnCpu => "on CPU",
        OwnTime::WaitingForCpu => "waiting for CPU",
        OwnTime::Disk => "waiting for the disk",
        OwnTime::Sleep => "sleeping",
        OwnTime::Network(peer) => return format!("waiting for {peer}, without spans"),
        OwnTime::Connection(peer) => return format!("waiting for a connection to {peer}"),
        OwnTime::Lock => "waiting for a lock",
        OwnTime::Unseen => "own time without a thread",
        OwnTime::NotSampled => "own time, not sampled",
    };
    name.to_owned()
}
