//! Cost of a reading of the sampler: CPU of its thread, over 50 processes of 4 threads each, or so many as are
//! given. In half of them all threads but one work for 50 µs in every 20 ms.
//!
//! ```text
//! cargo bench -p narrows-sampler --bench sampler -- [INTERVAL_MS] [SECONDS] [PROCESSES] [THREADS]
//! ```
//!
//! The processes are this program itself, started again; they end when their standard input does.
#![allow(clippy::print_stdout, reason = "a measurement prints what it measured")]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made should stop loudly")]

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use narrows_sampler::{Sampler, SamplerConfig};
use narrows_telemetry::{Receipt, Store};

use cpu::sampler_cpu;

mod cpu;

const AS_CHILD: &str = "--as-child";

/// Counts points and drops them.
#[derive(Default)]
struct Sink(AtomicUsize);

impl Store for Sink {
    fn spans(&self, _: Vec<Span>) -> Receipt {
        tokio::sync::oneshot::channel().1
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        self.0.fetch_add(points.len(), Ordering::Relaxed);
        tokio::sync::oneshot::channel().1
    }

    fn logs(&self, _: Vec<LogLine>) -> Receipt {
        tokio::sync::oneshot::channel().1
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|argument| argument == AS_CHILD) {
        return be_a_child(arguments[1] == "busy", arguments[2].parse().unwrap());
    }
    let number = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    let (interval, length) = (Duration::from_millis(number(0, 1000)), Duration::from_secs(number(1, 60)));
    let (processes, threads) = (number(2, 50), number(3, 4));
    let children: Vec<Child> = (0..processes).map(|at| start_child(at % 2 == 0, threads)).collect();
    let sink = Arc::new(Sink::default());
    let store: Arc<dyn Store> = Arc::<Sink>::clone(&sink);
    let sampler = Sampler::start(SamplerConfig { interval }, store).unwrap();
    for (at, child) in children.iter().enumerate() {
        sampler.watch(&format!("service-{at}"), 0, child.id()).unwrap();
    }
    // The first readings open files, which is no part of the usual cost.
    std::thread::sleep(interval * 3);
    let (cpu_before, stats_before, points_before) = (sampler_cpu(), sampler.stats(), sink.0.load(Ordering::Relaxed));
    let began = Instant::now();
    std::thread::sleep(length);
    let (cpu, took) = (sampler_cpu() - cpu_before, began.elapsed());
    let readings = sampler.stats().readings - stats_before.readings;
    let points = sink.0.load(Ordering::Relaxed) - points_before;
    println!(
        "{processes} processes of {threads} threads, every {interval:?} for {took:.1?}: {readings} readings, \
         {:.0} µs of CPU each, {:.0} points each, {:.3} % of a core",
        cpu.as_secs_f64() * 1e6 / readings as f64,
        points as f64 / readings as f64,
        cpu.as_secs_f64() / took.as_secs_f64() * 100.0,
    );
    println!("{:?}", sampler.stop());
    for mut child in children {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

fn start_child(is_busy: bool, threads: u64) -> Child {
    let program = std::env::current_exe().unwrap();
    let kind = if is_busy { "busy" } else { "idle" };
    Command::new(program).args([AS_CHILD, kind, &threads.to_string()]).stdin(Stdio::piped()).spawn().unwrap()
}

/// Threads that work and sleep, until standard input ends.
fn be_a_child(is_busy: bool, threads: u64) {
    for _ in 1..threads {
        std::thread::spawn(move || {
            loop {
                if is_busy {
                    let began = Instant::now();
                    while began.elapsed() < Duration::from_micros(50) {}
                    std::thread::sleep(Duration::from_millis(20));
                } else {
                    std::thread::sleep(Duration::from_secs(60));
                }
            }
        });
    }
    let _ = std::io::stdin().read(&mut [0]);
}
