//! Follows a load while it lasts: shows it, writes its rows, and ends it when an objective is lost or a file cannot be
//! written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_lab::experiment::Objective;
use narrows_lab::outlook::Outlook;
use narrows_load::LoadOutcome;
use narrows_model::load::{LoadBatch, LoadModel, LoadPlan};

use super::FinishedLoad;
use super::arguments::Arguments;
use super::objectives::CountedTotals;
use super::outputs::Outputs;
use super::target::shown;
use crate::exit::Failure;
use crate::live::{self, Screen, Until, View};

/// Where nothing is renewed in place, shorter loads are not reported while they last.
const TOLD_FROM: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct Follower<'a> {
    screen: Screen,
    view: View,
    counted: CountedTotals,
    /// Without secrets.
    url: String,
    outputs: Outputs,
    /// Writing has failed.
    failure: Option<Failure>,
    objectives: &'a [Objective],
    /// Whether the objectives can still be met, when one that cannot ends the load.
    outlook: Option<Outlook<'a>>,
    lost: Option<&'a Objective>,
    stop: &'a AtomicBool,
    first_ns: Option<i64>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(arguments: &'a Arguments, plan: &'a LoadPlan, outputs: Outputs, stop: &'a AtomicBool) -> Self {
        let model = plan.scenarios.first().map(|scenario| &scenario.model);
        Self {
            screen: Screen::new(),
            view: View::new(model.map_or(Until::Unknown, |model| until(model, arguments.open.warmup))),
            counted: CountedTotals::of(plan),
            url: shown(&arguments.url),
            outputs,
            failure: None,
            objectives: &arguments.goals.objective,
            outlook: arguments.goals.abort.then(|| Outlook::new(&arguments.goals.objective, plan)),
            lost: None,
            stop,
            first_ns: None,
        }
    }

    pub(super) fn see(&mut self, batch: &LoadBatch) {
        let (Some(first), Some(last)) = (batch.seconds.first(), batch.seconds.last()) else { return };
        let first_ns = *self.first_ns.get_or_insert(first.start_ns);
        let elapsed = Duration::from_nanos((last.end_ns() - first_ns).max(0) as u64);
        self.counted.add(&batch.seconds);
        self.view.add(elapsed, &batch.seconds);
        if self.screen.width().is_some() || elapsed >= TOLD_FROM {
            live::show(&mut self.screen, &self.view);
        }
        if self.failure.is_none() {
            self.failure = self.outputs.write(batch).err();
        }
        if let Some(outlook) = self.outlook.as_mut().filter(|_| self.lost.is_none()) {
            outlook.add(&batch.seconds);
            self.lost = outlook.first_lost().map(|(objective, _)| objective);
        }
        if self.lost.is_some() || self.failure.is_some() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Sums up the load that is over.
    ///
    /// # Errors
    /// When a file could not be written.
    pub(super) fn end(mut self, outcome: LoadOutcome) -> Result<FinishedLoad, Failure> {
        self.screen.clear();
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let objectives = self.objectives.iter().map(|objective| objective.evaluate(self.counted.totals())).collect();
        let stopped = match self.lost {
            _ if self.view.is_whole(Duration::from_nanos((outcome.ended_ns - outcome.started_ns).max(0) as u64)) => {
                None
            }
            Some(lost) => Some(format!("`{}` can no longer be met", lost.text)),
            None if self.stop.load(Ordering::Relaxed) => Some("interrupted".to_owned()),
            None => None,
        };
        let sent = FinishedLoad { outcome, counted: self.counted, objectives, stopped };
        self.outputs.finish(&self.url, &sent.counted.request())?;
        Ok(sent)
    }
}

fn until(model: &LoadModel, warmup: Duration) -> Until {
    let limits = model.limits();
    match (limits.iterations, limits.duration) {
        (Some(iterations), _) if warmup.is_zero() => Until::Requests(iterations),
        (None, Some(duration)) => Until::Time(duration + warmup),
        _ => Until::Unknown,
    }
}
