//! Details: what happened between two detailed readings. Pure.
//!
//! Counters become rates over the time between. A counter that fell counts as nothing, and where the earlier reading
//! has no figure to compare with there is no rate: nothing is guessed.
//!
//! Bytes to and from disks need care: when a process ends and its parent waits for it, the kernel adds all that it ever
//! read and wrote to the parent's figures. What was counted of it before is therefore taken off its closest ancestor in
//! the replica that is still there.

use std::collections::HashMap;

use narrows_model::series::{Point, SeriesKey, names};

use super::cgroups::{self, RESOURCES};
use super::details::{Details, DiskUse, GroupDetails};
use super::diff::{Interval, earlier};
use super::host::{self, Network};
use super::points::Points;
use super::scan::Units;
use super::sockets::{self, Connections, Listener};
use super::stat::TaskId;
use super::text::{Disk, Interface, Pressure, Switches};

/// The points of a detailed reading: amounts, and rates since the detailed reading before. Without one, amounts only.
pub(super) fn points(
    before: Option<&Details>,
    after: &Details,
    units: &Units,
    time_ns: i64,
) -> Vec<(SeriesKey, Point)> {
    let mut out = Vec::new();
    let since = before.and_then(|before| Interval::between(before.since_boot, after.since_boot, units));
    for (key, group) in &after.groups {
        let mut points = Points::new(&mut out, (&key.0, key.1), time_ns);
        amounts(&mut points, group);
        if let (Some(since), Some(earlier)) = (since, before.and_then(|before| before.groups.get(key))) {
            rates(&mut points, since, earlier, group);
        }
    }
    host(&mut Points::new(&mut out, ("", 0), time_ns), before.map(|before| &before.host).zip(since), &after.host);
    out
}

fn amounts(points: &mut Points<'_>, group: &GroupDetails) {
    points.push(names::THREADS, group.threads as f64);
    for (state, peer, threads) in &group.states {
        let labels = [(names::THREAD_STATE, state.as_str()), (names::NETWORK_PEER, peer.as_str())];
        let labels = if peer.is_empty() { &labels[..1] } else { &labels[..] };
        points.push_labelled(names::THREAD_STATES, labels, *threads);
    }
    if let Some(descriptors) = group.descriptors {
        points.push(names::OPEN_DESCRIPTORS, descriptors as f64);
    }
    if let Some(fullest) = group.fullest {
        points.push(names::DESCRIPTORS_LIMIT, fullest.limit as f64);
        points.push(names::DESCRIPTORS_UTILIZATION, fullest.share());
    }
    for (port, listener) in sockets::by_port(group.listeners.iter().copied()) {
        let port = port.to_string();
        let labels = [(names::SERVER_PORT, port.as_str())];
        points.push_labelled(names::ACCEPT_QUEUE, &labels, listener.queued as f64);
        if let Some(limit) = listener.limit {
            points.push_labelled(names::ACCEPT_QUEUE_LIMIT, &labels, limit as f64);
        }
    }
    if let Some(sampled) = &group.connections {
        connections(points, sampled);
    }
    let time_wait = group.network.as_ref().and_then(|network| network.time_wait);
    for (name, amount) in [(names::TIME_WAIT, time_wait), (names::EPHEMERAL_PORTS, group.ephemeral_ports)] {
        if let Some(amount) = amount {
            points.push(name, amount as f64);
        }
    }
    if let Some(bytes) = group.pss_bytes {
        points.push(names::MEMORY_PSS_BYTES, bytes as f64);
    }
    if let Some(cpu) = &group.cgroup.cpu {
        points.push(names::CGROUP_CPU_LIMIT, cpu.limit_cores);
    }
    if let Some(memory) = &group.cgroup.memory {
        points.push(names::CGROUP_MEMORY_USAGE, memory.used_bytes as f64);
        points.push(names::CGROUP_MEMORY_LIMIT, memory.limit_bytes as f64);
    }
    averages(points, names::CGROUP_PRESSURE_AVERAGE, &group.cgroup.pressure);
}

/// Means and rates, which the samples make by themselves.
fn connections(points: &mut Points<'_>, sampled: &Connections) {
    for (peer, figures) in &sampled.peers {
        let labels = [(names::NETWORK_PEER, peer.as_str())];
        let values = [
            (names::CONNECTIONS, figures.connections),
            (names::CONNECTIONS_ONE_WAY, figures.one_way),
            (names::CONNECTIONS_OPENED, figures.opened),
            (names::REQUESTS_OUTSTANDING, figures.outstanding),
            (names::REQUESTS_UNDECIDED, figures.undecided),
            (names::RESPONSES_UNREAD, figures.unread),
            (names::REQUEST_RATE, figures.requests),
            (names::CONNECTION_BUSY, figures.busy),
        ];
        for (name, value) in values {
            points.push_labelled(name, &labels, value);
        }
        for (direction, bytes) in [(names::RECEIVE, figures.received_bytes), (names::TRANSMIT, figures.sent_bytes)] {
            let labels = [(names::NETWORK_DIRECTION, direction), labels[0]];
            points.push_labelled(names::CONNECTION_IO, &labels, bytes);
        }
    }
    for (port, figures) in &sampled.clients {
        let port = port.to_string();
        let labels = [(names::SERVER_PORT, port.as_str())];
        points.push_labelled(names::CLIENT_CONNECTIONS, &labels, figures.connections);
        points.push_labelled(names::CLIENT_CONNECTIONS_OPENED, &labels, figures.opened);
        points.push_labelled(names::CLIENT_REQUESTS, &labels, figures.outstanding);
    }
}

fn rates(points: &mut Points<'_>, since: Interval, before: &GroupDetails, after: &GroupDetails) {
    let switches = switched(&before.switches, &after.switches, since.began_ticks);
    for (kind, count) in [("voluntary", switches.voluntary), ("involuntary", switches.involuntary)] {
        let labels = [(names::CONTEXT_SWITCH_TYPE, kind)];
        points.push_labelled(names::CONTEXT_SWITCHES, &labels, since.per_second(count as f64));
    }
    if let (Some(before), Some(after)) = (&before.disk, &after.disk) {
        let disk = moved(before, after, since.began_ticks);
        for (direction, bytes) in [("read", disk.read_bytes), ("write", disk.written_bytes)] {
            let labels = [(names::DISK_DIRECTION, direction)];
            points.push_labelled(names::DISK_IO, &labels, since.per_second(bytes as f64));
        }
    }
    let namespace = |network: &Option<Network>| network.as_ref().map(|network| network.namespace.clone());
    if let (Some(then), Some(now)) = (&before.network, &after.network)
        && namespace(&before.network) == namespace(&after.network)
    {
        traffic(points, names::NETWORK_IO, since, &then.interfaces, &now.interfaces);
        counted(points, names::LISTEN_OVERFLOWS, since, before.overflows, after.overflows);
    }
    drops(points, since, &before.listeners, &after.listeners);
    throttling(points, since, &before.cgroup, &after.cgroup);
    kills(points, since, &before.cgroup, &after.cgroup);
    if before.cgroup.pressure_folder == after.cgroup.pressure_folder {
        stalls(points, names::CGROUP_PRESSURE_STALLED, since, &before.cgroup.pressure, &after.cgroup.pressure);
    }
}

fn host(points: &mut Points<'_>, before: Option<(&host::Figures, Interval)>, after: &host::Figures) {
    if let Some(bytes) = after.available_bytes {
        points.push(names::HOST_MEMORY_AVAILABLE, bytes as f64);
    }
    if let Some(load) = after.load {
        points.push(names::HOST_LOAD, load);
    }
    for (name, amount) in
        [(names::HOST_TIME_WAIT, after.time_wait), (names::HOST_EPHEMERAL_PORTS, after.ephemeral_ports)]
    {
        if let Some(amount) = amount {
            points.push(name, amount as f64);
        }
    }
    averages(points, names::HOST_PRESSURE_AVERAGE, &after.pressure);
    if let Some((before, since)) = before {
        stalls(points, names::HOST_PRESSURE_STALLED, since, &before.pressure, &after.pressure);
        traffic(points, names::HOST_NETWORK_IO, since, &before.interfaces, &after.interfaces);
        counted(points, names::HOST_LISTEN_OVERFLOWS, since, before.overflows, after.overflows);
    }
}

/// Switches of all threads since the earlier reading.
fn switched(before: &HashMap<TaskId, Switches>, after: &HashMap<TaskId, Switches>, began_ticks: u64) -> Switches {
    let mut sum = Switches::default();
    for (id, now) in after {
        let then = earlier(before, id, began_ticks).unwrap_or(*now);
        sum.voluntary = sum.voluntary.saturating_add(now.voluntary.saturating_sub(then.voluntary));
        sum.involuntary = sum.involuntary.saturating_add(now.involuntary.saturating_sub(then.involuntary));
    }
    sum
}

/// Bytes to and from disks since the earlier reading.
fn moved(before: &HashMap<TaskId, DiskUse>, after: &HashMap<TaskId, DiskUse>, began_ticks: u64) -> Disk {
    let mut sum = Disk::default();
    let counted = counted_of_ended(before, after);
    for (id, now) in after {
        let then = match before.get(id) {
            Some(then) => then.disk,
            None if id.started_ticks >= began_ticks => Disk::default(),
            None => now.disk,
        };
        let then = plus(then, counted.get(id).copied().unwrap_or_default());
        sum.read_bytes = sum.read_bytes.saturating_add(now.disk.read_bytes.saturating_sub(then.read_bytes));
        sum.written_bytes = sum.written_bytes.saturating_add(now.disk.written_bytes.saturating_sub(then.written_bytes));
    }
    sum
}

/// Bytes that ended processes had moved up to the earlier reading, by the closest ancestor that is still there.
fn counted_of_ended(before: &HashMap<TaskId, DiskUse>, after: &HashMap<TaskId, DiskUse>) -> HashMap<TaskId, Disk> {
    let by_number: HashMap<u32, TaskId> = before.keys().map(|id| (id.id, *id)).collect();
    let mut counted: HashMap<TaskId, Disk> = HashMap::new();
    for ended in before.iter().filter(|(id, _)| !after.contains_key(id)).map(|(_, ended)| ended) {
        let mut ancestor = by_number.get(&ended.parent);
        // Parents that changed while they were read could form a ring.
        for _ in 0..before.len() {
            match ancestor {
                Some(id) if !after.contains_key(id) => ancestor = by_number.get(&before[id].parent),
                Some(_) | None => break,
            }
        }
        if let Some(heir) = ancestor.filter(|id| after.contains_key(id)) {
            let counted = counted.entry(*heir).or_default();
            *counted = plus(*counted, ended.disk);
        }
    }
    counted
}

fn plus(one: Disk, other: Disk) -> Disk {
    Disk {
        read_bytes: one.read_bytes.saturating_add(other.read_bytes),
        written_bytes: one.written_bytes.saturating_add(other.written_bytes),
    }
}

fn traffic(points: &mut Points<'_>, name: &'static str, since: Interval, before: &[Interface], after: &[Interface]) {
    for now in after {
        let Some(then) = before.iter().find(|then| then.name == now.name) else { continue };
        let received = now.received_bytes.saturating_sub(then.received_bytes);
        let sent = now.sent_bytes.saturating_sub(then.sent_bytes);
        for (direction, bytes) in [(names::RECEIVE, received), (names::TRANSMIT, sent)] {
            let labels = [(names::NETWORK_DIRECTION, direction), (names::NETWORK_INTERFACE, &now.name)];
            points.push_labelled(name, &labels, since.per_second(bytes as f64));
        }
    }
}

/// A counter that both readings have.
fn counted(points: &mut Points<'_>, name: &'static str, since: Interval, then: Option<u64>, now: Option<u64>) {
    if let (Some(then), Some(now)) = (then, now) {
        points.push(name, since.per_second(now.saturating_sub(then) as f64));
    }
}

/// Connections that listening sockets dropped, by port. A socket that was not there before counts from its start.
fn drops(points: &mut Points<'_>, since: Interval, before: &[Listener], after: &[Listener]) {
    let new = after.iter().map(|now| {
        let then = before.iter().find(|then| then.inode == now.inode).and_then(|then| then.dropped).unwrap_or(0);
        Listener { dropped: now.dropped.map(|dropped| dropped.saturating_sub(then)), ..*now }
    });
    for (port, listener) in sockets::by_port(new) {
        if let Some(dropped) = listener.dropped {
            let port = port.to_string();
            let labels = [(names::SERVER_PORT, port.as_str())];
            points.push_labelled(names::ACCEPT_QUEUE_DROPS, &labels, since.per_second(dropped as f64));
        }
    }
}

fn throttling(points: &mut Points<'_>, since: Interval, before: &cgroups::Figures, after: &cgroups::Figures) {
    let (Some(then), Some(now)) = (&before.cpu, &after.cpu) else { return };
    if then.folder != now.folder {
        return;
    }
    let rate = |now: u64, then: u64| since.per_second(now.saturating_sub(then) as f64);
    points.push(names::CGROUP_PERIODS, rate(now.periods, then.periods));
    points.push(names::CGROUP_THROTTLED_PERIODS, rate(now.throttled_periods, then.throttled_periods));
    points.push(names::CGROUP_THROTTLED_TIME, rate(now.throttled_ns, then.throttled_ns) / 1e9);
}

fn kills(points: &mut Points<'_>, since: Interval, before: &cgroups::Figures, after: &cgroups::Figures) {
    let (Some(then), Some(now)) = (&before.memory, &after.memory) else { return };
    if then.folder != now.folder {
        return;
    }
    if let (Some(then), Some(now)) = (then.oom_kills, now.oom_kills) {
        points.push(names::CGROUP_MEMORY_OOM_KILLS, since.per_second(now.saturating_sub(then) as f64));
    }
}

fn averages(points: &mut Points<'_>, name: &'static str, pressure: &[Option<Pressure>; 3]) {
    for (resource, pressure) in RESOURCES.iter().zip(pressure) {
        if let Some(pressure) = pressure {
            points.push_labelled(name, &[(names::PRESSURE_RESOURCE, resource)], pressure.average);
        }
    }
}

fn stalls(
    points: &mut Points<'_>,
    name: &'static str,
    since: Interval,
    before: &[Option<Pressure>; 3],
    after: &[Option<Pressure>; 3],
) {
    for (resource, (then, now)) in RESOURCES.iter().zip(before.iter().zip(after)) {
        if let (Some(then), Some(now)) = (then, now) {
            let seconds = now.total_us.saturating_sub(then.total_us) as f64 / 1e6;
            // The kernel adds up a stall when it ends or is read, so a share may go a little beyond the interval.
            let share = since.per_second(seconds).min(1.0);
            points.push_labelled(name, &[(names::PRESSURE_RESOURCE, resource)], share);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cgroups::Cpu;

    const UNITS: Units = Units { ticks_per_second: 100, page_bytes: 4096 };

    fn id(id: u32, started_ticks: u64) -> TaskId {
        TaskId { id, started_ticks }
    }

    /// Points of the later of two readings, two seconds after the one at tick 1,000.
    fn between(before: GroupDetails, after: GroupDetails) -> Vec<(SeriesKey, Point)> {
        let details = |seconds, group| Details {
            since_boot: Duration::from_secs(seconds),
            groups: [(("s".to_owned(), 1), group)].into_iter().collect(),
            ..Details::default()
        };
        points(Some(&details(10, before)), &details(12, after), &UNITS, 7)
    }

    fn value(points: &[(SeriesKey, Point)], name: &str, label: &str) -> Option<f64> {
        let is_it =
            |key: &SeriesKey| key.name == name && (label.is_empty() || key.labels.values().any(|value| value == label));
        points.iter().find(|(key, _)| is_it(key)).map(|(_, point)| point.value)
    }

    /// A group of (process, parent, bytes read).
    fn readers(rows: &[(TaskId, u32, u64)]) -> GroupDetails {
        let of = |(id, parent, read_bytes): &(TaskId, u32, u64)| {
            (*id, DiskUse { parent: *parent, disk: Disk { read_bytes: *read_bytes, written_bytes: 0 } })
        };
        GroupDetails { disk: Some(rows.iter().map(of).collect()), ..GroupDetails::default() }
    }

    #[test]
    fn disk_of_a_replica_over_two_seconds() {
        let (root, old, grandchild, young) = (id(1, 5), id(2, 900), id(3, 901), id(4, 1100));
        let cases: [(&str, &[_], &[_], f64); 8] = [
            ("grows", &[(root, 0, 100)], &[(root, 0, 300)], 100.0),
            ("falls", &[(root, 0, 300)], &[(root, 0, 100)], 0.0),
            ("a child that began", &[(root, 0, 100)], &[(root, 0, 100), (young, 1, 50)], 25.0),
            ("a process that was there, unseen", &[(root, 0, 100)], &[(root, 0, 100), (old, 1, 999)], 0.0),
            ("an end that was waited for", &[(root, 0, 100), (old, 1, 60)], &[(root, 0, 180)], 10.0),
            ("an end of two generations", &[(root, 0, 0), (old, 1, 60), (grandchild, 2, 40)], &[(root, 0, 120)], 10.0),
            ("an end that nobody waited for", &[(root, 0, 100), (old, 77, 60)], &[(root, 0, 120)], 10.0),
            ("a ring", &[(root, 0, 0), (old, 3, 60), (grandchild, 2, 40)], &[(root, 0, 20)], 10.0),
        ];
        for (what, before, after, expected) in cases {
            let points = between(readers(before), readers(after));
            assert_eq!(value(&points, names::DISK_IO, "read"), Some(expected), "{what}");
        }
        let unread = between(GroupDetails::default(), readers(&[(root, 0, 100)]));
        assert_eq!(value(&unread, names::DISK_IO, "read"), None);
    }

    #[test]
    fn switches_of_threads_that_were_there_or_began() {
        let group = |rows: &[(TaskId, u64, u64)]| GroupDetails {
            switches: rows
                .iter()
                .map(|(id, voluntary, involuntary)| {
                    (*id, Switches { voluntary: *voluntary, involuntary: *involuntary })
                })
                .collect(),
            ..GroupDetails::default()
        };
        let before = group(&[(id(1, 5), 10, 10), (id(2, 5), 500, 500)]);
        let after = group(&[(id(1, 5), 30, 12), (id(3, 1200), 4, 0), (id(4, 800), 999, 999)]);
        let points = between(before, after);
        assert_eq!(value(&points, names::CONTEXT_SWITCHES, "voluntary"), Some(12.0));
        assert_eq!(value(&points, names::CONTEXT_SWITCHES, "involuntary"), Some(1.0));
    }

    #[test]
    fn figures_of_another_group_or_network_are_not_compared() {
        let group = |place: &str, factor: u64| GroupDetails {
            network: Some(Network {
                namespace: place.to_owned(),
                time_wait: None,
                interfaces: vec![Interface {
                    name: "eth0".into(),
                    received_bytes: 100 * factor,
                    sent_bytes: 10 * factor,
                }],
            }),
            cgroup: cgroups::Figures {
                cpu: Some(Cpu {
                    folder: place.into(),
                    limit_cores: 0.5,
                    periods: 100 * factor,
                    throttled_periods: 10 * factor,
                    throttled_ns: 1_000_000_000 * factor,
                }),
                pressure: [Some(Pressure { average: 0.25, total_us: 500_000 * factor }), None, None],
                pressure_folder: Some(place.into()),
                memory: Some(cgroups::Memory {
                    folder: place.into(),
                    used_bytes: 4096,
                    limit_bytes: 8192,
                    oom_kills: Some(3 * factor),
                }),
            },
            ..GroupDetails::default()
        };
        let same = between(group("a", 1), group("a", 2));
        let other = between(group("a", 1), group("b", 2));
        for (name, label, expected) in [
            (names::NETWORK_IO, "receive", 50.0),
            (names::NETWORK_IO, "transmit", 5.0),
            (names::CGROUP_PERIODS, "", 50.0),
            (names::CGROUP_THROTTLED_PERIODS, "", 5.0),
            (names::CGROUP_THROTTLED_TIME, "", 0.5),
            (names::CGROUP_MEMORY_OOM_KILLS, "", 1.5),
            (names::CGROUP_PRESSURE_STALLED, "cpu", 0.25),
        ] {
            assert_eq!(value(&same, name, label), Some(expected), "{name}");
            assert_eq!(value(&other, name, label), None, "{name}");
        }
        assert_eq!(value(&other, names::CGROUP_CPU_LIMIT, ""), Some(0.5));
        assert_eq!(value(&other, names::CGROUP_PRESSURE_AVERAGE, "cpu"), Some(0.25));
    }

    #[test]
    fn the_host_has_amounts_at_once_and_rates_later() {
        let host = |factor: u64| host::Figures {
            interfaces: vec![Interface { name: "lo".into(), received_bytes: 10 * factor, sent_bytes: 20 * factor }],
            pressure: [None, None, Some(Pressure { average: 0.5, total_us: 9_000_000 * factor })],
            available_bytes: Some(4096),
            overflows: Some(10 * factor),
            time_wait: None,
            ephemeral_ports: None,
            load: Some(1.5),
        };
        let details = |seconds, factor| Details {
            since_boot: Duration::from_secs(seconds),
            host: host(factor),
            ..Details::default()
        };
        let first = points(None, &details(10, 1), &UNITS, 7);
        assert_eq!(first.len(), 3);
        assert_eq!(value(&first, names::HOST_MEMORY_AVAILABLE, ""), Some(4096.0));
        assert_eq!(value(&first, names::HOST_LOAD, ""), Some(1.5));
        let second = points(Some(&details(10, 1)), &details(12, 2), &UNITS, 7);
        assert_eq!(value(&second, names::HOST_NETWORK_IO, "transmit"), Some(10.0));
        assert_eq!(value(&second, names::HOST_PRESSURE_STALLED, "io"), Some(1.0));
        assert!(second.iter().all(|(key, point)| key.service.is_empty() && !key.unit.is_empty() && point.time_ns == 7));
    }
}
