//! Which traces are kept once a trial has filled half of its share of the file.
//!
//! The decision is made by the trace's id alone, so that all spans of a trace meet the same fate, whichever service
//! sends them and in whichever order they come: 1 of 4 traces once half of the share is taken, 1 of 16 once half of
//! what was left then is taken, and so on. A trace that is kept weighs as many times more as it stands for. So sums of
//! weights stay what they would have been, and each step lasts longer than all before it.
//!
//! Slow and failed traces are not preferred. Whether a trace is one is known when its root ends, after most of its spans
//! came; keeping what is left of it would show half a trace and count calls without the operation that made them. What is
//! not kept is counted exactly, by service, name, kind and status, failures included (`tally.rs`).

use narrows_model::trace::TraceId;

use crate::run_file::trace_choice::hash;

/// Steps, each with 4 times fewer traces; the last keeps about one in a million, until nothing is left.
const STEPS: u32 = 10;

/// How the spans of a trial are thinned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thinning {
    one_in: u32,
    /// Bytes of the file when the trial was taken up, and those that it may add.
    bytes_before: u64,
    share: u64,
    is_full: bool,
}

impl Thinning {
    /// A trial that may add `share` bytes to a file of `bytes_before`, and keeps 1 of `one_in` traces so far.
    pub(super) fn new(one_in: u32, bytes_before: u64, share: u64) -> Self {
        let one_in = one_in.clamp(1, 1 << (2 * STEPS));
        Self { one_in: one_in.next_power_of_two(), bytes_before, share, is_full: false }
    }

    /// 1 of so many traces that begin now is kept.
    pub(super) fn one_in(&self) -> u32 {
        self.one_in
    }

    /// Whether nothing more may be kept.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether a trace that begins now is kept.
    pub(super) fn keeps(&self, trace: &TraceId) -> bool {
        // The low bits: the choice of traces to read goes by the whole hash, which the high bits decide.
        hash(trace) & u64::from(self.one_in - 1) == 0
    }

    /// Takes note of the size of the file.
    pub(super) fn look(&mut self, bytes: u64) {
        let taken = bytes.saturating_sub(self.bytes_before);
        while self.one_in < 1 << (2 * STEPS) && taken >= self.until_next_step() {
            self.one_in *= 4;
        }
        self.is_full = taken >= self.share;
    }

    /// Of the share, 1/2 at first, then 3/4, 7/8 and so on.
    fn until_next_step(&self) -> u64 {
        let step = self.one_in.trailing_zeros() / 2;
        self.share - (self.share >> (step + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_takes_half_of_what_is_left() {
        let mut thinning = Thinning::new(1, 1_000, 1 << 20);
        let steps = [(0, 1), ((1 << 19) - 1, 1), (1 << 19, 4), (3 << 18, 16), (7 << 17, 64), (15 << 16, 256)];
        for (taken, one_in) in steps {
            thinning.look(1_000 + taken);
            assert_eq!((thinning.one_in(), thinning.is_full()), (one_in, false), "{taken}");
        }
        thinning.look(0);
        assert_eq!(thinning.one_in(), 256, "what was decided stays");
        thinning.look(1_000 + (1 << 20));
        assert_eq!((thinning.one_in(), thinning.is_full()), (1 << 20, true));
    }

    #[test]
    fn a_trace_that_is_kept_late_was_kept_before() {
        let kept = |one_in: u32| {
            let thinning = Thinning::new(one_in, 0, 1);
            (0..100_000_u128).filter(move |id| thinning.keeps(&id.to_be_bytes())).collect::<Vec<_>>()
        };
        assert_eq!(kept(1).len(), 100_000);
        let (four, sixteen) = (kept(4), kept(16));
        assert!((24_500..25_500).contains(&four.len()), "{}", four.len());
        assert!((6_000..6_500).contains(&sixteen.len()), "{}", sixteen.len());
        assert!(sixteen.iter().all(|id| four.contains(id)));
    }
}
