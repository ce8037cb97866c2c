//! `cache-names=SERVICE`: a service remembers the addresses of names, so that no request waits for a name server.

use narrows_model::call_graph::NAME_SERVER;
use narrows_model::finding::{Evidence, Finding};
use narrows_model::prediction::{Change, ChangeKind};

use super::waits::without;
use super::{Effect, Method, Scene};
use crate::Cannot;
use crate::call_waits::calls;
use crate::recognition::ReadTrial;
use crate::system::{Wait, WaitCause};

pub(crate) struct CacheNames;

impl Method for CacheNames {
    fn kind(&self) -> ChangeKind {
        ChangeKind::CacheNames
    }

    fn usage(&self) -> &'static str {
        "SERVICE"
    }

    fn description(&self, change: &Change) -> String {
        format!("remembering names in {}", change.target)
    }

    fn suggested_by(&self, finding: &Finding) -> Option<Change> {
        match &finding.evidence {
            Evidence::Dns(_) => Some(Change::new(self.kind(), &finding.resource)),
            _ => None,
        }
    }

    fn made_in_requests(&self, change: &Change, _before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> Option<Change> {
        (!after.suggests(change)).then(|| change.clone())
    }

    fn effect<'s>(&self, change: &Change, scene: &'s Scene<'s>) -> Result<Effect<'s>, Cannot> {
        let service = change.target.clone();
        let of_sockets_s = || calls(scene.diagnosed, Some(&service), Some(NAME_SERVER)).map(|all| all.request_s());
        let otherwise_s = found_s(&service, scene.diagnosed.findings).or_else(of_sockets_s).unwrap_or(0.0);
        let is_meant = move |wait: &Wait| wait.cause == WaitCause::Names && wait.service == service;
        without(change, "a name server", is_meant, otherwise_s, scene)
    }
}

/// Time of a request in look-ups of names as a finding gives it, seconds.
fn found_s(service: &str, findings: &[Finding]) -> Option<f64> {
    findings.iter().filter(|finding| finding.resource == service).find_map(|finding| match &finding.evidence {
        Evidence::Dns(dns) => Some(dns.request_ns / 1e9),
        _ => None,
    })
}
