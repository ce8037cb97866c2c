//! Order of the changes that gain most together.

use serde::{Deserialize, Serialize};

use super::{Change, Prediction};

/// Order in which changes to the system of one trial gain most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ladder {
    /// Steps, the one that gains most first. Each is a prediction of its change together with those of the steps before it.
    pub steps: Vec<Prediction>,
    /// Meaning in one sentence; empty with fewer than two steps.
    pub sentence: String,
}

impl Ladder {
    /// Whether it has nothing that a single prediction would not say.
    pub fn is_empty(&self) -> bool {
        self.sentence.is_empty()
    }
}

impl Prediction {
    /// The change and those that are made with it, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        std::iter::once(&self.change).chain(&self.with)
    }
}
