//! Which traces stand for a trial when not all of them can be read.
//!
//! Every counted window gets the same number of places, since each is a load level of its own and a short or slow one
//! must not vanish beside a busy one; places that a window cannot fill go to the others. Within a window the traces with
//! the smallest hash of their id are taken: the same ones on every reading, and no matter when or in which order they
//! came. A trace that is read stands for its share of its window.

use std::collections::{BTreeMap, BinaryHeap};

use narrows_model::run::Window;
use narrows_model::trace::TraceId;

/// A trace that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) id: TraceId,
    /// The position of its window among the counted ones.
    pub(super) window: usize,
    /// All traces of that window.
    pub(super) window_traces: u64,
}

/// For each of these traces, in order, how many traces it stands for: those of its window ÷ those that are here.
pub(super) fn stand_for(chosen: &[Chosen]) -> Vec<f64> {
    let here = |window: usize| chosen.iter().filter(|trace| trace.window == window).count();
    let mut ratios: BTreeMap<usize, f64> = BTreeMap::new();
    let ratio = |trace: &Chosen| {
        *ratios.entry(trace.window).or_insert_with(|| trace.window_traces as f64 / here(trace.window) as f64)
    };
    chosen.iter().map(ratio).collect()
}

/// Looks at the traces of a trial one by one and remembers, for each window, those that could be chosen.
pub(super) struct Choice<'a> {
    windows: Vec<(&'a Window, Candidates)>,
    places: usize,
}

#[derive(Default)]
struct Candidates {
    /// The largest hash is on top and the first to go.
    smallest: BinaryHeap<(u64, TraceId)>,
    seen: u64,
}

impl<'a> Choice<'a> {
    /// Chooses at most `places` traces over all windows.
    pub(super) fn new(windows: impl Iterator<Item = &'a Window>, places: usize) -> Self {
        Self { windows: windows.map(|window| (window, Candidates::default())).collect(), places }
    }

    /// Looks at a trace that began at `start_ns`.
    pub(super) fn see(&mut self, id: TraceId, start_ns: i64) {
        let places = self.places;
        let holds = |window: &Window| (window.start_ns..window.end_ns).contains(&start_ns);
        if let Some((_, candidates)) = self.windows.iter_mut().find(|(window, _)| holds(window)) {
            candidates.seen += 1;
            candidates.smallest.push((hash(&id), id));
            if candidates.smallest.len() > places {
                candidates.smallest.pop();
            }
        }
    }

    /// The chosen traces, the windows by turns: any first part of them is as even as the whole.
    pub(super) fn chosen(self) -> Vec<Chosen> {
        let windows: Vec<(u64, Vec<TraceId>)> =
            self.windows.into_iter().map(|(_, candidates)| (candidates.seen, in_order(candidates.smallest))).collect();
        let longest = windows.iter().map(|(_, ids)| ids.len()).max().unwrap_or(0);
        let turns = (0..longest).flat_map(|turn| {
            let of_turn = move |(window, (seen, ids)): (usize, &(u64, Vec<TraceId>))| {
                ids.get(turn).map(|id| Chosen { id: *id, window, window_traces: *seen })
            };
            windows.iter().enumerate().filter_map(of_turn)
        });
        turns.take(self.places).collect()
    }
}

fn in_order(heap: BinaryHeap<(u64, TraceId)>) -> Vec<TraceId> {
    heap.into_sorted_vec().into_iter().map(|(_, id)| id).collect()
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
            let window =
                Window { index: index as u32, kind, label: String::new(), start_ns, end_ns, vus: 1, rate: None };
            start_ns = end_ns;
            window
        };
        lengths.iter().enumerate().map(&mut window).collect()
    }

    fn choose(windows: &[Window], starts: impl Iterator<Item = i64>, places: usize) -> Vec<Chosen> {
        let mut choice = Choice::new(windows.iter(), places);
        starts.for_each(|start| choice.see((start as u128).to_be_bytes(), start));
        choice.chosen()
    }

    #[test]
    fn windows_share_the_places_and_weights_add_up_to_all_traces() {
        // Windows with 10, 990 and 100 traces; places for 90.
        let windows = windows(&[10, 990, 100]);
        let chosen = choose(&windows, 0..1100, 90);
        assert_eq!(chosen.len(), 90);
        let of = |range: std::ops::Range<u128>| {
            chosen.iter().filter(|chosen| range.contains(&u128::from_be_bytes(chosen.id))).count()
        };
        assert_eq!((of(0..10), of(10..1000), of(1000..1100)), (10, 40, 40));
        let stood_for: f64 = stand_for(&chosen).iter().sum();
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
        assert_eq!(choose(&windows, 10..50, 5), []);
        assert_eq!(choose(&windows, 0..50, 100).len(), 10);
        assert_eq!(choose(&windows, 0..50, 0), []);
    }
}
