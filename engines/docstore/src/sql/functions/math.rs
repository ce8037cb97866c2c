//! Functions on numbers. Those that begin with INT work on whole numbers of 64 bits only.

use std::f64::consts::PI;

use super::{Arguments, Entry, defined};
use crate::sql::value::Value;

pub(super) const ALL: &[Entry] = &[
    Entry::new("ABS", 1, 1, |given| of_one(given, f64::abs)),
    Entry::new("ACOS", 1, 1, |given| of_one(given, f64::acos)),
    Entry::new("ASIN", 1, 1, |given| of_one(given, f64::asin)),
    Entry::new("ATAN", 1, 1, |given| of_one(given, f64::atan)),
    Entry::new("ATN2", 2, 2, |given| of_two(given, f64::atan2)),
    Entry::new("CEILING", 1, 1, |given| of_one(given, f64::ceil)),
    Entry::new("COS", 1, 1, |given| of_one(given, f64::cos)),
    Entry::new("COT", 1, 1, |given| of_one(given, |number| 1.0 / number.tan())),
    Entry::new("DEGREES", 1, 1, |given| of_one(given, f64::to_degrees)),
    Entry::new("EXP", 1, 1, |given| of_one(given, f64::exp)),
    Entry::new("FLOOR", 1, 1, |given| of_one(given, f64::floor)),
    Entry::new("INTADD", 2, 2, |given| of_whole(given, |left, right| Some(left.wrapping_add(right)))),
    Entry::new("INTBITAND", 2, 2, |given| of_whole(given, |left, right| Some(left & right))),
    Entry::new("INTBITLEFTSHIFT", 2, 2, |given| of_whole(given, |left, right| Some(left.wrapping_shl(right as u32)))),
    Entry::new("INTBITNOT", 1, 1, |given| defined(given.whole(0).map(|number| Value::Number(!number as f64)))),
    Entry::new("INTBITOR", 2, 2, |given| of_whole(given, |left, right| Some(left | right))),
    Entry::new("INTBITRIGHTSHIFT", 2, 2, |given| of_whole(given, |left, right| Some(left.wrapping_shr(right as u32)))),
    Entry::new("INTBITXOR", 2, 2, |given| of_whole(given, |left, right| Some(left ^ right))),
    Entry::new("INTDIV", 2, 2, |given| of_whole(given, i64::checked_div)),
    Entry::new("INTMOD", 2, 2, |given| of_whole(given, i64::checked_rem)),
    Entry::new("INTMUL", 2, 2, |given| of_whole(given, |left, right| Some(left.wrapping_mul(right)))),
    Entry::new("INTSUB", 2, 2, |given| of_whole(given, |left, right| Some(left.wrapping_sub(right)))),
    Entry::new(
        "LOG",
        1,
        2,
        |given| if given.values.len() == 1 { of_one(given, f64::ln) } else { of_two(given, f64::log) },
    ),
    Entry::new("LOG10", 1, 1, |given| of_one(given, f64::log10)),
    Entry::new("NUMBERBIN", 1, 2, |given| {
        if given.values.len() == 1 {
            of_one(given, f64::floor)
        } else {
            of_two(given, |number, size| (number / size).floor() * size)
        }
    }),
    Entry::new("PI", 0, 0, |_| Value::Number(PI)),
    Entry::new("POWER", 2, 2, |given| of_two(given, f64::powf)),
    Entry::new("RADIANS", 1, 1, |given| of_one(given, f64::to_radians)),
    Entry::new("RAND", 0, 0, |given| Value::Number(given.context.random())),
    Entry::new(
        "ROUND",
        1,
        2,
        |given| if given.values.len() == 1 { of_one(given, f64::round) } else { of_two(given, rounded) },
    ),
    Entry::new("SIGN", 1, 1, |given| of_one(given, |number| if number == 0.0 { 0.0 } else { number.signum() })),
    Entry::new("SIN", 1, 1, |given| of_one(given, f64::sin)),
    Entry::new("SQRT", 1, 1, |given| of_one(given, f64::sqrt)),
    Entry::new("SQUARE", 1, 1, |given| of_one(given, |number| number * number)),
    Entry::new("TAN", 1, 1, |given| of_one(given, f64::tan)),
    Entry::new("TRUNC", 1, 1, |given| of_one(given, f64::trunc)),
];

fn of_one(given: &Arguments<'_>, function: fn(f64) -> f64) -> Value {
    defined(given.number(0).map(|number| Value::number(function(number))))
}

fn of_two(given: &Arguments<'_>, function: fn(f64, f64) -> f64) -> Value {
    defined(given.number(0).zip(given.number(1)).map(|(left, right)| Value::number(function(left, right))))
}

fn of_whole(given: &Arguments<'_>, function: fn(i64, i64) -> Option<i64>) -> Value {
    let result = given.whole(0).zip(given.whole(1)).and_then(|(left, right)| function(left, right));
    defined(result.map(|number| Value::Number(number as f64)))
}

fn rounded(number: f64, digits: f64) -> f64 {
    let scale = 10_f64.powf(digits.trunc());
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use crate::sql::functions::tests::check;

    #[test]
    fn numbers() {
        check(&[
            ("ABS(-2) + CEILING(1.2) + FLOOR(1.8)", "5"),
            ("ROUND(2.5)", "3"),
            ("ROUND(2.345, 1)", "2.3"),
            ("SIGN(-3) + SIGN(0)", "-1"),
            ("SQRT(-1)", "undefined"),
            ("SQUARE(3) - POWER(2, 3)", "1"),
            ("LOG(8, 2)", "3"),
            ("LOG10(1000) > 2.9", "true"),
            ("TRUNC(-1.9)", "-1"),
            ("INTDIV(7, 2)", "3"),
            ("INTDIV(7, 0)", "undefined"),
            ("INTMOD(7, 4)", "3"),
            ("INTADD(1, 1.5)", "undefined"),
            ("INTBITLEFTSHIFT(1, 4)", "16"),
            ("NUMBERBIN(37, 10)", "30"),
            ("PI() > 3.14 AND PI() < 3.15", "true"),
            ("RAND() >= 0 AND RAND() < 1", "true"),
            ("ABS('1')", "undefined"),
            ("DEGREES(PI())", "180"),
            ("1 / 0", "undefined"),
            ("7 % 4 * 2 - 1", "5"),
            ("5 & 3 | 8", "9"),
            ("~0", "-1"),
            ("1 + 'a'", "undefined"),
        ]);
    }
}
