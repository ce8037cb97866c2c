//! The partitions that responded to each query of one request, and their rows and charges.

use std::collections::BTreeMap;

use narrows_model::trace::Span;

use crate::read::calls::{Call, Handled};

/// One query of one request, with the rows and the charge of each partition that responded.
pub(super) struct Sighting<'a> {
    pub(super) handled: &'a Handled<'a>,
    /// One entry per partition, ordered by partition.
    pub(super) responses: Vec<(&'a Call<'a>, Response)>,
}

/// Rows and charge of one partition for one query, summed over pages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Response {
    rows: Option<u64>,
    charge: Option<f64>,
}

/// The call and the response of each partition.
type ResponsesByPartition<'a> = BTreeMap<&'a str, (&'a Call<'a>, Response)>;

impl Response {
    fn add(&mut self, span: &Span) {
        self.rows = span.facts.db_rows.map_or(self.rows, |rows| Some(self.rows.unwrap_or(0).saturating_add(rows)));
        self.charge = span.facts.db_charge.map_or(self.charge, |charge| Some(self.charge.unwrap_or(0.0) + charge));
    }
}

impl Sighting<'_> {
    pub(super) fn partitions(&self) -> f64 {
        self.responses.len() as f64
    }

    /// Rows of each partition; `None` if a partition does not report them.
    fn rows(&self) -> Option<Vec<u64>> {
        self.responses.iter().map(|(_, response)| response.rows).collect()
    }

    /// Whether all partitions report the same number of rows. Aggregates do, and client libraries that repeat the
    /// total: it does not show where the rows are.
    pub(super) fn is_alike(&self) -> bool {
        self.rows().is_some_and(|rows| rows.iter().all(|count| *count > 0 && *count == rows[0]))
    }

    /// Number of partitions without rows; `None` if unknown.
    pub(super) fn empty(&self) -> Option<f64> {
        let rows = self.rows().filter(|_| !self.is_alike())?;
        Some(rows.iter().filter(|rows| **rows == 0).count() as f64)
    }

    /// Total charge; `None` if no partition reports one.
    pub(super) fn charge(&self) -> Option<f64> {
        self.responses.iter().filter_map(|(_, response)| response.charge).reduce(|a, b| a + b)
    }

    /// Charge of the partitions that returned rows; `None` if the rows or the charge are unknown.
    pub(super) fn useful_charge(&self) -> Option<f64> {
        self.empty()?;
        let with_rows = self.responses.iter().filter(|(_, response)| response.rows.is_some_and(|rows| rows > 0));
        self.charge().map(|_| with_rows.filter_map(|(_, response)| response.charge).sum())
    }
}

/// The partitions that responded to each query of a request, by statement. Of several queries with one statement but
/// different values, the one that touched most partitions is kept.
pub(super) fn sightings<'a>(handled: &'a Handled<'a>) -> Vec<Sighting<'a>> {
    let mut found: BTreeMap<(&str, &str), ResponsesByPartition<'a>> = BTreeMap::new();
    let succeeded = handled.calls.iter().filter(|call| call.query.is_some() && call.succeeded());
    for (call, partition) in succeeded.filter_map(|call| Some((call, call.partition()?))) {
        let partitions = found.entry((&call.kind, &call.request)).or_default();
        partitions.entry(partition).or_insert_with(|| (call, Response::default())).1.add(call.last());
    }
    let mut best: BTreeMap<&str, Sighting<'_>> = BTreeMap::new();
    for ((kind, _), partitions) in found {
        let sighting = Sighting { handled, responses: partitions.into_values().collect() };
        if best.get(kind).is_none_or(|known| known.responses.len() < sighting.responses.len()) {
            best.insert(kind, sighting);
        }
    }
    best.into_values().collect()
}
