//! The sampler against real processes; against made-up ones in `faked.rs`.

mod faked;
pub(super) mod tree;

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use narrows_model::series::{LogLine, Point, SeriesKey, names};
use narrows_model::trace::Span;
use rustix::process::{Pid, Signal, kill_process_group};

use super::*;

/// Passes points on.
struct Tap(SyncSender<Vec<(SeriesKey, Point)>>);

impl Tap {
    fn receipt() -> Receipt {
        tokio::sync::oneshot::channel().1
    }
}

impl Store for Tap {
    fn spans(&self, _: Vec<Span>) -> Receipt {
        Self::receipt()
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        // The test may have seen enough.
        let _ = self.0.try_send(points);
        Self::receipt()
    }

    fn logs(&self, _: Vec<LogLine>) -> Receipt {
        Self::receipt()
    }
}

/// A shell whose whole process group is killed when the test ends, however it ends.
struct Shell(Child);

impl Shell {
    fn start(script: &str) -> Self {
        Self(
            Command::new("sh")
                .args(["-c", script])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

fn start() -> (Sampler, Receiver<Vec<(SeriesKey, Point)>>) {
    let (tap, points) = sync_channel(1000);
    (Sampler::start(SamplerConfig { interval: INTERVAL_MIN }, Arc::new(Tap(tap))).unwrap(), points)
}

/// What a thread that spins gets of a core at least, beside any others; one that waits gets nothing.
const BUSY_CORES: f64 = 0.05;

/// The first point that is wanted, within a minute.
fn wait_for(points: &Receiver<Vec<(SeriesKey, Point)>>, wanted: impl Fn(&SeriesKey, f64) -> bool) -> f64 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let batch = points.recv_timeout(deadline.saturating_duration_since(Instant::now())).expect("a wanted point");
        if let Some((_, point)) = batch.iter().find(|(key, point)| wanted(key, point.value)) {
            return point.value;
        }
    }
}

#[test]
fn a_spinning_child_of_a_watched_process_is_seen() {
    // The watched shell waits; it is its child that spins.
    let spinning = Shell::start("(while :; do :; done) & wait");
    let (sampler, points) = start();
    sampler.watch("busy", 3, spinning.0.id()).unwrap();
    let is_busy = |key: &SeriesKey| key.service == "busy" && key.replica == 3;
    wait_for(&points, |key, value| is_busy(key) && key.name == names::CPU_CORES && value >= BUSY_CORES);
    wait_for(&points, |key, value| is_busy(key) && key.name == names::BUSIEST_THREAD_CORES && value >= BUSY_CORES);
    wait_for(&points, |key, value| is_busy(key) && key.name == names::MEMORY_BYTES && value > 0.0);
    wait_for(&points, |key, value| key.name == names::HOST_CPU_UTILIZATION && key.service.is_empty() && value > 0.0);
    assert!(sampler.stop().readings > 1);
}

#[test]
fn where_the_time_of_a_spinning_child_goes_is_seen() {
    let spinning = Shell::start("(while :; do :; done) & wait");
    let (sampler, points) = start();
    sampler.watch("busy", 3, spinning.0.id()).unwrap();
    let has = |key: &SeriesKey, name: &str, label: &str| {
        let has_label = label.is_empty() || key.labels.values().any(|value| value == label);
        key.service == "busy" && key.name == name && has_label
    };
    wait_for(&points, |key, value| has(key, names::CPU_TIME, "user") && value > 0.0);
    wait_for(&points, |key, value| has(key, names::CPU_TIME, "system") && value >= 0.0);
    // Others want the processor too now and then, if only the kernel.
    wait_for(&points, |key, value| has(key, names::CONTEXT_SWITCHES, "involuntary") && value > 0.0);
    wait_for(&points, |key, value| has(key, names::THREADS, "") && value == 2.0);
    wait_for(&points, |key, value| key.name == names::HOST_MEMORY_AVAILABLE && value > 0.0);
    let stats = sampler.stats();
    assert_eq!((stats.left_out, stats.denied), Default::default());
}

#[test]
fn all_that_is_written_is_in_the_list_with_its_unit() {
    let child = Shell::start("read line");
    let (sampler, points) = start();
    sampler.watch("quiet", 0, child.0.id()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    while !seen.contains(names::CONTEXT_SWITCHES) {
        for (key, _) in points.recv_timeout(Duration::from_secs(60)).unwrap() {
            assert!(names::SAMPLED.contains(&(key.name.as_str(), key.unit.as_str())), "{key:?}");
            seen.insert(key.name);
        }
    }
    assert!(seen.contains(names::CPU_CORES) && seen.contains(names::HOST_CPU_STEAL) && seen.contains(names::THREADS));
}

#[test]
fn the_memory_descriptors_and_disk_of_a_real_process_are_read() {
    let mut child = Shell::start("exec 7</dev/null; echo up; read line; :");
    let mut up = [0; 3];
    std::io::Read::read_exact(child.0.stdout.as_mut().unwrap(), &mut up).unwrap();
    let mut scanner = scan::Scanner::new(PROC).unwrap();
    let watched = Watched::from([(("shell".to_owned(), 0), Target::Process(child.0.id()))]);
    let (reading, details) = scanner.read(&watched, Duration::from_secs(1)).unwrap();
    let details = &details.unwrap().groups[&("shell".to_owned(), 0)];
    let resident_bytes = reading.groups[&("shell".to_owned(), 0)].resident_pages * scanner.units().page_bytes;
    assert!(details.pss_bytes.is_some_and(|bytes| bytes > 0 && bytes <= 2 * resident_bytes), "{details:?}");
    // Standard input, output, error and number 7.
    assert!(details.descriptors.is_some_and(|open| (4..100).contains(&open)), "{details:?}");
    assert!(details.disk.is_some() && details.switches.len() == 1 && details.threads == 1, "{details:?}");
    assert_eq!(details.network, None);
}

#[test]
fn the_generator_is_always_there_and_what_is_unwatched_is_not() {
    let child = Shell::start("read line");
    let (sampler, points) = start();
    sampler.watch("quiet", 0, child.0.id()).unwrap();
    wait_for(&points, |key, _| key.service == "quiet");
    wait_for(&points, |key, _| key.service == names::GENERATOR && key.name == names::CPU_CORES);
    sampler.unwatch_all();
    let is_without = |batch: &[(SeriesKey, Point)]| batch.iter().all(|(key, _)| key.service != "quiet");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_without(&points.recv_timeout(deadline.saturating_duration_since(Instant::now())).unwrap()) {}
}

#[test]
fn a_watched_process_that_does_not_exist_gives_no_points() {
    let (sampler, points) = start();
    sampler.watch("gone", 0, u32::MAX).unwrap();
    for _ in 0..3 {
        let batch = points.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(batch.iter().all(|(key, _)| key.service != "gone"));
    }
    assert_eq!(sampler.stop().refused, 0);
}

#[test]
fn what_cannot_be_done_is_an_error() {
    let (tap, _points) = sync_channel(1);
    let interval = Duration::from_millis(99);
    let error = Sampler::start(SamplerConfig { interval }, Arc::new(Tap(tap))).unwrap_err();
    assert_eq!(error.to_string(), "sampling interval is 99ms, expected 100ms or more");
    let (sampler, _points) = start();
    for replica in 0..WATCHED_MAX as u32 {
        sampler.watch("s", replica, u32::MAX).unwrap();
    }
    sampler.watch("s", 0, u32::MAX).unwrap();
    assert!(matches!(sampler.watch("t", 0, u32::MAX), Err(Error::TooManyWatched { .. })));
    let error = sampler.watch_cgroup("t", 2, Path::new("/none")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot watch control group /none as replica 2 of t: there is no cgroup.procs in it, expected a folder such as \
         /sys/fs/cgroup/shop.slice or a path from the hierarchy's root such as /shop.slice"
    );
}

#[test]
fn the_schedule_does_not_drift_and_leaves_out_what_it_missed() {
    let start = Instant::now();
    let ms = |n| start + Duration::from_millis(n);
    let mut schedule = Schedule { next: start, interval: Duration::from_millis(100) };
    for (now, next, missed) in [(3, 100, 0), (199, 200, 0), (200, 300, 0), (450, 500, 1), (1000, 1100, 5)] {
        assert_eq!(schedule.advance(ms(now)), missed, "{now}");
        assert_eq!(schedule.next, ms(next), "{now}");
    }
}
