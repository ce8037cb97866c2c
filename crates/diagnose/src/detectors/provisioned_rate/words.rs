//! Texts of `provisioned-rate` findings.

use narrows_model::finding::evidence::provisioned_rate::ProvisionedRate;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for ProvisionedRate {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "{} has no headroom: {} of the provisioned rate at the top",
            finding.resource,
            units::percent(self.top_share)
        )
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        format!(
            "of the time, in which a partition uses {} or more of its provisioned rate",
            units::percent(self.full_share_min)
        )
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        vec![
            format!(
                "Partition {} uses more than {} of its {} units in {} of the time, and at most {} in any second that was \
                 read.",
                self.partition,
                units::percent(self.top_share),
                units::number(self.provisioned),
                units::percent(self.top_time_share),
                units::percent(self.peak_share)
            ),
            format!(
                "Its mean over the run, {}, hides that. {} of {} partitions are as full.",
                units::percent(self.mean_share),
                self.full_partitions,
                self.partitions
            ),
            if self.rejected > 0.0 {
                format!("It rejected {} attempts in these seconds.", units::count(self.rejected.round() as u64))
            } else {
                "No calls are rejected yet: more users, or another burst, will reach the limit.".into()
            },
        ]
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("share of the provisioned rate, at the top", self.top_share * 100.0, "%"),
            Figure::new("share of the provisioned rate, highest second", self.peak_share * 100.0, "%"),
            Figure::new("share of the provisioned rate, mean", self.mean_share * 100.0, "%"),
            Figure::new("provisioned per partition", self.provisioned, "{RU}/s"),
            Figure::new("seconds as full", self.full_seconds, "s"),
            Figure::new("partitions as full", self.full_partitions as f64, ""),
            Figure::new("partitions", self.partitions as f64, ""),
        ]
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec![
            "A single full second: the figure in the title leaves out the fullest seconds.".into(),
            "Rejections without a wait: they alone do not make a finding.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("The demand on {} grows by a quarter and it still rejects nothing.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let where_to = if self.full_partitions * 2 <= self.partitions && self.partitions > 1 {
            "choose a partition key that spreads the load: most partitions have capacity left"
        } else {
            "provision more throughput before the load grows"
        };
        format!(
            "For {}, {where_to}; or spend less in each request, by a query that names its partition, an index, fewer rows.",
            finding.resource
        )
    }
}
