//! A closed network of users who think: exact mean value analysis for one class of requests.
//!
//! M. Reiser and S. S. Lavenberg, *Mean-Value Analysis of Closed Multichain Queueing Networks*, Journal of the ACM 1980.
//! Stations with several servers are load-dependent: the probabilities of few requests there are kept
//! (D. A. Menascé, V. A. F. Almeida, L. W. Dowdy, *Performance by Design*, 2004, chapter 14). The result is exact for
//! product-form networks. Stations that add their wait alone make it an approximation, whose throughput still keeps to
//! every station's limit.

use super::{Adds, Network, Solution, Station};

/// Users at most. The work grows with users × servers.
pub const USERS_MAX: u32 = 10_000;

/// The network with each of these numbers of users, in their order; numbers are limited to [`USERS_MAX`].
pub fn closed(network: &Network, users: &[u32]) -> Vec<Solution> {
    let most = users.iter().copied().max().unwrap_or(0).min(USERS_MAX);
    let mut found = vec![Solution::default(); users.len()];
    let mut queues: Vec<Queue> = network.stations.iter().map(Queue::new).collect();
    for present in 1..=most {
        let residences: Vec<f64> = queues.iter().map(Queue::residence_s).collect();
        let added = |(queue, residence): (&Queue, &f64)| f64::from(queue.station.copies) * queue.added_s(*residence);
        let response_s = network.delay_s + queues.iter().zip(&residences).map(added).sum::<f64>();
        let cycle_s = response_s + network.think_s;
        let unlimited = if cycle_s > 0.0 { f64::from(present) / cycle_s } else { f64::INFINITY };
        // Stations that add a wait alone hold more requests than the sum says, so the limit is kept here.
        let limit = queues.iter().map(|queue| queue.station.rate_max()).fold(f64::INFINITY, f64::min);
        let rate = unlimited.min(limit);
        for (queue, residence) in queues.iter_mut().zip(&residences) {
            queue.step(rate, *residence);
        }
        let waits = || queues.iter().zip(&residences);
        for (at, _) in users.iter().enumerate().filter(|(_, users)| (**users).min(USERS_MAX) == present) {
            found[at] = Solution {
                rate,
                response_s: (f64::from(present) / rate - network.think_s).max(response_s),
                waits_s: waits().map(|(queue, residence)| queue.wait_s(*residence)).collect(),
            };
        }
    }
    found
}

/// One copy of a station with so many users as were added yet.
struct Queue {
    station: Station,
    /// Mean requests there.
    requests: f64,
    /// The chance of none, of one, … of one fewer than there are servers; empty when it serves all at once.
    chances: Vec<f64>,
}

impl Queue {
    fn new(station: &Station) -> Self {
        let servers = station.queued_servers();
        let mut chances = vec![0.0; servers.unwrap_or(0) as usize];
        chances.iter_mut().take(1).for_each(|none| *none = 1.0);
        Self { station: Station { servers, ..*station }, requests: 0.0, chances }
    }

    /// Time there of a request that arrives: it meets the others as if it was not among them.
    fn residence_s(&self) -> f64 {
        let Some(servers) = self.station.servers.map(f64::from) else { return self.station.demand_s };
        let idle = |(present, chance): (usize, &f64)| (servers - 1.0 - present as f64) * chance;
        let free: f64 = self.chances.iter().enumerate().map(idle).sum();
        let residence_s = self.station.demand_s / servers * (1.0 + self.requests + free);
        residence_s.max(self.station.demand_s)
    }

    fn wait_s(&self, residence_s: f64) -> f64 {
        (residence_s - self.station.demand_s) * f64::from(self.station.copies)
    }

    fn added_s(&self, residence_s: f64) -> f64 {
        match self.station.adds {
            Adds::Residence => residence_s,
            Adds::Wait => residence_s - self.station.demand_s,
        }
    }

    /// Takes one more user in.
    fn step(&mut self, rate: f64, residence_s: f64) {
        let Some(servers) = self.station.servers.map(f64::from) else { return };
        let busy = rate * self.station.demand_s;
        self.requests = rate * residence_s;
        for present in (1..self.chances.len()).rev() {
            self.chances[present] = busy / present as f64 * self.chances[present - 1];
        }
        let idle = |(present, chance): (usize, &f64)| (servers - present as f64) * chance;
        let others: f64 = self.chances.iter().enumerate().skip(1).map(idle).sum();
        // Near saturation this difference of large numbers may fall below 0.
        self.chances[0] = (1.0 - (busy + others) / servers).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{bounds, repairman, simulation};
    use super::*;

    fn network(stations: Vec<Station>, delay_s: f64, think_s: f64) -> Network {
        Network { stations, delay_s, think_s }
    }

    fn station(demand_s: f64, servers: u32) -> Station {
        Station::new(demand_s, servers, Adds::Residence)
    }

    #[test]
    fn a_textbook_network_is_solved() {
        // Lazowska et al., "Quantitative System Performance", 1984, section 6.4.2: CPU, two disks, think time 15 s.
        let network = network(vec![station(0.605, 1), station(2.1, 1), station(1.35, 1)], 0.0, 15.0);
        let one = &closed(&network, &[1])[0];
        assert!((one.rate - 0.0525).abs() < 1e-4, "{one:?}");
        let three = &closed(&network, &[3])[0];
        assert!((three.rate - 0.1515).abs() < 1e-4 && (three.response_s - 4.80).abs() < 0.005, "{three:?}");
    }

    #[test]
    fn one_station_is_the_repairman_model() {
        for (users, servers) in [(1, 1), (4, 1), (40, 1), (10, 2), (40, 4), (100, 8)] {
            let rate = closed(&network(vec![station(0.1, servers)], 0.0, 0.5), &[users])[0].rate;
            let expected = repairman::rate(users, 0.5, 0.1, servers);
            // Rounding of the chance of no request costs a little when many servers are all busy.
            let allowed = if servers < 8 { 1e-3 } else { 6e-3 };
            assert!((rate / expected - 1.0).abs() < allowed, "{users} users, {servers} servers: {rate} {expected}");
        }
    }

    #[test]
    fn a_simulation_agrees() {
        let network = network(vec![station(0.02, 1), station(0.05, 3)], 0.03, 0.2);
        for users in [2, 10, 25] {
            let found = &closed(&network, &[users])[0];
            let seen = simulation::closed(&network, users, 40_000, 7);
            assert!((found.rate / seen.rate - 1.0).abs() < 0.03, "{users}: {found:?} {seen:?}");
            assert!((found.response_s / seen.response_s - 1.0).abs() < 0.05, "{users}: {found:?} {seen:?}");
        }
    }

    #[test]
    fn a_wait_alone_keeps_the_limit_and_adds_no_time_of_its_own() {
        let machine = Station::new(0.02, 2, Adds::Wait);
        let network = network(vec![machine], 0.02, 0.0);
        let found = closed(&network, &[1, 2, 40]);
        assert!((found[0].response_s - 0.02).abs() < 1e-12, "{:?}", found[0]);
        assert!(found[2].rate <= 100.0 + 1e-9 && found[2].rate > 95.0, "{:?}", found[2]);
        assert!((found[2].rate * found[2].response_s - 40.0).abs() < 1e-6, "Little's law");
    }

    proptest! {
        #[test]
        fn every_network_keeps_to_its_bounds(
            demands in prop::collection::vec((0.0_f64..0.1, 1_u32..6, 1_u32..4, prop::bool::ANY), 1..5),
            delay_s in 0.001_f64..0.5,
            think_s in 0.0_f64..1.0,
            users in 1_u32..80,
        ) {
            let stations = demands.iter().map(|(demand_s, servers, copies, is_wait)| Station {
                demand_s: *demand_s,
                servers: Some(*servers),
                copies: *copies,
                adds: if *is_wait { Adds::Wait } else { Adds::Residence },
            });
            let network = network(stations.collect(), delay_s, think_s);
            let found = &closed(&network, &[users])[0];
            prop_assert!(found.rate <= bounds::closed_rate_max(&network, users) * (1.0 + 1e-9), "{:?}", found);
            prop_assert!(found.response_s >= bounds::closed_response_min_s(&network, users) * (1.0 - 1e-9));
            prop_assert!((found.rate * (found.response_s + think_s) - f64::from(users)).abs() < 1e-6);
            prop_assert!(found.waits_s.iter().all(|wait| *wait >= 0.0));
        }
    }
}
