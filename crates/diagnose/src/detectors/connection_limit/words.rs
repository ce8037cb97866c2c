//! Texts of `connection-limit` findings.

use narrows_model::finding::evidence::connection_limit::{ConnectionLimit, LimitedTo};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for ConnectionLimit {
    fn title(&self, finding: &Finding) -> String {
        let (place, share) = (&finding.resource, units::percent(self.share));
        if self.callers.contains(place) {
            return format!("{place}: its database refuses connections{}: {share} of requests fail", scope(self.limit));
        }
        format!("{place} refuses connections{} beyond a limit: {share} of requests fail", scope(self.limit))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the requests, which need a connection".to_owned()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "{} of the requests meet an error of {} that says “{}”, in {} of the sampled traces.",
            units::percent(self.share),
            self.callers.join(", "),
            self.name,
            units::count(self.traces as u64)
        )];
        if self.replicas > 1 {
            reasons.push(format!(
                "{} has {} replicas, and their connections count together.",
                self.callers.join(", "),
                self.replicas
            ));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![Figure::new("requests that meet it", self.share * 100.0, "%")];
        if self.replicas > 0 {
            figures.push(Figure::new("replicas of its callers", self.replicas as f64, ""));
        }
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.text.clone()
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec!["A pool of the caller that has no free connection: only errors of the server count.".to_owned()]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("The same errors occur while {} has fewer open connections than its limits allow.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let place = &finding.resource;
        let limit = match self.limit {
            LimitedTo::Server => format!("the limit of {place} (max_connections, maxclients)"),
            LimitedTo::Role => "the limit of its role (CONNECTION LIMIT, max_user_connections)".to_owned(),
            LimitedTo::Database => "the limit of the database (CONNECTION LIMIT)".to_owned(),
        };
        format!(
            "Make the pools of all replicas of {} together smaller than {limit}, or put a connection pooler such as PgBouncer \
             before it. Raise the limit only if {place} has memory for each further connection.",
            self.callers.join(", ")
        )
    }
}

/// Scope of a limit, to follow its name; empty for the server's own.
fn scope(limit: LimitedTo) -> &'static str {
    match limit {
        LimitedTo::Server => "",
        LimitedTo::Role => " of a role",
        LimitedTo::Database => " to one database",
    }
}
