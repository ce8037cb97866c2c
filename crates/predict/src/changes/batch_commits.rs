//! `batch-commits=SERVICE[,REQUESTS]`: requests whose writes are synced to disk one after another share a commit, so many of
//! them at most; without a number, all that wait.
//!
//! A commit takes as long for several requests as for one. A request that arrives while one is under way waits for it and is
//! part of the next, so without a bound it waits half a commit in the mean, and no longer under more load.

use narrows_model::prediction::{Assumption, Change, ChangeKind, ResourceKind};

use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::system::{Section, System};

/// The part of a commit under way that is left when a request arrives, mean.
const RESIDUAL: f64 = 0.5;

pub(crate) struct BatchCommits;

impl Method for BatchCommits {
    fn kind(&self) -> ChangeKind {
        ChangeKind::BatchCommits
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,REQUESTS]"
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let commits = || scene.system.sections.iter().filter(|section| is_commit(section));
        let Some(commit) = commits().find(|commit| commit.name == change.target) else {
            return Err(scene.unknown(change, commits().map(|commit| commit.name.clone()).collect()));
        };
        let (service, batch, held_s) = (commit.name.clone(), change.amount, commit.held_s);
        let adjust = move |system: &mut System| {
            let is_meant = |section: &Section| is_commit(section) && section.name == service;
            match batch {
                Some(batch) => {
                    let meant = system.sections.iter_mut().filter(|section| is_meant(section));
                    meant.for_each(|commit| commit.held_s /= batch.max(1.0));
                }
                None => {
                    system.sections.retain(|section| !is_meant(section));
                    system.delay_s += RESIDUAL * held_s;
                }
            }
        };
        Ok(Effect {
            cases: vec![Case::new(adjust)],
            assumptions: vec![Assumption::CommitsTakeAsLong { held_ns: held_s * 1e9 }],
            ..Effect::default()
        })
    }
}

fn is_commit(section: &Section) -> bool {
    section.kind == ResourceKind::Commits
}
