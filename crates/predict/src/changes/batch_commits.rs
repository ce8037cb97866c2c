//! `batch-commits=SERVICE[,REQUESTS]`: requests whose writes are synced to disk one after another share a commit, so many of
//! them at most; without a number, all that wait.
//!
//! A commit takes as long for several requests as for one. A request that arrives while one is under way waits for it and is
//! part of the next, so without a bound it waits half a commit in the mean, and no longer under more load. A single user has
//! no other requests to share with: there all writes of a request share one commit.

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
        let (batch, held_s) = (change.amount, commit.held_s);
        if scene.system.is_one_user() {
            return Ok(of_one_user(change.target.clone(), held_s));
        }
        let target = change.target.clone();
        let adjust = move |system: &mut System| {
            let is_meant = |section: &Section| is_commit(section) && section.name == target;
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

/// All commits of a request are one. What CPU they cost is not known: none of what the service uses, or all of it.
fn of_one_user<'s>(service: String, held_s: f64) -> Effect<'s> {
    let case = |cpu_left: f64| {
        let service = service.clone();
        Case::new(move |system: &mut System| {
            system.sections.retain(|section| !(is_commit(section) && section.name == service));
            system.delay_s = (system.delay_s - held_s).max(0.0);
            system.scale_cpu(&service, cpu_left);
        })
    };
    Effect {
        cases: vec![case(1.0), case(0.0)],
        assumptions: vec![Assumption::OneCommit { held_ns: held_s * 1e9 }],
        ..Effect::default()
    }
}

fn is_commit(section: &Section) -> bool {
    section.kind == ResourceKind::Commits
}
