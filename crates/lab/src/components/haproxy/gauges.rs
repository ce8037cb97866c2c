//! Figures of an HAProxy: who is connected, who waits, what failed, which upstreams are there.
//!
//! Names are those of OpenTelemetry's `haproxyreceiver`; values are columns of `show stat` (HAProxy documentation,
//! *Management Guide*, statistics and monitoring). `haproxy.service_name` says whose they are: `FRONTEND` for what clients
//! see, `BACKEND` for all upstreams together, else the upstream's address. Counters count up from the proxy's start.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::components::gauges::{Gauge, Gauges, TIMEOUT};
use crate::components::haproxy::{BACK, FRONT, SOCKET};

const QUESTION: &[u8] = b"show stat\n";
const STATUS: &str = "status";
const WHOSE: &str = "haproxy.service_name";
/// The longest response: over a thousand upstreams.
const RESPONSE_BYTES_MAX: u64 = 1 << 20;

/// A column, and what it is called here.
struct Metric {
    column: &'static str,
    name: &'static str,
    unit: &'static str,
}

const fn metric(column: &'static str, name: &'static str, unit: &'static str) -> Metric {
    Metric { column, name, unit }
}

const SESSIONS: Metric = metric("scur", "haproxy.sessions.count", "{session}");
const QUEUED: Metric = metric("qcur", "haproxy.requests.queued", "{request}");
const REFUSED: Metric = metric("econ", "haproxy.connections.errors", "{error}");
const WITHOUT_RESPONSE: Metric = metric("eresp", "haproxy.responses.errors", "{error}");

static OF_FRONT: &[Metric] = &[
    SESSIONS,
    metric("req_tot", "haproxy.requests.total", "{request}"),
    metric("ereq", "haproxy.requests.errors", "{error}"),
];
static OF_BACK: &[Metric] = &[
    QUEUED,
    REFUSED,
    WITHOUT_RESPONSE,
    metric("wretr", "haproxy.connections.retries", "{retry}"),
    metric("wredis", "haproxy.requests.redispatched", "{request}"),
    metric("act", "haproxy.active", "{server}"),
];
static OF_UPSTREAM: &[Metric] = &[
    SESSIONS,
    QUEUED,
    REFUSED,
    WITHOUT_RESPONSE,
    metric("lbtot", "haproxy.server_selected.total", "{selection}"),
    metric(STATUS, "haproxy.up", "1"),
];

/// Queries one proxy over a new connection each time: it responds once and closes.
#[derive(Debug)]
pub(super) struct Asker {
    folder: PathBuf,
    upstreams: Vec<String>,
}

impl Asker {
    /// At the socket in a folder. Upstreams are reported by their addresses.
    pub(super) fn new(folder: &Path, upstreams: &[String]) -> Self {
        Self { folder: folder.to_owned(), upstreams: upstreams.to_vec() }
    }

    fn ask(&self) -> std::io::Result<String> {
        // By way of the folder's descriptor the socket's path is short, however long the folder's is.
        let folder = File::open(&self.folder)?;
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))?;
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        // A proxy that stands still would hold up whoever connects, for as long as it does.
        connect(&socket, &address)?;
        let mut stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.write_all(QUESTION)?;
        let mut response = String::new();
        stream.take(RESPONSE_BYTES_MAX).read_to_string(&mut response)?;
        Ok(response)
    }
}

impl Gauges for Asker {
    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let response = self.ask().map_err(|error| format!("its statistics: {error}"))?;
        let gauges = gauges(&response, &self.upstreams);
        if gauges.is_empty() { Err("its statistics: not in HAProxy's format".to_owned()) } else { Ok(gauges) }
    }
}

/// The gauges of a response: a line with the columns' names after a `#`, then a line for each section and upstream.
fn gauges(response: &str, upstreams: &[String]) -> Vec<Gauge> {
    let mut lines = response.lines();
    let Some(names) = lines.next().and_then(|line| line.strip_prefix("# ")) else { return Vec::new() };
    let names: Vec<&str> = names.split(',').collect();
    lines.flat_map(|line| of_line(&names, &cells(line), upstreams)).collect()
}

fn of_line(names: &[&str], cells: &[String], upstreams: &[String]) -> Vec<Gauge> {
    let cell = |column: &str| names.iter().position(|name| *name == column).and_then(|at| cells.get(at));
    let (Some(section), Some(whose)) = (cell("pxname"), cell("svname")) else { return Vec::new() };
    let upstream = || upstreams.get(whose.parse::<usize>().ok()?.checked_sub(1)?);
    let (metrics, whose) = match (section.as_str(), whose.as_str()) {
        (FRONT, "FRONTEND") => (OF_FRONT, whose),
        (BACK, "BACKEND") => (OF_BACK, whose),
        (BACK, _) => match upstream() {
            Some(address) => (OF_UPSTREAM, address),
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let gauge = |metric: &Metric| {
        let value = value(metric.column, cell(metric.column)?)?;
        Some(Gauge::new(metric.name, metric.unit, value).with(WHOSE, whose))
    };
    metrics.iter().filter_map(gauge).collect()
}

/// A number, or for a status whether it is up: `UP`, or `UP 1/3` while looks fail.
fn value(column: &str, cell: &str) -> Option<f64> {
    match column {
        STATUS => Some(f64::from(u8::from(cell.starts_with("UP")))),
        _ => cell.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

/// The cells of a line; commas between quotes are part of a cell.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "# pxname,svname,qcur,scur,status,econ,eresp,wretr,wredis,ereq,act,lbtot,why,req_tot,";

    fn described(lines: &str) -> Vec<String> {
        let upstreams = ["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        let gauges = gauges(lines, &upstreams);
        gauges.iter().map(|gauge| format!("{} {} {}", gauge.labels[WHOSE], gauge.name, gauge.value)).collect()
    }

    #[test]
    fn sections_and_upstreams_are_distinguished() {
        let lines = [
            NAMES,
            "front,FRONTEND,,4,OPEN,,,,,1,,,,900,",
            "upstreams,2,3,1,DOWN,5,6,7,8,,0,9,\"a, b\",,",
            "upstreams,BACKEND,3,1,UP,5,6,7,8,,1,9,,,",
            "GLOBAL,s,1,1,OPEN,1,1,1,1,1,1,1,,1,",
        ];
        let expected = [
            "FRONTEND haproxy.sessions.count 4",
            "FRONTEND haproxy.requests.total 900",
            "FRONTEND haproxy.requests.errors 1",
            "127.0.0.1:2 haproxy.sessions.count 1",
            "127.0.0.1:2 haproxy.requests.queued 3",
            "127.0.0.1:2 haproxy.connections.errors 5",
            "127.0.0.1:2 haproxy.responses.errors 6",
            "127.0.0.1:2 haproxy.server_selected.total 9",
            "127.0.0.1:2 haproxy.up 0",
            "BACKEND haproxy.requests.queued 3",
            "BACKEND haproxy.connections.errors 5",
            "BACKEND haproxy.responses.errors 6",
            "BACKEND haproxy.connections.retries 7",
            "BACKEND haproxy.requests.redispatched 8",
            "BACKEND haproxy.active 1",
        ];
        assert_eq!(described(&lines.join("\n")), expected);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        for line in ["", ",", "upstreams", "upstreams,0,1,1", "upstreams,3,1,1", "upstreams,1,NaN,inf", "\u{1},\"\"\"x"]
        {
            assert_eq!(described(&format!("{NAMES}\n{line}\n")), [""; 0], "{line:?}");
        }
        for response in ["", "Unknown command.\n", "#\nfront,FRONTEND,1\n", "# \n\n"] {
            assert_eq!(described(response), [""; 0], "{response:?}");
        }
    }
}
