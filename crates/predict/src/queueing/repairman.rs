//! Users who think and then need one of several servers: the machine repairman model, M/M/m//N.
//!
//! L. Kleinrock, *Queueing Systems*, volume 1, 1975, section 3.8. Its states are few, so it is computed from their
//! probabilities; it checks the mean value analysis, which computes the same in another way.

/// Throughput of so many users of one station, requests per second.
pub fn rate(users: u32, think_s: f64, demand_s: f64, servers: u32) -> f64 {
    let servers = f64::from(servers.max(1));
    let (mut weight, mut sum, mut busy) = (1.0_f64, 1.0_f64, 0.0_f64);
    for present in 1..=users {
        let thinking = f64::from(users - present + 1);
        let at_work = f64::from(present).min(servers);
        weight *= thinking / think_s * demand_s / at_work;
        sum += weight;
        busy += weight * at_work;
        // Only ratios count.
        if sum > 1e100 {
            weight /= sum;
            busy /= sum;
            sum = 1.0;
        }
    }
    busy / sum / demand_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_never_waits_and_many_fill_the_servers() {
        assert!((rate(1, 0.9, 0.1, 1) - 1.0).abs() < 1e-12);
        assert!((rate(5000, 1.0, 0.1, 3) - 30.0).abs() < 1e-6);
        // As many servers as users: nobody waits.
        assert!((rate(8, 0.3, 0.1, 8) - 20.0).abs() < 1e-9);
    }
}
