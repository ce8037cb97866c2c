//! Roots, powers and logarithms, which SQLite has only where it was built with them. Outside their domain they are NULL.

use rusqlite::functions::Context;
use rusqlite::{Connection, Result};

use super::arguments::{Number, number};
use super::scalar;

pub(super) fn register(connection: &Connection) -> Result<()> {
    scalar(connection, "kql_ln", 1, |context| Ok(one(context, f64::ln)))?;
    scalar(connection, "kql_log10", 1, |context| Ok(one(context, f64::log10)))?;
    scalar(connection, "kql_log2", 1, |context| Ok(one(context, f64::log2)))?;
    scalar(connection, "kql_exp", 1, |context| Ok(one(context, f64::exp)))?;
    scalar(connection, "kql_sqrt", 1, |context| Ok(one(context, f64::sqrt)))?;
    scalar(connection, "kql_ceiling", 1, |context| Ok(one(context, f64::ceil)))?;
    scalar(connection, "kql_pow", 2, |context| {
        let both = real(context, 0).zip(real(context, 1));
        Ok(both.map(|(base, power)| base.powf(power)).filter(|found| found.is_finite()))
    })
}

fn real(context: &Context<'_>, at: usize) -> Option<f64> {
    number(context, at).map(Number::as_f64)
}

fn one(context: &Context<'_>, function: fn(f64) -> f64) -> Option<f64> {
    real(context, 0).map(function).filter(|found| found.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn outside_its_domain_a_function_is_null() {
        check(&[
            ("kql_ln(1)", "0.0"),
            ("kql_ln(0)", "NULL"),
            ("kql_ln(-1)", "NULL"),
            ("kql_log10(1000)", "3.0"),
            ("kql_log2(8)", "3.0"),
            ("kql_exp(0)", "1.0"),
            ("kql_exp(1000)", "NULL"),
            ("kql_sqrt(9)", "3.0"),
            ("kql_sqrt(-1)", "NULL"),
            ("kql_pow(2, 10)", "1024.0"),
            ("kql_pow(-8, 0.5)", "NULL"),
            ("kql_ceiling(1.1)", "2.0"),
            ("kql_ceiling(-1.1)", "-1.0"),
            ("kql_sqrt('9')", "NULL"),
            ("kql_pow(NULL, 2)", "NULL"),
        ]);
    }
}
