//! Samples the sockets of a process and prints what its series say of each peer, for `bench/sockets.py`.
//!
//! ```text
//! sockets PID
//! ```
//!
//! It ends with its standard input. Then it prints the mean of each series of connections over its points, as one line of
//! JSON for each series and peer, and last the share of a core that the sampler took.
#![allow(clippy::print_stdout, reason = "a measurement prints what it measured")]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made should stop loudly")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use narrows_model::series::{LogLine, Point, SeriesKey};
use narrows_model::trace::Span;
use narrows_telemetry::sampler::{Sampler, SamplerConfig};
use narrows_telemetry::{Receipt, Store};
use serde_json::json;

/// Keeps points of connections.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<SeriesKey, Vec<f64>>>);

impl Store for Kept {
    fn spans(&self, _: Vec<Span>) -> Receipt {
        tokio::sync::oneshot::channel().1
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        let mut kept = self.0.lock().unwrap();
        for (key, point) in points.into_iter().filter(|(key, _)| key.service == "program") {
            if key.name.starts_with("process.network.") {
                kept.entry(key).or_default().push(point.value);
            }
        }
        tokio::sync::oneshot::channel().1
    }

    fn logs(&self, _: Vec<LogLine>) -> Receipt {
        tokio::sync::oneshot::channel().1
    }
}

fn main() {
    let pid = std::env::args().nth(1).unwrap().parse().unwrap();
    let kept = Arc::new(Kept::default());
    let store: Arc<dyn Store> = Arc::<Kept>::clone(&kept);
    let sampler = Sampler::start(SamplerConfig::default(), store).unwrap();
    sampler.watch("program", 0, pid).unwrap();
    let (began, cpu_before) = (Instant::now(), sampler_cpu());
    let _ = std::io::read_to_string(std::io::stdin());
    let share = (sampler_cpu() - cpu_before).as_secs_f64() / began.elapsed().as_secs_f64();
    let stats = sampler.stop();
    for (key, values) in kept.0.lock().unwrap().iter() {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        println!("{}", json!({ "name": key.name, "labels": key.labels, "mean": mean, "points": values.len() }));
    }
    println!("{}", json!({ "sampler_share": share, "missing": format!("{:?}", stats.sockets) }));
}

/// CPU that the sampler's thread used so far, by what the scheduler says.
fn sampler_cpu() -> Duration {
    let mut used = Duration::ZERO;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim() == "sampler" {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap();
            used += Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap());
        }
    }
    used
}
