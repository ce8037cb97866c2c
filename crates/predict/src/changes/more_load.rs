//! `more-load=USERS`, or `=RATE` where the load is arrivals per second: the same system under another load.
//!
//! Four loads up to the one that is named make the capacity curve.

use narrows_model::finding::evidence::load::LoadLevel;
use narrows_model::prediction::{Change, ChangeKind, Doubt};

use super::{Case, Effect, Method, Scene, Target};
use crate::Cannot;
use crate::queueing::mva::USERS_MAX;

/// A load beyond this multiple of what was tested is doubted.
pub(crate) const TESTED_MAX: f64 = 1.5;
/// Points of the curve.
const POINTS: u32 = 4;

pub(crate) struct MoreLoad;

impl Method for MoreLoad {
    fn kind(&self) -> ChangeKind {
        ChangeKind::MoreLoad
    }

    fn usage(&self) -> &'static str {
        "USERS|RATE"
    }

    fn target(&self) -> Target {
        Target::Load
    }

    fn description(&self, _change: &Change) -> String {
        "another load".to_owned()
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let amount = change.amount.ok_or(Cannot::NoAmount { change: change.kind })?;
        if scene.system.levels.len() < 2 {
            return Err(Cannot::OneLevel { change: change.kind });
        }
        let heaviest = scene.system.levels[scene.system.levels.len() - 1].load;
        let tested = heaviest.arrivals.unwrap_or(f64::from(heaviest.users));
        if heaviest.arrivals.is_none() && amount.round() > f64::from(USERS_MAX) {
            return Err(Cannot::TooManyUsers { users: amount });
        }
        let load = |point: u32| {
            let much = amount * f64::from(point) / f64::from(POINTS);
            match heaviest.arrivals {
                Some(_) => LoadLevel { users: 0, arrivals: Some(much) },
                None => LoadLevel { users: (much.round() as u32).max(1), arrivals: None },
            }
        };
        let factor = amount / tested;
        Ok(Effect {
            cases: vec![Case::new(|_| {})],
            loads: Some((1..=POINTS).map(load).collect()),
            doubts: (factor > TESTED_MAX).then_some(Doubt::BeyondTested { factor }).into_iter().collect(),
            ..Effect::default()
        })
    }
}
