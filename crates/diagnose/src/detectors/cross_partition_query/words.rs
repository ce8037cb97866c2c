//! Texts of `cross-partition-query` findings.

use narrows_model::finding::evidence::cross_partition_query::{CrossPartitionQuery, Measure};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};

impl Words for CrossPartitionQuery {
    fn title(&self, finding: &Finding) -> String {
        let (operation, touched) = (operation(finding), self.touched);
        match self.empty {
            Some(empty) => format!("{operation} queries {touched} partitions, and {empty} of them have no rows"),
            None => format!("{operation} queries {touched} of {} partitions for each result", self.partitions),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        let operation = operation(finding);
        match self.waste() {
            (_, Measure::Charge) => format!("of the request units of {operation}"),
            (_, Measure::Partitions) => format!("of the partitions that {operation} queries"),
            (_, Measure::PartitionsAtMost) => format!("of the partitions that {operation} queries, at most"),
        }
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = vec![
            format!(
                "One query of {} reaches {} of the {} partitions of {}, in {} of its traces ({} traces).",
                operation(finding),
                self.touched,
                self.partitions,
                self.store,
                units::percent(self.trace_share),
                self.traces
            ),
            format!(
                "The number is the same in {} of them, whatever the query's values.",
                units::percent(self.same_count_share)
            ),
        ];
        reasons.extend(self.empty.map(|empty| format!("{empty} of these partitions returned no rows.")));
        reasons.extend(self.charge.zip(self.useful_charge).map(|(all, useful)| {
            format!(
                "Each operation costs {} request units, {} of them in partitions that had rows.",
                units::number(all),
                units::number(useful)
            )
        }));
        reasons.extend(self.peak_share.map(|share| {
            format!(
                "A partition of {} used up to {} of its provisioned throughput: queries that return no rows waste part \
                 of it.",
                self.store,
                units::percent(share)
            )
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let known = [
            ("partitions touched by one query, median", Some(self.touched as f64), ""),
            ("partitions of the store", Some(self.partitions as f64), ""),
            ("partitions without rows, median", self.empty.map(|empty| empty as f64), ""),
            ("request units per operation", self.charge, "{RU}"),
            ("request units of partitions with rows", self.useful_charge, "{RU}"),
            (
                "highest share of provisioned throughput used by a partition",
                self.peak_share.map(|share| share * 100.0),
                "%",
            ),
        ];
        known.into_iter().filter_map(|(name, value, unit)| Some(Figure::new(name, value?, unit))).collect()
    }

    fn source_text(&self) -> Option<String> {
        self.query.clone()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Attempts after a rejection: only partitions that responded count, each once.".to_owned(),
            "Pages: a partition that is called again for the same query counts once.".into(),
        ];
        if self.empty_share.is_some() {
            ruled_out.push(format!(
                "A query that needs all partitions: more than {} of them return nothing.",
                units::percent(self.empty_share_min)
            ));
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let operation = operation(finding);
        match self.charge {
            Some(_) => {
                format!("With the partition key in the query, {operation} costs as many request units as before.")
            }
            None => {
                format!("With the partition key in the query, {operation} still reaches as many partitions as before.")
            }
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "Put the partition key into the query behind {} of {}, so that {} queries only the partition that has the \
             rows. If the query cannot know the key, choose a partition key that it does know, or keep a second copy of \
             the data under such a key.",
            operation(finding),
            finding.resource,
            self.store
        )
    }
}
