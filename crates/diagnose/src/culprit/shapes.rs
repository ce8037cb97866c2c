//! Requests of one operation that make different calls: compared with those alike.
//!
//! Requests of one name may lead on different paths, such as those of a gateway that has one operation for everything.
//! If only the proportions of the paths differ between two sides, no service calls another more or less often. Where a
//! path appears or vanishes, the first service has changed its calls, and all paths count together.

use std::collections::BTreeMap;

use super::parts::OfOperation;

/// Share of the requests from which a path must be there on the other side too.
const SHARE_NOTABLE: f64 = 0.05;
/// Share of the requests that it must have there.
const SHARE_MIN: f64 = 0.02;
/// Requests of a path that are compared, on each side.
const REQUESTS_MIN: f64 = 10.0;
/// Maximum number of paths of one operation that are compared separately.
const SHAPES_MAX: usize = 12;

/// The requests of one operation by the services that their first service calls.
#[derive(Debug, Default)]
pub(super) struct Shapes(BTreeMap<String, OfOperation>);

impl Shapes {
    /// The requests with these callees; all further ones together when there are too many.
    pub(super) fn of(&mut self, callees: &str) -> &mut OfOperation {
        let key = if self.0.contains_key(callees) || self.0.len() < SHAPES_MAX { callees } else { "" };
        self.0.entry(key.to_owned()).or_default()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &OfOperation> {
        self.0.values()
    }

    /// Requests without an error; one with an error makes other calls because of it.
    fn intended(&self) -> f64 {
        self.all().map(|one| one.calls_without_errors.requests.weight).sum()
    }

    /// Share of the requests of a path, if there are enough to be compared.
    fn share(&self, shape: &str) -> f64 {
        let requests = self.0.get(shape).map(|one| &one.calls_without_errors.requests);
        requests.filter(|requests| requests.count() >= REQUESTS_MIN).map_or(0.0, |one| one.weight / self.intended())
    }

    fn together(self) -> OfOperation {
        let mut sum = OfOperation::default();
        self.0.into_values().for_each(|one| sum.absorb(one));
        sum
    }

    /// The requests of these paths, all others with those of the most frequent one.
    fn by(mut self, shapes: &[String]) -> Vec<OfOperation> {
        let mut found: Vec<OfOperation> = shapes.iter().filter_map(|shape| self.0.remove(shape)).collect();
        let most = found.iter_mut().max_by(|a, b| a.latency.weight.total_cmp(&b.latency.weight));
        if let Some(most) = most {
            self.0.into_values().for_each(|one| most.absorb(one));
        }
        found
    }
}

/// Both sides of each kind of request of an operation.
pub(super) fn alike(before: Shapes, after: Shapes) -> Vec<(OfOperation, OfOperation)> {
    let mut shapes: Vec<String> = before.0.keys().chain(after.0.keys()).cloned().collect();
    shapes.sort();
    shapes.dedup();
    let shares = |shape: &String| (before.share(shape), after.share(shape));
    let comes_or_goes = |shape: &String| {
        let (old, new) = shares(shape);
        old.max(new) >= SHARE_NOTABLE && old.min(new) < SHARE_MIN
    };
    if shapes.iter().any(comes_or_goes) {
        return vec![(before.together(), after.together())];
    }
    let on_both: Vec<String> = shapes
        .iter()
        .filter(|shape| {
            let (old, new) = shares(shape);
            old > 0.0 && new > 0.0
        })
        .cloned()
        .collect();
    match on_both.len() {
        0 | 1 => vec![(before.together(), after.together())],
        _ => before.by(&on_both).into_iter().zip(after.by(&on_both)).collect(),
    }
}
