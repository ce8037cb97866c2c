//! A small simulation of a closed network, event by event: the referee of the formulas.

use std::collections::{BinaryHeap, VecDeque};

use narrows_testkit::random::Random;

use super::{Adds, Network, Solution};

/// Next event of a user, at a time in nanoseconds; the earliest is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: std::cmp::Reverse<u64>,
    user: usize,
}

/// Where a user is: at a station, or past all of them.
#[derive(Clone, Copy)]
struct User {
    station: usize,
    began: f64,
}

/// So many requests of so many users, each of whom visits every station in turn. Times are exponential, the delay is not.
pub(super) fn closed(network: &Network, users: u32, requests: usize, seed: u64) -> Solution {
    assert!(network.stations.iter().all(|station| station.adds == Adds::Residence && station.copies == 1));
    let mut random = Random::new(seed);
    let mut busy = vec![0_u32; network.stations.len()];
    let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); network.stations.len()];
    let mut all = vec![User { station: 0, began: 0.0 }; users as usize];
    let mut events = BinaryHeap::new();
    let event = |at: f64, user: usize| Event { at: std::cmp::Reverse((at * 1e9) as u64), user };
    // A user whose station is one past the last thinks or is delayed; then the request begins.
    let thinks = network.stations.len();
    for (user, state) in all.iter_mut().enumerate() {
        state.station = thinks;
        events.push(event(random.exponential(network.think_s), user));
    }
    let (mut now, mut done, mut total) = (0.0, 0_usize, 0.0);
    while done < requests {
        let Some(Event { at, user }) = events.pop() else { break };
        now = at.0 as f64 / 1e9;
        let left = all[user].station;
        let next = if left == thinks { 0 } else { left + 1 };
        if left < thinks {
            busy[left] -= 1;
            if let Some(first) = waiting[left].pop_front() {
                busy[left] += 1;
                events.push(event(now + random.exponential(network.stations[left].demand_s), first));
            }
        } else {
            all[user].began = now;
        }
        all[user].station = next;
        if next == thinks {
            done += 1;
            total += now + network.delay_s - all[user].began;
            events.push(event(now + network.delay_s + random.exponential(network.think_s), user));
        } else if network.stations[next].servers.is_none_or(|servers| busy[next] < servers) {
            busy[next] += 1;
            events.push(event(now + random.exponential(network.stations[next].demand_s), user));
        } else {
            waiting[next].push_back(user);
        }
    }
    Solution { rate: done as f64 / now, response_s: total / done as f64, waits_s: Vec::new() }
}
