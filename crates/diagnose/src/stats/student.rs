//! Points of Student's t for any level and any degrees of freedom.
//!
//! `student_t_975` is enough for one interval of 95 %. Where an error is divided among several tests, levels are smaller
//! and the table ends. The tail is the regularised incomplete beta function, by its continued fraction (Press et al.,
//! *Numerical Recipes*, sections 6.1 and 6.4); its inverse is found by bisection.

/// Steps of a continued fraction, and of a bisection, at most.
const STEPS_MAX: usize = 200;
/// Relative precision of a point.
const PRECISION: f64 = 1e-9;
/// The largest point that is looked for.
const POINT_MAX: f64 = 1e12;

/// The point beyond which, in both directions together, `level` of Student's t lies. `level` is between 0 and 1.
pub(crate) fn two_sided(degrees_of_freedom: f64, level: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, POINT_MAX);
    for _ in 0..STEPS_MAX {
        if high - low <= PRECISION * high {
            break;
        }
        // By the geometric mean where that is known: points span many orders of magnitude.
        let middle = if low > 1.0 { (low * high).sqrt() } else { low + (high - low).min(2.0) / 2.0 };
        if tails(middle, degrees_of_freedom) > level { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The probability of a value as far from 0 as `t`, in either direction.
pub(crate) fn tails(t: f64, degrees_of_freedom: f64) -> f64 {
    let df = degrees_of_freedom.max(1.0);
    incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
}

/// I_x(a, b), from 0 to 1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, 1.0 - x) / b
    }
}

/// By Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let bounded = |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / bounded(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..STEPS_MAX {
        let m = step as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / bounded(1.0 + term * d);
            c = bounded(1.0 + term / c);
            fraction *= d * c;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function of a number above 0, by Lanczos's approximation.
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let shifted = x + 5.5;
    let series: f64 = (1..).zip(COEFFICIENTS).map(|(n, one)| one / (x + f64::from(n))).sum::<f64>();
    (x + 0.5) * shifted.ln() - shifted + (2.506_628_274_631_000_5 * (1.000_000_000_190_015 + series) / x).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_agree_with_the_tables() {
        for (df, level, expected) in [
            (1.0, 0.05, 12.706),
            (2.0, 0.05, 4.303),
            (9.0, 0.05, 2.262),
            (9.0, 0.01, 3.250),
            (4.0, 0.001, 8.610),
            (30.0, 0.02, 2.457),
            (1.0, 0.001, 636.62),
            (1e6, 0.05, 1.960),
        ] {
            let point = two_sided(df, level);
            assert!((point / expected - 1.0).abs() < 0.002, "df {df}, level {level}: {point}");
        }
    }

    #[test]
    fn the_tail_of_a_point_is_its_level() {
        for df in [1.0, 1.7, 3.0, 12.0, 500.0] {
            for level in [0.5, 0.05, 1e-3, 1e-6] {
                let tail = tails(two_sided(df, level), df);
                assert!((tail / level - 1.0).abs() < 1e-6, "df {df}, level {level}: {tail}");
            }
        }
    }
}
