//! Axes: where the ticks are and their labels.
//!
//! Ticks stand at round numbers of the unit people think in: 1–2–5 steps, powers of two for memory, clock steps for
//! time. Linear axes begin at zero; an axis is logarithmic only where a linear one would press the lower lines flat.

/// Quantity of an axis, which decides how its ticks read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Time since the trial's load began, in seconds.
    Clock,
    /// A length of time, in nanoseconds.
    Duration,
    /// Memory, in bytes.
    Bytes,
    /// Things, or things each second.
    Count,
    /// Anything else.
    Number,
    /// Processors at work.
    Cores,
    /// Hundredths.
    Percent,
}

impl Unit {
    /// The name the page's script knows it by.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Unit::Clock => "clock",
            Unit::Duration => "duration",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Number => "number",
            Unit::Cores => "cores",
            Unit::Percent => "percent",
        }
    }
}

/// Scale of the values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    Log,
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) unit: Unit,
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<f64>,
}

/// Ticks wanted on a value axis.
const VALUE_TICKS: usize = 5;
/// Ticks wanted on a time axis.
const CLOCK_TICKS: usize = 7;
/// A range of more than this factor is drawn on a logarithmic axis.
const LOG_FROM: f64 = 25.0;
/// Steps of a clock, in seconds, up to a day.
const CLOCK_STEPS: [f64; 19] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 14_400.0,
    21_600.0, 43_200.0, 86_400.0,
];

impl Axis {
    /// From zero to a round number at or above `high`.
    pub(super) fn linear(high: f64, unit: Unit) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let step = step(high, unit, VALUE_TICKS);
        let steps = (high / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|n| n as f64 * step).collect();
        Self { unit, scale: Scale::Linear, low: 0.0, high: steps * step, ticks }
    }

    /// From zero to exactly `seconds`.
    pub(super) fn clock(seconds: f64) -> Self {
        let high = if seconds.is_finite() && seconds > 0.0 { seconds } else { 1.0 };
        let step = step(high, Unit::Clock, CLOCK_TICKS);
        let ticks = (0..=(high / step + 1e-9) as usize).map(|n| n as f64 * step).collect();
        Self { unit: Unit::Clock, scale: Scale::Linear, low: 0.0, high, ticks }
    }

    /// Logarithmic when `high` is many times `low`, linear from zero otherwise.
    pub(super) fn for_range(low: f64, high: f64, unit: Unit) -> Self {
        if !(low > 0.0 && high.is_finite() && high / low > LOG_FROM) {
            return Self::linear(high, unit);
        }
        let (low, high) = (round_down(low), round_up(high));
        let decades = (high / low).log10();
        let mantissas: &[f64] = if decades <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = (low.log10().floor() as i32..=high.log10().ceil() as i32)
            .flat_map(|power| mantissas.iter().map(move |m| m * 10f64.powi(power)))
            .filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001)
            .collect();
        Self { unit, scale: Scale::Log, low, high, ticks }
    }

    /// Position of a value: 0 at the low end, 1 at the high end, never outside.
    pub(super) fn position(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// The label of a tick.
    pub(super) fn label(&self, tick: f64) -> String {
        match self.unit {
            Unit::Clock => clock(tick, self.high),
            Unit::Duration => scaled(tick, &[("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]),
            Unit::Bytes => {
                let kib = 1024.0;
                scaled(
                    tick,
                    &[("B", 1.0), ("KiB", kib), ("MiB", kib.powi(2)), ("GiB", kib.powi(3)), ("TiB", kib.powi(4))],
                )
            }
            Unit::Count | Unit::Number if tick >= 1000.0 => narrows_model::units::count(tick.round() as u64),
            Unit::Count | Unit::Number | Unit::Cores => plain(tick),
            Unit::Percent => format!("{} %", plain(tick)),
        }
    }
}

/// The step that gives about `ticks` ticks up to `high`.
fn step(high: f64, unit: Unit, ticks: usize) -> f64 {
    let rough = high / ticks as f64;
    match unit {
        Unit::Clock => {
            let known = CLOCK_STEPS.into_iter().find(|step| *step >= rough);
            known.unwrap_or_else(|| (rough / 86_400.0).ceil() * 86_400.0)
        }
        Unit::Bytes => 2f64.powf(rough.max(1.0).log2().ceil()),
        Unit::Count => round_up(rough).max(1.0),
        Unit::Duration | Unit::Number | Unit::Cores | Unit::Percent => round_up(rough),
    }
}

/// The least of 1, 2, 5 × a power of ten that is not below.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|m| m * power).find(|round| *round >= value * 0.999_999).unwrap_or(10.0 * power)
}

/// The greatest of 1, 2, 5 × a power of ten that is not above.
fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0].into_iter().map(|m| m * power).find(|round| *round <= value * 1.000_001).unwrap_or(power)
}

fn clock(seconds: f64, high: f64) -> String {
    let whole = seconds.round() as u64;
    match high {
        h if h <= 120.0 => format!("{whole} s"),
        h if h <= 7200.0 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole / 60 % 60),
    }
}

fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let fitting = units.iter().rev().find(|(_, size)| value >= size * 0.999).or(units.first());
    fitting.map_or_else(String::new, |(name, size)| format!("{} {name}", plain(value / size)))
}

/// Without digits that mean nothing: `2`, `0.5`, `0.02`.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_at_round_numbers() {
        let mib = 1_048_576.0;
        let cases: [(Axis, &[&str]); 10] = [
            (Axis::linear(0.93, Unit::Cores), &["0", "0.2", "0.4", "0.6", "0.8", "1"]),
            (Axis::linear(1071.0, Unit::Count), &["0", "500", "1,000", "1,500"]),
            (Axis::linear(3.0, Unit::Count), &["0", "1", "2", "3"]),
            (Axis::linear(0.0, Unit::Count), &["0", "1"]),
            (Axis::linear(f64::NAN, Unit::Cores), &["0", "0.2", "0.4", "0.6", "0.8", "1"]),
            (Axis::linear(88e6, Unit::Duration), &["0", "20 ms", "40 ms", "60 ms", "80 ms", "100 ms"]),
            (Axis::linear(142.0 * mib, Unit::Bytes), &["0", "32 MiB", "64 MiB", "96 MiB", "128 MiB", "160 MiB"]),
            (Axis::clock(70.0), &["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "60 s", "70 s"]),
            (Axis::clock(480.0), &["0:00", "2:00", "4:00", "6:00", "8:00"]),
            (
                Axis::for_range(0.8e6, 45e6, Unit::Duration),
                &["500 µs", "1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms"],
            ),
        ];
        for (axis, expected) in cases {
            let labels: Vec<String> = axis.ticks.iter().map(|tick| axis.label(*tick)).collect();
            assert_eq!(labels, expected);
        }
    }

    #[test]
    fn the_range_chooses_the_scale() {
        assert_eq!(Axis::for_range(10e6, 90e6, Unit::Duration).scale, Scale::Linear);
        assert_eq!(Axis::for_range(0.0, 90e6, Unit::Duration).scale, Scale::Linear);
        let wide = Axis::for_range(1e5, 3e9, Unit::Duration);
        assert_eq!((wide.scale, wide.ticks.len()), (Scale::Log, 5));
        assert!((wide.position(1e5), wide.position(5e9)) == (0.0, 1.0));
    }
}
