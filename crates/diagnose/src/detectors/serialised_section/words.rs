//! Texts of `serialised-section` findings.

use narrows_model::finding::evidence::serialised_section::SerialisedSection;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::interpreter_lock::words as one_core;
use crate::detectors::words::{Words, proof};

impl Words for SerialisedSection {
    fn title(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if let Some(computing) = &self.computing {
            let (threads, cores) = (one_core::threads(computing), units::cores(computing.cores));
            return format!("{service}: requests take turns to compute: its {threads} use {cores} together");
        }
        if self.by_threads {
            return format!("{service}: requests wait for a lock, one at a time is at work");
        }
        format!("{service}: latency grows in proportion to the requests in flight, as where they take turns")
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the time of all requests".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        if let Some(computing) = &self.computing {
            return one_core::reasons(computing, &finding.resource);
        }
        let (service, waiting) = (&finding.resource, units::number(self.waiting));
        let (in_flight, at_work) = (units::number(self.in_flight), units::number(self.at_work));
        let first = if self.by_threads {
            format!(
                "In {} the threads of {waiting} of {in_flight} requests wait for a lock in {service}, and {at_work} at work remain.",
                self.interval
            )
        } else {
            format!(
                "In {} {waiting} of {in_flight} requests are in {service} without a thread at work; throughput × the latency \
                 of one user is {at_work}.",
                self.interval
            )
        };
        let mut reasons = vec![first, format!("{service} uses {}.", units::cores(self.cores))];
        reasons.extend(self.peer.as_ref().map(|peer| format!("The request at work waits for {peer}.")));
        reasons.push(proof(Some(&self.proof)));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        if let Some(computing) = &self.computing {
            return one_core::figures(computing);
        }
        vec![
            Figure::new("requests that wait for their turn", self.waiting, "{request}"),
            Figure::new("requests at work", self.at_work, "{request}"),
            Figure::new("CPU of the service", self.cores, "{cores}"),
            Figure::new("throughput at that time", self.rate, "/s"),
            Figure::new("mean latency at that time", self.latency_ns, "ns"),
        ]
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if let Some(computing) = &self.computing {
            return one_core::ruled_out(computing);
        }
        vec![
            "CPU: neither a service nor the machine uses it up.".to_owned(),
            "A disk: most of these requests do not wait for one.".to_owned(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        if self.computing.is_some() {
            return format!("A second process or replica of {} does not raise throughput.", finding.resource);
        }
        format!("With two replicas of {} throughput stays the same.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if self.computing.is_some() {
            return format!(
                "Find the lock that the threads of {service} hold while they compute, and hold it for less of the work; \
                 until then, run more processes or replicas. {}",
                one_core::NO_HELP
            );
        }
        match &self.peer {
            Some(peer) => {
                format!("Let {service} call {peer} outside the lock, or over several connections instead of one.")
            }
            None => format!(
                "Find the lock, single worker or single connection of {service} that each request passes; hold it for less \
                 time, or split it by key."
            ),
        }
    }
}
