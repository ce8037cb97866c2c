//! A closed network of users who think: exact mean value analysis for one class of requests.
//!
//! M. Reiser and S. S. Lavenberg, *Mean-Value Analysis of Closed Multichain Queueing Networks*, Journal of the ACM 1980.
//! Stations with several servers are load-dependent: the probabilities of few requests there are kept
//! (D. A. Menascé, V. A. F. Almeida, L. W. Dowdy, *Performance by Design*, 2004, chapter 14). The result is exact for
//! product-form networks.
//!
//! Two extensions make it an approximation, whose throughput still keeps to every station's limit: stations that add less
//! than their demand to the response time, and times that vary otherwise than exponential ones. For these the time that a
//! request in service still needs is multiplied (M. Reiser, *A Queueing Network Analysis of Computer Communication Networks
//! with Window Flow Control*, IEEE Transactions on Communications 1979). With the factor 0 the result is the asymptotic
//! bound: no request waits until the limit is reached, and from there on all that exceed it do, as in a closed network whose
//! times are all constant.

use super::bounds::limit;
use super::{Network, Solution, Station};

/// Users at most. The work grows with users × servers.
pub const USERS_MAX: u32 = 10_000;

/// The network with each of these numbers of users, in their order; numbers are limited to [`USERS_MAX`]. With drift, times are
/// means over the requests of both halves.
pub fn closed(network: &Network, users: &[u32]) -> Vec<Solution> {
    if network.drift <= 0.0 {
        return steady(network, users);
    }
    let [slow, fast] = [1.0 + network.drift, 1.0 - network.drift].map(|factor| {
        let drifted = network.with_demands(factor);
        steady(&drifted, users)
    });
    slow.into_iter().zip(fast).map(|(slow, fast)| halves(&slow, &fast)).collect()
}

/// Two halves of a time as one.
fn halves(one: &Solution, other: &Solution) -> Solution {
    let requests = one.rate + other.rate;
    let mean = |a: f64, b: f64| if requests > 0.0 { (one.rate * a + other.rate * b) / requests } else { (a + b) / 2.0 };
    Solution {
        rate: requests / 2.0,
        response_s: mean(one.response_s, other.response_s),
        waits_s: one.waits_s.iter().zip(&other.waits_s).map(|(a, b)| mean(*a, *b)).collect(),
    }
}

fn steady(network: &Network, users: &[u32]) -> Vec<Solution> {
    let most = users.iter().copied().max().unwrap_or(0).min(USERS_MAX);
    let mut found = vec![Solution::default(); users.len()];
    let mut queues: Vec<Queue> = network.stations.iter().map(Queue::new).collect();
    let limit = limit(&network.stations);
    for present in 1..=most {
        let mut residences: Vec<f64> = queues.iter().map(|queue| queue.residence_s(network.variability)).collect();
        let added = |(queue, residence): (&Queue, &f64)| f64::from(queue.station.copies) * queue.added_s(*residence);
        let mut response_s = network.delay_s + queues.iter().zip(&residences).map(added).sum::<f64>();
        if let Some(limit) = &limit {
            let excess_s = f64::from(present) / limit.rate_max - network.think_s - response_s;
            if excess_s > 0.0 {
                residences[limit.station] += excess_s / f64::from(queues[limit.station].station.copies);
                response_s += excess_s;
            }
        }
        let cycle_s = response_s + network.think_s;
        let rate = if cycle_s > 0.0 { f64::from(present) / cycle_s } else { f64::INFINITY };
        for (queue, residence) in queues.iter_mut().zip(&residences) {
            queue.step(rate, *residence);
        }
        let waits = || queues.iter().zip(&residences);
        for (at, _) in users.iter().enumerate().filter(|(_, users)| (**users).min(USERS_MAX) == present) {
            let waits_s = waits().map(|(queue, residence)| queue.wait_s(*residence)).collect();
            found[at] = Solution { rate, response_s, waits_s };
        }
    }
    found
}

/// One copy of a station with so many users as were added yet.
struct Queue {
    station: Station,
    /// Mean requests there.
    requests: f64,
    /// Mean share of the servers that are busy.
    busy_share: f64,
    /// The chance of none, of one, … of one fewer than there are servers; empty when it serves all at once.
    chances: Vec<f64>,
}

impl Queue {
    fn new(station: &Station) -> Self {
        let servers = station.queued_servers();
        let mut chances = vec![0.0; servers.unwrap_or(0) as usize];
        chances.iter_mut().take(1).for_each(|none| *none = 1.0);
        Self { station: Station { servers, ..*station }, requests: 0.0, busy_share: 0.0, chances }
    }

    /// Time there of a request that arrives: it meets the others as if it was not among them.
    fn residence_s(&self, variability: f64) -> f64 {
        let demand_s = self.station.demand_s;
        let Some(servers) = self.station.servers.map(f64::from) else { return demand_s };
        let idle = |(present, chance): (usize, &f64)| (servers - 1.0 - present as f64) * chance;
        let free: f64 = self.chances.iter().enumerate().map(idle).sum();
        let turn_s = demand_s / servers;
        let exponential_s = (turn_s * (1.0 + self.requests + free) - demand_s).max(0.0);
        let is_full = (1.0 - self.chances.iter().sum::<f64>()).clamp(0.0, 1.0);
        let wait_s = (exponential_s - (1.0 - variability) * is_full * turn_s).max(0.0);
        demand_s + wait_s * self.station.beyond_credit(self.busy_share, variability)
    }

    fn wait_s(&self, residence_s: f64) -> f64 {
        (residence_s - self.station.demand_s) * f64::from(self.station.copies)
    }

    fn added_s(&self, residence_s: f64) -> f64 {
        residence_s - self.station.demand_s + self.station.own_s
    }

    /// Takes one more user in.
    fn step(&mut self, rate: f64, residence_s: f64) {
        let Some(servers) = self.station.servers.map(f64::from) else { return };
        let busy = rate * self.station.demand_s;
        self.busy_share = busy / servers;
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

    #[test]
    fn drift_lengthens_waits_near_a_limit_alone() {
        let network = network(vec![station(0.01, 1)], 0.005, 1.0);
        let drifting = Network { drift: 0.2, ..network.clone() };
        for (users, longer) in [(10, 1.0..1.02), (80, 1.2..2.0)] {
            let [steady, drifted] = [&network, &drifting].map(|one| closed(one, &[users]).swap_remove(0));
            let ratio = drifted.response_s / steady.response_s;
            assert!(longer.contains(&ratio), "{users} users: {ratio}");
            assert!((drifted.response_s - drifted.waits_s[0] - 0.015).abs() < 0.001, "{drifted:?}");
            let little = drifted.rate * (drifted.response_s + 1.0);
            assert!((little / f64::from(users) - 1.0).abs() < 0.01, "Little's law holds of both halves: {little}");
        }
    }

    fn network(stations: Vec<Station>, delay_s: f64, think_s: f64) -> Network {
        Network { stations, delay_s, think_s, ..Network::default() }
    }

    fn station(demand_s: f64, servers: u32) -> Station {
        Station::new(demand_s, servers)
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
            let seen = simulation::closed(&network, users, 40_000, 1);
            assert!((found.rate / seen.rate - 1.0).abs() < 0.03, "{users}: {found:?} {seen:?}");
            assert!((found.response_s / seen.response_s - 1.0).abs() < 0.05, "{users}: {found:?} {seen:?}");
        }
    }

    #[test]
    fn a_simulation_of_times_that_vary_less_agrees() {
        let one = network(vec![station(0.02, 1)], 0.03, 0.2);
        let two = network(vec![station(0.05, 2)], 0.0, 0.2);
        // Constant times; and times of four phases, whose squared coefficient of variation is 1/4.
        for (phases, variability, off_max) in [(0, 0.0, 0.01), (4, 0.625, 0.05)] {
            for (network, users) in [(&one, 6), (&one, 11), (&one, 25), (&two, 5), (&two, 9), (&two, 20)] {
                let network = Network { variability, ..network.clone() };
                let found = &closed(&network, &[users])[0];
                let seen = simulation::closed(&network, users, 40_000, phases);
                let off = found.response_s / seen.response_s - 1.0;
                assert!(off.abs() < off_max, "{phases} phases, {users} users: {off:+.3} {found:?} {seen:?}");
            }
        }
    }

    #[test]
    fn constant_times_keep_to_the_asymptotic_bound() {
        let network = Network { variability: 0.0, ..network(vec![station(0.0107, 1)], 0.0007, 0.02) };
        for (users, response_s) in [(1, 0.0114), (2, 0.0114), (6, 6.0 * 0.0107 - 0.02)] {
            let found = &closed(&network, &[users])[0];
            assert!((found.response_s - response_s).abs() < 1e-12, "{users}: {found:?}");
            assert!((found.waits_s[0] - (response_s - 0.0114)).abs() < 1e-12, "{users}: {found:?}");
        }
    }

    #[test]
    fn a_wait_alone_keeps_the_limit_and_adds_no_time_of_its_own() {
        let machine = Station::of_waits(0.02, 2);
        let network = network(vec![machine], 0.02, 0.0);
        let found = closed(&network, &[1, 2, 40]);
        assert!((found[0].response_s - 0.02).abs() < 1e-12, "{:?}", found[0]);
        assert!(found[2].rate <= 100.0 + 1e-9 && found[2].rate > 95.0, "{:?}", found[2]);
        assert!((found[2].rate * found[2].response_s - 40.0).abs() < 1e-6, "Little's law");
    }

    proptest! {
        #[test]
        fn every_network_keeps_to_its_bounds(
            demands in prop::collection::vec((0.0_f64..0.1, 1_u32..6, 1_u32..4, 0.0_f64..=1.0), 1..5),
            delay_s in 0.001_f64..0.5,
            think_s in 0.0_f64..1.0,
            variability in 0.0_f64..=1.0,
            users in 1_u32..80,
        ) {
            let stations = demands.iter().map(|(demand_s, servers, copies, own_share)| Station {
                demand_s: *demand_s,
                own_s: own_share * demand_s,
                servers: Some(*servers),
                credit_s: 0.0,
                copies: *copies,
                is_shared: false,
            });
            let network = Network { variability, ..network(stations.collect(), delay_s, think_s) };
            let found = &closed(&network, &[users])[0];
            prop_assert!(found.rate <= bounds::closed_rate_max(&network, users) * (1.0 + 1e-9), "{:?}", found);
            prop_assert!(found.response_s >= bounds::closed_response_min_s(&network, users) * (1.0 - 1e-9));
            prop_assert!((found.rate * (found.response_s + think_s) - f64::from(users)).abs() < 1e-6);
            prop_assert!(found.waits_s.iter().all(|wait| *wait >= 0.0));
        }
    }
}
