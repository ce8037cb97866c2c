//! Texts of `descriptor-exhaustion` findings.

use narrows_model::finding::evidence::descriptor_exhaustion::{DescriptorExhaustion, Descriptors, Failures, Growth};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level};

impl Words for DescriptorExhaustion {
    fn title(&self, finding: &Finding) -> String {
        let name = name(self, finding);
        match (&self.failures, &self.growth) {
            (Some(failures), _) => {
                let open = self.descriptors.map_or(String::new(), |of| format!(" ({})", open(of)));
                format!("{name} has no descriptor left{open}: {} of requests fail", units::percent(failures.share))
            }
            (None, Some(growth)) => format!(
                "{name} opens {} more descriptors each second and reaches its limit in {}",
                units::number(growth.per_second),
                units::duration(growth.until_limit_ns)
            ),
            (None, None) => format!("{name} has few descriptors left"),
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        let of = if self.failures.is_some() {
            "of the requests fail"
        } else {
            "of its limit, in use at the end of that load"
        };
        of.to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let name = name(self, finding);
        let mut reasons = Vec::new();
        reasons.extend(self.descriptors.map(|of| {
            format!(
                "In {} ({}), a process of {name} has {} descriptors open.",
                self.interval,
                level(&self.load),
                open(of)
            )
        }));
        reasons.extend(self.failures.as_ref().map(|failures| failed(failures, &finding.resource)));
        reasons.extend(self.growth.as_ref().map(grown));
        if self.replicas > 1 {
            reasons.push(format!("{} of {} replicas are affected.", self.affected_replicas, self.replicas));
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = Vec::new();
        if let Some(of) = self.descriptors {
            figures.push(Figure::new("open descriptors, at most", of.open, ""));
            figures.push(Figure::new("limit of the process", of.limit, ""));
        }
        figures.extend(
            self.failures.as_ref().map(|failures| Figure::new("requests that fail", failures.share * 100.0, "%")),
        );
        if let Some(growth) = &self.growth {
            figures.push(Figure::new("growth", growth.per_second, "/s"));
            figures.extend(growth.per_request.map(|each| Figure::new("growth per request", each, "")));
            figures.push(Figure::new("time until the limit", growth.until_limit_ns, "ns"));
        }
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.failures.as_ref().and_then(|failures| failures.text.clone())
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.failures.is_some() {
            return Vec::new();
        }
        vec![
            "Growth with the number of users: the load is the same all the time.".into(),
            "A pool that fills: its growth would slow down, and it would level off below the limit.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let name = name(self, finding);
        if self.failures.is_some() {
            return format!("With a higher limit (`ulimit -n`), as many requests of {name} fail.");
        }
        format!("Under the same load for twice as long, the open descriptors of {name} level off below the limit.")
    }

    fn advice(&self, finding: &Finding) -> String {
        let name = name(self, finding);
        let leak = format!(
            "List what is open (`ls -l /proc/PID/fd`) twice, some minutes apart: what only grows is never closed, such as \
             the body of a response, a file, or the connections of a client that is made anew for each request. Close it or \
             reuse it in {name}."
        );
        match (&self.failures, &self.growth) {
            (Some(_), None) => format!(
                "Raise the limit on open files of {name} (`ulimit -n`, `LimitNOFILE`), and reuse connections, so that fewer \
                 are open at once. If the number also grows under a steady load, something is never closed."
            ),
            (Some(_), Some(_)) => format!("{leak} A higher limit (`ulimit -n`, `LimitNOFILE`) only delays the end."),
            (None, _) => leak,
        }
    }
}

/// Name of the replica: `shop`, or `shop[1]` if there are several.
fn name(evidence: &DescriptorExhaustion, finding: &Finding) -> String {
    let service = &finding.resource;
    if evidence.replicas > 1 { format!("{service}[{}]", evidence.replica) } else { service.clone() }
}

fn open(of: Descriptors) -> String {
    format!("{} of {}", units::count(of.open.round() as u64), units::count(of.limit as u64))
}

fn failed(failures: &Failures, service: &str) -> String {
    let share = units::percent(failures.share);
    match &failures.name {
        Some(name) => format!("{share} of the requests meet an error of {service} that says “{name}”."),
        None => format!(
            "{share} of the requests cannot connect, break off or time out meanwhile: a process without a free descriptor \
             accepts no connection."
        ),
    }
}

fn grown(growth: &Growth) -> String {
    let per_request = growth.per_request.map(|each| format!(", {} for each request", units::number(each)));
    format!(
        "Within {} under the same load, they go from {} to {}{}, and each quarter of that time begins above the one before: \
         they would reach the limit in {}.",
        units::duration(growth.length_ns as f64),
        units::count(growth.start.round() as u64),
        units::count(growth.end.round() as u64),
        per_request.unwrap_or_default(),
        units::duration(growth.until_limit_ns)
    )
}
