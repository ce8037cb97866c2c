//! How full a trial's share of the file is, and what that means for traces that begin.
//!
//! Traces are stored whole first and thinned out later (`passes.rs`), once half of the share is taken. This is the last
//! resort, for when that does not free enough: from three quarters of the share on, not every trace that begins is kept.
//! The decision is made by the trace's id alone, so that all spans of a trace meet the same fate, whichever service sends
//! them and in whichever order they come: 1 of 4 traces, 1 of 16 once half of what was left then is taken, and so on. A
//! trace that is kept weighs as many times more as it stands for, so sums of weights stay what they would have been. Once
//! there is room again, traces are stored whole again.

/// Steps, each with 4 times fewer traces; the last keeps about one in a million, until nothing is left.
const STEPS: u32 = 10;
/// The fewest traces that are ever kept: 1 of so many.
pub(super) const ONE_IN_MAX: u32 = 1 << (2 * STEPS);

/// How the spans of a trial are thinned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thinning {
    one_in: u32,
    /// Bytes of the file when the trial was taken up, and those that it may add.
    bytes_before: u64,
    share: u64,
    taken: u64,
}

impl Thinning {
    /// A trial that may add `share` bytes to a file of `bytes_before`, and keeps 1 of `one_in` traces so far.
    pub(super) fn new(one_in: u32, bytes_before: u64, share: u64) -> Self {
        Self { one_in: one_in.clamp(1, ONE_IN_MAX).next_power_of_two(), bytes_before, share, taken: 0 }
    }

    /// 1 of so many traces that begin now is kept.
    pub(super) fn one_in(&self) -> u32 {
        self.one_in
    }

    /// Whether stored traces are to be thinned out.
    pub(super) fn wants_room(&self) -> bool {
        self.taken > 0 && self.taken >= self.share / 2
    }

    /// Whether there is so much room that stored traces will not be thinned out soon.
    pub(super) fn has_much_room(&self) -> bool {
        self.taken < self.share / 4
    }

    /// Whether nothing more may be kept.
    pub(super) fn is_full(&self) -> bool {
        self.taken >= self.share && self.one_in == ONE_IN_MAX
    }

    /// Takes note of the size of the file.
    pub(super) fn look(&mut self, bytes: u64) {
        self.taken = bytes.saturating_sub(self.bytes_before);
        if self.taken < self.share / 2 + self.share / 8 {
            self.one_in = 1;
        }
        while self.one_in < ONE_IN_MAX && self.taken >= self.until_next_step() {
            self.one_in *= 4;
        }
    }

    /// Of the share, 3/4 at first, then 7/8, 15/16 and so on.
    fn until_next_step(&self) -> u64 {
        let step = self.one_in.trailing_zeros() / 2;
        self.share - (self.share >> (step + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_takes_half_of_what_is_left() {
        let mut thinning = Thinning::new(1, 1_000, 1 << 20);
        let steps = [
            (0, 1, false),
            ((1 << 19) - 1, 1, false),
            (1 << 19, 1, true),
            ((3 << 18) - 1, 1, true),
            (3 << 18, 4, true),
            (7 << 17, 16, true),
            (15 << 16, 64, true),
            (5 << 17, 64, true),
            ((5 << 17) - 1, 1, true),
            (3 << 18, 4, true),
        ];
        for (taken, one_in, wants_room) in steps {
            thinning.look(1_000 + taken);
            assert_eq!((thinning.one_in(), thinning.wants_room()), (one_in, wants_room), "{taken}");
            assert!(!thinning.is_full());
        }
        thinning.look(1_000 + (1 << 20));
        assert_eq!((thinning.one_in(), thinning.is_full()), (ONE_IN_MAX, true));
    }
}
