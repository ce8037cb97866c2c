//! Texts of `straggler-branch` findings.

use narrows_model::finding::evidence::straggler_branch::{Branch, ParallelCalls, StragglerBranch};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, operation};
use crate::exemplars::clipped;

/// Maximum characters of a branch's name in a title.
const NAME_CHARS_MAX: usize = 80;

impl Words for StragglerBranch {
    fn title(&self, finding: &Finding) -> String {
        if self.sockets.is_some() {
            let drag = units::duration(self.drag_ns);
            return format!(
                "{} waits {drag} for one of {} calls to {}",
                finding.resource,
                self.branches,
                callee(&self.branch)
            );
        }
        format!("{} waits for {} after its parallel work is done", operation(finding), name(&self.branch))
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        if let Some(calls) = &self.sockets {
            return reasons_of_sockets(self, calls, &finding.resource);
        }
        vec![
            format!(
                "{} is the last of {} parallel branches in {} of the requests of {} ({} requests).",
                capitalised(&name(&self.branch)),
                self.branches,
                units::percent(self.last_share),
                operation(finding),
                self.requests
            ),
            format!(
                "It takes {} and ends {} after the branch that ends next, which is the time that the request would \
                 save if it took no time.",
                units::duration(self.length_ns),
                units::duration(self.drag_ns)
            ),
        ]
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        if let Some(calls) = &self.sockets {
            return vec![
                Figure::new("time with one call under way, at least", self.drag_ns, "ns"),
                Figure::new("calls for each request, mean", calls.per_request, ""),
                Figure::new("calls under way for each request at work", calls.at_once, ""),
                Figure::new("connections for each user under the lightest load", calls.connections_per_user, ""),
                Figure::new("time of a request, mean", self.latency_ns, "ns"),
            ];
        }
        vec![
            Figure::new("requests in which it is the last", self.last_share * 100.0, "%"),
            Figure::new("time after the second-last branch, median", self.drag_ns, "ns"),
            Figure::new("time of the last branch, median", self.length_ns, "ns"),
            Figure::new("parallel branches, median", self.branches as f64, ""),
            Figure::new("latency of the operation, median", self.latency_ns, "ns"),
        ]
    }

    fn source_text(&self) -> Option<String> {
        self.sockets.is_none().then(|| self.text.clone())
    }

    fn ruled_out(&self, finding: &Finding) -> Vec<String> {
        if self.sockets.is_some() {
            return vec![
                format!("Calls one after another: {} would need one connection for each user.", finding.resource),
                "Calls of one length: as many would be under way as a request makes.".into(),
            ];
        }
        vec![
            "Work in the background: each of these branches ended before the span it is below.".into(),
            "Sequential calls and clocks that disagree: the branches overlapped for most of the shorter one.".into(),
            format!("Chance: one branch was the last in {} of the requests.", units::percent(self.last_share)),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        if self.sockets.is_some() {
            return format!("All calls of {} to {} take equally long.", finding.resource, callee(&self.branch));
        }
        format!(
            "{} responds as fast as the branch that ends next, and {} is as slow as before.",
            capitalised(&name(&self.branch)),
            operation(finding)
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        if self.sockets.is_some() {
            return format!(
                "Compare the times of the calls of {} to {}, and make the slowest one faster or wait for it less: start it \
                 first, respond without it after a deadline, or cache its response.",
                finding.resource,
                callee(&self.branch)
            );
        }
        format!(
            "Make {} faster, or wait for it less: start it first, respond without it after a deadline, cache its \
             response, or fetch it once the rest is shown. Making the other branches of {} in {} faster gains nothing.",
            name(&self.branch),
            operation(finding),
            finding.resource
        )
    }
}

/// Name of what a branch calls, or that of its work.
fn callee(branch: &Branch) -> &str {
    match branch {
        Branch::Work { name } => name,
        Branch::Call { callee, .. } => callee,
    }
}

fn reasons_of_sockets(straggler: &StragglerBranch, calls: &ParallelCalls, service: &str) -> Vec<String> {
    vec![
        format!(
            "{service} makes {} calls to {} for each request, at once: it keeps {} connections for each user under the \
             lightest load.",
            units::number(calls.per_request),
            callee(&straggler.branch),
            units::number(calls.connections_per_user)
        ),
        format!(
            "In {}, {} are under way for each request at work: for {} or more of its {} only one is.",
            calls.reading.interval,
            units::number(calls.at_once),
            units::duration(straggler.drag_ns),
            units::duration(straggler.latency_ns)
        ),
    ]
}

fn name(branch: &Branch) -> String {
    match branch {
        Branch::Work { name } => format!("“{}”", clipped(name, NAME_CHARS_MAX)),
        Branch::Call { callee, partition, request } => {
            let partition = partition.as_ref().map(|partition| format!(", partition {partition}"));
            let request = request.as_ref().map(|request| format!(" ({})", clipped(request, NAME_CHARS_MAX)));
            format!("the call to {callee}{}{}", partition.unwrap_or_default(), request.unwrap_or_default())
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    first + characters.as_str()
}
