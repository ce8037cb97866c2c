//! Sections that only so many requests at a time may enter, as findings name them: locks, pools of connections, and commits.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::ResourceKind;

use crate::queueing::{Adds, Station};

/// A section with a limit on how many requests are in it. Its time is part of the delay; what it adds is the wait.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    pub(crate) kind: ResourceKind,
    /// The service.
    pub(crate) name: String,
    /// Time of a request in it, seconds.
    pub(crate) held_s: f64,
    /// Requests in it at most.
    pub(crate) places: u32,
}

impl Section {
    pub(crate) fn station(&self) -> Station {
        Station::new(self.held_s, self.places, Adds::Wait)
    }
}

/// The sections that these findings name.
pub(super) fn sections(findings: &[Finding]) -> Vec<Section> {
    findings.iter().filter_map(section).collect()
}

fn section(finding: &Finding) -> Option<Section> {
    let (kind, held_s, places) = match &finding.evidence {
        Evidence::SerialisedSection(section) if section.rate > 0.0 => {
            (ResourceKind::OneAtATime, section.at_work.min(1.0) / section.rate, 1)
        }
        // Of a turn that syncs on a fast disk, the kernel's part and that of wake-ups are not known.
        Evidence::DiskBound(disk) if disk.rate > 0.0 && disk.synced.is_none() => {
            // Where requests wait for a lock while one is at the disk, they commit one at a time.
            let places = if disk.behind > 0.0 { 1 } else { disk.at_disk.ceil().max(1.0) as u32 };
            (ResourceKind::Commits, disk.at_disk.min(f64::from(places)) / disk.rate, places)
        }
        Evidence::PoolWait(wait) => {
            let size = wait.pool.size?;
            (ResourceKind::Connections, (wait.query_ns + wait.other_calls_ns) / 1e9, size as u32)
        }
        _ => return None,
    };
    (held_s > 0.0 && places > 0).then(|| Section { kind, name: finding.resource.clone(), held_s, places })
}
