//! One server, Poisson arrivals, exponential service: M/M/1.
//!
//! L. Kleinrock, *Queueing Systems*, volume 1, 1975, section 3.2.

/// Mean response time; `None` if arrivals exceed what the server can do.
pub fn response_s(rate: f64, demand_s: f64) -> Option<f64> {
    let utilisation = rate * demand_s;
    (utilisation < 1.0).then(|| demand_s / (1.0 - utilisation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_half_busy_takes_twice_as_long() {
        assert_eq!(response_s(50.0, 0.01), Some(0.02));
        assert_eq!(response_s(0.0, 0.01), Some(0.01));
        assert_eq!(response_s(100.0, 0.01), None);
    }
}
