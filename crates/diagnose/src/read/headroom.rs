//! Whether a load leaves room, and how much.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::offered_load_limited::{Room, RoomOf};

use crate::read::intervals::{Interval, intervals};
use crate::thresholds::Thresholds;

/// `None` if some interval leaves no room, or if the kind of load is not known.
pub(crate) fn room_in(trial: &TrialEvidence, thresholds: &Thresholds) -> Option<Room> {
    let found: Vec<Room> = intervals(trial, thresholds)
        .iter()
        .map(|interval| in_interval(interval).filter(|room| is_enough(*room, thresholds)))
        .collect::<Option<_>>()?;
    let load = trial.counted_load();
    let is_sound = load.error_rate() <= thresholds.offered_load_limited.offered_error_share && load.dropped == 0;
    found.into_iter().map(Some).reduce(|a, b| least(a?, b?)).flatten().filter(|_| is_sound)
}

/// The lesser of two; `None` for loads of two kinds.
pub(crate) fn least(one: Room, other: Room) -> Option<Room> {
    (one.of == other.of).then(|| Room { share: one.share.min(other.share), ..one })
}

fn in_interval(interval: &Interval) -> Option<Room> {
    match interval.offered {
        Some(offered) if interval.vus == 0 && offered > 0.0 => {
            Some(Room { of: RoomOf::Completed, share: interval.rate / offered })
        }
        None if interval.vus > 0 => {
            Some(Room { of: RoomOf::Thinking, share: 1.0 - interval.in_flight() / f64::from(interval.vus) })
        }
        _ => None,
    }
}

fn is_enough(room: Room, thresholds: &Thresholds) -> bool {
    match room.of {
        RoomOf::Thinking => room.share >= thresholds.offered_load_limited.offered_thinking_share,
        RoomOf::Completed => room.share >= 1.0 - thresholds.offered_load_limited.offered_rate_share,
    }
}
