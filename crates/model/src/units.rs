//! Numbers as people read them: three significant digits and the unit that fits.

/// A length of time: `870 ns`, `12.3 µs`, `4.56 ms`, `1.20 s`, `2 min 5 s`.
pub fn duration(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{} µs", three(n / 1e3)),
        n if n < 1e9 => format!("{} ms", three(n / 1e6)),
        n if n < 60e9 => format!("{} s", three(n / 1e9)),
        n => {
            let seconds = (n / 1e9).round() as u64;
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
    }
}

/// A count with thousands separated: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate: `12.3/s`, `4,560/s`.
pub fn rate(per_second: f64) -> String {
    if per_second >= 1000.0 {
        format!("{}/s", count(per_second.round() as u64))
    } else {
        format!("{}/s", three(per_second))
    }
}

/// An amount of memory in binary units: `512 B`, `34.5 MiB`.
pub fn bytes(n: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{} {}", three(value), UNITS[unit]) }
}

/// A share of one as per cent: `4.2 %`, `87 %`.
pub fn percent(share: f64) -> String {
    // The sum of nothing is −0, which is 0.
    let value = share * 100.0 + 0.0;
    if value == 0.0 || value.abs() >= 10.0 { format!("{value:.0} %") } else { format!("{value:.1} %") }
}

/// A number of things: whole without a fraction, any other with three significant digits.
pub fn number(value: f64) -> String {
    let is_whole = value == 0.0 || value.round() >= 1.0 && (value - value.round()).abs() < 0.005;
    if is_whole || value >= 1000.0 { count(value.round() as u64) } else { three(value) }
}

/// Number of things with their noun: `1 thread`, `38 threads`.
pub fn counted(value: f64, noun: &str) -> String {
    let value = number(value);
    let plural = if value == "1" { "" } else { "s" };
    format!("{value} {noun}{plural}")
}

/// An amount of CPU: `1 core`, `0.50 cores`.
pub fn cores(value: f64) -> String {
    let text = number(value);
    let word = if text == "1" { "core" } else { "cores" };
    format!("{text} {word}")
}

/// How often something happens: `once`, `twice`, `3 times`, `2.50 times`.
pub fn times(value: f64) -> String {
    match number(value).as_str() {
        "1" => "once".to_owned(),
        "2" => "twice".to_owned(),
        text => format!("{text} times"),
    }
}

/// A plain number with three significant digits, and all digits before the point.
pub fn three(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 || v == 0.0 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Names, of many the first `most` and the number of the others: `a, b and 17 more`.
pub fn names(names: &[String], most: usize) -> String {
    match names {
        [one] => one.clone(),
        [first @ .., last] if names.len() <= most => format!("{} and {last}", first.join(", ")),
        _ => {
            let shown = &names[..most.min(names.len())];
            format!("{} and {} more", shown.join(", "), names.len() - shown.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_stand_for_all() {
        let all: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let shown = [1, 2, 3, 4].map(|count| names(&all[..count], 3));
        assert_eq!(shown, ["a", "a and b", "a, b and c", "a, b, c and 1 more"]);
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        let cases = [
            (duration(870.0), "870 ns"),
            (duration(12_345.0), "12.3 µs"),
            (duration(4_560_000.0), "4.56 ms"),
            (duration(125e9), "2 min 5 s"),
            (count(0), "0"),
            (count(999), "999"),
            (count(1_234_567), "1,234,567"),
            (number(12.0), "12"),
            (number(2.5), "2.50"),
            (number(3.999), "4"),
            (number(0.001), "0.00"),
            (number(1_234.5), "1,235"),
            (cores(0.5), "0.50 cores"),
            (cores(1.0), "1 core"),
            (cores(2.0), "2 cores"),
            (times(1.0), "once"),
            (times(2.0), "twice"),
            (times(3.9), "3.90 times"),
            (rate(4560.4), "4,560/s"),
            (rate(12.34), "12.3/s"),
            (bytes(36_175_872.0), "34.5 MiB"),
            (percent(0.042), "4.2 %"),
            (percent(0.87), "87 %"),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
    }
}
