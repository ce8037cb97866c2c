//! How sure the capacity is: a 95 % interval over the edges that repeated searches found.
//!
//! The ends of the interval are one-sample Student's t limits (W. S. Gosset, 1908): the lower one of the rates that were
//! kept, the upper one of the rates that were broken. With edges that all agree it is the bracket itself, so it is never
//! narrower than what was resolved. One edge has no spread: then the bracket is told and no share of certainty.

use serde::Serialize;

use crate::capacity::search::Edge;

/// The rate up to which the objectives are kept, and how sure that is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Mean of the rates that were kept at the edge, per second.
    pub rate: f64,
    /// Lower end, per second.
    pub low: f64,
    /// Upper end, per second.
    pub high: f64,
    /// How many edges it rests on.
    pub edges: usize,
}

impl Interval {
    /// Over edges; none without any.
    pub(crate) fn from_edges(edges: &[Edge]) -> Option<Self> {
        let kept: Vec<f64> = edges.iter().map(|edge| edge.kept).collect();
        let broken: Vec<f64> = edges.iter().map(|edge| edge.broken).collect();
        let rate = mean(&kept)?;
        let low = (rate - margin(&kept, rate)).max(0.0);
        let upper = mean(&broken)?;
        Some(Self { rate, low, high: upper + margin(&broken, upper), edges: edges.len() })
    }

    /// Whether the ends are 95 % limits; else they are the rates of one bracket.
    pub fn is_repeated(&self) -> bool {
        self.edges > 1
    }

    /// The name of the method, for people.
    pub fn method(&self) -> String {
        if self.is_repeated() {
            format!("Student's t over the edges that {} searches found", self.edges)
        } else {
            "one search: the highest rate kept and the lowest broken, without a confidence level".to_owned()
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half the width of the 95 % interval of the mean; 0 for one value.
fn margin(values: &[f64], mean: f64) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let freedom = values.len() - 1;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom as f64;
    student_t(freedom) * (variance / values.len() as f64).sqrt()
}

/// The 97.5 % quantile of Student's t distribution; beyond the table, its value at the table's end, which is above.
fn student_t(freedom: usize) -> f64 {
    const TABLE: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    TABLE[freedom.clamp(1, TABLE.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_never_narrower_than_the_bracket() {
        let edge = |kept, broken| Edge { kept, broken };
        let cases = [
            (vec![edge(100.0, 105.0)], (100.0, 100.0, 105.0)),
            (vec![edge(100.0, 105.0); 4], (100.0, 100.0, 105.0)),
            // s = 5, n = 3, t = 4.303: 4.303 · 5 ÷ √3 = 12.42.
            (vec![edge(95.0, 100.0), edge(100.0, 105.0), edge(105.0, 110.0)], (100.0, 87.58, 117.42)),
            (vec![edge(1.0, 2.0), edge(9.0, 10.0)], (5.0, 0.0, 56.82)),
        ];
        for (edges, (rate, low, high)) in cases {
            let interval = Interval::from_edges(&edges).unwrap();
            assert!((interval.rate - rate).abs() < 0.01, "{interval:?}");
            assert!((interval.low - low).abs() < 0.01 && (interval.high - high).abs() < 0.01, "{interval:?}");
        }
        assert_eq!(Interval::from_edges(&[]), None);
    }

    #[test]
    fn one_bracket_is_no_95_percent() {
        let one = Interval::from_edges(&[Edge { kept: 1.0, broken: 2.0 }]).unwrap();
        assert!(!one.is_repeated() && one.method().contains("one search"));
    }

    #[test]
    fn t_falls_with_freedom_and_stays_above_the_normal() {
        assert!((1..40).all(|n| student_t(n) >= student_t(n + 1) && student_t(n + 1) > 1.96));
    }
}
