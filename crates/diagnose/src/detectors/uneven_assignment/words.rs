//! Texts of `uneven-assignment` findings.

use narrows_model::finding::evidence::cpu::CpuLimit;
use narrows_model::finding::evidence::uneven_assignment::UnevenAssignment;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, proof};

impl Words for UnevenAssignment {
    fn title(&self, finding: &Finding) -> String {
        let (service, most) = (&finding.resource, self.most);
        let each = if most.replicas == 1 { "" } else { " each" };
        let has = if most.replicas == 1 { "has" } else { "have" };
        let share = match (most.partitions, self.partitions) {
            (1, 1) => "the only partition".to_owned(),
            (count, all) => format!("{count} of its {} partitions{each}", units::count(all as u64)),
        };
        format!("{} of {} replicas of {service} {has} {share}, {}", most.replicas, self.replicas, others(self))
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!(
            "of the CPU of all replicas of {}, idle while those with the most partitions are full",
            finding.resource
        )
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let (most, fewest) = (self.most, self.fewest);
        vec![
            format!(
                "In {}, `{}` reports {} for {} and {} for {} of the {} replicas.",
                self.interval,
                self.metric,
                count(most.partitions),
                most.replicas,
                count(fewest.partitions),
                fewest.replicas,
                self.replicas
            ),
            format!(
                "A replica with the most partitions uses {} of {}, one with the fewest {}.",
                units::percent(most.busy),
                limit(self.limit),
                units::percent(fewest.busy)
            ),
            proof(self.proof.as_ref()),
        ]
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("partitions", self.partitions as f64, ""),
            Figure::new("replicas", self.replicas as f64, ""),
            Figure::new("most partitions of a replica", self.most.partitions as f64, ""),
            Figure::new("fewest partitions of a replica", self.fewest.partitions as f64, ""),
            Figure::new("share of the limit used with the most partitions", self.most.busy * 100.0, "%"),
            Figure::new("share of the limit used with the fewest", self.fewest.busy * 100.0, "%"),
            Figure::new("idle capacity, counted in partitions", self.idle_by_count * 100.0, "%"),
            Figure::new("throughput at that time", self.rate, "/s"),
        ]
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Partitions that move between replicas: each had the same number nearly all of the time.".to_owned(),
            "One replica with other work: the median of each group of replicas is compared.".into(),
        ];
        if self.fewest.partitions > 0 {
            ruled_out.push(
                "One partition with most of the load: the CPU differs no more than the numbers of partitions let expect."
                    .into(),
            );
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if is_avoidable(self) {
            return format!(
                "With no more than {} for each of the {} replicas of {service}, throughput does not rise.",
                count(self.most_needed()),
                self.replicas
            );
        }
        match (self.fewer_replicas(), self.more_replicas()) {
            (_, Some(more)) => {
                format!("With {more} replicas of {service}, some still use much more CPU than others.")
            }
            (Some(fewer), None) => {
                format!("{fewer} replicas of {service} carry clearly less than these {}.", self.replicas)
            }
            (None, None) => {
                format!("With {} of {service}, throughput does not rise.", count(partitions_needed(self)))
            }
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if is_avoidable(self) {
            return format!(
                "Share the partitions of {service} out evenly first: none of its {} replicas needs more than {}. Check that \
                 all of them read the same topics, and how partitions are assigned: Kafka's `RangeAssignor` gives the first \
                 replicas one more of every topic, `CooperativeStickyAssignor` does not.",
                self.replicas,
                self.most_needed()
            );
        }
        let fewer =
            self.fewer_replicas().map(|fewer| format!("{fewer} carry about as much as these {}", self.replicas));
        let more = self.more_replicas().map(|more| format!("{more} carry more"));
        let counts: Vec<String> = fewer.into_iter().chain(more).collect();
        let partitions = format!(
            "ive {service} more partitions: {}, or several times as many as replicas, so that one more or less matters \
             little",
            partitions_needed(self)
        );
        if counts.is_empty() {
            return format!("G{partitions}.");
        }
        format!(
            "Choose a number of replicas of {service} that divides its {}: {}. Or g{partitions}.",
            count(self.partitions),
            counts.join(", ")
        )
    }
}

/// Whether some replicas have more partitions than an even distribution needs.
fn is_avoidable(evidence: &UnevenAssignment) -> bool {
    evidence.most.partitions > evidence.most_needed()
}

/// Next number of partitions that these replicas can share equally.
fn partitions_needed(evidence: &UnevenAssignment) -> usize {
    evidence.most_needed() * evidence.replicas
}

fn count(partitions: usize) -> String {
    let s = if partitions == 1 { "" } else { "s" };
    format!("{} partition{s}", units::count(partitions as u64))
}

/// Phrase on the partitions of the replicas without the most.
fn others(evidence: &UnevenAssignment) -> String {
    let others = evidence.replicas - evidence.most.replicas.min(evidence.replicas);
    let who = if others == 1 { "the other" } else { "the others" };
    match evidence.fewest.partitions {
        _ if evidence.fewest.replicas < others => format!("{who} fewer"),
        0 => format!("{who} none"),
        partitions => format!("{who} {}", units::count(partitions as u64)),
    }
}

fn limit(limit: CpuLimit) -> String {
    match limit {
        CpuLimit::Cap { cores } => format!("its CPU limit of {}", units::cores(cores)),
        _ => "one core in its busiest thread".into(),
    }
}
