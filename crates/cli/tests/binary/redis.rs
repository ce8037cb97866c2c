//! A Redis server of an experiment's own: it is used, measured and gone.
//!
//! They need Redis (Debian package redis-server) and Python. `NARROWS_TEST_SKIP_REDIS=1` leaves them out; what is not
//! installed is skipped too.

use crate::common::{Bench, OTHER_LISTENER, ask, end, eventually, free_port, nothing_is_left, text, working};
use narrows_testing::{has_programs, is_disabled, skip};
use rustix::process::{Pid, Signal, kill_process};

/// Whether its programs are installed; the test is skipped where they are not.
fn is_there() -> bool {
    const SKIP: &str = "NARROWS_TEST_SKIP_REDIS";
    if is_disabled(SKIP) {
        skip(&format!("{SKIP} is set"));
        return false;
    }
    has_programs(&["redis-server", "python3"])
}

/// The load is a client that writes more than the server may keep, and reads what is there and what is not.
fn experiment(component: &str) -> String {
    format!(
        r#"
experiment: cache
system:
  services:
    cache:
      {component}
      memory: 512MiB
load:
  command: [python3, client.py, "${{cache.url}}"]
"#
    )
}

/// Speaks the protocol itself, for no client comes with Redis's package or with Python. It goes on until the server was
/// sampled twice more, so that the metrics hold what it did.
const CLIENT: &str = r#"
import socket, sys
from urllib.parse import urlparse

at = urlparse(sys.argv[1])
stream = socket.create_connection((at.hostname, at.port)).makefile("rwb")

def response():
    line = stream.readline().rstrip(b"\r\n")
    if not line.startswith(b"$") or line == b"$-1":
        return line.decode()
    return stream.read(int(line[1:]) + 2)[:-2].decode()

def call(*words):
    parts = [word.encode() for word in words]
    stream.write(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
    stream.flush()
    return response()

def info_calls():
    stats = call("INFO", "commandstats").splitlines()
    return next((int(line.split("calls=")[1].split(",")[0]) for line in stats if line.startswith("cmdstat_info:")), 0)

print("policy:", call("CONFIG", "GET", "maxmemory-policy"), response(), response(), flush=True)
for number in range(20000):
    assert call("SET", "key %d" % number, "x" * 1000) == "+OK"
for number in range(19000, 20000):
    call("GET", "key %d" % number)
for number in range(100):
    assert call("GET", "no such key %d" % number) == "$-1"
before = info_calls()
mine = 1
while info_calls() - before - mine < 2:
    mine += 1
print("done", flush=True)
"#;

fn bench(component: &str) -> Bench {
    let bench = Bench::new(&experiment(component));
    std::fs::write(bench.path("client.py"), CLIENT).unwrap();
    bench
}

#[test]
fn a_server_is_used_measured_and_gone() {
    if !is_there() {
        return;
    }
    let bench = bench("redis: { max_memory: 8MiB, eviction: allkeys-lru, settings: { appendonly: yes } }");
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    let logs = || ask(&run, "select group_concat(text, '; ') from logs");
    assert!(logs().contains("policy: *2 maxmemory-policy allkeys-lru"), "{}", logs());
    let highest = |name: &str| {
        let sql = format!("select cast(max(value) as int) from metrics where service = 'cache' and name = '{name}'");
        ask(&run, &sql).parse::<u64>().unwrap_or_else(|_| panic!("no {name}: {}", logs()))
    };
    assert!(highest("redis.clients.connected") >= 2, "the load and the connection that asks");
    assert_eq!(highest("redis.clients.blocked"), 0);
    assert!(highest("redis.commands.processed") > 21_100);
    assert!((1..=1_000).contains(&highest("redis.keyspace.hits")));
    assert!(highest("redis.keyspace.misses") >= 100);
    assert!(highest("redis.keys.evicted") > 10_000);
    assert!(highest("redis.memory.used") > 4 << 20);
    assert_eq!(highest("redis.maxmemory"), 8 << 20);
    assert!(highest("process.memory.rss") > 4 << 20);
    assert!(logs().contains("ready to exit, bye bye"), "it ended in order: {}", logs());
    nothing_is_left(&bench, &run);
}

#[test]
fn a_setting_that_redis_refuses_is_reported_with_its_words() {
    if !is_there() {
        return;
    }
    let bench = bench("redis: { settings: { no-such-setting: 1 } }");
    let output = bench.run(&["run", "--out", "run.narrows"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cache: exited with code 1") && said.contains("no-such-setting"), "{said}");
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn a_port_that_another_service_took_ends_the_run() {
    if !is_there() {
        return;
    }
    let port = free_port();
    let other = OTHER_LISTENER.replace("PORT", &port.to_string());
    let experiment = experiment(&format!("redis: {{}}\n      port: {port}"))
        .replace("    cache:\n", &format!("{other}    cache:\n"));
    let bench = Bench::new(&experiment);
    let output = end(bench.narrows(&["run", "--out", "run.narrows"]));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in ["cache: exited with code 1 before it was ready", "hint: another process listens at its port"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    nothing_is_left(&bench, &bench.path("run.narrows"));
}

#[test]
fn a_server_that_is_killed_under_load_comes_back_with_its_data() {
    if !is_there() {
        return;
    }
    let component = "redis: { settings: { appendonly: yes, appendfsync: always } }\n      restart: always";
    let bench = bench(component);
    let killer = r#"
import os, signal, socket, sys, time
from urllib.parse import urlparse

at = urlparse(sys.argv[1])

def call(command):
    with socket.create_connection((at.hostname, at.port), timeout=5) as stream:
        stream.sendall(command.encode() + b"\r\n")
        return stream.recv(65536).decode()

assert call("SET key kept").startswith("+OK")
first = next(line for line in call("INFO server").splitlines() if line.startswith("process_id:"))
os.kill(int(first.split(":")[1]), signal.SIGKILL)
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    try:
        reply = call("GET key")
        if "kept" in reply and first not in call("INFO server"):
            print("found:", reply.splitlines()[1], flush=True)
            sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit("it did not come back")
"#;
    std::fs::write(bench.path("client.py"), killer).unwrap();
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    assert_eq!(ask(&run, "select count(*) from logs where text = 'found: kept'"), "1");
    nothing_is_left(&bench, &run);
}

/// A snapshot is being written when the run is killed, so a child of the server has to go too.
#[test]
fn kill_9_leaves_no_server() {
    if !is_there() {
        return;
    }
    let bench = bench("redis: { settings: { rdb-key-save-delay: 10000 } }");
    let saver = r#"
import socket, sys, time
from urllib.parse import urlparse

at = urlparse(sys.argv[1])
with socket.create_connection((at.hostname, at.port)) as stream:
    commands = b"".join(b"SET key%d value\r\n" % number for number in range(10000)) + b"BGSAVE\r\n"
    stream.sendall(commands)
    seen = b""
    while b"Background saving started" not in seen:
        seen = seen[-100:] + stream.recv(65536)
    print("saving", flush=True)
    time.sleep(3600)
"#;
    std::fs::write(bench.path("client.py"), saver).unwrap();
    let run = bench.path("run.narrows");
    let (mut child, _lines) = bench.start_until(&["run", "--out", "run.narrows"], "  load ");
    let pid = Pid::from_child(&child);
    eventually("a snapshot", || ask(&run, "select count(*) from logs where text = 'saving'") != "0");
    kill_process(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
    nothing_is_left(&bench, &run);
    eventually("the end of every process in the run's folder", || working(&bench).is_empty());
}
