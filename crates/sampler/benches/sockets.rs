//! Cost of sampling connections: CPU of the sampler's thread over a process without connections, and with so many as are
//! given, or else 10, 100, 1,000 and 5,000.
//!
//! ```text
//! cargo bench -p narrows-sampler --bench sockets -- [SECONDS] [CONNECTIONS]…
//! ```
//!
//! Each process is this program itself, started again. It connects to itself, at most a thousand times, and sends a
//! request over one connection after another, one in every millisecond. It ends when its standard input does.
#![allow(clippy::print_stdout, reason = "a measurement prints what it measured")]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot be made should stop loudly")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use narrows_model::series::{LogLine, Point, SeriesKey, names};
use narrows_model::trace::Span;
use narrows_sampler::{Sampler, SamplerConfig};
use narrows_telemetry::{Receipt, Store};

use cpu::sampler_cpu;

mod cpu;

const AS_CHILD: &str = "--as-child";
/// Connections of one process. It has both ends of each, and the sampler looks at 4,096 descriptors.
const OF_PROCESS_MAX: usize = 1_000;
const CASES: [usize; 4] = [10, 100, 1_000, 5_000];

/// Keeps the connections that were sampled of each process, at the last point.
#[derive(Default)]
struct Sampled(Mutex<BTreeMap<SeriesKey, f64>>);

impl Store for Sampled {
    fn spans(&self, _: Vec<Span>) -> Receipt {
        tokio::sync::oneshot::channel().1
    }

    fn points(&self, points: Vec<(SeriesKey, Point)>) -> Receipt {
        let connections = points.into_iter().filter(|(key, _)| key.name == names::CONNECTIONS);
        self.0.lock().unwrap().extend(connections.map(|(key, point)| (key, point.value)));
        tokio::sync::oneshot::channel().1
    }

    fn logs(&self, _: Vec<LogLine>) -> Receipt {
        tokio::sync::oneshot::channel().1
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|argument| argument == AS_CHILD) {
        return be_a_child(arguments[1].parse().unwrap());
    }
    let mut numbers = arguments.iter().map(|text| text.parse().unwrap());
    let length = Duration::from_secs(numbers.next().unwrap_or(20) as u64);
    let given: Vec<usize> = numbers.collect();
    let cases = if given.is_empty() { CASES.to_vec() } else { given };
    for connections in cases {
        let (without, _) = measure(connections.div_ceil(OF_PROCESS_MAX), 0, length);
        let (with, sampled) = measure(connections.div_ceil(OF_PROCESS_MAX), connections, length);
        println!(
            "{connections} connections, {sampled:.0} sampled: {:.2} % of a core; without them {:.2} %",
            with * 100.0,
            without * 100.0
        );
    }
}

/// Share of a core that the sampler takes, and the connections that it sampled.
fn measure(processes: usize, connections: usize, length: Duration) -> (f64, f64) {
    let of_process = |at: usize| (connections * (at + 1) / processes) - (connections * at / processes);
    let children: Vec<Child> = (0..processes).map(|at| start_child(of_process(at))).collect();
    let sampled = Arc::new(Sampled::default());
    let store: Arc<dyn Store> = Arc::<Sampled>::clone(&sampled);
    let sampler = Sampler::start(SamplerConfig::default(), store).unwrap();
    for (at, child) in children.iter().enumerate() {
        sampler.watch(&format!("service-{at}"), 0, child.id()).unwrap();
    }
    // The first readings open files and look up whose sockets these are, which is no part of the usual cost.
    std::thread::sleep(Duration::from_secs(3));
    let (before, began) = (sampler_cpu(), Instant::now());
    std::thread::sleep(length);
    let share = (sampler_cpu() - before).as_secs_f64() / began.elapsed().as_secs_f64();
    sampler.stop();
    for mut child in children {
        drop(child.stdin.take());
        child.wait().unwrap();
    }
    let known: f64 = sampled.0.lock().unwrap().values().sum();
    (share, known)
}

/// A process with its connections, once they are open.
fn start_child(connections: usize) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args([AS_CHILD, &connections.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child
}

/// Connects to itself and sends requests, until standard input ends.
fn be_a_child(connections: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = || {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    };
    let mut pairs: Vec<(TcpStream, TcpStream)> = (0..connections).map(|_| connect()).collect();
    println!("connected");
    std::thread::spawn(move || {
        loop {
            for (client, server) in &mut pairs {
                let mut byte = [0];
                client.write_all(&byte).unwrap();
                server.read_exact(&mut byte).unwrap();
                std::thread::sleep(Duration::from_millis(1));
                server.write_all(&byte).unwrap();
                client.read_exact(&mut byte).unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let _ = std::io::stdin().read(&mut [0]);
}
