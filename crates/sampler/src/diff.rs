//! CPU and memory: what happened between two readings. Pure.
//!
//! CPU of a replica over an interval is, over its processes: what those in both readings used, all that those used
//! which began in the interval, and what ended in it. The last is known from the ended processes' parents, to whose
//! "reaped" time the kernel adds it when they wait for them; what an ended process had used up to the earlier reading
//! is taken off, for it was counted then. So short-lived children count in full, as long as a process of the replica
//! waits for them. The interval after the last reading is lost for a process without a waiting parent.

use std::collections::HashMap;
use std::time::Duration;

use narrows_model::series::{Point, SeriesKey, names};

use super::points::Points;
use super::scan::{Group, Reading, Units};
use super::stat::{Cpu, HostStat, TaskId};
use super::threads::SchedulerCounts;

/// The points of a reading: memory, and rates since the reading before. Without one, memory only.
pub(super) fn points(before: Option<&Reading>, after: &Reading, units: &Units) -> Vec<(SeriesKey, Point)> {
    let mut out = Vec::new();
    let since = before.and_then(|before| Interval::between(before.since_boot, after.since_boot, units));
    for (key, group) in after.groups.iter().filter(|(_, group)| !group.processes.is_empty()) {
        let mut points = Points::new(&mut out, (&key.0, key.1), after.time_ns);
        points.push(names::MEMORY_BYTES, group.resident_pages.saturating_mul(units.page_bytes) as f64);
        let earlier = before.and_then(|before| before.groups.get(key));
        if let (Some(since), Some(earlier)) = (&since, earlier.filter(|earlier| !earlier.processes.is_empty())) {
            let cpu = used(earlier, group, since.began_ticks);
            points.push(names::CPU_CORES, since.cores(cpu.ticks()));
            points.push_labelled(names::CPU_TIME, &[(names::CPU_MODE, "user")], since.cores(cpu.user_ticks));
            points.push_labelled(names::CPU_TIME, &[(names::CPU_MODE, "system")], since.cores(cpu.system_ticks));
            if let Some(wait_ns) = waited_ns(earlier, group, since.began_ticks) {
                points.push(names::CPU_WAIT, since.per_second(wait_ns as f64 / 1e9));
            }
            let share = |ns: u64| since.per_second(ns as f64 / 1e9).min(1.0);
            if let Some(collected_ns) = collected_ns(earlier, group, since.began_ticks) {
                points.push(names::COLLECTOR_THREAD, share(collected_ns));
            }
            if let Some(SchedulerCounts { run_ns, wait_ns }) = busiest(earlier, group, since.began_ticks) {
                points.push(names::BUSIEST_THREAD_CORES, share(run_ns));
                if let Some(wait_ns) = wait_ns {
                    points.push(names::BUSIEST_THREAD_WAIT, share(wait_ns));
                }
            }
        }
    }
    if let (Some(before), Some(since)) = (before, &since) {
        host(&mut Points::new(&mut out, ("", 0), after.time_ns), since, before.host, after.host);
    }
    out
}

/// The time between two readings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    length: Duration,
    /// The earlier reading's instant, as processes' start times are written.
    pub(super) began_ticks: u64,
    ticks_per_second: u64,
}

impl Interval {
    /// The interval between two instants since boot; `None` if it is empty.
    pub(super) fn between(before: Duration, after: Duration, units: &Units) -> Option<Self> {
        let length = after.checked_sub(before).filter(|length| !length.is_zero())?;
        let began_ticks = before.as_nanos() * u128::from(units.ticks_per_second) / 1_000_000_000;
        let began_ticks = u64::try_from(began_ticks).unwrap_or(u64::MAX);
        Some(Self { length, began_ticks, ticks_per_second: units.ticks_per_second })
    }

    fn cores(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second as f64 / self.length.as_secs_f64()
    }

    pub(super) fn per_second(&self, amount: f64) -> f64 {
        amount / self.length.as_secs_f64()
    }
}

/// CPU time of a replica's processes since the earlier reading.
fn used(before: &Group, after: &Group, began_ticks: u64) -> Cpu {
    let (mut own, mut reaped) = (Cpu::default(), Cpu::default());
    for (id, now) in &after.processes {
        let then = earlier(&before.processes, id, began_ticks).unwrap_or(*now);
        own = own.plus(now.own.since(then.own));
        reaped = reaped.plus(now.reaped.since(then.reaped));
    }
    let ended = before.processes.iter().filter(|(id, _)| !after.processes.contains_key(id));
    let counted = ended.fold(Cpu::default(), |sum, (_, usage)| sum.plus(usage.own).plus(usage.reaped));
    own.plus(reaped.since(counted))
}

/// Work since of the thread that ran longest; none without threads.
fn busiest(before: &Group, after: &Group, began_ticks: u64) -> Option<SchedulerCounts> {
    ran(before, after, began_ticks).max()
}

/// How long the busiest of the threads that collect garbage ran or waited for a processor since, nanoseconds; `None`
/// without one.
fn collected_ns(before: &Group, after: &Group, began_ticks: u64) -> Option<u64> {
    let ran = after.collectors.iter().filter_map(|id| Some(ran_by(before, id, *after.threads.get(id)?, began_ticks)));
    ran.map(|ran| ran.run_ns.saturating_add(ran.wait_ns.unwrap_or(0))).max()
}

/// How long all threads waited for a processor since; `None` where the kernel does not say.
fn waited_ns(before: &Group, after: &Group, began_ticks: u64) -> Option<u64> {
    ran(before, after, began_ticks)
        .filter_map(|ran| ran.wait_ns)
        .fold(None, |sum, wait_ns| Some(sum.unwrap_or(0_u64).saturating_add(wait_ns)))
}

/// Work of each thread since.
fn ran(before: &Group, after: &Group, began_ticks: u64) -> impl Iterator<Item = SchedulerCounts> {
    after.threads.iter().map(move |(id, now)| ran_by(before, id, *now, began_ticks))
}

/// Work of one thread since.
fn ran_by(before: &Group, id: &TaskId, now: SchedulerCounts, began_ticks: u64) -> SchedulerCounts {
    let then = earlier(&before.threads, id, began_ticks).unwrap_or(now);
    SchedulerCounts {
        run_ns: now.run_ns.saturating_sub(then.run_ns),
        wait_ns: now.wait_ns.map(|wait_ns| wait_ns.saturating_sub(then.wait_ns.unwrap_or(0))),
    }
}

/// Use of a task at the earlier reading: nothing if it began since; `None` if it existed but was not seen,
/// as after a change of root: nothing can be said about its interval.
pub(super) fn earlier<T: Copy + Default>(before: &HashMap<TaskId, T>, id: &TaskId, began_ticks: u64) -> Option<T> {
    let began_since = id.started_ticks >= began_ticks;
    before.get(id).copied().or_else(|| began_since.then(T::default))
}

fn host(points: &mut Points<'_>, since: &Interval, before: HostStat, after: HostStat) {
    let total = after.total_ticks.saturating_sub(before.total_ticks);
    if total == 0 {
        return;
    }
    // The kernel's count of time spent waiting for disks may run backwards, so shares are kept within 0 to 1.
    let share = |now: u64, then: u64| (now.saturating_sub(then) as f64 / total as f64).min(1.0);
    // Each processor adds its ticks.
    points.push(names::HOST_CPU_COUNT, since.cores(total).round().max(1.0));
    points.push(names::HOST_CPU_UTILIZATION, 1.0 - share(after.idle_ticks, before.idle_ticks));
    points.push(names::HOST_CPU_STEAL, share(after.steal_ticks, before.steal_ticks));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Usage;

    const UNITS: Units = Units { ticks_per_second: 100, page_bytes: 4096 };

    /// The earlier reading is at tick 1,000, the later one two seconds after it.
    fn readings(before: &Group, after: &Group) -> (Reading, Reading) {
        let reading = |seconds, group: &Group| Reading {
            time_ns: seconds as i64,
            since_boot: Duration::from_secs(seconds),
            host: HostStat::default(),
            groups: [(("s".to_owned(), 1), group.clone())].into_iter().collect(),
        };
        (reading(10, before), reading(12, after))
    }

    fn id(id: u32, started_ticks: u64) -> TaskId {
        TaskId { id, started_ticks }
    }

    fn user(user_ticks: u64) -> Cpu {
        Cpu { user_ticks, system_ticks: 0 }
    }

    /// A group of (process, own ticks, reaped ticks).
    fn processes(rows: &[(TaskId, u64, u64)]) -> Group {
        let usage = |(id, own_ticks, reaped_ticks): &(TaskId, u64, u64)| {
            (*id, Usage { own: user(*own_ticks), reaped: user(*reaped_ticks) })
        };
        Group { processes: rows.iter().map(usage).collect(), resident_pages: 2, ..Group::default() }
    }

    fn value(points: &[(SeriesKey, Point)], name: &str) -> Option<f64> {
        points.iter().find(|(key, _)| key.name == name).map(|(_, point)| point.value)
    }

    fn cores(before: &[(TaskId, u64, u64)], after: &[(TaskId, u64, u64)]) -> Option<f64> {
        let (before, after) = readings(&processes(before), &processes(after));
        value(&points(Some(&before), &after, &UNITS), names::CPU_CORES)
    }

    #[test]
    fn cpu_of_a_replica_over_two_seconds() {
        let (root, old, young) = (id(1, 5), id(2, 900), id(3, 1100));
        let cases: [(&str, &[_], &[_], f64); 8] = [
            ("idle", &[(root, 50, 0)], &[(root, 50, 0)], 0.0),
            ("one core and a half", &[(root, 50, 0)], &[(root, 350, 0)], 1.5),
            ("a child", &[(root, 50, 0), (old, 10, 0)], &[(root, 150, 0), (old, 110, 0)], 1.0),
            ("a child that began", &[(root, 50, 0)], &[(root, 50, 0), (young, 100, 20)], 0.6),
            ("a child that ended and was waited for", &[(root, 50, 0), (old, 100, 0)], &[(root, 50, 140)], 0.2),
            ("a child that began and ended", &[(root, 50, 0)], &[(root, 50, 140)], 0.7),
            ("a child that nobody waited for", &[(root, 50, 7), (old, 100, 0)], &[(root, 90, 7)], 0.2),
            ("a process that was there, unseen", &[(root, 50, 0)], &[(root, 50, 0), (old, 9999, 9999)], 0.0),
        ];
        for (what, before, after, expected) in cases {
            assert_eq!(cores(before, after), Some(expected), "{what}");
        }
    }

    #[test]
    fn user_and_system_time_add_up_to_the_cores() {
        let cpu = |user_ticks, system_ticks| Cpu { user_ticks, system_ticks };
        let group = |rows: &[(TaskId, Cpu, Cpu)]| Group {
            processes: rows.iter().map(|(id, own, reaped)| (*id, Usage { own: *own, reaped: *reaped })).collect(),
            ..Group::default()
        };
        let (root, child) = (id(1, 5), id(2, 900));
        let before = group(&[(root, cpu(50, 20), cpu(0, 9)), (child, cpu(10, 10), cpu(0, 0))]);
        let after = group(&[(root, cpu(90, 80), cpu(30, 21))]);
        let (before, after) = readings(&before, &after);
        let points = points(Some(&before), &after, &UNITS);
        let mode = |mode: &str| {
            let has_mode = |key: &SeriesKey| key.labels.get(names::CPU_MODE).is_some_and(|label| label == mode);
            points.iter().find(|(key, _)| key.name == names::CPU_TIME && has_mode(key)).unwrap().1.value
        };
        assert_eq!((mode("user"), mode("system")), (0.3, 0.31));
        assert_eq!(value(&points, names::CPU_CORES), Some(0.61));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        assert_eq!(cores(&[(id(1, 5), 500, 0)], &[(id(1, 1050), 40, 0)]), Some(0.2));
    }

    #[test]
    fn nothing_is_said_about_cpu_without_two_readings() {
        let group = processes(&[(id(1, 5), 50, 0)]);
        assert_eq!(cores(&[], &[(id(1, 5), 50, 0)]), None);
        assert_eq!(cores(&[(id(1, 5), 50, 0)], &[]), None);
        let (_, after) = readings(&group, &group);
        let first = points(None, &after, &UNITS);
        assert_eq!(first.len(), 1);
        assert_eq!(value(&first, names::MEMORY_BYTES), Some(8192.0));
        assert_eq!((first[0].0.service.as_str(), first[0].0.replica, first[0].1.time_ns), ("s", 1, 12));
        assert_eq!(value(&points(Some(&after), &after, &UNITS), names::CPU_CORES), None);
    }

    #[test]
    fn the_busiest_thread_is_at_most_one_core_and_its_own_waiting_is_reported() {
        let with = |threads: &[(TaskId, u64)]| Group {
            threads: threads
                .iter()
                .map(|(id, cs)| (*id, SchedulerCounts { run_ns: cs * 10_000_000, wait_ns: Some(cs * 1_000_000) }))
                .collect(),
            ..processes(&[(id(1, 5), 0, 0)])
        };
        let busiest = |before: &[_], after: &[_]| {
            let (before, after) = readings(&with(before), &with(after));
            let points = points(Some(&before), &after, &UNITS);
            Some((value(&points, names::BUSIEST_THREAD_CORES)?, value(&points, names::BUSIEST_THREAD_WAIT)?))
        };
        let (a, b, young) = (id(1, 5), id(2, 6), id(3, 1100));
        assert_eq!(busiest(&[(a, 10), (b, 500)], &[(a, 60), (b, 600)]), Some((0.5, 0.05)));
        assert_eq!(busiest(&[(a, 10)], &[(a, 60), (b, 999), (young, 90)]), Some((0.45, 0.045)));
        assert_eq!(busiest(&[(a, 10)], &[(a, 212)]), Some((1.0, 0.101)));
        assert_eq!(busiest(&[(a, 10)], &[]), None);
        let waited = |before: &[_], after: &[_]| {
            let (before, after) = readings(&with(before), &with(after));
            value(&points(Some(&before), &after, &UNITS), names::CPU_WAIT)
        };
        assert_eq!(waited(&[(a, 10), (b, 500)], &[(a, 60), (b, 600), (young, 50)]), Some(0.1), "all threads");
        assert_eq!(waited(&[(a, 10)], &[]), None);
    }

    #[test]
    fn the_busiest_collector_shows_how_long_garbage_is_collected() {
        let (worker, other, program) = (id(2, 6), id(3, 6), id(4, 6));
        let with = |collectors: &[TaskId], tens_of_ms: [u64; 3]| Group {
            threads: std::iter::zip([worker, other, program], tens_of_ms)
                .map(|(id, n)| (id, SchedulerCounts { run_ns: n * 10_000_000, wait_ns: Some(n * 1_000_000) }))
                .collect(),
            collectors: collectors.to_vec(),
            ..processes(&[(id(1, 5), 0, 0)])
        };
        let collected = |collectors: &[TaskId]| {
            let (before, after) = readings(&with(collectors, [10, 10, 10]), &with(collectors, [60, 50, 190]));
            value(&points(Some(&before), &after, &UNITS), names::COLLECTOR_THREAD)
        };
        assert_eq!(collected(&[worker, other]), Some(0.275), "0.5 s on a processor and 0.05 s of waiting in 2 s");
        assert_eq!(collected(&[]), None);
    }

    #[test]
    fn shares_of_the_host() {
        let stat = |idle_ticks, steal_ticks, total_ticks| HostStat { idle_ticks, steal_ticks, total_ticks };
        let second = Interval::between(Duration::from_secs(9), Duration::from_secs(10), &UNITS).unwrap();
        let cases = [
            (stat(100, 0, 200), stat(150, 10, 300), Some((0.5, 0.1))),
            (stat(100, 0, 200), stat(90, 0, 300), Some((1.0, 0.0))),
            (stat(100, 0, 200), stat(300, 0, 300), Some((0.0, 0.0))),
            (stat(100, 0, 200), stat(100, 0, 200), None),
        ];
        for (before, after, expected) in cases {
            let mut points = Vec::new();
            host(&mut Points::new(&mut points, ("", 0), 1), &second, before, after);
            assert_eq!(value(&points, names::HOST_CPU_COUNT), expected.map(|_| 1.0));
            let got = value(&points, names::HOST_CPU_UTILIZATION).zip(value(&points, names::HOST_CPU_STEAL));
            assert_eq!(got, expected);
        }
    }
}
