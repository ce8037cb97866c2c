//! Scales: round ends, and the labels of places on them.

use jiff::Timestamp;
use narrows_model::units;

/// Unit of a column's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Just numbers; their unit is in the column's name, if anywhere.
    Number,
    /// Lengths of time, in nanoseconds.
    Duration,
    /// Instants, in nanoseconds since the Unix epoch.
    Instant,
}

/// From where to where an axis goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Scale {
    /// Zero and all values are on it, and its ends are round.
    pub(super) fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        let (low, high) = (-round_up(-low), round_up(high));
        if low == high { Self { low: 0.0, high: 1.0 } } else { Self { low, high } }
    }

    /// Exactly from the smallest value to the largest.
    pub(super) fn between(values: impl Iterator<Item = f64>) -> Self {
        let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        let (low, high) = ends.unwrap_or((0.0, 1.0));
        Self { low, high }
    }

    /// Position of a value: 0 at the low end, 1 at the high end; the middle if both ends are equal.
    pub(super) fn position(self, value: f64) -> f64 {
        if self.high > self.low { ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// The value at a share of the way.
    pub(super) fn at(self, share: f64) -> f64 {
        self.low + (self.high - self.low) * share
    }

    /// The label of a value on this scale.
    pub(super) fn label(self, value: f64, unit: Unit) -> String {
        match unit {
            Unit::Duration if value < 0.0 => format!("-{}", units::duration(-value)),
            Unit::Duration => units::duration(value),
            Unit::Number => number(value),
            Unit::Instant => self.instant(value),
        }
    }

    /// The clock, with the date where the scale is longer than a day, and fractions where it is short.
    fn instant(self, ns: f64) -> String {
        const SECOND_NS: f64 = 1e9;
        let instant = Timestamp::from_nanosecond(ns as i128).unwrap_or_default();
        let format = match (self.high - self.low) / SECOND_NS {
            seconds if seconds < 5.0 => "%H:%M:%S.%3f",
            seconds if seconds < 86_400.0 => "%H:%M:%S",
            seconds if seconds < 10.0 * 86_400.0 => "%Y-%m-%d %H:%M",
            _ => "%Y-%m-%d",
        };
        instant.strftime(format).to_string()
    }
}

/// A number that fits on an axis: `1,200`, `0.25`, `1.5e12`.
pub(super) fn number(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        size if size >= 1e9 || size > 0.0 && size < 0.005 => format!("{value:.2e}"),
        size if size >= 1000.0 => format!("{sign}{}", units::count(size.round() as u64)),
        size if size.fract() == 0.0 => format!("{sign}{size}"),
        size => format!("{sign}{}", units::three(size)),
    }
}

/// The least of 1, 2, 2.5, 4, 5, 8 × a power of ten that is not below; 0 for what is not above zero.
fn round_up(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 0.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let rounds = [1.0, 2.0, 2.5, 4.0, 5.0, 8.0].map(|m| m * power);
    rounds.into_iter().find(|round| *round >= value * 0.999_999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_round_and_zero_is_on_it() {
        for (values, low, high) in [
            (&[3.0, 41.0][..], 0.0, 50.0),
            (&[1071.0], 0.0, 2000.0),
            (&[-7.0, 0.3], -8.0, 0.4),
            (&[0.0], 0.0, 1.0),
            (&[], 0.0, 1.0),
            (&[100.0], 0.0, 100.0),
        ] {
            let scale = Scale::around(values.iter().copied());
            assert!((scale.low - low).abs() < 1e-9 && (scale.high - high).abs() < 1e-9, "{values:?}: {scale:?}");
        }
        assert_eq!(Scale::between([5.0].into_iter()).position(5.0), 0.5);
    }

    #[test]
    fn labels_fit_their_scale() {
        let scale = Scale { low: 0.0, high: 60e9 };
        assert_eq!(scale.label(20e6, Unit::Duration), "20.0 ms");
        assert_eq!(scale.label(1_592_513_940e9, Unit::Instant), "20:59:00");
        assert_eq!(Scale { high: 1e9, ..scale }.label(1_592_513_940e9, Unit::Instant), "20:59:00.000");
        assert_eq!(Scale { high: 90e15, ..scale }.label(1_592_513_940e9, Unit::Instant), "2020-06-18");
        let numbers = [0.0, 0.25, 7.0, 12.34, 1200.0, -1200.0, 2.5e12, 0.0001];
        assert_eq!(numbers.map(number), ["0", "0.25", "7", "12.3", "1,200", "-1,200", "2.50e12", "1.00e-4"]);
    }
}
