//! `drop-call=CALLEE`: calls to a service, to a dependency, or with a span of this name are no longer made.

use narrows_model::prediction::{Change, ChangeKind};

use super::unmade::unmade;
use super::{Effect, Method, Scene};
use crate::Cannot;

pub(crate) struct DropCall;

impl Method for DropCall {
    fn kind(&self) -> ChangeKind {
        ChangeKind::DropCall
    }

    fn usage(&self) -> &'static str {
        "CALLEE"
    }

    fn description(&self, change: &Change) -> String {
        format!("dropping the calls to {}", change.target)
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        unmade(change, 1.0, scene)
    }
}
