//! Which rate to try next: doubling until the objectives break, or halving until they are kept, then bisection to the
//! precision, then the same edge again.
//!
//! Pure arithmetic: it is told what became of each probe and knows neither clocks nor requests. A rate at which the
//! generator gave out ends the doubling like a broken one, but what lies above it stays unknown: it is never taken for
//! the system's limit. Halving ends at a floor: below it a probe would say nothing. A repetition walks on the grid of the last bracket, up while the objectives are kept and down
//! while they break, until it has an edge of its own.

use serde::Serialize;

/// The most probes of one search, and the most steps that one repetition walks before it is given up.
pub(crate) const PROBES_MAX: u32 = 100;
const WALK_MAX: u32 = 8;

/// Fate of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Every objective was kept.
    Kept,
    /// An objective was broken, or the system fell behind.
    Broken,
    /// The generator could not send as asked: the probe says nothing about the system.
    GeneratorLimited,
}

/// Where to search, and how closely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    /// The first rate, per second.
    pub(crate) from: f64,
    /// The lowest rate, above 0 and at most `from`.
    pub(crate) floor: f64,
    /// The highest rate, `from` or more.
    pub(crate) to: f64,
    /// (broken − kept) ÷ kept at which the bisection ends.
    pub(crate) precision: f64,
    /// How often the edge is looked for again.
    pub(crate) repeats: u32,
}

/// Two neighbouring rates: the lower kept the objectives, the higher broke them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Edge {
    /// The rate that kept them, per second.
    pub kept: f64,
    /// The rate that broke them.
    pub broken: f64,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SearchResult {
    /// The edge, as often as it was found; at least once.
    Edges(Vec<Edge>),
    /// The objectives were kept at this rate, and no higher one could be tried.
    AtLeast(f64, Ceiling),
    /// They were broken down to this rate, the floor.
    Nowhere(f64),
    /// The generator gave out down to this rate, the floor.
    GeneratorEverywhere(f64),
}

/// Reason for which a search did not go higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ceiling {
    /// The highest rate allowed.
    Highest,
    /// The generator.
    Generator,
}

/// A search under way.
#[derive(Debug)]
pub(crate) struct Search {
    bounds: Bounds,
    state: State,
    edges: Vec<Edge>,
    walks: u32,
    probes: u32,
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Doubling {
        kept: Option<f64>,
        rate: f64,
    },
    /// No rate was kept so far, and `above` was the fate of the last one tried.
    Halving {
        above: f64,
        fate: Fate,
        rate: f64,
    },
    Bisecting {
        kept: f64,
        above: f64,
        fate: Fate,
        rate: f64,
    },
    Walking(Walk),
    Over(SearchResult),
}

/// A repetition on the grid `kept · ratio^n` of the first edge.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Walk {
    at: i32,
    kept: Option<i32>,
    broken: Option<i32>,
    steps: u32,
}

impl Search {
    /// A search that has tried nothing yet.
    pub(crate) fn new(bounds: Bounds) -> Self {
        let state = State::Doubling { kept: None, rate: rounded(bounds.from, bounds.precision).min(bounds.to) };
        Self { bounds, state, edges: Vec::new(), walks: 0, probes: 0 }
    }

    /// The rate to try; `None` if the search is over.
    pub(crate) fn next(&self) -> Option<f64> {
        match &self.state {
            State::Doubling { rate, .. } | State::Halving { rate, .. } | State::Bisecting { rate, .. } => Some(*rate),
            State::Walking(walk) => Some(self.grid(walk.at)),
            State::Over(_) => None,
        }
    }

    /// Result of the search; none while there is a rate to try.
    pub(crate) fn found(&self) -> Option<&SearchResult> {
        if let State::Over(found) = &self.state { Some(found) } else { None }
    }

    /// Takes in what became of the rate that [`Self::next`] named.
    pub(crate) fn tell(&mut self, fate: Fate) {
        self.probes += 1;
        self.state = match self.state.clone() {
            State::Doubling { kept, rate } => self.doubled(kept, rate, fate),
            State::Halving { above, fate: of_above, rate } => match fate {
                Fate::Kept => self.bisect(rate, above, of_above),
                fate => self.halved(rate, fate),
            },
            State::Bisecting { kept, rate, fate: above, above: limit } => match fate {
                Fate::Kept => self.bisect(rate, limit, above),
                fate => self.bisect(kept, rate, fate),
            },
            State::Walking(walk) => self.walked(walk, fate),
            over @ State::Over(_) => over,
        };
        if self.probes >= PROBES_MAX && self.found().is_none() {
            self.state = self.given_up();
        }
    }

    fn doubled(&self, kept: Option<f64>, rate: f64, fate: Fate) -> State {
        match (fate, kept) {
            (Fate::Kept, _) if rate >= self.bounds.to => State::Over(SearchResult::AtLeast(rate, Ceiling::Highest)),
            (Fate::Kept, _) => {
                let next = rounded(rate * 2.0, self.bounds.precision).min(self.bounds.to);
                State::Doubling { kept: Some(rate), rate: next }
            }
            (fate, None) => self.halved(rate, fate),
            (fate, Some(kept)) => self.between(kept, rate, fate),
        }
    }

    /// Goes on below a rate that was not kept.
    fn halved(&self, above: f64, fate: Fate) -> State {
        if above <= self.bounds.floor {
            return State::Over(nothing_kept(above, fate));
        }
        State::Halving { above, fate, rate: rounded(above / 2.0, self.bounds.precision).max(self.bounds.floor) }
    }

    fn between(&self, kept: f64, above: f64, fate: Fate) -> State {
        let rate = rounded((kept + above) / 2.0, self.bounds.precision);
        State::Bisecting { kept, above, fate, rate }
    }

    fn bisect(&mut self, kept: f64, above: f64, fate: Fate) -> State {
        let next = self.between(kept, above, fate);
        let is_between = matches!(next, State::Bisecting { rate, .. } if kept < rate && rate < above);
        if is_between && (above - kept) / kept > self.bounds.precision {
            return next;
        }
        if fate == Fate::GeneratorLimited {
            return State::Over(SearchResult::AtLeast(kept, Ceiling::Generator));
        }
        self.edges.push(Edge { kept, broken: above });
        self.walk_again()
    }

    fn walk_again(&mut self) -> State {
        if self.walks == self.bounds.repeats {
            return State::Over(SearchResult::Edges(self.edges.clone()));
        }
        self.walks += 1;
        State::Walking(Walk { at: 0, kept: None, broken: None, steps: 0 })
    }

    fn walked(&mut self, mut walk: Walk, fate: Fate) -> State {
        walk.steps += 1;
        match fate {
            Fate::Kept => {
                walk.kept = Some(walk.at);
                walk.at += 1;
            }
            Fate::Broken => {
                walk.broken = Some(walk.at);
                walk.at -= 1;
            }
            Fate::GeneratorLimited => return self.walk_again(),
        }
        if let (Some(kept), Some(broken)) = (walk.kept, walk.broken) {
            let edge = Edge { kept: self.grid(kept), broken: self.grid(broken) };
            self.edges.push(edge);
            return self.walk_again();
        }
        if walk.steps >= WALK_MAX || self.grid(walk.at) > self.bounds.to {
            return self.walk_again();
        }
        State::Walking(walk)
    }

    fn grid(&self, at: i32) -> f64 {
        let Some(first) = self.edges.first() else { return self.bounds.from };
        match at {
            0 => first.kept,
            1 => first.broken,
            _ => rounded(first.kept * (first.broken / first.kept).powi(at), self.bounds.precision),
        }
    }

    fn given_up(&self) -> State {
        State::Over(match &self.state {
            _ if !self.edges.is_empty() => SearchResult::Edges(self.edges.clone()),
            State::Bisecting { kept, above, fate: Fate::Broken, .. } => {
                SearchResult::Edges(vec![Edge { kept: *kept, broken: *above }])
            }
            State::Bisecting { kept, .. } => SearchResult::AtLeast(*kept, Ceiling::Generator),
            State::Doubling { kept, rate } => SearchResult::AtLeast(kept.unwrap_or(*rate), Ceiling::Highest),
            State::Halving { above, fate, .. } => nothing_kept(*above, *fate),
            State::Walking(_) | State::Over(_) => SearchResult::Nowhere(self.bounds.from),
        })
    }

    /// How many repetitions ended without an edge: they wandered off, or the generator gave out.
    pub(crate) fn repetitions_lost(&self) -> u32 {
        (self.walks + 1).saturating_sub(self.edges.len() as u32).min(self.walks)
    }
}

/// The result when a rate was not kept and no lower one is tried.
fn nothing_kept(rate: f64, fate: Fate) -> SearchResult {
    if fate == Fate::GeneratorLimited { SearchResult::GeneratorEverywhere(rate) } else { SearchResult::Nowhere(rate) }
}

/// A rate with as many digits as the precision is worth: three, four below 2 %.
fn rounded(rate: f64, precision: f64) -> f64 {
    let digits = if precision < 0.02 { 3 } else { 2 };
    let unit = 10f64.powi(rate.log10().floor() as i32 - digits);
    // The unit's inverse is exact where the unit is not: 0.01 · 1234 is not 12.34.
    if unit < 1.0 { (rate / unit).round() / (1.0 / unit).round() } else { (rate / unit).round() * unit }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: Bounds = Bounds { from: 100.0, floor: 10.0, to: 1e6, precision: 0.05, repeats: 0 };

    /// Searches a system that is what `fate` says; the rates tried and what was found.
    fn search(bounds: Bounds, mut fate: impl FnMut(f64) -> Fate) -> (Vec<f64>, Search) {
        let mut search = Search::new(bounds);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            rates.push(rate);
            search.tell(fate(rate));
        }
        (rates, search)
    }

    fn edge_at(limit: f64) -> impl Fn(f64) -> Fate {
        move |rate| if rate <= limit { Fate::Kept } else { Fate::Broken }
    }

    #[test]
    fn rates_double_until_they_break_and_are_bisected_then() {
        let (rates, search) = search(BOUNDS, edge_at(590.0));
        assert_eq!(rates, [100.0, 200.0, 400.0, 800.0, 600.0, 500.0, 550.0, 575.0]);
        assert_eq!(search.found(), Some(&SearchResult::Edges(vec![Edge { kept: 575.0, broken: 600.0 }])));
    }

    #[test]
    fn what_could_not_be_tried_is_not_said_to_break() {
        type System = fn(f64) -> Fate;
        let cases: [(Bounds, System, SearchResult); 4] = [
            (BOUNDS, |_| Fate::Broken, SearchResult::Nowhere(10.0)),
            (BOUNDS, |_| Fate::GeneratorLimited, SearchResult::GeneratorEverywhere(10.0)),
            (Bounds { to: 350.0, ..BOUNDS }, |_| Fate::Kept, SearchResult::AtLeast(350.0, Ceiling::Highest)),
            (
                BOUNDS,
                |rate| if rate < 300.0 { Fate::Kept } else { Fate::GeneratorLimited },
                SearchResult::AtLeast(288.0, Ceiling::Generator),
            ),
        ];
        for (bounds, fate, expected) in cases {
            assert_eq!(search(bounds, fate).1.found(), Some(&expected));
        }
    }

    #[test]
    fn rates_are_halved_down_to_the_floor_where_the_first_one_breaks() {
        let (rates, found) = search(BOUNDS, edge_at(33.0));
        assert_eq!(rates, [100.0, 50.0, 25.0, 37.5, 31.3, 34.4, 32.9]);
        assert_eq!(found.found(), Some(&SearchResult::Edges(vec![Edge { kept: 32.9, broken: 34.4 }])));
        let (rates, found) = search(BOUNDS, edge_at(9.9));
        assert_eq!(rates, [100.0, 50.0, 25.0, 12.5, 10.0]);
        assert_eq!(found.found(), Some(&SearchResult::Nowhere(10.0)));
        let (rates, found) = search(Bounds { floor: 100.0, ..BOUNDS }, edge_at(1.0));
        assert_eq!((rates.as_slice(), found.found()), (&[100.0][..], Some(&SearchResult::Nowhere(100.0))));
    }

    #[test]
    fn halving_out_of_the_generators_reach_gives_a_lower_bound() {
        let (rates, found) = search(BOUNDS, |rate| if rate <= 30.0 { Fate::Kept } else { Fate::GeneratorLimited });
        assert_eq!(rates[..4], [100.0, 50.0, 25.0, 37.5]);
        assert!(
            matches!(found.found(), Some(SearchResult::AtLeast(rate, Ceiling::Generator)) if (25.0..=30.0).contains(rate)),
            "{:?}",
            found.found()
        );
    }

    #[test]
    fn repetitions_try_both_sides_of_the_edge() {
        let (rates, search) = search(Bounds { repeats: 2, ..BOUNDS }, edge_at(590.0));
        assert_eq!(rates[8..], [575.0, 600.0, 575.0, 600.0]);
        assert_eq!(search.found(), Some(&SearchResult::Edges(vec![Edge { kept: 575.0, broken: 600.0 }; 3])));
        assert_eq!(search.repetitions_lost(), 0);
    }

    #[test]
    fn a_repetition_follows_an_edge_that_moved() {
        let mut probes = 0;
        let (_, down) = search(Bounds { repeats: 1, ..BOUNDS }, |rate| {
            probes += 1;
            edge_at(if probes <= 8 { 590.0 } else { 540.0 })(rate)
        });
        assert_eq!(
            down.found(),
            Some(&SearchResult::Edges(vec![Edge { kept: 575.0, broken: 600.0 }, Edge { kept: 528.0, broken: 551.0 }]))
        );
        let mut probes = 0;
        let (_, up) = search(Bounds { repeats: 1, ..BOUNDS }, |rate| {
            probes += 1;
            edge_at(if probes <= 8 { 590.0 } else { 640.0 })(rate)
        });
        assert_eq!(
            up.found(),
            Some(&SearchResult::Edges(vec![Edge { kept: 575.0, broken: 600.0 }, Edge { kept: 626.0, broken: 653.0 }]))
        );
    }

    #[test]
    fn a_repetition_that_finds_no_edge_is_lost_and_said_to_be() {
        let mut probes = 0;
        let (_, search) = search(Bounds { repeats: 1, ..BOUNDS }, |rate| {
            probes += 1;
            if probes <= 8 { edge_at(590.0)(rate) } else { Fate::Broken }
        });
        assert_eq!(search.found(), Some(&SearchResult::Edges(vec![Edge { kept: 575.0, broken: 600.0 }])));
        assert_eq!(search.repetitions_lost(), 1);
    }

    #[test]
    fn rates_have_three_digits_or_four() {
        let cases = [(1234.5, 0.05, 1230.0), (1234.5, 0.01, 1235.0), (0.12345, 0.05, 0.123), (9.999, 0.05, 10.0)];
        for (rate, precision, expected) in cases {
            assert_eq!(rounded(rate, precision), expected);
        }
    }

    proptest! {
        #[test]
        fn the_edge_is_bracketed_within_the_precision(
            from in 0.1..1e4f64, factor in 2e-4..5e3f64, precision in 0.01..0.5f64, repeats in 0u32..5,
        ) {
            let limit = from * factor;
            let bounds = Bounds { from, floor: limit / 3.0, to: 1e9, precision, repeats };
            let bounds = Bounds { floor: bounds.floor.min(from), ..bounds };
            let (rates, search) = search(bounds, edge_at(limit));
            prop_assert!(rates.iter().all(|rate| *rate >= bounds.floor * 0.99), "{rates:?}");
            prop_assert!(rates.len() < PROBES_MAX as usize);
            let Some(SearchResult::Edges(edges)) = search.found() else { panic!("{:?}", search.found()) };
            prop_assert_eq!(edges.len() as u32, repeats + 1);
            for edge in edges {
                prop_assert!(edge.kept <= limit && limit < edge.broken, "{edge:?} {limit}");
                prop_assert!((edge.broken - edge.kept) / edge.kept <= precision.max(0.011), "{edge:?}");
            }
        }

        #[test]
        fn no_system_makes_it_search_for_ever(seed in any::<u64>(), precision in 0.005..0.5f64, repeats in 0u32..20) {
            let mut state = seed | 1;
            let (rates, search) = search(Bounds { floor: 1e-3, precision, repeats, ..BOUNDS }, |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                [Fate::Kept, Fate::Kept, Fate::Broken, Fate::GeneratorLimited][(state >> 62) as usize]
            });
            prop_assert!(rates.len() <= PROBES_MAX as usize);
            prop_assert!(rates.iter().all(|rate| rate.is_finite() && *rate > 0.0));
            prop_assert!(search.found().is_some());
        }
    }
}
