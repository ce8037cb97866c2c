//! Texts of `generator-limited` findings.

use narrows_model::finding::evidence::generator_limited::{GeneratorLimited, SignKind, share_of};
use narrows_model::finding::{Figure, Finding};
use narrows_model::run::Verdict;
use narrows_model::units;

use crate::detectors::words::Words;

const MORE_CPU: &str = "Send less, give the generator more threads or a machine of its own, and run this trial again before \
                        acting on its other findings.";
const MORE_USERS: &str = "Raise max_vus and run this trial again. If the latency has only grown, the rate is more than the \
                          system carries: then its throughput is right as it is, and the other findings say what limits it.";

impl Words for GeneratorLimited {
    fn title(&self, _finding: &Finding) -> String {
        match self.verdict() {
            Verdict::Invalid if self.is_held_back => {
                "max_vus held the load back, so the system was not given what the experiment offers"
            }
            Verdict::Invalid => "the load generator was the limit, so this trial says little about the system",
            _ => "the load generator had a part in the figures",
        }
        .into()
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        match self.dearest() {
            Some((SignKind::UsersBusy { .. }, _)) => "of the iterations that were due",
            Some((SignKind::BusyThread { .. }, _)) => "of one core, by the generator's busiest thread",
            Some((SignKind::FullHost { .. }, _)) => "of the CPU in use on a full machine",
            _ => "of the mean latency",
        }
        .into()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        self.signs.iter().map(|sign| reason(&sign.kind)).collect()
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        self.signs.iter().filter_map(|sign| figure(&sign.kind)).collect()
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        if self.needs_users {
            "The same load with a higher max_vus gives the same figures.".into()
        } else {
            "The same load from a generator with more CPU of its own gives the same figures.".into()
        }
    }

    fn advice(&self, _finding: &Finding) -> String {
        if self.needs_users { MORE_USERS.into() } else { MORE_CPU.into() }
    }
}

fn reason(sign: &SignKind) -> String {
    match sign {
        SignKind::OwnVerdict { reasons } => {
            format!("The generator marks its own figures as invalid. {}", reasons.join(" "))
        }
        SignKind::UsersBusy { due, waited, dropped, offered, given } => format!(
            "max_vus was reached: of {} iterations that were due, {} found every user busy and had to wait, and {} ({}) \
             never began, so {} were offered and {} given.",
            units::count(*due),
            units::count(*waited),
            units::count(*dropped),
            units::percent(share_of(*dropped, *due)),
            units::rate(*offered),
            units::rate(*given)
        ),
        SignKind::Lateness { late_ns, latency_ns, includes_wait } => format!(
            "Requests left {} late on average, which is {} of the mean latency of {}{}.",
            units::duration(*late_ns),
            units::percent(late_ns / latency_ns),
            units::duration(*latency_ns),
            if *includes_wait { ": the wait for a free user is part of it, because max_vus was reached" } else { "" }
        ),
        SignKind::BusyThread { cores, window } => {
            format!("Its busiest thread used {} of a core in {window}.", units::percent(*cores))
        }
        SignKind::FullHost { share, window } => format!(
            "In {window} the machine's CPU was full and the generator took {} of what was used.",
            units::percent(*share)
        ),
    }
}

fn figure(sign: &SignKind) -> Option<Figure> {
    Some(match sign {
        SignKind::OwnVerdict { .. } => return None,
        SignKind::UsersBusy { due, dropped, .. } if *dropped > 0 => {
            Figure::new("iterations that never began", share_of(*dropped, *due) * 100.0, "%")
        }
        SignKind::UsersBusy { due, waited, .. } => {
            Figure::new("iterations that waited for a user", share_of(*waited, *due) * 100.0, "%")
        }
        SignKind::Lateness { late_ns, .. } => Figure::new("delay before sending, mean", *late_ns, "ns"),
        SignKind::BusyThread { cores, .. } => Figure::new("busiest load thread, median", cores * 100.0, "%"),
        SignKind::FullHost { share, .. } => Figure::new("the generator's part of the CPU in use", share * 100.0, "%"),
    })
}
