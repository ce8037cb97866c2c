//! Means of something that varies from second to second, with intervals that know about noise.
//!
//! Seconds of one trial are not independent: queues and caches carry over. So the counted seconds are cut into about
//! ten blocks and the blocks' means are compared (the method of batch means, Law, *Simulation Modeling and Analysis*),
//! on a logarithmic scale, with Welch's interval; what correlation r is left between neighbouring blocks widens it: n
//! blocks then say as much as n (1 − r) ÷ (1 + r) independent ones. Blocks are compared within a window with the same
//! window of the other variant, so that a load that rises in steps does not count as noise. A ramp counts as four
//! windows.

use std::collections::BTreeMap;

use narrows_model::comparison::{Change, Meaning};
use narrows_model::evidence::TrialEvidence;
use narrows_model::operation::{OperationEvidence, OperationSecond};

use crate::read::intervals::bounds_of;
use crate::stats::{autocorrelation, mean_and_variance, student_t_975};

const BLOCKS: usize = 10;
/// Shorter pieces of a second often have no response.
const PIECE_SECONDS_MIN: f64 = 0.5;
/// Blocks of a window at least, so that each has a variance.
const BLOCKS_PER_STRATUM_MIN: usize = 2;
/// Correlation beyond this is not believed from ten blocks.
pub(crate) const CORRELATION_MAX: f64 = 0.6;

/// Two values are called the same only when their whole interval lies within this factor.
const SAME_FACTOR_MAX: f64 = 1.25;

/// `half_width` is that of the 95 % interval of the logarithm of new ÷ old, `least` the smallest change that is one.
pub(crate) fn change(old: f64, new: f64, half_width: f64, floor: f64, least: f64) -> Option<Change> {
    if old <= 0.0 || new <= 0.0 {
        return None;
    }
    let logarithm = (new / old).ln();
    let half_width = half_width.max(floor.ln_1p());
    let (low, high) = ((logarithm - half_width).exp_m1(), (logarithm + half_width).exp_m1());
    let ratio = logarithm.exp_m1();
    let is_large = ratio.abs() > least.max(floor);
    let meaning = match (low, high) {
        (low, _) if is_large && low > 0.0 => Meaning::Higher,
        (_, high) if is_large && high < 0.0 => Meaning::Lower,
        (low, high) if low.ln_1p() < -SAME_FACTOR_MAX.ln() || high.ln_1p() > SAME_FACTOR_MAX.ln() => Meaning::Unclear,
        _ => Meaning::Same,
    };
    Some(Change { ratio, low, high, meaning })
}

/// Figures of some seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Block {
    pub(crate) seconds: f64,
    pub(crate) succeeded: f64,
    pub(crate) latency_sum_ns: f64,
}

impl Block {
    fn add(&mut self, other: Block) {
        self.seconds += other.seconds;
        self.succeeded += other.succeeded;
        self.latency_sum_ns += other.latency_sum_ns;
    }
}

/// Compared quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Quantity {
    Rate,
    Latency,
}

impl Quantity {
    /// The logarithm of a block's mean; `None` for a latency of 0 or a rate over no time.
    fn log_of(self, block: &Block) -> Option<f64> {
        match self {
            // A block without a response counts as half a response: its logarithm must be some number.
            Quantity::Rate => (block.seconds > 0.0).then(|| (block.succeeded.max(0.5) / block.seconds).ln()),
            Quantity::Latency if block.succeeded > 0.0 => Some((block.latency_sum_ns / block.succeeded).max(1.0).ln()),
            Quantity::Latency => None,
        }
    }

    /// Weight of a stratum's change in the change of the whole: its share of what is averaged.
    fn amount_of(self, block: &Block) -> f64 {
        match self {
            Quantity::Rate => block.succeeded.max(0.5),
            Quantity::Latency => block.latency_sum_ns,
        }
    }
}

/// The blocks of one interval of load, one row per repetition.
pub(crate) type Stratum = Vec<Vec<Block>>;

/// The seconds of something that a trial did, each with its first instant.
pub(crate) type Seconds = BTreeMap<i64, Block>;

/// The load of a trial, one block per second, scenarios together.
pub(crate) fn load_blocks(trial: &TrialEvidence) -> Seconds {
    let mut seconds = Seconds::new();
    for row in &trial.seconds {
        let second = seconds.entry(row.start_ns).or_default();
        second.seconds = second.seconds.max(row.length_ns as f64 / 1e9);
        second.succeeded += row.succeeded as f64;
        second.latency_sum_ns += row.latency.sum_ns() as f64;
    }
    seconds
}

/// One operation of a trial, one block per second in which it completed.
pub(crate) fn operation_blocks(operation: &OperationEvidence) -> Seconds {
    let block = |second: &OperationSecond| Block {
        seconds: 1.0,
        succeeded: second.completed,
        latency_sum_ns: second.duration_sum_ns,
    };
    operation.seconds.iter().map(|second| (second.start_ns, block(second))).collect()
}

/// The strata of a variant; one stratum for all when its repetitions do not have the same windows.
pub(crate) fn strata<'a>(trials: impl Iterator<Item = (&'a TrialEvidence, Seconds)>) -> Vec<Stratum> {
    let cut: Vec<Vec<Vec<Block>>> = trials.map(|(trial, seconds)| cut_by_window(trial, &seconds)).collect();
    let count = cut.first().map_or(0, Vec::len);
    if cut.iter().any(|strata| strata.len() != count) {
        return whole(&cut);
    }
    (0..count).map(|at| cut.iter().map(|strata| strata[at].clone()).collect()).collect()
}

/// All strata of each repetition joined.
fn whole(cut: &[Vec<Vec<Block>>]) -> Vec<Stratum> {
    vec![cut.iter().map(|strata| strata.concat()).collect()]
}

/// A second belongs to the window that contains its middle. Responses after the load count in no rate and in no mean
/// here.
fn cut_by_window(trial: &TrialEvidence, seconds: &Seconds) -> Vec<Vec<Block>> {
    let intervals: Vec<(i64, i64)> = trial.counted_windows().flat_map(bounds_of).collect();
    let blocks = (BLOCKS / intervals.len().max(1)).max(BLOCKS_PER_STRATUM_MIN);
    let between = |start_ns: i64, end_ns: i64| -> Vec<Block> {
        let middle_ns = |start_ns: i64, block: &Block| start_ns.saturating_add((block.seconds * 5e8) as i64);
        let is_in = |(at, block): &(&i64, &Block)| (start_ns..end_ns).contains(&middle_ns(**at, block));
        without_short_pieces(seconds.iter().filter(is_in).map(|(_, block)| *block))
    };
    intervals
        .into_iter()
        .map(|(start_ns, end_ns)| blocks_of(&between(start_ns, end_ns.max(start_ns)), blocks))
        .filter(|blocks| !blocks.is_empty())
        .collect()
}

/// The pieces of an interval, each long enough to be compared: a shorter one, at a window's edge, is part of its neighbour.
fn without_short_pieces(pieces: impl Iterator<Item = Block>) -> Vec<Block> {
    let mut joined: Vec<Block> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if last.seconds < PIECE_SECONDS_MIN || piece.seconds < PIECE_SECONDS_MIN => last.add(piece),
            _ => joined.push(piece),
        }
    }
    joined
}

/// `count` blocks as equal as they can be, fewer when there are fewer seconds.
fn blocks_of(seconds: &[Block], count: usize) -> Vec<Block> {
    let count = count.min(seconds.len());
    let at = |i: usize| seconds.len() * i / count;
    let joined = |seconds: &[Block]| {
        seconds.iter().fold(Block::default(), |mut sum, second| {
            sum.add(*second);
            sum
        })
    };
    (0..count).map(|i| joined(&seconds[at(i)..at(i + 1)])).collect()
}

/// The half-width of the 95 % interval of the logarithm of new ÷ old; `None` if there are too few blocks for one.
pub(crate) fn half_width(old: &[Stratum], new: &[Stratum], quantity: Quantity) -> Option<f64> {
    let joined = |strata: &[Stratum]| vec![strata.iter().flatten().cloned().collect::<Stratum>()];
    let by_window = if old.len() == new.len() { stratified(old, new, quantity) } else { None };
    by_window.or_else(|| stratified(&joined(old), &joined(new), quantity))
}

/// Welch's interval of a sum of weighted strata, degrees of freedom after Satterthwaite.
fn stratified(old: &[Stratum], new: &[Stratum], quantity: Quantity) -> Option<f64> {
    let amount = |stratum: &Stratum| stratum.iter().flatten().map(|block| quantity.amount_of(block)).sum::<f64>();
    let share = |strata: &[Stratum], at: usize| amount(&strata[at]) / strata.iter().map(amount).sum::<f64>();
    let (mut variance, mut squares) = (0.0, 0.0);
    for at in 0..old.len() {
        for strata in [old, new] {
            let (error, degrees) = squared_error(&strata[at], quantity)?;
            let part = share(strata, at).powi(2) * error;
            variance += part;
            squares += part.powi(2) / degrees;
        }
    }
    let degrees = if squares > 0.0 { variance.powi(2) / squares } else { f64::MAX };
    (!old.is_empty() && variance.is_finite()).then(|| student_t_975(degrees) * variance.sqrt())
}

/// The squared standard error of a stratum's mean logarithm and its degrees of freedom; none with fewer than two
/// blocks. Correlation leaves fewer independent blocks: n (1 − r) ÷ (1 + r) of n.
fn squared_error(stratum: &Stratum, quantity: Quantity) -> Option<(f64, f64)> {
    let rows = stratum.iter().map(|row| row.iter().filter_map(|block| quantity.log_of(block)).collect::<Vec<f64>>());
    let rows: Vec<Vec<f64>> = rows.collect();
    let all = rows.concat();
    let (_, variance) = mean_and_variance(&all).filter(|_| all.len() > 1)?;
    let correlations: Vec<f64> = rows.iter().map(|row| correlation(row)).collect();
    let correlation = mean_and_variance(&correlations)?.0.clamp(0.0, CORRELATION_MAX);
    let independent = all.len() as f64 * (1.0 - correlation) / (1.0 + correlation);
    Some((variance / independent, all.len() as f64 - 1.0))
}

/// The correlation of neighbouring blocks. Few values make it look smaller by (1 + 4r) ÷ n (Kendall 1954, Marriott and
/// Pope 1954), which is put back; from four or fewer it is not known and counts as none.
pub(crate) fn correlation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() > 4 { (n * autocorrelation(values) + 1.0) / (n - 4.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_pieces_at_the_edges_of_a_window_are_part_of_their_neighbours() {
        for (pieces, expected) in [
            (&[0.2, 1.0, 1.0][..], &[1.2, 1.0][..]),
            (&[0.8, 1.0, 0.4], &[0.8, 1.4]),
            (&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0]),
            (&[0.1, 0.2], &[0.1 + 0.2]),
            (&[], &[]),
        ] {
            let pieces = pieces.iter().map(|seconds| Block { seconds: *seconds, ..Block::default() });
            let lengths: Vec<f64> = without_short_pieces(pieces).iter().map(|block| block.seconds).collect();
            assert_eq!(lengths, expected);
        }
    }
}
