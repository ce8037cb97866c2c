//! A small simulation of a closed network, event by event: the referee of the formulas.

use std::collections::{BinaryHeap, VecDeque};

use narrows_testkit::random::Random;

use super::{Network, Solution};

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

/// A time with this mean: the sum of so many equal exponential ones; constant for none.
fn time(random: &mut Random, mean_s: f64, phases: usize) -> f64 {
    if phases == 0 {
        return mean_s;
    }
    (0..phases).map(|_| random.exponential(mean_s / phases as f64)).sum()
}

/// So many requests of so many users, each of whom visits every station in turn. Times in service and between requests
/// have so many phases, the delay is constant.
pub(super) fn closed(network: &Network, users: u32, requests: usize, phases: usize) -> Solution {
    assert!(network.stations.iter().all(|station| station.own_s == station.demand_s && station.copies == 1));
    let mut random = Random::new(7);
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
                events.push(event(now + time(&mut random, network.stations[left].demand_s, phases), first));
            }
        } else {
            all[user].began = now;
        }
        all[user].station = next;
        if next == thinks {
            done += 1;
            total += now + network.delay_s - all[user].began;
            events.push(event(now + network.delay_s + time(&mut random, network.think_s, phases), user));
        } else if network.stations[next].servers.is_none_or(|servers| busy[next] < servers) {
            busy[next] += 1;
            events.push(event(now + time(&mut random, network.stations[next].demand_s, phases), user));
        } else {
            waiting[next].push_back(user);
        }
    }
    Solution { rate: done as f64 / now, response_s: total / done as f64, waits_s: Vec::new() }
}
