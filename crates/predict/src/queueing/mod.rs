//! Queueing models of a system as a whole: bounds, single queues, and closed networks.
//!
//! Times are seconds, rates are per second. A station's *demand* is the time that one request needs there, waiting left
//! out. All formulas are for the long-run mean. Where a formula and a simulation both apply, a test compares them.

pub mod bounds;
pub mod mm1;
pub mod mmm;
pub mod mva;
pub mod repairman;
#[cfg(test)]
mod simulation;
pub mod token_bucket;

/// With more servers than this no request waits for one.
const SERVERS_MAX: u32 = 1_024;

/// One resource that requests queue at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Station {
    /// Time for which a request occupies one server of one copy of the station, from 0.
    pub demand_s: f64,
    /// Part of it that adds to the response time where no request waits: all of it, or 0 where it passes at another
    /// station at the same time, as a machine's cores are used by services.
    pub own_s: f64,
    /// Requests that one copy serves at a time, at least 1; `None` if it serves all at once.
    pub servers: Option<u32>,
    /// Equal copies that each request visits, at least 1. Replicas that share requests have the demand of a request
    /// divided by their number.
    pub copies: u32,
    /// Work that may be ahead of its time before requests wait, in seconds of one copy's work, from 0: a limit of CPU lets what is
    /// left of a period's quota pass at once. The wait of requests is multiplied by the chance that more is ahead.
    pub credit_s: f64,
    /// Whether requests share the servers evenly, as threads share processors, so that those that arrive together also end
    /// together. Elsewhere each is served to its end.
    pub is_shared: bool,
}

impl Station {
    /// A single copy, whose demand is part of the response time.
    pub fn new(demand_s: f64, servers: u32) -> Self {
        Self { demand_s, own_s: demand_s, servers: Some(servers.max(1)), copies: 1, credit_s: 0.0, is_shared: false }
    }

    /// A single copy that adds its wait alone to the response time.
    pub fn of_waits(demand_s: f64, servers: u32) -> Self {
        Self { own_s: 0.0, ..Self::new(demand_s, servers) }
    }

    /// A station that serves all requests at once.
    pub fn without_queue(demand_s: f64) -> Self {
        Self { servers: None, ..Self::new(demand_s, 1) }
    }

    /// The chance that work beyond the credit is ahead of a request, with so many of the servers busy, a share: of the exponential
    /// decay that queues have in heavy traffic (J. F. C. Kingman, *The single server queue in heavy traffic*, 1961). Copies that
    /// share requests get the work of a whole one at once.
    fn beyond_credit(&self, busy_share: f64, variability: f64) -> f64 {
        let each_s = variability * self.demand_s * f64::from(self.copies);
        if self.credit_s <= 0.0 || each_s <= 0.0 {
            return 1.0;
        }
        (-2.0 * (1.0 - busy_share).max(0.0) * self.credit_s / each_s).exp()
    }

    /// Its servers, if they are so few that requests queue for them.
    fn queued_servers(&self) -> Option<u32> {
        self.servers.filter(|servers| *servers <= SERVERS_MAX)
    }

    /// Time that a request needs there without any wait, all copies together, as far as it adds to the response time.
    pub fn own_time_s(&self) -> f64 {
        self.own_s * f64::from(self.copies)
    }

    /// Wait of a request that arrives together with others, so many in all, mean. As many as there are servers wait for none.
    fn burst_wait_s(&self, requests: f64) -> f64 {
        let Some(servers) = self.queued_servers() else { return 0.0 };
        let others = (requests - f64::from(servers) * f64::from(self.copies)).max(0.0);
        let ahead = if self.is_shared { others } else { others / 2.0 };
        ahead / self.rate_max()
    }

    /// The highest rate that it can serve; infinite without a demand.
    pub fn rate_max(&self) -> f64 {
        match self.servers {
            Some(servers) if self.demand_s > 0.0 => f64::from(servers) / self.demand_s,
            _ => f64::INFINITY,
        }
    }
}

/// Requests that arrive together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Burst {
    /// So many at any rate, from 1.
    Of(f64),
    /// Those of so many seconds, above 0.
    Every(f64),
}

impl Burst {
    /// One request at a time.
    pub const ONE: Self = Self::Of(1.0);

    /// So many at this rate, in requests per second.
    fn requests(self, rate: f64) -> f64 {
        match self {
            Self::Of(requests) => requests,
            Self::Every(seconds) => (rate * seconds).max(1.0),
        }
    }
}

/// Stations, and time that passes without any queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Where requests queue.
    pub stations: Vec<Station>,
    /// Time of a request that no queue lengthens, from 0.
    pub delay_s: f64,
    /// Time between a response and its user's next request, from 0. Of no effect with arrivals.
    pub think_s: f64,
    /// Time that a request in service still needs when another arrives, as a share of that of exponential times, from 0: half
    /// of 1 + the squared coefficient of variation of times in service, so ½ where they are constant. Below, requests also
    /// arrive more evenly than at random.
    pub variability: f64,
    /// By how much all demands are higher in one half of the time and lower in the other, a share, from 0 to below 1: a machine
    /// whose speed changes while the load stays. Near a limit that lengthens waits many times; far below it hardly at all. Of no
    /// effect with arrivals.
    pub drift: f64,
    /// Requests that arrive together. Of no effect with users.
    pub burst: Burst,
}

impl Default for Network {
    fn default() -> Self {
        Self { stations: Vec::new(), delay_s: 0.0, think_s: 0.0, variability: 1.0, drift: 0.0, burst: Burst::ONE }
    }
}

impl Network {
    /// The network without drift, with each demand times a factor.
    fn with_demands(&self, factor: f64) -> Self {
        let scaled = |station: &Station| Station {
            demand_s: station.demand_s * factor,
            own_s: station.own_s * factor,
            ..*station
        };
        Self { stations: self.stations.iter().map(scaled).collect(), drift: 0.0, ..self.clone() }
    }

    /// The response time of a request that meets no other.
    pub fn unloaded_s(&self) -> f64 {
        self.delay_s + self.stations.iter().map(Station::own_time_s).sum::<f64>()
    }
}

/// A network under one load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Solution {
    /// Completed requests per second.
    pub rate: f64,
    /// Mean response time.
    pub response_s: f64,
    /// The part of it that is spent waiting at each station, all copies together.
    pub waits_s: Vec<f64>,
}

/// A network with arrivals at a fixed rate, each station an M/M/m queue (Jackson 1957) whose wait is multiplied by the
/// variability, as by the formula of Pollaczek and Khinchine for one server; `None` if one cannot keep up. Requests that arrive
/// together wait for each other where that takes longest, and are done before the next ones come.
pub fn open(network: &Network, rate: f64) -> Option<Solution> {
    let wait = |station: &Station| {
        let one = station.queued_servers().map_or(Some(0.0), |servers| mmm::wait_s(rate, station.demand_s, servers))?;
        let busy_share = rate / station.rate_max();
        let beyond = station.beyond_credit(busy_share, network.variability);
        Some(one * f64::from(station.copies) * network.variability * beyond)
    };
    let mut waits_s: Vec<f64> = network.stations.iter().map(wait).collect::<Option<_>>()?;
    let together = network.burst.requests(rate);
    let of_burst = network.stations.iter().map(|station| station.burst_wait_s(together)).enumerate();
    if let Some((station, wait_s)) = of_burst.max_by(|a, b| a.1.total_cmp(&b.1)) {
        waits_s[station] += wait_s;
    }
    let response_s = network.unloaded_s() + waits_s.iter().sum::<f64>();
    Some(Solution { rate, response_s, waits_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_network_adds_up_its_queues() {
        let stations = vec![Station::new(0.01, 1), Station::of_waits(0.02, 2)];
        let network = Network { stations, delay_s: 0.1, ..Network::default() };
        let solution = open(&network, 50.0).expect("it keeps up");
        let expected = 0.1 + mm1::response_s(50.0, 0.01).expect("it keeps up");
        let waits = mmm::wait_s(50.0, 0.02, 2).expect("it keeps up");
        assert!((solution.response_s - expected - waits).abs() < 1e-12, "{solution:?}");
        assert_eq!(open(&network, 100.0), None);
        let regular = open(&Network { variability: 0.5, ..network.clone() }, 50.0).expect("it keeps up");
        assert!((regular.response_s - 0.11 - (expected - 0.11 + waits) / 2.0).abs() < 1e-12, "{regular:?}");
        let added_s = |network: Network| open(&network, 50.0).expect("it keeps up").response_s - solution.response_s;
        let bursts = Network { burst: Burst::Of(7.0), ..network.clone() };
        let ticks = Network { burst: Burst::Every(0.14), ..network.clone() };
        assert!((added_s(ticks) - added_s(bursts.clone())).abs() < 1e-12, "seven at 50 a second");
        assert!((added_s(bursts.clone()) - 0.03).abs() < 1e-12, "six wait for half of them at 100 a second");
        let shared = Station { is_shared: true, ..bursts.stations[1] };
        let shared = Network { stations: vec![bursts.stations[0], shared], ..bursts };
        assert!(
            (added_s(shared) - 0.05).abs() < 1e-12,
            "all end together: five at 100 a second beside two that wait for none"
        );
        let credit = Station { credit_s: 0.01, ..Station::new(0.01, 1) };
        let with_credit = open(&Network { stations: vec![credit], ..Network::default() }, 50.0).expect("it keeps up");
        assert!((with_credit.waits_s[0] - 0.01 * (-1.0_f64).exp()).abs() < 1e-12, "{with_credit:?}");
        let many = Network { stations: vec![Station::new(0.01, u32::MAX)], ..Network::default() };
        assert_eq!(open(&many, 1e6).map(|solution| solution.response_s), Some(0.01));
    }
}
