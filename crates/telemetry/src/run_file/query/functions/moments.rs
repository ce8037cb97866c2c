//! `stdev` and `variance` of a sample, `stdevp` and `variancep` of a whole population, by Welford's method.
//!
//! Of no values they are NULL; one value alone varies by 0.

use rusqlite::functions::{Aggregate, Context};
use rusqlite::{Connection, Result};

use super::FLAGS;
use super::arguments::{Number, number};

pub(super) fn register(connection: &Connection) -> Result<()> {
    let all = [
        ("variance", Of::Sample, Measure::Variance),
        ("stdev", Of::Sample, Measure::Deviation),
        ("variancep", Of::Population, Measure::Variance),
        ("stdevp", Of::Population, Measure::Deviation),
    ];
    all.into_iter().try_for_each(|(name, of, measure)| {
        connection.create_aggregate_function(name, 1, FLAGS, Moment { of, measure })
    })
}

enum Of {
    Sample,
    Population,
}

enum Measure {
    Variance,
    Deviation,
}

struct Moment {
    of: Of,
    measure: Measure,
}

#[derive(Default)]
struct Moments {
    count: f64,
    mean: f64,
    /// Squares of the distances from the mean, added up.
    squares: f64,
}

impl Aggregate<Moments, Option<f64>> for Moment {
    fn init(&self, _: &mut Context<'_>) -> Result<Moments> {
        Ok(Moments::default())
    }

    fn step(&self, context: &mut Context<'_>, seen: &mut Moments) -> Result<()> {
        if let Some(value) = number(context, 0).map(Number::as_f64) {
            seen.count += 1.0;
            let distance = value - seen.mean;
            seen.mean += distance / seen.count;
            seen.squares += distance * (value - seen.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, seen: Option<Moments>) -> Result<Option<f64>> {
        let Some(seen) = seen.filter(|seen| seen.count > 0.0) else { return Ok(None) };
        let divisor = match self.of {
            Of::Sample => (seen.count - 1.0).max(1.0),
            Of::Population => seen.count,
        };
        let variance = seen.squares / divisor;
        Ok(Some(match self.measure {
            Measure::Variance => variance,
            Measure::Deviation => variance.sqrt(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{cell, connection};

    #[test]
    fn spread_of_samples_and_populations() {
        let connection = connection();
        let of = |call: &str, values: &str| {
            cell(&connection, &format!("WITH t (x) AS (VALUES {values}) SELECT {call} FROM t"))
        };
        // The example of KQL's own page on stdev(): 1 to 5.
        assert_eq!(of("stdev(x)", "(1), (2), (3), (4), (5)"), "1.5811388300841898");
        assert_eq!(of("variance(x)", "(1), (2), (3), (4), (5)"), "2.5");
        assert_eq!(of("variancep(x)", "(1), (2), (3), (4), (5)"), "2.0");
        assert_eq!(of("stdevp(x)", "(2), (4), (4), (4), (5), (5), (7), (9)"), "2.0");
        assert_eq!(of("stdev(x)", "(7), (NULL), ('text')"), "0.0");
        assert_eq!(of("stdev(x)", "(NULL)"), "NULL");
        let far = of("variance(x)", "(1000000000.0), (1000000001.0), (1000000002.0)");
        assert_eq!(far, "1.0", "large values lose nothing");
    }
}
