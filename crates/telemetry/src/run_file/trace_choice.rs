//! Which traces stand for a trial when not all of them can be read.
//!
//! Every counted window gets the same number of places, since each is a load level of its own and a short or slow one
//! must not vanish beside a busy one; places that a window cannot fill go to the others. Within a window the traces with
//! the smallest hash of their id are taken: the same ones on every reading, and no matter when or in which order they
//! came. A trace that stands for others is taken so many times as likely, so that what is read is as even as what was
//! sent, whatever was thinned out before. One with a failed span is taken ten times as likely, because a failure that one
//! request in some thousands meets could not be looked at otherwise; it stands for so many fewer. A trace that is read
//! stands for its share of its window.

use std::collections::BinaryHeap;

use narrows_model::run::Window;
use narrows_model::trace::TraceId;

use super::words::plausible_weight;

/// How many times as likely a trace with a failed span is taken.
const FAVOUR_OF_FAILED: f64 = 10.0;
/// How many hashes there are.
const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// A trace that was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ChosenTrace {
    pub(super) id: TraceId,
    /// The position of its window among the counted ones.
    window: usize,
    /// How many traces it stands for already.
    weight: f64,
    has_failed: HasFailed,
    rank: f64,
}

/// Whether a trace has a failed span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HasFailed {
    No,
    Yes,
}

impl From<bool> for HasFailed {
    fn from(has_failed: bool) -> Self {
        if has_failed { Self::Yes } else { Self::No }
    }
}

impl HasFailed {
    fn favour(self) -> f64 {
        match self {
            HasFailed::No => 1.0,
            HasFailed::Yes => FAVOUR_OF_FAILED,
        }
    }
}

/// The chosen traces, the windows by turns: any first part of it is as even as the whole.
#[derive(Debug, PartialEq)]
pub(super) struct Selection {
    chosen: Vec<ChosenTrace>,
    windows: Vec<OfWindow>,
}

/// State of a selection in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OfWindow {
    /// The weight of all its traces.
    weight: f64,
    /// The smallest rank that was not chosen; infinite when all were.
    next_rank: f64,
}

impl Selection {
    pub(super) fn traces(&self) -> &[ChosenTrace] {
        &self.chosen
    }

    /// Leaves all but the first ones out.
    pub(super) fn truncate(&mut self, traces: usize) {
        for left_out in self.chosen.drain(traces.min(self.chosen.len())..) {
            let window = &mut self.windows[left_out.window];
            window.next_rank = window.next_rank.min(left_out.rank);
        }
    }

    /// For each trace, in order, how many of its weight it stands for. Those of a window add up to the window.
    ///
    /// Source: Duffield, Lund and Thorup, "Priority sampling for estimation of arbitrary subset sums"; made to add up.
    pub(super) fn stand_for(&self) -> Vec<f64> {
        let threshold = |trace: &ChosenTrace| self.windows[trace.window].next_rank * trace.has_failed.favour();
        let estimate = |trace: &ChosenTrace| trace.weight.max(1.0 / threshold(trace));
        let mut sums = vec![0.0; self.windows.len()];
        self.chosen.iter().for_each(|trace| sums[trace.window] += estimate(trace));
        let ratio = |trace: &ChosenTrace| match self.windows[trace.window] {
            window if window.next_rank.is_infinite() => 1.0,
            window => estimate(trace) / trace.weight * window.weight / sums[trace.window],
        };
        self.chosen.iter().map(ratio).collect()
    }
}

/// Looks at the traces of a trial one by one and remembers, for each window, those that could be chosen.
pub(super) struct Choice<'a> {
    windows: Vec<(&'a Window, Candidates)>,
    places: usize,
}

#[derive(Default)]
struct Candidates {
    /// The largest rank is on top and the first to go. Ranks are positive: their bits are in their order.
    smallest: BinaryHeap<(u64, TraceId, u64, HasFailed)>,
    weight: f64,
    next_rank: Option<u64>,
}

impl<'a> Choice<'a> {
    /// Chooses at most `places` traces over all windows.
    pub(super) fn new(windows: impl Iterator<Item = &'a Window>, places: usize) -> Self {
        Self { windows: windows.map(|window| (window, Candidates::default())).collect(), places }
    }

    /// Looks at a trace that began at `start_ns` and stands for `weight` traces.
    pub(super) fn see(&mut self, id: TraceId, start_ns: i64, weight: f64, has_failed: HasFailed) {
        let places = self.places;
        let holds = |window: &Window| (window.start_ns..window.end_ns).contains(&start_ns);
        if let Some((_, candidates)) = self.windows.iter_mut().find(|(window, _)| holds(window)) {
            candidates.see(id, plausible_weight(weight), has_failed, places);
        }
    }

    /// The chosen traces.
    pub(super) fn chosen(self) -> Selection {
        let windows = self.windows.iter().map(|(_, candidates)| candidates.summary()).collect();
        let lists: Vec<Vec<ChosenTrace>> =
            self.windows.into_iter().enumerate().map(|(at, (_, candidates))| candidates.chosen(at)).collect();
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        let turns = (0..longest).flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn).copied()));
        let mut selection = Selection { chosen: turns.collect(), windows };
        selection.truncate(self.places);
        selection
    }
}

impl Candidates {
    fn summary(&self) -> OfWindow {
        OfWindow { weight: self.weight, next_rank: self.next_rank.map_or(f64::INFINITY, f64::from_bits) }
    }

    /// The chosen traces of a window, those with the lowest ranks first.
    fn chosen(self, window: usize) -> Vec<ChosenTrace> {
        let chosen = self.smallest.into_sorted_vec().into_iter().map(|(rank, id, weight, has_failed)| {
            let (rank, weight) = (f64::from_bits(rank), f64::from_bits(weight));
            ChosenTrace { id, window, weight, has_failed, rank }
        });
        chosen.collect()
    }

    fn see(&mut self, id: TraceId, weight: f64, has_failed: HasFailed, places: usize) {
        self.weight += weight;
        let rank = (hash(&id) as f64 + 1.0) / HASHES / (weight * has_failed.favour());
        let mut left_out = (rank.to_bits(), id, weight.to_bits(), has_failed);
        if self.smallest.len() < places {
            self.smallest.push(left_out);
            return;
        }
        if let Some(mut largest) = self.smallest.peek_mut().filter(|largest| left_out < **largest) {
            std::mem::swap(&mut left_out, &mut largest);
        }
        self.next_rank = self.next_rank.into_iter().chain([left_out.0]).min();
    }
}

/// FNV-1a, then the finaliser of SplitMix64: ids that count up spread as well as random ones.
pub(super) fn hash(id: &TraceId) -> u64 {
    let fnv = id
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::WindowKind;

    fn windows(lengths: &[i64]) -> Vec<Window> {
        let mut start_ns = 0;
        let mut window = |(index, length): (usize, &i64)| {
            let end_ns = start_ns + length;
            let kind = WindowKind::Steady;
            let window = Window {
                index: index as u32,
                kind,
                label: String::new(),
                start_ns,
                end_ns,
                drained_ns: None,
                vus: 1,
                rate: None,
            };
            start_ns = end_ns;
            window
        };
        lengths.iter().enumerate().map(&mut window).collect()
    }

    fn choose(windows: &[Window], starts: impl Iterator<Item = i64>, places: usize) -> Selection {
        choose_weighed(windows, starts, places, |_| 1.0)
    }

    fn choose_weighed(
        windows: &[Window],
        starts: impl Iterator<Item = i64>,
        places: usize,
        weight: impl Fn(i64) -> f64,
    ) -> Selection {
        let mut choice = Choice::new(windows.iter(), places);
        starts.for_each(|start| choice.see((start as u128).to_be_bytes(), start, weight(start), HasFailed::No));
        choice.chosen()
    }

    #[test]
    fn windows_share_the_places_and_weights_add_up_to_all_traces() {
        // Windows with 10, 990 and 100 traces; places for 90.
        let windows = windows(&[10, 990, 100]);
        let chosen = choose(&windows, 0..1100, 90);
        assert_eq!(chosen.traces().len(), 90);
        let of = |range: std::ops::Range<u128>| {
            chosen.traces().iter().filter(|chosen| range.contains(&u128::from_be_bytes(chosen.id))).count()
        };
        assert_eq!((of(0..10), of(10..1000), of(1000..1100)), (10, 40, 40));
        let stood_for: f64 = chosen.stand_for().iter().sum();
        assert!((stood_for - 1100.0).abs() < 1e-6, "{stood_for}");
    }

    #[test]
    fn the_choice_does_not_depend_on_the_order_of_arrival() {
        let windows = windows(&[500, 500]);
        assert_eq!(choose(&windows, 0..1000, 64), choose(&windows, (0..1000).rev(), 64));
    }

    #[test]
    fn traces_outside_every_window_are_never_chosen() {
        let windows = windows(&[10]);
        assert_eq!(choose(&windows, 10..50, 5).traces(), []);
        assert_eq!(choose(&windows, 0..50, 100).traces().len(), 10);
        assert_eq!(choose(&windows, 0..50, 0).traces(), []);
    }

    #[test]
    fn failed_traces_are_looked_at_more_often_and_stand_for_less() {
        let windows = windows(&[20_000]);
        let mut choice = Choice::new(windows.iter(), 1_000);
        let has_failed = |start: i64| if start % 200 == 0 { HasFailed::Yes } else { HasFailed::No };
        (0..20_000).for_each(|start| choice.see((start as u128).to_be_bytes(), start, 1.0, has_failed(start)));
        let selection = choice.chosen();
        let weighed = || selection.traces().iter().zip(selection.stand_for());
        let failed: Vec<f64> = weighed()
            .filter(|(trace, _)| trace.has_failed == HasFailed::Yes)
            .map(|(_, stands_for)| stands_for)
            .collect();
        assert!((30..70).contains(&failed.len()), "about half of the hundred that failed: {}", failed.len());
        let of_failed: f64 = failed.iter().sum();
        assert!((of_failed / 100.0 - 1.0).abs() < 0.3, "{of_failed}");
        let all: f64 = weighed().map(|(_, stands_for)| stands_for).sum();
        assert!((all - 20_000.0).abs() < 1e-6, "{all}");
    }

    #[test]
    fn a_trace_that_stands_for_others_is_taken_as_often_as_they_would_be() {
        let windows = windows(&[4_000]);
        // Half of them are rare and were kept whole, the others stand for four each.
        let weight = |start: i64| if start % 2 == 0 { 1.0 } else { 4.0 };
        let selection = choose_weighed(&windows, 0..4_000, 1_000, weight);
        let is_rare = |trace: &&ChosenTrace| trace.weight == 1.0;
        let rare = selection.traces().iter().filter(is_rare).count();
        assert!((160..240).contains(&rare), "a fifth of what was sent: {rare}");
        let weighed = selection.traces().iter().zip(selection.stand_for());
        let of_rare: f64 =
            weighed.clone().filter(|(trace, _)| is_rare(trace)).map(|(trace, ratio)| trace.weight * ratio).sum();
        assert!((of_rare / 2_000.0 - 1.0).abs() < 0.2, "{of_rare}");
        let all: f64 = weighed.map(|(trace, ratio)| trace.weight * ratio).sum();
        assert!((all - 10_000.0).abs() < 1e-6, "{all}");
        let few = choose_weighed(&windows, 0..10, 1_000, weight);
        assert!(few.stand_for().iter().all(|ratio| *ratio == 1.0), "all of them are there");
    }
}
