//! How single values are written, so that text and page never disagree: changes with their intervals, a finding's
//! figures by their UCUM unit, instants.
//!
//! Builds on `narrows_model::units`; adds only what needs a model type to know how it is to be read.

use jiff::Timestamp;
use narrows_model::comparison::{Basis, Change, Comparison, Meaning};
use narrows_model::finding::Figure;
use narrows_model::run::Environment;
use narrows_model::units;

/// From this ratio on a change reads as a factor: `×12.5` is clearer than `+1150 %`.
const FACTOR_FROM: f64 = 4.0;

/// A change in short: `+21 %`, `−41 %`, `×12.5`, `same`, or `cannot tell` where noise hides what may have changed.
pub(crate) fn change(change: &Change) -> String {
    match change.meaning {
        Meaning::Same => "same".to_owned(),
        Meaning::Unclear => "cannot tell".to_owned(),
        Meaning::Higher | Meaning::Lower => signed(change.ratio, change.ratio),
    }
}

/// A change's 95 % interval: `+18 to +24 %`.
pub(crate) fn interval(change: &Change) -> String {
    range(change.low, change.high, change.ratio)
}

/// The interval of a relative change, in the style of the change.
pub(crate) fn range(low: f64, high: f64, ratio: f64) -> String {
    let (low, high) = (signed(low, ratio), signed(high, ratio));
    let low = if high.ends_with(" %") { low.trim_end_matches(" %") } else { &low };
    format!("{low} to {high}")
}

/// The variants that were measured once; `None` if all that are compared have repetitions.
pub(crate) fn measured_once(comparison: &Comparison) -> Option<String> {
    let differences = comparison.variants.iter().filter_map(|variant| variant.against_first.as_ref());
    differences.map(|difference| difference.basis).find(|basis| *basis == Basis::MeasuredOnce)?;
    let measured = || comparison.variants.iter().filter(|variant| variant.repetitions > 0);
    let once: Vec<&str> =
        measured().filter(|variant| variant.repetitions == 1).map(|variant| variant.variant.as_str()).collect();
    Some(if once.len() == measured().count() { "every variant".to_owned() } else { once.join(", ") })
}

/// Consequence for the differences.
pub(crate) const MEASURED_ONCE: &str = "Intervals assume a spread between trials; `--repeat 3` measures it.";

/// New ÷ old − 1 in short: `+3.2 %`, `−41 %`, `×12.5`.
pub(crate) fn ratio(ratio: f64) -> String {
    signed(ratio, ratio)
}

fn signed(ratio: f64, style_of: f64) -> String {
    if !ratio.is_finite() {
        return "unknown".to_owned();
    }
    if style_of >= FACTOR_FROM {
        return format!("×{}", units::three(1.0 + ratio));
    }
    let sign = match ratio {
        r if r > 0.0 => "+",
        r if r < 0.0 => "−",
        _ => "±",
    };
    format!("{sign}{}", units::percent(ratio.abs()))
}

/// A finding's figure with its unit.
pub(crate) fn figure(figure: &Figure) -> String {
    let value = figure.value;
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    match figure.unit.as_str() {
        "ns" => units::duration(value),
        "us" => units::duration(value * 1e3),
        "ms" => units::duration(value * 1e6),
        "s" => units::duration(value * 1e9),
        "By" => units::bytes(value),
        "%" => units::percent(value / 100.0),
        "/s" | "1/s" => units::rate(value),
        "" | "1" => number(value),
        "{cores}" => units::cores(value),
        unit => format!("{} {}", number(value), unit.trim_start_matches('{').replace('}', "")),
    }
}

/// A plain number: whole ones with thousands separated, others with three significant digits.
pub(crate) fn number(value: f64) -> String {
    units::number(value)
}

/// A value in its written form; a dash if it is unknown.
pub(crate) fn known(value: Option<f64>, written: fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), written)
}

/// Core-seconds for each request, as a length of time; a dash when it was not sampled.
pub(crate) fn cpu_per_request(core_seconds: Option<f64>) -> String {
    known(core_seconds, |seconds| units::duration(seconds * 1e9))
}

/// An instant as `2025-11-21 12:30 UTC`.
pub(crate) fn instant(time_ns: i64) -> String {
    match Timestamp::from_nanosecond(i128::from(time_ns)) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => "unknown".to_owned(),
    }
}

/// A machine in one line: processor, cores, memory, kernel.
pub(crate) fn machine(machine: &Environment) -> String {
    let cores = plural(machine.cores as usize, "core", "cores");
    format!("{}, {cores}, {}, {}", machine.cpu_model, units::bytes(machine.memory_bytes as f64), machine.kernel)
}

/// `1 trial`, `3 trials`.
pub(crate) fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", units::count(n as u64), if n == 1 { one } else { many })
}

/// At most `chars_max` characters, the last an ellipsis when something was cut.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars_max.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
    }

    #[test]
    fn changes_say_what_they_amount_to() {
        let of = |ratio, low, high, meaning| Change { ratio, low, high, meaning };
        let cases = [
            (of(0.21, 0.18, 0.24, Meaning::Higher), "+21 %", "+18 to +24 %"),
            (of(-0.41, -0.45, -0.379, Meaning::Lower), "−41 %", "−45 to −38 %"),
            (of(11.5, 11.0, 12.0, Meaning::Higher), "×12.5", "×12.0 to ×13.0"),
            (of(0.01, -0.02, 0.04, Meaning::Same), "same", "−2.0 to +4.0 %"),
            (of(0.1, -0.78, 4.69, Meaning::Unclear), "cannot tell", "−78 to +469 %"),
            (of(f64::NAN, 0.0, f64::INFINITY, Meaning::Higher), "unknown", "±0 % to unknown"),
        ];
        for (input, short, long) in cases {
            assert_eq!((change(&input).as_str(), interval(&input).as_str()), (short, long));
        }
    }

    #[test]
    fn figures_follow_their_unit() {
        let cases = [
            (25.0, "", "25"),
            (24.6, "", "24.6"),
            (3_500_000.0, "ns", "3.50 ms"),
            (0.25, "s", "250 ms"),
            (1536.0, "By", "1.50 KiB"),
            (87.0, "%", "87 %"),
            (1200.0, "/s", "1,200/s"),
            (1.5, "{cores}", "1.50 cores"),
            (12.0, "{RU}/s", "12 RU/s"),
            (f64::NAN, "s", "unknown"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(figure(&Figure::new("x", value, unit)), expected);
        }
    }

    #[test]
    fn instants_are_utc() {
        assert_eq!(instant(1_763_728_200_000_000_000), "2025-11-21 12:30 UTC");
    }
}
