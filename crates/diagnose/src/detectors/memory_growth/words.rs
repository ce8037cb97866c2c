//! Texts of `memory-growth` findings.

use narrows_model::finding::evidence::memory_growth::{Growth, Limit, LimitOf, MemoryGrowth, Shortage};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level};

impl Words for MemoryGrowth {
    fn title(&self, finding: &Finding) -> String {
        let name = name(self, finding);
        match (self.kills, &self.growth) {
            (0, Some(growth)) if self.shortage.is_none() => format!(
                "the memory of {name} grows by {}/s and reaches {} in {}",
                units::bytes(growth.bytes_per_second),
                limit(self.limit),
                units::duration(growth.until_limit_ns)
            ),
            (0, _) => {
                let length = units::duration(self.shortage.map_or(0.0, |shortage| shortage.length_ns as f64));
                format!("{name} is short of memory: it is at {} for {length}", limit(self.limit))
            }
            (1, _) => format!("{name} was killed when its memory reached {}", limit(self.limit)),
            (kills, _) => format!("{name} was killed {} times when its memory reached {}", kills, limit(self.limit)),
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        let of = match self.limit {
            Some(Limit { of: LimitOf::Machine, .. }) => "of the memory that it can have on the machine",
            _ => "of its memory limit",
        };
        if self.shortage.is_some() && self.kills == 0 {
            return format!("{of}, in use for that time");
        }
        let when = if self.kills > 0 { "at its highest reading" } else { "at the end of that load" };
        format!("{of}, in use {when}")
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let killed = (self.kills > 0).then(|| killed(self, finding));
        let grown = self.growth.iter().flat_map(|growth| grown(growth, self.limit));
        let affected = (self.replicas > 1)
            .then(|| format!("{} of {} replicas are affected.", self.affected_replicas, self.replicas));
        let short = self.shortage.map(|shortage| short(shortage, &name(self, finding)));
        killed.into_iter().chain(short).chain(grown).chain(affected).collect()
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = Vec::new();
        if self.kills > 0 {
            figures.push(Figure::new("kills for lack of memory", self.kills as f64, ""));
        }
        if let Some(growth) = &self.growth {
            figures.push(Figure::new("memory at the start", growth.start_bytes, "B"));
            figures.push(Figure::new("memory at the end", growth.end_bytes, "B"));
            figures.push(Figure::new("growth", growth.bytes_per_second, "B/s"));
            figures.extend(growth.bytes_per_request.map(|bytes| Figure::new("growth per request", bytes, "B")));
            figures.push(Figure::new("time until the limit", growth.until_limit_ns, "ns"));
        } else {
            figures.extend(self.most_bytes.map(|most| Figure::new("memory at most", most, "B")));
        }
        if let Some(shortage) = self.shortage {
            figures.push(Figure::new("time at the limit", shortage.length_ns as f64, "ns"));
            figures.push(Figure::new("time in which a task waited for memory", shortage.waiting * 100.0, "%"));
            figures.extend(shortage.read.map(|read| Figure::new("read from disks meanwhile", read, "By/s")));
        }
        figures.extend(self.limit.map(|limit| Figure::new("limit", limit.bytes, "B")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.growth.is_none() {
            return Vec::new();
        }
        vec![
            "A saw-tooth of a collector: the lowest readings grow too.".into(),
            "Growth with the number of users: the load is the same all the time.".into(),
            "The page cache: it is not in these readings.".into(),
        ]
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let name = name(self, finding);
        if self.kills > 0 || self.shortage.is_some() {
            return format!("With twice the limit, the memory of {name} stays below the old one under the same load.");
        }
        format!("Under the same load for twice as long, the memory of {name} levels off below its limit.")
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "Take two heap profiles of {} some minutes apart and compare them: what grows is kept by something without \
             a bound (a cache without eviction, a listener or timer that is never removed, a queue, a list of the past). \
             Bound it. If the heap does not grow, look at native memory and threads. If the memory is needed, raise the \
             limit; a larger limit only delays the end of a leak.",
            name(self, finding)
        )
    }
}

/// Name of the replica: `shop`, or `shop[1]` if there are several.
fn name(evidence: &MemoryGrowth, finding: &Finding) -> String {
    let service = &finding.resource;
    if evidence.replicas > 1 { format!("{service}[{}]", evidence.replica) } else { service.clone() }
}

fn limit(limit: Option<Limit>) -> String {
    match limit {
        None => "its limit".into(),
        Some(Limit { of: LimitOf::Replica, bytes }) => format!("its limit of {}", units::bytes(bytes)),
        Some(Limit { of: LimitOf::Machine, bytes }) => {
            format!("the {} that the machine has for it", units::bytes(bytes))
        }
    }
}

fn killed(evidence: &MemoryGrowth, finding: &Finding) -> String {
    let who = name(evidence, finding);
    let first = units::duration(evidence.first_kill_ns.unwrap_or(0) as f64);
    let when = match evidence.kills {
        1 => format!("The kernel killed a process of {who} for lack of memory {first} into the load"),
        kills => format!(
            "The kernel killed {} processes of {who} for lack of memory, the first one {first} into the load",
            units::count(kills)
        ),
    };
    match evidence.most_bytes {
        Some(most) => format!("{when}. Its highest reading is {}.", units::bytes(most)),
        None => format!("{when}."),
    }
}

/// Sentence on a time at the limit.
fn short(shortage: Shortage, name: &str) -> String {
    let read = shortage.read.map_or_else(String::new, |read| {
        format!(", and {name} reads {}/s from disks: pages that it needs and that have no room", units::bytes(read))
    });
    format!(
        "At the limit for {}, a task waits for memory or for a page of it {} of the time{read}.",
        units::duration(shortage.length_ns as f64),
        units::percent(shortage.waiting)
    )
}

fn grown(growth: &Growth, of: Option<Limit>) -> Vec<String> {
    let share = of.map(|limit| format!(", {} of {}", units::percent(growth.end_bytes / limit.bytes), limit_of(limit)));
    let per_request = growth.bytes_per_request.map(|bytes| format!(", {} for each request", units::bytes(bytes)));
    let seen = format!(
        "In {} ({}), it goes from {} to {} within {}{}: {}/s{}, and each quarter of that time begins above the one before.",
        growth.interval,
        level(&growth.load),
        units::bytes(growth.start_bytes),
        units::bytes(growth.end_bytes),
        units::duration(growth.length_ns as f64),
        share.unwrap_or_default(),
        units::bytes(growth.bytes_per_second),
        per_request.unwrap_or_default()
    );
    let heap = growth
        .heap_share
        .map(|share| format!("The heap that its runtime reports grows too, by {} of that.", units::percent(share)));
    std::iter::once(seen).chain(heap).collect()
}

fn limit_of(limit: Limit) -> &'static str {
    match limit.of {
        LimitOf::Replica => "its limit",
        LimitOf::Machine => "what it can have on the machine",
    }
}
