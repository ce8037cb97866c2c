//! Asymptotic bounds: limits of throughput and response time for any distributions.
//!
//! P. J. Denning and J. P. Buzen, *The Operational Analysis of Queueing Network Models*, ACM Computing Surveys 1978.

use super::{Network, Station};

/// The highest throughput that the stations allow under any load; infinite without a demand.
pub fn rate_max(network: &Network) -> f64 {
    network.stations.iter().map(Station::rate_max).fold(f64::INFINITY, f64::min)
}

/// The station that is used up first.
pub(super) struct Limit {
    /// Place among the stations.
    pub(super) station: usize,
    /// Requests per second.
    pub(super) rate_max: f64,
}

/// The limit of these stations; `None` if none has one.
pub(super) fn limit(stations: &[Station]) -> Option<Limit> {
    let limits = stations.iter().enumerate().map(|(station, one)| Limit { station, rate_max: one.rate_max() });
    limits.filter(|limit| limit.rate_max.is_finite()).min_by(|a, b| a.rate_max.total_cmp(&b.rate_max))
}

/// The highest throughput with so many users.
pub fn closed_rate_max(network: &Network, users: u32) -> f64 {
    let alone = network.unloaded_s() + network.think_s;
    let by_users = if alone > 0.0 { f64::from(users) / alone } else { f64::INFINITY };
    by_users.min(rate_max(network))
}

/// The shortest mean response time with so many users.
pub fn closed_response_min_s(network: &Network, users: u32) -> f64 {
    let by_limit = f64::from(users) / rate_max(network) - network.think_s;
    network.unloaded_s().max(by_limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_station_and_the_users_bound_a_closed_network() {
        let stations = vec![Station::new(0.02, 1), Station::new(0.03, 2)];
        let network = Network { stations, delay_s: 0.05, think_s: 0.4, ..Network::default() };
        assert_eq!(rate_max(&network), 50.0);
        assert!((closed_rate_max(&network, 5) - 10.0).abs() < 1e-9);
        assert_eq!(closed_rate_max(&network, 1000), 50.0);
        assert!((closed_response_min_s(&network, 5) - 0.1).abs() < 1e-9);
        assert!((closed_response_min_s(&network, 100) - 1.6).abs() < 1e-9);
        assert_eq!(rate_max(&Network::default()), f64::INFINITY);
    }
}
