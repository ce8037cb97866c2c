//! A value a little lower or higher: a number, or numbers with units such as `1950ms`, `1m30s`, `64MB` and `100/s`.

use crate::experiment::quantity::{self, decimal};

/// The value times a factor above 0, in the same units. A whole number without a unit stays whole. `None` if it is any
/// other text, or a negative number, which stands for something such as "no limit".
pub(crate) fn scaled(text: &str, factor: f64) -> Option<String> {
    if let Ok(whole) = text.parse::<u32>() {
        return Some(shown((f64::from(whole) * factor).round()));
    }
    let is_quantity =
        quantity::durations(text).is_some() || quantity::rate(text).is_some() || quantity::bytes(text).is_some();
    is_quantity.then(|| each_number(text, |number| shown(number * factor)))
}

/// A share times a factor, at most 1; `None` if the text is no number.
pub(crate) fn scaled_share(text: &str, factor: f64) -> Option<String> {
    let share: f64 = text.parse().ok()?;
    Some(shown((share * factor).min(1.0)))
}

/// Product of a number and a factor; `None` if the text is no number.
pub(crate) fn scaled_multiple(text: &str, factor: f64) -> Option<String> {
    text.parse::<f64>().ok().map(|times| shown(times * factor))
}

/// A text with each of its numbers replaced.
fn each_number(text: &str, new: impl Fn(f64) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((number, after)) = decimal(rest) {
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        out += &format!("{}{}", new(number), &after[..unit]);
        rest = &after[unit..];
    }
    out
}

/// Six digits, which no value in an experiment needs more of.
fn shown(value: f64) -> String {
    let exponent = if value > 0.0 { value.log10().floor() } else { 0.0 };
    let unit = 10_f64.powf(5.0 - exponent);
    format!("{}", (value * unit).round() / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_quantities_keep_their_form() {
        let cases = [
            ("36", Some(("29", "43"))),
            ("950", Some(("760", "1140"))),
            ("10660", Some(("8528", "12792"))),
            ("1", Some(("1", "1"))),
            ("0", Some(("0", "0"))),
            ("10.3", Some(("8.24", "12.36"))),
            ("0.2", Some(("0.16", "0.24"))),
            ("0.025", Some(("0.02", "0.03"))),
            ("1950ms", Some(("1560ms", "2340ms"))),
            ("1m30s", Some(("0.8m24s", "1.2m36s"))),
            ("64MB", Some(("51.2MB", "76.8MB"))),
            ("1s to 3s", Some(("0.8s to 2.4s", "1.2s to 3.6s"))),
            ("100/s", Some(("80/s", "120/s"))),
            ("-1", None),
            ("classic", None),
            ("", None),
            ("2 cores", None),
        ];
        for (text, expected) in cases {
            let both = scaled(text, 0.8).zip(scaled(text, 1.2));
            let expected = expected.map(|(low, high)| (low.to_owned(), high.to_owned()));
            assert_eq!(both, expected, "{text:?}");
        }
    }
}
