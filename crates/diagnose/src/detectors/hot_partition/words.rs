//! Texts of `hot-partition` findings.

use narrows_model::finding::evidence::hot_partition::{Counted, HotPartition, Keys, PlaceConnections, PlaceKind};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

impl Words for HotPartition {
    fn title(&self, finding: &Finding) -> String {
        let what = match self.counted {
            Counted::Calls | Counted::Sockets => "of the calls",
            Counted::Consumption => "of what all spend",
        };
        let title = format!(
            "{} {} of {} takes {} {what}, {} times the mean of {}",
            self.kind.word(),
            self.hot,
            finding.resource,
            units::percent(self.share),
            units::number(self.ratio),
            self.places
        );
        match too_few(self) {
            Some(keys) => format!("{title}; the load has {} only", key_count(self.kind, keys)),
            None => title,
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        let word = self.kind.word();
        format!("of the combined capacity of all {word}s of {}, when {word} {} is full", finding.resource, self.hot)
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "Of {} calls {} {} gets {}, where an even share of {} is {}; chance alone makes that less than once in a \
             thousand times.",
            units::count(self.calls.round() as u64),
            self.kind.word(),
            self.hot,
            units::percent(self.share),
            self.places,
            units::percent(1.0 / self.places as f64)
        )];
        reasons.extend(self.connections.map(connections));
        reasons.extend(self.used.filter(|used| used.is_strained).map(|used| {
            if used.is_share {
                format!(
                    "It uses {} of its limit on average, the others {}.",
                    units::percent(used.hot),
                    units::percent(used.others)
                )
            } else {
                format!("It uses {} on average, the others {}.", units::number(used.hot), units::number(used.others))
            }
        }));
        reasons.extend(self.latency.filter(|latency| latency.is_strained).map(|latency| {
            format!(
                "A call there takes {} (median), elsewhere {}.",
                units::duration(latency.hot_ns),
                units::duration(latency.others_ns)
            )
        }));
        reasons.extend(self.keys.map(|keys| {
            format!(
                "The load has {}; a hash of that many would give the fullest about {} times the mean.",
                key_count(self.kind, keys),
                units::number(keys.expected_ratio)
            )
        }));
        reasons.extend(
            hot_key_share(self).map(|share| {
                format!("One key alone makes up as much as {} of the calls there.", units::percent(share))
            }),
        );
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("share of the fullest", self.share * 100.0, "%"),
            Figure::new("fullest over the mean", self.ratio, ""),
            Figure::new(format!("{}s", self.kind.word()), self.places as f64, ""),
            Figure::new("calls", self.calls, ""),
        ];
        if let Some(used) = self.used {
            let (factor, unit) = if used.is_share { (100.0, "%") } else { (1.0, "") };
            figures.push(Figure::new("used by the fullest, mean", used.hot * factor, unit));
            figures.push(Figure::new("used by the others, mean", used.others * factor, unit));
        }
        if let Some(latency) = self.latency {
            figures.push(Figure::new("call to the fullest, median", latency.hot_ns, "ns"));
            figures.push(Figure::new("call to the others, median", latency.others_ns, "ns"));
        }
        if let Some(keys) = self.keys {
            figures.push(Figure::new("different keys", keys.count as f64, ""));
            figures.push(Figure::new("fullest over the mean, as the keys let expect", keys.expected_ratio, ""));
        }
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            "Chance among few calls: Pearson's chi-square is beyond its 99.9 % point.".to_owned(),
            "Warm-up or one burst: both halves of the trial show it.".into(),
        ];
        if self.keys.is_some_and(|keys| !keys.are_too_few) {
            ruled_out.push("Few keys in the load: a hash spreads that many keys more evenly than this.".into());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!(
            "With keys that spread the same load evenly, the highest rate that {} carries stays the same.",
            finding.resource
        )
    }

    fn advice(&self, finding: &Finding) -> String {
        let (word, hot, name) = (self.kind.word(), &self.hot, &finding.resource);
        if too_few(self).is_some() {
            return format!(
                "Before you change {name}, let the load use as many different keys and clients as the real one, at least \
                 ten for each {word}."
            );
        }
        if hot_key_share(self).is_some() {
            return format!(
                "One key makes {word} {hot} of {name} full: spread it over several (a suffix, a synthetic key), cache the \
                 responses for it, or give it a {word} of its own."
            );
        }
        match self.kind {
            PlaceKind::Partition | PlaceKind::Topic => format!(
                "Choose a partition key for {name} that has many values with an even load, or add a suffix to the present \
                 key, and check which values are in {word} {hot} now."
            ),
            PlaceKind::Replica | PlaceKind::Server => format!(
                "Balance {name} by request and not by connection or client (least requests, or a hash of something that \
                 differs more), renew connections now and then, and check for sticky sessions and weights."
            ),
        }
    }
}

/// Why calls go where they do, by the connections that callers keep.
fn connections(of: PlaceConnections) -> String {
    let each = match of.calls_each {
        Some(calls) => format!("each is closed after {} calls (mean)", units::number(calls)),
        None => "none is closed and opened anew".to_owned(),
    };
    format!(
        "Callers keep {} connections to it and {} to each of the others, and {each}: what chooses a replica chooses it for \
         each connection.",
        units::number(of.hot),
        units::number(of.others)
    )
}

fn too_few(evidence: &HotPartition) -> Option<Keys> {
    evidence.keys.filter(|keys| keys.are_too_few)
}

fn hot_key_share(evidence: &HotPartition) -> Option<f64> {
    evidence.keys.and_then(|keys| keys.hot_key_share)
}

fn key_count(kind: PlaceKind, keys: Keys) -> String {
    let word = if kind == PlaceKind::Replica { "client" } else { "key" };
    format!("{} {word}{}", units::count(keys.count as u64), if keys.count == 1 { "" } else { "s" })
}
