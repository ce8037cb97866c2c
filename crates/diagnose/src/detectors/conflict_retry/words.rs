//! Texts of `conflict-retry` findings.

use narrows_model::finding::evidence::conflict_retry::{ConflictRetry, Counter, Requests};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};

impl Words for ConflictRetry {
    fn title(&self, finding: &Finding) -> String {
        let store = &finding.resource;
        match &self.requests {
            Some(requests) => format!(
                "{} of the requests of {} conflict with another transaction in {store}, {}",
                units::percent(requests.share(requests.conflicting)),
                operation(finding),
                what_follows(requests)
            ),
            None if self.failed > 0 => format!(
                "{store} ended {} conflicting transactions, and {} requests failed",
                count(self.counted()),
                units::count(self.failed)
            ),
            None => format!("{store} ended {} conflicting transactions", count(self.counted())),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        match &self.requests {
            Some(requests) if requests.costs_requests() => {
                format!("of the requests of {}, which fail because of it", operation(finding))
            }
            Some(_) => format!("of the time of {}, in failed attempts", operation(finding)),
            None => "of the load's requests, if each meets one at most".into(),
        }
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let store = &finding.resource;
        let Some(requests) = &self.requests else {
            let grew = |counter: &Counter| format!("{} grew by {}.", counter.name, count(counter.conflicts));
            let as_many = (self.failed > 0)
                .then(|| format!("About as many requests failed: {} with an error status.", units::count(self.failed)));
            return self.counters.iter().map(grew).chain(as_many).collect();
        };
        let mut reasons = vec![reported(requests, store)];
        reasons.extend(failures(requests));
        reasons.extend(requests.retry_lost_ns.map(|lost_ns| {
            format!(
                "Those that are retried lose {} (median) between their first attempt and their last, {} of the \
                 operation's time.",
                units::duration(lost_ns),
                units::percent(requests.lost_share)
            )
        }));
        reasons.extend(
            self.counters.iter().map(|counter| {
                format!("{store} itself counts {} of them ({}).", count(counter.conflicts), counter.name)
            }),
        );
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let Some(requests) = &self.requests else {
            return self.counters.iter().map(|counter| Figure::new(&counter.name, counter.conflicts, "")).collect();
        };
        let share = |name: &str, count: f64| Figure::new(name, requests.share(count) * 100.0, "%");
        vec![
            share("requests that met a conflict", requests.conflicting),
            share("requests that failed after a conflict", requests.conflicting_failed),
            share("requests that were retried", requests.retried),
            Figure::new("time in failed attempts", requests.lost_share * 100.0, "%"),
            Figure::new("requests in the traces", requests.sampled as f64, ""),
        ]
    }

    fn source_text(&self) -> Option<String> {
        self.requests.as_ref()?.statement.clone()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.requests.is_none() {
            return Vec::new();
        }
        vec![
            "Duplicate keys and other errors of the store: only conflicts between two transactions count.".into(),
            "A store that is too slow: the calls that count report a conflict with another transaction.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let store = &finding.resource;
        match &self.requests {
            Some(_) => format!(
                "With one request of {} at a time, {store} still rejects as large a share of its transactions.",
                operation(finding)
            ),
            None if self.failed > 0 => "With retries of these transactions, as many requests fail.".to_owned(),
            None => format!("{store} counts as many conflicts with one client."),
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        let Some(requests) = &self.requests else {
            return "Record in spans why a transaction failed (`db.response.status_code`, `error.type`), to see which \
                    operation it was and whether it was retried. Lock rows in one order, and retry the whole \
                    transaction when it fails."
                .into();
        };
        let retry = if requests.conflicting_failed > 0.0 {
            format!(
                "Retry the whole transaction of {} when {} reports a conflict, not one statement of it: after a \
                 random time, a few times at most.",
                operation(finding),
                finding.resource
            )
        } else {
            "Keep the retries, with a random wait and a limit.".to_owned()
        };
        format!(
            "{retry} Then avoid conflicts: lock rows in one order everywhere (sorted by their key), keep transactions \
             short with nothing slow between their statements, and lock less (an update that adds instead of writing \
             back a value that was read, a finer key, a lower isolation level). In a cluster, send writes of one row \
             to one node."
        )
    }
}

fn what_follows(requests: &Requests) -> String {
    match (requests.conflicting_failed, requests.retried_well) {
        (failed, 0.0) if failed > 0.0 => "and fail without a retry".to_owned(),
        (0.0, _) => "and repeat their work".to_owned(),
        (failed, again) => format!("of which {} fail", units::percent(failed / (failed + again))),
    }
}

fn reported(requests: &Requests, store: &str) -> String {
    let codes = if requests.codes.is_empty() { "an error's text".to_owned() } else { requests.codes.join(", ") };
    format!(
        "{store} reports it ({codes}) in {} of the sampled requests, {} each on average.",
        units::count(requests.sampled as u64),
        units::times(requests.conflicts as f64 / requests.sampled.max(1) as f64)
    )
}

fn failures(requests: &Requests) -> Option<String> {
    let of_failed = requests.conflicting_failed / requests.failed.max(f64::MIN_POSITIVE);
    (requests.failed_share() > 0.0).then(|| {
        format!(
            "{} of the requests fail after it: {} of all that fail in this operation.",
            units::percent(requests.failed_share()),
            units::percent(of_failed.min(1.0))
        )
    })
}

fn count(conflicts: f64) -> String {
    units::count(conflicts.round() as u64)
}
