//! Conclusions of an experiment, and the runs that come to them: those without a change, and those with a scaled parameter.
//!
//! They are the published ones, as `crate::conclusions` judges them by each run. An experiment that names none has the
//! bottleneck of each variant in the first run without a change instead. A conclusion that a run without a change does not
//! come to is lost without any parameter, so no parameter is judged by it.

use std::borrow::Cow;

use narrows_model::sensitivity::{Examined, Point, PointConclusion};

use super::noise::is_noise;

/// A conclusion over the runs of an experiment.
#[derive(Debug)]
pub(super) struct Claim {
    /// The conclusion, in a sentence.
    pub(super) text: String,
    /// Runs without a change.
    pub(super) unchanged: Tally,
    /// Runs with a scaled parameter; empty if [`Claim::is_stable`] is false.
    pub(super) scaled: Tally,
    /// The scaled runs that do not come to it, each with what it shows instead.
    pub(super) lost: Vec<String>,
}

/// Runs that come to a conclusion, of those that measured what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) come_back: usize,
    pub(super) all: usize,
}

/// A run with a scaled parameter.
pub(super) struct ScaledRun<'a> {
    /// `store_delay_ms 20 (−20 %)`, or `store_delay_ms 20 (−20 %, noise)`.
    pub(super) name: String,
    /// `None` if it is not complete.
    pub(super) point: Option<&'a Point>,
}

impl Tally {
    pub(super) fn add(&mut self, comes_back: Option<bool>) {
        self.all += usize::from(comes_back.is_some());
        self.come_back += usize::from(comes_back == Some(true));
    }

    /// True if there are runs, and all of them come to it.
    pub(super) fn is_whole(self) -> bool {
        self.all > 0 && self.come_back == self.all
    }
}

impl Claim {
    /// True if every run without a change comes to it.
    pub(super) fn is_stable(&self) -> bool {
        self.unchanged.is_whole()
    }
}

/// The conclusions of an experiment in order; empty if it did not run without a change.
pub(super) fn claims(examined: &Examined, changes: &[String; 2]) -> Vec<Claim> {
    let Some(first) = examined.as_is.first() else { return Vec::new() };
    let runs = scaled_runs(examined, changes);
    conclusions(first, first).iter().map(|conclusion| claim(examined, &runs, &conclusion.claim)).collect()
}

/// True if no published conclusion was judged, so that the bottlenecks count.
pub(super) fn are_bottlenecks(examined: &Examined) -> bool {
    examined.as_is.first().is_some_and(|first| first.conclusions.is_empty())
}

/// The runs with a scaled parameter in order. `changes` names the lower and the higher side.
pub(super) fn scaled_runs<'a>(examined: &'a Examined, changes: &[String; 2]) -> Vec<ScaledRun<'a>> {
    let mut runs = Vec::new();
    for parameter in &examined.parameters {
        let noise = if is_noise(examined, parameter) { ", noise" } else { "" };
        for (scaled, change) in [&parameter.lower, &parameter.higher].into_iter().zip(changes) {
            let name = format!("{} {} ({change}{noise})", parameter.name, scaled.value);
            runs.push(ScaledRun { name, point: scaled.point.as_ref() });
        }
    }
    runs
}

/// The conclusions that hold in every run without a change, as one other run judges them.
pub(super) fn kept(examined: &Examined, claims: &[Claim], point: &Point) -> Tally {
    let mut kept = Tally::default();
    for claim in claims.iter().filter(|claim| claim.is_stable()) {
        kept.add(judged(examined, point, &claim.text).and_then(|now| now.comes_back));
    }
    kept
}

fn claim(examined: &Examined, runs: &[ScaledRun<'_>], text: &str) -> Claim {
    let mut unchanged = Tally::default();
    for point in &examined.as_is {
        unchanged.add(judged(examined, point, text).and_then(|now| now.comes_back));
    }
    let mut claim = Claim { text: text.to_owned(), unchanged, scaled: Tally::default(), lost: Vec::new() };
    for run in runs.iter().filter(|_| unchanged.is_whole()) {
        let Some(now) = run.point.and_then(|point| judged(examined, point, text)) else { continue };
        claim.scaled.add(now.comes_back);
        if now.comes_back == Some(false) {
            claim.lost.push(format!("{}: {}", run.name, now.instead));
        }
    }
    claim
}

/// The conclusion of that text at a point.
fn judged(examined: &Examined, point: &Point, text: &str) -> Option<PointConclusion> {
    conclusions(point, examined.as_is.first()?).iter().find(|one| one.claim == text).cloned()
}

/// The conclusions at a point: the published ones, or whether each variant has the bottleneck that it has at the first point.
fn conclusions<'a>(point: &'a Point, first: &Point) -> Cow<'a, [PointConclusion]> {
    if !first.conclusions.is_empty() {
        return Cow::Borrowed(&point.conclusions);
    }
    let bottlenecks = first.variants.iter().filter_map(|of| {
        let now = point.variants.iter().find(|now| now.variant == of.variant)?;
        let is_same = now.bottleneck == of.bottleneck;
        let instead = if is_same { String::new() } else { now.bottleneck.clone() };
        let claim = format!("{}: {}", of.variant, of.bottleneck);
        Some(PointConclusion { claim, comes_back: Some(is_same), instead })
    });
    Cow::Owned(bottlenecks.collect())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{examined, point};
    use super::*;

    fn claims_of(examined: &Examined) -> Vec<Claim> {
        claims(examined, &["−20 %".to_owned(), "+20 %".to_owned()])
    }

    fn tallies(claim: &Claim) -> [(usize, usize); 2] {
        [claim.unchanged, claim.scaled].map(|tally| (tally.come_back, tally.all))
    }

    #[test]
    fn conclusions_that_every_unchanged_run_comes_to_are_judged_with_scaled_parameters() {
        let examined = examined();
        let claims = claims_of(&examined);
        assert_eq!(tallies(&claims[0]), [(2, 2), (2, 2)], "{claims:?}");
        assert_eq!(tallies(&claims[1]), [(2, 2), (1, 2)], "{claims:?}");
        let lost = "store_delay_ms 20 (−20 %): throughput of second to first ×1.00, not at least ×1.10";
        assert_eq!(claims[1].lost, [lost]);
        assert_eq!(tallies(&claims[2]), [(1, 2), (0, 0)], "{claims:?}");
        assert!(claims[2].lost.is_empty() && !claims[2].is_stable());
        let lower = examined.parameters[0].lower.point.as_ref().unwrap();
        assert_eq!(kept(&examined, &claims, lower), Tally { come_back: 1, all: 2 });
    }

    #[test]
    fn without_published_conclusions_the_bottlenecks_count() {
        let mut examined = examined();
        let parameter = &mut examined.parameters[0];
        for point in examined.as_is.iter_mut().chain(&mut parameter.lower.point).chain(&mut parameter.higher.point) {
            point.conclusions.clear();
        }
        assert!(are_bottlenecks(&examined));
        let claims = claims_of(&examined);
        let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
        assert_eq!(texts, ["first: throttling at store", "second: throttling at store", "third: throttling at store"]);
        assert_eq!(tallies(&claims[1]), [(2, 2), (1, 2)]);
        assert_eq!(claims[1].lost, ["store_delay_ms 30 (+20 %): cpu-saturation at shop"]);
        assert!(claims[0].scaled.is_whole());
    }

    #[test]
    fn what_was_not_measured_is_neither_kept_nor_lost() {
        let mut examined = examined();
        examined.parameters[0].higher.point = None;
        assert_eq!(tallies(&claims_of(&examined)[1]), [(2, 2), (0, 1)]);
        examined.as_is = vec![point([20.0, 26.0, 46.0])];
        examined.as_is[0].conclusions[0].comes_back = None;
        assert_eq!(tallies(&claims_of(&examined)[0]), [(0, 0), (0, 0)]);
        examined.as_is.clear();
        assert!(claims_of(&examined).is_empty());
    }
}
