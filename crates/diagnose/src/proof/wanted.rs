//! How many trials of each variant would be enough to tell.
//!
//! Enough is what shows a difference as large as the margin in 19 of 20 comparisons, if the noise stays as it was. The
//! noise of few trials is itself uncertain, so its upper bound is taken that is right four times in five: a number that
//! is too large costs little, because a comparison ends as soon as it is clear.

use narrows_model::proof::REPEATS_MAX;

use super::Sample;
use crate::stats::student_t_975;

/// The point of the normal distribution that 95 % lie below.
const POWER: f64 = 1.645;
/// How much larger the bound of the last of several looks is than that of a single one, at most; see `looks.rs`.
const LOOKS: f64 = 1.2;
/// The point of the normal distribution that 20 % lie below.
const NOISE: f64 = -0.841_6;

/// `None` if more than [`REPEATS_MAX`] would be needed.
pub(super) fn repeats(sample: &Sample, margin: f64) -> Option<u32> {
    let deviation = sample.error * f64::from(sample.trials).sqrt() * underestimated(sample.degrees);
    let is_enough = |trials: u32| {
        let bound = LOOKS * student_t_975(f64::from(trials) - 1.0) + POWER;
        bound * deviation / f64::from(trials).sqrt() <= margin.ln_1p()
    };
    // The width falls with the number of trials, so the first that is enough can be found by halving.
    let (mut few, mut many) = (sample.trials.max(2), REPEATS_MAX);
    if !is_enough(many) {
        return None;
    }
    while many - few > 1 {
        let middle = u32::midpoint(few, many);
        if is_enough(middle) { many = middle } else { few = middle }
    }
    Some(round(many).min(REPEATS_MAX))
}

/// A round number, not below.
fn round(trials: u32) -> u32 {
    let step = match trials {
        0..=10 => 1,
        11..=100 => 5,
        _ => 50,
    };
    trials.next_multiple_of(step)
}

/// By what factor a standard deviation of so many degrees of freedom may be too small, four times in five at most: from
/// the chi-squared distribution by Wilson and Hilferty's approximation.
fn underestimated(degrees: f64) -> f64 {
    let part = 2.0 / (9.0 * degrees.max(1.0));
    (1.0 - part + NOISE * part.sqrt()).powf(-1.5)
}

#[cfg(test)]
mod tests {
    use narrows_model::proof::Quantity;

    use super::*;

    fn wanted(deviation: f64, trials: u32, margin: f64) -> Option<u32> {
        let error = deviation / f64::from(trials).sqrt();
        let degrees = f64::from(trials) - 1.0;
        repeats(&Sample { quantity: Quantity::Mean, sides: (1.0, 1.0), logarithm: 0.0, error, degrees, trials }, margin)
    }

    #[test]
    fn more_noise_and_smaller_margins_need_more_trials() {
        let at = |deviation, margin| wanted(deviation, 5, margin).unwrap();
        assert!(at(0.02, 0.05) < at(0.04, 0.05) && at(0.04, 0.05) < at(0.04, 0.02), "{}", at(0.04, 0.05));
        assert!((5..12).contains(&at(0.02, 0.05)), "{}", at(0.02, 0.05));
        assert_eq!(wanted(0.5, 5, 0.01), None);
        assert_eq!(wanted(0.0, 5, 0.05), Some(6), "at least one more than there were");
    }

    #[test]
    fn noise_of_few_trials_is_trusted_less() {
        assert!(wanted(0.04, 3, 0.05) > wanted(0.04, 20, 0.05));
        assert!((underestimated(4.0) - 1.56).abs() < 0.03 && underestimated(1e6) < 1.001);
    }
}
