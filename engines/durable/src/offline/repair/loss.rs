//! The lost data of a damaged hub, as far as it can be known.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use super::Part;
use super::agreement::Gap;
use crate::ids::{InstanceId, PartitionId};
use crate::store::{Location, StoreError};

/// So many instances are named, of each sort and partition.
pub const LISTED_MAX: usize = 1_000;

/// The damage in a hub, and its cost.
#[derive(Debug)]
#[non_exhaustive]
pub struct Findings {
    /// How many partitions the hub has.
    pub partitions: u16,
    /// The damage of the file `hub`; no data is lost with it.
    pub hub: Option<StoreError>,
    /// Partitions that are damaged, in order.
    pub damages: Vec<Damage>,
    /// Orchestrations that wait for a response which may be lost, with the instance that they wait for. Those whose
    /// response is lost wait for ever. At most [`LISTED_MAX`].
    pub waiting: Vec<(InstanceId, InstanceId)>,
    /// How many such orchestrations there are.
    pub waiting_known: u64,
}

/// The damage in a partition, and its cost.
#[derive(Debug)]
#[non_exhaustive]
pub struct Damage {
    /// Which partition.
    pub partition: PartitionId,
    /// Damaged and missing files.
    pub found: Vec<StoreError>,
    /// The frames of the log that are lost, as far as is known: there may have been later ones. Empty if none is known
    /// to be lost.
    pub frames: Range<u64>,
    /// How many of those can still be read, but not be applied.
    pub frames_readable: u64,
    /// Which bytes of which files are lost.
    pub bytes: Vec<(PathBuf, Range<u64>)>,
    /// Messages of other partitions that were acknowledged, and whose effect is lost.
    pub messages_taken: u64,
    /// Messages to other partitions that have arrived, and whose cause is lost.
    pub messages_sent: u64,
    /// Whether the partition has lost all its data.
    pub is_everything: bool,
    /// Instances that the readable ones of the lost frames are about: they are lost, or set back to where they were
    /// before. At most [`LISTED_MAX`].
    pub instances: Vec<InstanceId>,
    /// How many there are of those.
    pub instances_known: u64,
}

impl Findings {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.hub.is_none() && self.damages.is_empty()
    }
}

pub(super) fn findings(parts: &[Part], gaps: &[Gap], partitions: u16, hub: Option<StoreError>) -> Findings {
    let damages: Vec<Damage> = parts.iter().zip(gaps).filter_map(|(part, gap)| damage(part, *gap)).collect();
    let mut waiting = waiting(parts, &damages, partitions);
    let waiting_known = waiting.len() as u64;
    waiting.truncate(LISTED_MAX);
    Findings { partitions, hub, damages, waiting, waiting_known }
}

fn damage(part: &Part, gap: Gap) -> Option<Damage> {
    let has_gap = gap != Gap::default();
    if !part.is_damaged() && !has_gap {
        return None;
    }
    let mut found: Vec<StoreError> = part.log.found.iter().chain(&part.snapshot).cloned().collect();
    if found.is_empty() {
        let what = "other partitions have seen messages that it does not remember: its end is lost".to_owned();
        found.push(StoreError::Damaged { place: Location::Log { partition: part.id }, what });
    }
    let begin = if part.is_empty { 0 } else { part.log.end };
    Some(Damage {
        partition: part.id,
        found,
        frames: begin..part.log.reached.max(begin),
        frames_readable: part.strays_read,
        bytes: part.log.bytes.clone(),
        messages_taken: gap.taken,
        messages_sent: gap.sent,
        is_everything: part.is_empty,
        instances: part.strays.iter().take(LISTED_MAX).cloned().collect(),
        instances_known: part.strays.len() as u64,
    })
}

/// Who waits for a response from or to a partition that has lost something.
fn waiting(parts: &[Part], damages: &[Damage], partitions: u16) -> Vec<(InstanceId, InstanceId)> {
    let is_damaged = |id: PartitionId| damages.iter().any(|damage| damage.partition == id);
    let lost_parts: BTreeSet<u16> =
        parts.iter().filter(|part| !part.snapshot.is_empty()).map(|part| part.id.0).collect();
    let mut waiting = Vec::new();
    for part in parts {
        for (caller, called) in part.partition.open_calls() {
            let may_be_lost = |home: PartitionId| {
                // Within a partition, a call and its response are lost together, unless only some instances are.
                let crosses = home != part.id || lost_parts.contains(&home.0);
                crosses && (is_damaged(home) || is_damaged(part.id))
            };
            let lost = called.into_iter().find(|called| may_be_lost(called.partition(partitions)));
            waiting.extend(lost.map(|lost| (caller, lost)));
        }
    }
    waiting
}
