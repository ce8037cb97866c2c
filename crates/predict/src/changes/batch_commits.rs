//! `batch-commits=SERVICE[,REQUESTS]`: requests whose writes are synced to disk one after another share a commit, so many of
//! them at most; without a number, all that wait.
//!
//! A commit takes as long for several requests as for one. A request that arrives while one is under way waits for it and is
//! part of the next, so without a bound it waits half a commit in the mean, and no longer under more load. A single user has
//! no other requests to share with. Where the writes of one request share a commit, as those of a batch do, no measurement says how
//! much of its CPU goes with its commits, so nothing is predicted.

use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Assumption, Change, ChangeKind, Resource, ResourceKind};

use super::raise_limit::under_way;
use super::{Case, Effect, Method, Scene};
use crate::Cannot;
use crate::recognition::ReadTrial;
use crate::system::{Section, System};

/// The part of a commit under way that is left when a request arrives, mean.
const RESIDUAL: f64 = 0.5;

/// Part of the time of a request at the disk that is left at most when its writes share commits.
const AT_DISK_LEFT_MAX: f64 = 0.25;

pub(crate) struct BatchCommits;

impl Method for BatchCommits {
    fn kind(&self) -> ChangeKind {
        ChangeKind::BatchCommits
    }

    fn usage(&self) -> &'static str {
        "SERVICE[,REQUESTS]"
    }

    fn description(&self, change: &Change) -> String {
        format!("commits of {} that requests share", change.target)
    }

    fn against(&self, limit: &Resource) -> Option<Change> {
        (limit.kind == ResourceKind::Commits).then(|| Change::new(self.kind(), &limit.name))
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::DiskBound(disk) if disk.synced.is_none() => Some(Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        let (old, new) = (before.disk_s(&change.target)?, after.disk_s(&change.target)?);
        // A commit serves no more requests than are under way; less time at the disk means that requests do not wait for one.
        let is_shared = new >= old / under_way(&before.scene.system.levels);
        (new <= AT_DISK_LEFT_MAX * old && is_shared).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let commits = || scene.system.sections.iter().filter(|section| is_commit(section));
        let Some(commit) = commits().find(|commit| commit.name == change.target) else {
            return Err(scene.unknown(change, commits().map(|commit| commit.name.clone()).collect()));
        };
        let (batch, held_s) = (change.amount, commit.held_s);
        if scene.system.is_one_user() {
            return Err(Cannot::OneUser { change: self.kind() });
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

fn is_commit(section: &Section) -> bool {
    section.kind == ResourceKind::Commits
}
