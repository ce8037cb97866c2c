//! The seconds on which the objectives of `narrows load` are judged: those after the warm-up. Whether they can still be
//! met while the load lasts is [`narrows_lab::outlook`]'s rule.

use narrows_load::WindowsUnderWay;
use narrows_model::counting::Tally;
use narrows_model::evidence::{LoadTotals, RequestOfLoad};
use narrows_model::load::{LoadPlan, LoadSecond};

use super::plan::SCENARIO;

/// Totals of the counted part of a load, the time after the warm-up.
#[derive(Debug)]
pub(super) struct CountedTotals {
    windows: WindowsUnderWay,
    tally: Tally,
}

impl CountedTotals {
    pub(super) fn of(plan: &LoadPlan) -> Self {
        Self { windows: WindowsUnderWay::of(plan), tally: Tally::default() }
    }

    /// Adds completed seconds.
    pub(super) fn add(&mut self, rows: &[LoadSecond]) {
        for row in rows {
            if let Some(phase) = self.windows.counts(row) {
                self.tally.add(row, phase);
            }
        }
    }

    pub(super) fn totals(&self) -> &LoadTotals {
        self.tally.totals()
    }

    /// All of it as the load's one request.
    pub(super) fn request(&self) -> RequestOfLoad {
        RequestOfLoad { scenario: SCENARIO.to_owned(), request: String::new(), totals: self.totals().clone() }
    }
}
