//! Texts of `outage` findings.

use narrows_model::finding::evidence::outage::{Outage, Spell};
use narrows_model::finding::{Figure, Finding};
use narrows_model::load::RecoveryEnd;
use narrows_model::units;

use crate::detectors::words::Words;

/// Maximum outages reported one by one.
const NAMED_MAX: usize = 5;

impl Words for Outage {
    fn title(&self, finding: &Finding) -> String {
        format!("{} was down {}; {}", name(self, finding), how_long(self), what_came(self))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the requests of that time, which did not succeed".into()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let mut reasons: Vec<String> = self.spells.iter().take(NAMED_MAX).map(|spell| describe(self, spell)).collect();
        if self.spells.len() > NAMED_MAX {
            reasons.push(format!("And {} more times.", self.spells.len() - NAMED_MAX));
        }
        reasons.extend(self.failed_call_share.map(|share| {
            format!("Of the failed calls in the traces of that time, {} went to it.", units::percent(share))
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("time down", self.down_ns() as f64, "ns"),
            Figure::new("time until all was as before", self.felt_ns() as f64, "ns"),
            Figure::new("requests that failed", self.failed().total() as f64, ""),
        ]
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec!["Usual failures: as many failures in a second as in the worst second before are tolerated.".into()]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("As many requests fail under the same load while {} stays up.", name(self, finding))
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let stand_in = if self.replicas > 1 {
            format!("Let callers of {service} fail over to another replica when one cannot be reached.")
        } else {
            format!("{service} has one replica: add a second one, or a standby that takes over.")
        };
        format!(
            "{stand_in} Fail fast instead of waiting, retry what is safe to retry, and check that callers reconnect as \
             soon as it runs."
        )
    }
}

/// Name of the replica: `store`, or `store[1]` if there are several.
fn name(outage: &Outage, finding: &Finding) -> String {
    let service = &finding.resource;
    if outage.replicas > 1 { format!("{service}[{}]", outage.replica) } else { service.clone() }
}

fn how_long(outage: &Outage) -> String {
    let time = units::duration(outage.down_ns() as f64);
    match &outage.spells[..] {
        [Spell { end_ns: None, .. }] => format!("to the end of the load, {time}"),
        [_] => format!("for {time}"),
        spells => format!("{} times, {time} in all", spells.len()),
    }
}

fn what_came(outage: &Outage) -> String {
    let failed = match outage.failed().total() {
        0 => "requests stood still".to_owned(),
        1 => "1 request failed".to_owned(),
        n => format!("{} requests failed", units::count(n)),
    };
    let has_recovered = outage.spells.iter().all(|spell| spell.recovery.end == RecoveryEnd::Recovered);
    match (&outage.spells[..], has_recovered) {
        ([spell], true) => {
            format!("{failed}, all was as before after {}", units::duration(spell.felt_ns() as f64))
        }
        (_, true) => failed,
        (_, false) => format!("{failed}, and it was not as before when the load ended"),
    }
}

fn describe(outage: &Outage, spell: &Spell) -> String {
    let recovery = &spell.recovery;
    let since = |from_ns: i64, to_ns: i64| units::duration((to_ns - from_ns).max(0) as f64);
    let ran = match spell.end_ns {
        Some(end_ns) if end_ns < recovery.until_ns => {
            format!("; it ran again {} before that", since(end_ns, recovery.until_ns))
        }
        _ => String::new(),
    };
    let failed = match recovery.errors.total() {
        0 => "no request failed".to_owned(),
        n => format!("{} failed ({})", units::count(n), recovery.errors.by_kind()),
    };
    let silent = match recovery.silent_seconds {
        0 => String::new(),
        n => format!(", none succeeded in {n} s"),
    };
    let end = match (recovery.end, recovery.usual) {
        (RecoveryEnd::Recovered, Some(usual)) => format!(
            "until {} succeeded again as before, {} later{ran}",
            units::rate(usual),
            since(spell.start_ns, recovery.until_ns)
        ),
        _ => "to the end of the load".to_owned(),
    };
    format!("Down {} into the load: {failed}{silent}, {end}.", since(outage.load_start_ns, spell.start_ns))
}
