//! Texts of `disk-full` findings.

use narrows_model::finding::evidence::disk_full::{AffectedOperation, DiskCause, DiskFull, Owner, Report};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for DiskFull {
    fn title(&self, finding: &Finding) -> String {
        let failed = match self.failed.round() as u64 {
            0 | 1 => "1 operation failed".to_owned(),
            n => format!("{} operations failed", units::count(n)),
        };
        format!("{} {}: {failed}", finding.resource, condition(self.cause()))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the requests, which need that disk".into()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let names: Vec<&str> = self.reports.iter().map(|report: &Report| report.name.as_str()).collect();
        let mut reasons = vec![format!(
            "The errors in {} of the sampled traces report it ({}), first seen {} into the load.",
            units::count(self.traces as u64),
            names.join(", "),
            units::duration((self.first_ns - self.load_start_ns).max(0) as f64)
        )];
        reasons.push(format!(
            "{} of all requests met such an error, and {} failed.",
            units::percent(self.affected_share()),
            units::percent((self.affected_failed / self.requests.max(f64::MIN_POSITIVE)).min(1.0))
        ));
        if !self.operations.is_empty() {
            let names: Vec<String> = self.operations.iter().map(named).collect();
            reasons.push(format!("Operations that met it: {}.", names.join(", ")));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("operations that failed because of it", self.failed, ""),
            Figure::new("requests that met it", self.affected_share() * 100.0, "%"),
            Figure::new("first seen, into the load", (self.first_ns - self.load_start_ns) as f64, "ns"),
            Figure::new("last seen, into the load", (self.last_ns - self.load_start_ns) as f64, "ns"),
        ]
    }

    fn source_text(&self) -> Option<String> {
        self.message.clone()
    }

    fn ruled_out(&self, finding: &Finding) -> Vec<String> {
        vec![
            format!("Callers that pass the error on: it begins at {}.", finding.resource),
            "Statements and URLs that contain such words: only codes, error types and the words of errors count."
                .into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("The same errors occur while every volume of {} has free space and free inodes.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let place = &finding.resource;
        let first = match self.cause() {
            DiskCause::NoSpace => {
                format!("Check free space and free inodes on every volume of {place} (df -h, df -i).")
            }
            DiskCause::QuotaExceeded => format!("Check the disk quota of the user that {place} runs as."),
            DiskCause::TableFull => format!(
                "Check the free space of {place}, then the size limits of the table and its tablespace \
                 (innodb_data_file_path, tmp_table_size)."
            ),
            DiskCause::StorageFailed => {
                format!("Check free space and the kernel log of the machine of {place}: its disk is full or broken.")
            }
        };
        let then = match self.owner {
            Owner::Service => "Delete or move what the service no longer needs, write temporary files elsewhere",
            Owner::Server => "Remove old logs, backups and replication slots or segments, extend the volume",
        };
        format!("{first} {then}, and alert on free space before it runs out. Retries cannot help until then.")
    }
}

/// Fault of a place, as a verb phrase.
fn condition(cause: DiskCause) -> &'static str {
    match cause {
        DiskCause::NoSpace => "has a full disk",
        DiskCause::QuotaExceeded => "has used up its disk quota",
        DiskCause::TableFull => "has a full table or disk",
        DiskCause::StorageFailed => "has a full or failed disk",
    }
}

fn named(affected: &AffectedOperation) -> String {
    let failed = units::count(affected.failed.round() as u64);
    format!("{} of {} ({failed})", affected.operation, affected.service)
}
