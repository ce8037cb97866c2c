//! The sampler against real processes; against made-up ones in `faked.rs`.

mod faked;
pub(super) mod tree;

use std::net::{SocketAddr, TcpStream};
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

/// The least share of a core for a thread that spins, beside any others; one that waits gets nothing.
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

/// The series of threads in a state, of this process.
fn is_state(key: &SeriesKey, state: &str) -> bool {
    let has_state = key.labels.get(names::THREAD_STATE).is_some_and(|label| label == state);
    key.name == names::THREAD_STATES && key.service == "own" && has_state
}

#[test]
fn what_the_threads_of_this_process_wait_for_is_seen() {
    let mutex = Arc::new(Mutex::new(()));
    let held = mutex.lock().unwrap();
    let (listener, wakes) = (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), sync_channel::<()>(0));
    let address = listener.local_addr().unwrap();
    let locked = std::thread::spawn({
        let mutex = Arc::clone(&mutex);
        move || drop(mutex.lock().unwrap())
    });
    let called = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        // A response that comes when the test ends.
        let _ = std::io::Read::read(&mut stream, &mut [0]);
    });
    let (accepted, _) = listener.accept().unwrap();
    let served = std::thread::spawn({
        let mut accepted = accepted.try_clone().unwrap();
        move || drop(std::io::Read::read(&mut accepted, &mut [0]))
    });
    let (sampler, points) = start();
    sampler.watch("own", 0, std::process::id()).unwrap();
    wait_for(&points, |key, threads| is_state(key, "lock") && threads > 0.9);
    wait_for(&points, |key, threads| is_state(key, "events") && threads > 0.9);
    wait_for(&points, |key, threads| {
        let is_peer = key.labels.get(names::NETWORK_PEER).is_some_and(|peer| *peer == address.to_string());
        is_state(key, "network") && is_peer && threads > 0.9
    });
    wait_for(&points, |key, _| key.service == "own" && key.name == names::CPU_WAIT);
    drop((held, wakes));
    accepted.shutdown(std::net::Shutdown::Both).unwrap();
    [locked, called, served].into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn programs_that_sleep_write_and_lock_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file").display().to_string();
    let synced = format!("while :; do dd if=/dev/zero of={file} bs=64k count=200 oflag=dsync 2>/dev/null; done");
    let cases = [
        ("sleep", "sleep 600 & wait".to_owned()),
        ("lock", format!("flock {file}.lock sleep 600 & sleep 0.2; flock {file}.lock true")),
        ("disk", synced),
    ];
    for (state, script) in cases {
        let shell = Shell::start(&script);
        let (sampler, points) = start();
        sampler.watch("own", 0, shell.0.id()).unwrap();
        wait_for(&points, |key, threads| is_state(key, state) && threads > 0.05);
    }
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

/// Waits until a script has written a line, and gives it.
fn line_of(child: &mut Shell) -> String {
    let mut line = String::new();
    let output = child.0.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn the_limit_on_descriptors_is_that_of_the_process_closest_to_it() {
    // The watched shell may have many, its child only twelve.
    let mut child = Shell::start("(ulimit -n 12; exec 3</dev/null 4<&3 5<&3 6<&3 7<&3; echo up; sleep 600) & wait");
    assert_eq!(line_of(&mut child), "up");
    let (sampler, points) = start();
    sampler.watch("poor", 0, child.0.id()).unwrap();
    let has = |key: &SeriesKey, name: &str| key.service == "poor" && key.name == name;
    wait_for(&points, |key, value| has(key, names::DESCRIPTORS_LIMIT) && value == 12.0);
    let least = 8.0 / 12.0;
    wait_for(&points, |key, value| has(key, names::DESCRIPTORS_UTILIZATION) && (least..=1.0).contains(&value));
}

/// A program that listens with room for one connection and one more, and accepts none.
const LISTENER: &str = r#"exec python3 -c '
import socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(1)
print(listening.getsockname()[1], flush=True)
sys.stdin.read()
'"#;

#[test]
fn connections_that_a_program_does_not_accept_are_seen_to_wait_and_to_be_dropped() {
    if !Command::new("python3").arg("-V").output().is_ok_and(|output| output.status.success()) {
        narrows_testing::skip("there is no python3");
        return;
    }
    let mut child = Shell::start(LISTENER);
    let port = line_of(&mut child);
    let (sampler, points) = start();
    sampler.watch("late", 1, child.0.id()).unwrap();
    let has = |key: &SeriesKey, name: &str| {
        let is_port = key.labels.get(names::SERVER_PORT) == Some(&port);
        key.service == "late" && key.replica == 1 && key.name == name && is_port
    };
    wait_for(&points, |key, value| has(key, names::ACCEPT_QUEUE) && value == 0.0);
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    let _waiting: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
    wait_for(&points, |key, value| has(key, names::ACCEPT_QUEUE) && value == 2.0);
    // The kernel drops the attempt, so that it ends with the time given.
    let third = std::thread::spawn(move || TcpStream::connect_timeout(&address, Duration::from_secs(3)));
    wait_for(&points, |key, value| key.name == names::HOST_LISTEN_OVERFLOWS && value > 0.0);
    assert!(third.join().unwrap().is_err());
    if sampler.stats().sockets.without_diagnostics {
        narrows_testing::skip("this kernel has no socket diagnostics");
        return;
    }
    wait_for(&points, |key, value| has(key, names::ACCEPT_QUEUE_LIMIT) && value == 1.0);
    let fourth = std::thread::spawn(move || TcpStream::connect_timeout(&address, Duration::from_secs(3)));
    wait_for(&points, |key, value| has(key, names::ACCEPT_QUEUE_DROPS) && value > 0.0);
    assert!(fourth.join().unwrap().is_err());
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

#[test]
fn a_request_without_a_response_is_seen_at_the_socket_of_its_caller() {
    use std::io::{Read, Write};
    let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listening.local_addr().unwrap();
    let mut caller = TcpStream::connect(address).unwrap();
    let (mut server, _) = listening.accept().unwrap();
    let (sampler, points) = start();
    sampler.watch("own", 0, std::process::id()).unwrap();
    let is_outstanding = |key: &SeriesKey| {
        let is_peer = key.labels.get(names::NETWORK_PEER).is_some_and(|peer| *peer == address.to_string());
        key.name == names::REQUESTS_OUTSTANDING && is_peer
    };
    let mut exchange = || {
        caller.write_all(b"request").unwrap();
        server.read_exact(&mut [0; 7]).unwrap();
        wait_for(&points, |key, value| is_outstanding(key) && value == 1.0);
        server.write_all(b"response").unwrap();
        caller.read_exact(&mut [0; 8]).unwrap();
        wait_for(&points, |key, value| is_outstanding(key) && value == 0.0);
    };
    exchange();
    exchange();
    assert_eq!(sampler.stop().sockets, SocketGaps::default());
}
