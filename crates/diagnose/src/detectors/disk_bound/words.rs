//! Texts of `disk-bound` findings.

use narrows_model::finding::evidence::disk_bound::DiskBound;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, proof};

impl Words for DiskBound {
    fn title(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if let Some(synced) = &self.synced {
            let bytes = units::bytes(synced.bytes_each);
            return format!("{service}: requests wait while it syncs its writes to disk, {bytes} for each response");
        }
        if self.proof.is_none() {
            return format!("{service}: a request waits for the disk for {} of its time", share(self));
        }
        let waiting = units::number(self.at_disk + self.behind);
        format!("{service}: {waiting} of {} requests wait for the disk", units::number(self.in_flight))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the time of all requests".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let service = &finding.resource;
        let mut reasons = vec![match (&self.proof, &self.synced) {
            (_, Some(synced)) => format!(
                "In {} a task waits for the disk {} of the time, {service} writes {} for each response, and {} of its CPU \
                 time passes in the kernel: that is how a file looks that is synced for each response (`fsync`).",
                self.interval,
                units::percent(self.pressure.unwrap_or(self.at_disk)),
                units::bytes(synced.bytes_each),
                units::percent(synced.system_share)
            ),
            (Some(_), None) => format!(
                "In {} {} requests are in {service} itself at any moment, and {} of them are at the disk.",
                self.interval,
                units::number(self.requests),
                units::number(self.at_disk)
            ),
            (None, None) => {
                format!("A thread of {service} is at the disk for {} of the time that a request takes.", share(self))
            }
        }];
        reasons.extend((self.behind > 0.0).then(|| behind(self)));
        reasons.extend(self.written.map(|bytes| format!("{service} writes {}/s.", units::bytes(bytes))));
        reasons.push(self.proof.as_ref().map_or_else(
            || "There is one user, who waits for each response, so throughput is what the latency allows.".to_owned(),
            |found| proof(Some(found)),
        ));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("requests at the disk", self.at_disk, "{request}"),
            Figure::new("requests that wait for a lock behind them", self.behind, "{request}"),
            Figure::new("requests in the service", self.requests, "{request}"),
            Figure::new("throughput at that time", self.rate, "/s"),
        ];
        figures.extend(self.written.map(|bytes| Figure::new("written to disks", bytes, "By/s")));
        figures.extend(self.read.map(|bytes| Figure::new("read from disks", bytes, "By/s")));
        let pressure = self.pressure.map(|share| share * 100.0);
        figures.extend(pressure.map(|share| Figure::new("time in which a task waited for a disk", share, "%")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut all = vec!["CPU: neither a service nor the machine uses it up.".to_owned()];
        if self.proof.is_some() {
            all.push("A disk that is busy in the background: throughput would follow the load.".to_owned());
        }
        all
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With the data of {} in memory (`/dev/shm`), throughput stays the same.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if self.behind > 0.0 {
            return format!(
                "Let {service} write several requests with one `fsync` (group commit), or without one where that is allowed."
            );
        }
        format!(
            "Write or sync less often in {service}: group commits, batches, a cache for reads; or use a faster disk."
        )
    }
}

/// Sentence on the requests that wait behind those at the disk.
fn behind(disk: &DiskBound) -> String {
    let behind = units::number(disk.behind);
    match disk.synced {
        Some(_) => {
            format!("{behind} of {} requests wait for nothing else that is known.", units::number(disk.in_flight))
        }
        None => format!("Another {behind} wait for a lock while a thread is at the disk."),
    }
}

/// Share of the requests' time spent waiting for the disk.
fn share(disk: &DiskBound) -> String {
    units::percent(((disk.at_disk + disk.behind) / disk.in_flight).min(1.0))
}
