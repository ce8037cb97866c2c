//! Waits of a request whose cause is known: shared by the changes that take them away.

use narrows_model::prediction::{Assumption, Change};

use super::{Case, Effect, Scene};
use crate::Cannot;
use crate::system::{System, Wait};

/// Effect of a change after which no request waits for something: for what, for people, which waits of the model these are, and
/// the wait of a request in seconds where the model has none of them.
pub(super) fn without<'s>(
    change: &Change,
    reason: &str,
    is_meant: impl Fn(&Wait) -> bool + 's,
    otherwise_s: f64,
    scene: &Scene<'_>,
) -> Result<Effect<'s>, Cannot> {
    let known_s = known_s(scene.system, &is_meant);
    let wait_s = if known_s > 0.0 { known_s } else { otherwise_s };
    if wait_s <= 0.0 {
        return Err(Cannot::NoWait { place: change.target.clone(), reason: reason.to_owned() });
    }
    let assumption = Assumption::WaitGone { reason: reason.to_owned(), wait_ns: wait_s * 1e9 };
    let adjust = move |system: &mut System| shrink(system, &is_meant, otherwise_s, 0.0);
    Ok(Effect { cases: vec![Case::new(adjust)], assumptions: vec![assumption], ..Effect::default() })
}

/// Leaves a share of the waits that are meant, in requests and in what is held meanwhile. Where the model has none of them, a
/// request waits `otherwise_s`.
pub(super) fn shrink(system: &mut System, is_meant: impl Fn(&Wait) -> bool, otherwise_s: f64, left: f64) {
    let known_s = known_s(system, &is_meant);
    let wait_s = if known_s > 0.0 { known_s } else { otherwise_s };
    system.delay_s = (system.delay_s - (1.0 - left) * wait_s).max(0.0);
    system.waits.iter_mut().filter(|wait| is_meant(wait)).for_each(|wait| wait.request_s *= left);
    for section in &mut system.sections {
        for wait in section.held_for.iter_mut().filter(|wait| is_meant(wait)) {
            section.held_s = (section.held_s - (1.0 - left) * wait.request_s).max(0.0);
            wait.request_s *= left;
        }
    }
}

fn known_s(system: &System, is_meant: impl Fn(&Wait) -> bool) -> f64 {
    system.waits.iter().filter(|wait| is_meant(wait)).map(|wait| wait.request_s).sum()
}
