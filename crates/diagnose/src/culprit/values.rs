//! Sums over requests, from which means and their standard errors follow.
//!
//! Requests near each other in time resemble each other: in a burst all are slow, and a cache or a neighbour changes all
//! that follow. So a standard error is also estimated from the means of 20 blocks of time, and the larger estimate counts
//! (batch means: A. Law, *Simulation Modeling and Analysis*, section 9.5). Where blocks that follow each other are alike
//! too, as in a drift, they count as fewer: as many as a series of this correlation has independent values.

/// Blocks of time of one side.
pub(super) const BLOCKS: usize = 20;
/// Correlation of neighbouring blocks from which it is more than chance.
const CORRELATION_MIN: f64 = 0.45;
/// Largest correlation that is taken into account.
const CORRELATION_MAX: f64 = 0.9;

/// A request in a sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Number of requests that it stands for.
    pub(super) weight: f64,
    /// The block of time in which it begins, below [`BLOCKS`].
    pub(super) block: usize,
}

/// Values with weights, added up.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    pub(super) weight: f64,
    squared_weights: f64,
    sum: f64,
    squares: f64,
    blocks: [Block; BLOCKS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    weight: f64,
    sum: f64,
}

impl Values {
    pub(super) fn add(&mut self, value: f64, sample: Sample) {
        let Sample { weight, block } = sample;
        self.weight += weight;
        self.squared_weights += weight * weight;
        self.sum += weight * value;
        self.squares += weight * value * value;
        self.blocks[block].weight += weight;
        self.blocks[block].sum += weight * value;
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        self.weight += other.weight;
        self.squared_weights += other.squared_weights;
        self.sum += other.sum;
        self.squares += other.squares;
        for (block, other) in self.blocks.iter_mut().zip(&other.blocks) {
            block.weight += other.weight;
            block.sum += other.sum;
        }
    }

    /// As many values as would be as certain if all had the same weight.
    pub(super) fn count(&self) -> f64 {
        if self.squared_weights > 0.0 { self.weight * self.weight / self.squared_weights } else { 0.0 }
    }

    /// The mean, and the square of its standard error.
    pub(super) fn mean(&self) -> (f64, f64) {
        self.mean_over(self)
    }

    /// The variance of single values.
    pub(super) fn variance(&self) -> f64 {
        let mean = self.sum / self.weight;
        let count = self.count();
        (self.squares / self.weight - mean * mean).max(0.0) * count / (count - 1.0).max(1.0)
    }

    /// Part of the squared standard error of the mean that values near each other in time add by being alike.
    pub(super) fn squared_error_of_time(&self) -> f64 {
        let independent = self.variance() / self.count().max(1.0);
        (self.squared_error_of_blocks(self, self.sum / self.weight) - independent).max(0.0)
    }

    /// The mean over these requests, to which requests without a value count 0, and the square of its standard error.
    pub(super) fn mean_over(&self, requests: &Values) -> (f64, f64) {
        let mean = self.sum / requests.weight;
        let variance = (self.squares / requests.weight - mean * mean).max(0.0);
        let squared_error = variance / (requests.count() - 1.0).max(1.0);
        (mean, squared_error.max(self.squared_error_of_blocks(requests, mean)))
    }

    fn squared_error_of_blocks(&self, requests: &Values, mean: f64) -> f64 {
        let (mut squares, mut products, mut count, mut last) = (0.0, 0.0, 0.0, 0.0);
        for (own, all) in self.blocks.iter().zip(&requests.blocks).filter(|(_, all)| all.weight > 0.0) {
            let residual = own.sum - mean * all.weight;
            squares += residual * residual;
            products += residual * last;
            count += 1.0;
            last = residual;
        }
        if count <= 1.0 || squares <= 0.0 {
            return 0.0;
        }
        let measured = products / squares;
        // Residuals from their own mean seem less alike than they are (M. Kendall, Biometrika 41, 1954).
        let correlation = (measured + (1.0 + 4.0 * measured) / count).min(CORRELATION_MAX);
        let alike = if correlation >= CORRELATION_MIN { (1.0 + correlation) / (1.0 - correlation) } else { 1.0 };
        alike * squares / (requests.weight * requests.weight) * count / (count - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hundred requests, of which those of some blocks take 3 and all others 1.
    fn values(is_slow: impl Fn(usize) -> bool) -> Values {
        let mut values = Values::default();
        for number in 0..200 {
            let value = if is_slow(number) { 3.0 } else { 1.0 };
            values.add(value, Sample { weight: 1.0, block: number / 10 });
        }
        values
    }

    #[test]
    fn a_burst_is_one_observation_and_scattered_values_are_many() {
        let scattered = values(|number| number % 8 == 0);
        let burst = values(|number| (50..75).contains(&number));
        let errors = [&scattered, &burst].map(|values| values.mean().1.sqrt());
        assert!((0.04..0.06).contains(&errors[0]) && (0.3..0.5).contains(&errors[1]), "{errors:?}");
        let of_time = [&scattered, &burst].map(|values| values.squared_error_of_time().sqrt());
        assert!(of_time[0] < 0.01 && of_time[1] > 0.3, "{of_time:?}");
    }
}
