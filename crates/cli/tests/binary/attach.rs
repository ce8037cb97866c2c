//! `narrows attach`: a service that already runs, its process and its page of metrics; and what cannot be attached to.

use std::io::Write;
use std::net::TcpListener;

use crate::common::{self, Bench, ask, text};
use crate::server;
#[cfg(feature = "reference-systems")]
use {
    rustix::process::{Pid, Signal, kill_process},
    std::process::{Child, Stdio},
};

/// An address of loopback without a listener; other tests use 127.0.0.1.
fn free_address() -> String {
    TcpListener::bind("127.0.0.9:0").unwrap().local_addr().unwrap().to_string()
}

fn metrics(_: &server::ReceivedRequest) -> String {
    let page = "# TYPE queue_length gauge\nqueue_length{shard=\"a\"} 3\nnonsense\n";
    server::response("200 OK", "Content-Type: text/plain; version=0.0.4\r\n", page)
}

/// A service of the reference system that exports to an address, and its URL.
#[cfg(feature = "reference-systems")]
fn delivery(bench: &Bench, otlp: &str) -> (Child, String) {
    use std::io::BufRead;
    let mut service = bench
        .narrows(&["system", "drone-delivery", "delivery", "--port", "0"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{otlp}"))
        .env("OTEL_SERVICE_NAME", "delivery")
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(service.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listens on ") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the service ended");
    }
    let url = line.trim().rsplit_once("listens on ").unwrap().1.to_owned();
    // Read on, or the service would block one day on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    (service, url)
}

#[cfg(feature = "reference-systems")]
#[test]
fn a_service_under_load_is_collected_from_and_diagnosed() {
    let bench = Bench::new("");
    let otlp = free_address();
    let (mut service, url) = delivery(&bench, &otlp);
    let page = server::Server::plain(metrics);
    let pid = format!("delivery={}", service.id());
    let prometheus = format!("delivery={}", page.url("/metrics"));
    let arguments = [
        "attach",
        "--for",
        "10m",
        "--settle",
        "1s",
        "--every",
        "500ms",
        "--otlp",
        &otlp,
        "--pid",
        &pid,
        "--prometheus",
        &prometheus,
        "--name",
        "live",
        "--out",
        "live.narrows",
    ];
    let (mut attach, rest) = bench.start_until(&arguments, "collecting; OTLP on");
    let drain = std::thread::spawn(move || std::io::read_to_string(rest).unwrap());
    let load = bench.run(&[
        "load",
        &format!("{url}/api/deliveries/summary?ownerId=o0001&year=2024&month=6"),
        "-n",
        "200",
        "-c",
        "2",
    ]);
    assert!(load.status.success(), "{}", text(&load.stdout));
    // The spans of the load are in the file before the signal ends the collection.
    let run = bench.path("live.narrows");
    common::eventually("two hundred spans", || ask(&run, "SELECT count(*) >= 200 FROM spans") == "1");
    common::eventually("a sampled second", || {
        ask(&run, "SELECT count(*) > 0 FROM metrics WHERE name = 'process.cpu.cores' AND service = 'delivery'") == "1"
    });
    let scraped = "FROM metrics WHERE name = 'queue_length' AND service = 'delivery' AND value = 3";
    common::eventually("two scrapes", || ask(&run, &format!("SELECT count(*) > 1 {scraped}")) == "1");
    kill_process(Pid::from_child(&attach), Signal::INT).unwrap();
    let out = std::io::read_to_string(attach.stdout.take().unwrap()).unwrap();
    let status = attach.wait().unwrap();
    let told = drain.join().unwrap();
    kill_process(Pid::from_child(&service), Signal::TERM).unwrap();
    service.wait().unwrap();
    assert!(status.success(), "{out}{told}");
    assert!(told.contains("waiting 1.00 s for the last spans") && told.contains("ended after"), "{told}");
    assert!(told.contains("lines of") && told.contains("line 3: it has no value"), "{told}");
    assert_eq!(ask(&run, "SELECT state FROM run"), "complete");
    assert_eq!(ask(&run, "SELECT count(*) || kind FROM windows"), "1steady");
    assert_eq!(ask(&run, "SELECT sum(sent) FROM load_seconds"), "200");
    assert_eq!(ask(&run, "SELECT DISTINCT scenario FROM load_seconds"), "delivery");
    assert_eq!(ask(&run, "SELECT json_array_length(command) FROM services"), "1", "a program without its arguments");
    assert!(out.contains("attached"), "{out}");
    let again = bench.run(&["diagnose", "live.narrows"]);
    assert!(again.status.success() && text(&again.stdout).contains("attached"), "{}", text(&again.stderr));
    let report = bench.run(&["report", "live.narrows", "--html", "live.html"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
}

#[test]
fn a_quiet_system_is_a_run_with_caveats() {
    let bench = Bench::new("");
    let attach = bench.run(&["attach", "--for", "1s", "--otlp", "127.0.0.1:0", "--out", "quiet.narrows"]);
    let told = text(&attach.stderr);
    assert!(attach.status.success(), "{told}");
    assert!(told.contains("caveat: Nothing was sent to 127.0.0.1:"), "{told}");
    assert!(told.contains("requests could not be counted"), "{told}");
    assert!(ask(&bench.path("quiet.narrows"), "SELECT caveats FROM trials").contains("Nothing was sent to"));
}

#[test]
fn a_full_disk_ends_the_collection_and_is_said() {
    let Some(mut command) = common::that_mounts(ON_A_SMALL_DISK) else { return };
    let bench = Bench::new("");
    std::fs::create_dir(bench.path("small")).unwrap();
    command.current_dir(bench.path(""));
    let output = common::end(command);
    let (shown, told) = (text(&output.stdout), text(&output.stderr));
    assert!(shown.contains("exit 2\n"), "{shown}{told}");
    assert!(told.contains("cannot write run file small/live.narrows: the disk is full"), "{told}");
    assert!(told.contains("hint: free some space"), "{told}");
}

/// Attaches to its own shell with a run file on a separate disk, and fills that disk once the collection has begun.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size=8m none small || exit 3
"$0" attach --for 10m --otlp none --pid "shell=$$" --every 100ms --out small/live.narrows 2>told &
until grep -q collecting told; do kill -0 $! || break; done
cat /dev/zero >small/fill 2>/dev/null
wait $!
echo "exit $?"
cat told >&2
"#;

#[test]
fn what_cannot_be_attached_to_is_said_and_leaves_no_run() {
    let bench = Bench::new("");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let gone = format!("web={}", child.id());
    child.wait().unwrap();
    let dead = format!("web=http://{}/metrics", free_address());
    let page = server::Server::plain(|_| server::response("200 OK", "Content-Type: text/html\r\n", "<p>hello</p>"));
    let html = page.url("/");
    let free = "127.0.0.1:0";
    let cases: [(&[&str], &str); 9] = [
        (&["--otlp", &taken], "hint: another program listens there"),
        (&["--otlp", free, "--pid", &gone], "there is no such process"),
        (&["--otlp", free, "--prometheus", &dead], "cannot connect"),
        (&["--otlp", free, "--prometheus", &html], "it returned text/html"),
        (&["--otlp", free, "--prometheus", "https://127.0.0.1/"], "only plain http"),
        (&["--otlp", free, "--cgroup", "web=/no/such/group"], "/no/such/group"),
        (&["--otlp", "none"], "leaves nothing to collect"),
        (&["--otlp", "web"], "expected an address and a port"),
        (&["--otlp", free, "--every", "1ms"], "or more"),
    ];
    for (arguments, expected) in cases {
        let arguments = [&["attach", "--for", "30s", "--out", "never.narrows"], arguments].concat();
        let attach = bench.run(&arguments);
        let told = text(&attach.stderr);
        assert_eq!(attach.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
        assert!(!bench.path("never.narrows").exists(), "{arguments:?}");
    }
}

/// A control group of the test's own with a process in it, gone with the value.
struct Group {
    folder: std::path::PathBuf,
    child: std::process::Child,
}

impl Group {
    /// In the first hierarchy, of either version, where this user may make one; `None` where there is none.
    fn make() -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let folders = own.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let parent = format!("/sys/fs/cgroup/{controllers}/{path}");
            Some(std::path::PathBuf::from(parent).join(format!("narrows-test-{}", std::process::id())))
        });
        folders.into_iter().find_map(|folder| {
            std::fs::create_dir(&folder).ok()?;
            Self::fill(&folder).or_else(|| {
                let _ = std::fs::remove_dir(&folder);
                None
            })
        })
    }

    fn fill(folder: &std::path::Path) -> Option<Self> {
        let mut procs = std::fs::OpenOptions::new().write(true).open(folder.join("cgroup.procs")).ok()?;
        let mut child = std::process::Command::new("sleep").arg("60").spawn().ok()?;
        if write!(procs, "{}", child.id()).is_err() {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        Some(Self { folder: folder.to_owned(), child })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        common::eventually("an empty group", || std::fs::remove_dir(&self.folder).is_ok());
    }
}

#[test]
fn the_processes_of_a_control_group_are_sampled() {
    let Some(group) = Group::make() else {
        return narrows_testing::skip("no control group can be made here");
    };
    let bench = Bench::new("");
    let named = format!("shop={}", group.folder.display());
    let attach =
        ["attach", "--for", "2s", "--every", "200ms", "--otlp", "none", "--cgroup", &named, "--out", "a.narrows"];
    let attach = bench.run(&attach);
    assert!(attach.status.success(), "{}", text(&attach.stderr));
    let run = bench.path("a.narrows");
    let of_group = "FROM metrics WHERE service = 'shop' AND name = 'process.memory.rss'";
    assert_eq!(
        ask(&run, &format!("SELECT count(*) > 1 AND min(value) > 0 {of_group}")),
        "1",
        "{}",
        text(&attach.stderr)
    );
    assert_eq!(
        ask(&run, "SELECT DISTINCT service FROM metrics WHERE name = 'process.cpu.cores' AND service = 'shop'"),
        "shop"
    );
}
