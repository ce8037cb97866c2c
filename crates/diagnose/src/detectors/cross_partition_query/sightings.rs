//! The partitions that responded to each query of one request, and what each returned.

use std::collections::BTreeMap;

use narrows_model::trace::Span;

use crate::read::calls::{Call, Handled};

/// One query of one request, with the rows and the charge of each partition that responded.
pub(super) struct Sighting<'a> {
    pub(super) handled: &'a Handled<'a>,
    /// In order of the first response.
    pub(super) responses: Vec<(&'a Call<'a>, Response)>,
}

/// What one partition returned for one query, pages together.
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

    /// The rows of each partition; none when a partition does not say.
    fn rows(&self) -> Option<Vec<u64>> {
        self.responses.iter().map(|(_, response)| response.rows).collect()
    }

    /// Whether all partitions say the same number of rows, as they do for an aggregate, or where a client library
    /// repeats the whole result's: it says nothing about where the rows lie.
    pub(super) fn is_alike(&self) -> bool {
        self.rows().is_some_and(|rows| rows.iter().all(|count| *count > 0 && *count == rows[0]))
    }

    /// Partitions without any row; none when that is not known.
    pub(super) fn empty(&self) -> Option<f64> {
        let rows = self.rows().filter(|_| !self.is_alike())?;
        Some(rows.iter().filter(|rows| **rows == 0).count() as f64)
    }

    /// Charged in all; none when no partition says a charge.
    pub(super) fn charge(&self) -> Option<f64> {
        self.responses.iter().filter_map(|(_, response)| response.charge).reduce(|a, b| a + b)
    }

    /// Charged by partitions that had rows.
    pub(super) fn useful_charge(&self) -> Option<f64> {
        self.empty()?;
        let with_rows = self.responses.iter().filter(|(_, response)| response.rows.is_some_and(|rows| rows > 0));
        self.charge().map(|_| with_rows.filter_map(|(_, response)| response.charge).sum())
    }
}

/// For each query of a request, values included, the partitions that responded to it. Of several of one statement the
/// one that touched most.
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
