//! Load that agents send: it adds up, no row is used twice, and what is lost with an agent, a server or the coordinator is told.
//!
//! They need NATS (Debian package nats-server) and are skipped where it is not installed.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use narrows_testing::{has_programs, torture};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Bench, ask, end, eventually, free_port, marked, nothing_is_left, text, that_mounts};
use crate::server::{Server, hello};

const PASSWORD: &str = "agents-password";

/// Processes of a test, which end with it.
struct Processes(Vec<Child>);

impl Processes {
    fn add(&mut self, command: &mut Command) -> usize {
        self.0.push(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        self.0.len() - 1
    }

    fn signal(&self, at: usize, signal: Signal) {
        let pid = i32::try_from(self.0[at].id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn kill(&mut self, at: usize) {
        self.0[at].kill().unwrap();
        self.0[at].wait().unwrap();
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in self.0.iter_mut().rev() {
            // One that has ended already needs no signal.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A NATS server that asks for a password, and agents.
struct Farm {
    bench: Bench,
    port: u16,
    processes: Processes,
}

impl Farm {
    fn new(experiment: &str, agents: &[(&str, &str)]) -> Self {
        let mut farm = Self { bench: Bench::new(experiment), port: free_port(), processes: Processes(Vec::new()) };
        farm.serve(&["-js"]);
        for (name, label) in agents {
            farm.agent(name, label);
        }
        farm
    }

    fn serve(&mut self, arguments: &[&str]) -> usize {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "--user", "me", "--pass", PASSWORD]);
        command.args(arguments).arg("-sd").arg(self.bench.path("nats"));
        command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
        let at = self.processes.add(&mut command);
        let port = self.port;
        eventually("a connection to NATS", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        at
    }

    fn url(&self) -> String {
        format!("nats://me:{PASSWORD}@127.0.0.1:{}", self.port)
    }

    fn agent(&mut self, name: &str, label: &str) -> usize {
        let mut command = self.bench.narrows(&["agent", "--name", name, "--label", label, "--threads", "1"]);
        command.env("NARROWS_NATS", self.url());
        self.processes.add(&mut command)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.narrows(arguments);
        command.env("NARROWS_NATS", self.url());
        command
    }
}

/// A load on a server of the test's own.
fn experiment(server: &Server, load: &str) -> String {
    format!(
        r#"experiment: many
system: {{ services: {{ web: {{ address: "{}" }} }} }}
load:
  target: web
  {load}
"#,
        server.address
    )
}

fn arrivals(rate: u32, seconds: u32) -> String {
    format!(
        "scenarios: {{ a: {{ model: constant-arrival-rate, rate: {rate}, duration: {seconds}s, max_vus: 30, request: \"GET /item/1\" }} }}"
    )
}

/// Requests of the load that came to the server.
fn received(server: &Server) -> Vec<String> {
    let all = server.asked();
    all.iter().map(|request| request.path().to_owned()).filter(|path| path.starts_with("/item/")).collect()
}

fn sent(run: &Path) -> usize {
    ask(run, "select sum(sent) from load_seconds").parse().unwrap()
}

fn reasons(run: &Path) -> String {
    ask(run, "select validity || ' ' || validity_reasons from trials")
}

fn is_there() -> bool {
    has_programs(&["nats-server"])
}

#[test]
fn agents_started_for_a_run_share_iterations_and_rows_and_are_gone_with_it() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let rows: Vec<String> = (0..300).map(|row| row.to_string()).collect();
    let load = format!(
        "agents: 3\n  data: {{ row: {{ values: [{}], pick: once }} }}\n  scenarios: {{ a: {{ model: shared-iterations, vus: 9, iterations: 300, request: \"GET /item/{{{{row}}}}\" }} }}",
        rows.join(", ")
    );
    let bench = Bench::new(&experiment(&server, &load));
    let output = bench.run(&["run", "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = bench.path("run.narrows");
    let mut paths = received(&server);
    assert_eq!((sent(&run), paths.len()), (300, 300));
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 300, "each row was sent once");
    let report = text(&output.stdout);
    for agent in ["local-1", "local-2", "local-3"] {
        assert!(report.contains(agent), "{report}");
    }
    assert!(!report.contains("lost"), "{report}");
    nothing_is_left(&bench, &run);
    let id = format!("{}a", ask(&run, "select id from run"));
    eventually("the end of agents and their server", || marked(&id).is_empty());
}

#[test]
fn the_part_of_an_agent_that_is_killed_is_taken_over_and_what_was_missing_is_told() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let mut farm = Farm::new(
        &experiment(&server, &arrivals(120, 10)),
        &[("one", "zone=a"), ("two", "zone=a"), ("unasked", "zone=b")],
    );
    let arguments = ["run", "--agents", "2,zone=a", "--when-lost", "take-over", "--out", "run.narrows"];
    let mut command = farm.command(&arguments);
    let running = std::thread::spawn(move || end(command_of(&mut command)));
    eventually("the load", || received(&server).len() > 200);
    let killed = Instant::now();
    farm.processes.kill(2);
    let output = running.join().unwrap();
    assert!(killed.elapsed() > Duration::from_secs(3), "the load went on");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = farm.bench.path("run.narrows");
    let (counted, came) = (sent(&run), received(&server).len());
    assert!(counted <= came && came - counted <= 150, "{counted} counted of {came}");
    assert!((700..1_150).contains(&counted), "{counted}");
    let reasons = reasons(&run);
    assert!(reasons.starts_with("doubtful") && reasons.contains("Agent two was not heard from for 1."), "{reasons}");
    assert!(reasons.contains("50 % of the load was missing from") && reasons.contains("took over"), "{reasons}");
    assert!(!text(&output.stdout).contains("unasked"), "{}", text(&output.stdout));
}

#[test]
fn an_agent_that_is_asked_to_end_says_so_and_its_share_is_missing() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let farm = Farm::new(&experiment(&server, &arrivals(100, 8)), &[("one", "zone=a"), ("two", "zone=a")]);
    let mut command = farm.command(&["run", "--agents", "2", "--out", "run.narrows"]);
    let running = std::thread::spawn(move || end(command_of(&mut command)));
    eventually("the load", || received(&server).len() > 150);
    farm.processes.signal(1, Signal::TERM);
    let output = running.join().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = farm.bench.path("run.narrows");
    assert_eq!(sent(&run), received(&server).len(), "what it had sent counts");
    let reasons = reasons(&run);
    assert!(reasons.contains("Agent one was asked to end: 50 % of the load was missing from"), "{reasons}");
}

/// The command with its output kept.
fn command_of(command: &mut Command) -> Command {
    std::mem::replace(command, Command::new("true"))
}

#[test]
fn nothing_is_lost_when_the_server_restarts_and_a_paused_agent_counts_no_more() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let mut farm = Farm::new(&experiment(&server, &arrivals(100, 12)), &[("one", "zone=a"), ("two", "zone=a")]);
    let mut command = farm.command(&["run", "--agents", "2", "--out", "run.narrows"]);
    let running = std::thread::spawn(move || end(command_of(&mut command)));
    eventually("the load", || received(&server).len() > 150);
    farm.processes.kill(0);
    std::thread::sleep(Duration::from_secs(5));
    farm.serve(&["-js"]);
    let output = running.join().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("NATS cannot be reached"), "{}", text(&output.stderr));
    let run = farm.bench.path("run.narrows");
    assert_eq!(sent(&run), received(&server).len());
    assert!(!reasons(&run).contains("lost"), "{}", reasons(&run));

    let before = received(&server).len();
    let mut command = farm.command(&["run", "--agents", "2", "--out", "paused.narrows"]);
    let running = std::thread::spawn(move || end(command_of(&mut command)));
    eventually("the load", || received(&server).len() > before + 200);
    farm.processes.signal(1, Signal::STOP);
    std::thread::sleep(Duration::from_secs(4));
    farm.processes.signal(1, Signal::CONT);
    let output = running.join().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = farm.bench.path("paused.narrows");
    assert!(reasons(&run).contains("Agent one was not heard from"), "{}", reasons(&run));
    let (counted, came) = (sent(&run), received(&server).len() - before);
    assert!(counted <= came, "{counted} counted of {came}");
}

#[test]
fn another_coordinator_goes_on_with_the_agents_of_one_that_was_killed() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let farm = Farm::new(&experiment(&server, &arrivals(100, 10)), &[("one", "zone=a"), ("two", "zone=a")]);
    let arguments = ["run", "--agents", "2", "--out", "run.narrows"];
    let mut first = farm.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the load", || received(&server).len() > 300);
    first.kill().unwrap();
    first.wait().unwrap();
    let output = end(farm.command(&["run", "--agents", "2", "--out", "run.narrows", "--resume"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = farm.bench.path("run.narrows");
    let (counted, came) = (sent(&run), received(&server).len());
    assert_eq!((counted, came), (1_000, 1_000), "{}", text(&output.stderr));
    assert_eq!(ask(&run, "select count(*) from trials"), "1");
}

#[test]
fn an_agent_beside_a_service_samples_it_and_hands_its_spans_on() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let mut farm = Farm::new(&experiment(&server, &arrivals(100, 6)), &[("one", "zone=a")]);
    // An address that no other test listens on.
    let otlp = format!("127.0.0.9:{}", free_port());
    let mut command = farm.command(&["agent", "--name", "eye", "--label", "zone=b", "--otlp", &otlp]);
    command.args(["--pid", &format!("web={}", std::process::id())]);
    farm.processes.add(&mut command);
    let arguments = ["run", "--agents", "1,zone=a", "--out", "run.narrows"];
    let mut command = farm.command(&arguments);
    let running = std::thread::spawn(move || end(command_of(&mut command)));
    eventually("the load", || received(&server).len() > 150);
    // Both processes share the machine's clock.
    let now_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let span = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"web"}}}}]}},
        "scopeSpans":[{{"spans":[{{"traceId":"0123456789abcdef0123456789abcdef","spanId":"0123456789abcdef","name":"work",
        "kind":2,"startTimeUnixNano":"{now_ns}","endTimeUnixNano":"{}",
        "attributes":[{{"key":"password","value":{{"stringValue":"of-the-service"}}}}]}}]}}]}}]}}"#,
        now_ns + 1_000_000
    );
    let said = post(&otlp, &span);
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    let output = running.join().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("Agent eye looks at web."), "{}", text(&output.stderr));
    let run = farm.bench.path("run.narrows");
    let points = "select count(*) from metrics where service = 'web' and name = 'process.cpu.cores'";
    assert!(ask(&run, points).parse::<u32>().unwrap() >= 4, "{}", ask(&run, points));
    assert_eq!(ask(&run, "select count(*) from spans where service = 'web' and name = 'work'"), "1");
    let of_machine = "select count(*) >= 3 and min(value) >= 1 from metrics where service = 'web' and name =";
    assert_eq!(ask(&run, &format!("{of_machine} 'system.cpu.logical.count'")), "1");
    assert_eq!(ask(&run, "select group_concat(distinct agent) from samples"), "one");
    assert!(!std::fs::read(&run).unwrap().windows(14).any(|part| part == b"of-the-service"), "no secret is kept");
    assert_eq!(sent(&run), received(&server).len());
    let late = post(&otlp, &span);
    assert!(late.starts_with("HTTP/1.1 200") || late.starts_with("HTTP/1.1 4"), "nobody looks any more: {late}");
}

/// Sends OTLP in JSON.
fn post(address: &str, body: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn what_agents_cannot_do_is_said_and_none_goes_on() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let mut farm = Farm::new(&experiment(&server, &arrivals(100, 60)), &[("one", "zone=a")]);
    let refused = |farm: &Farm, arguments: &[&str], expected: &[&str]| {
        let output = end(farm.command(&[&["run", "--out", "refused.narrows"], arguments].concat()));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(expected.iter().all(|part| said.contains(part)) && !said.contains(PASSWORD), "{expected:?} in {said}");
        let _ = std::fs::remove_file(farm.bench.path("refused.narrows"));
    };
    refused(&farm, &["--agents", "0"], &["0 agents, expected 1 to 256"]);
    refused(&farm, &["--agents", "zone"], &["`zone` is no label, expected KEY=VALUE"]);
    refused(&farm, &["--nats", "nats://a"], &["`--nats` needs `--agents`"]);
    refused(&farm, &["--agents", "1", "--nats", "http://a"], &["--nats: the address does not begin with nats://"]);
    let wrong = format!("nats://me:wrong-{PASSWORD}@127.0.0.1:{}", farm.port);
    refused(
        &farm,
        &["--agents", "1", "--nats", &wrong],
        &["cannot connect to NATS 127.0.0.1", "authorization violation"],
    );
    refused(&farm, &["--agents", "2,zone=b"], &["0 of 2 agents with zone=b are there after", "one has other labels"]);
    let again = end(farm.command(&["agent", "--name", "one"]));
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("two agents are named one"), "{}", text(&again.stderr));

    let mut command = farm.command(&["run", "--agents", "1", "--out", "stopped.narrows"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the load", || {
        if let Some(status) = running.try_wait().unwrap() {
            let said = std::io::read_to_string(running.stderr.take().unwrap()).unwrap();
            panic!("ended with {status} before its load began: {said}");
        }
        received(&server).len() > 20
    });
    let pid = i32::try_from(running.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(2));
    let came = received(&server).len();
    std::thread::sleep(Duration::from_secs(1));
    assert!(received(&server).len() <= came + 5, "the agent has stopped");

    farm.processes.kill(0);
    farm.serve(&[]);
    refused(&farm, &["--agents", "1"], &["has no JetStream, which keeps what agents report"]);
}

#[test]
fn fewer_rows_than_agents_are_refused() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let load = "agents: 3\n  data: { row: { values: [1, 2], pick: once } }\n  scenarios: { a: { model: shared-iterations, vus: 9, \
                iterations: 300, request: \"GET /item/{{row}}\" } }";
    let bench = Bench::new(&experiment(&server, load));
    let output = bench.run(&["run"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("data `row` has 2 rows to be picked once by 3 agents"), "{said}");
    assert_eq!(received(&server).len(), 0);
}

/// Script that runs the experiment with agents and writes its run file to a 1 MiB disk.
const ON_A_SMALL_DISK: &str = r#"
mount -t tmpfs -o size=1m none small || exit 3
"$0" run --agents 2 --out small/run.narrows
echo "exit $?"
"#;

#[test]
fn a_full_disk_ends_the_run_and_its_agents() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let Some(mut command) = that_mounts(ON_A_SMALL_DISK) else { return };
    let bench = Bench::new(&experiment(&server, &arrivals(500, 60)));
    std::fs::create_dir(bench.path("small")).unwrap();
    command.current_dir(bench.path("")).env("TMPDIR", bench.path("tmp")).env("NO_COLOR", "1");
    let output = end(command);
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    assert!(shown.ends_with("exit 2\n") && said.contains("full"), "{shown}{said}");
    let came = received(&server).len();
    std::thread::sleep(Duration::from_secs(1));
    assert!(received(&server).len() <= came + 5, "the agents have stopped");
}

#[test]
fn an_encrypted_server_lets_agents_in_by_their_key() {
    if !is_there() {
        return;
    }
    // The example of NATS's documentation.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const KEY: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let server = Server::plain(hello);
    let bench = Bench::new(&experiment(&server, &arrivals(50, 2)));
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let port = free_port();
    let path = |name: &str| bench.path(name).display().to_string();
    let configuration = format!(
        "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {:?} }}\ntls {{ cert_file: {:?}, key_file: {:?} }}\n\
         authorization {{ users: [ {{ nkey: {KEY} }} ] }}\n",
        path("nats"),
        path("cert.pem"),
        path("key.pem")
    );
    for (name, text) in [
        ("nats.conf", configuration.as_str()),
        ("cert.pem", &own.cert.pem()),
        ("key.pem", &own.signing_key.serialize_pem()),
        ("seed", SEED),
        ("other", "SUACSSL3"),
    ] {
        std::fs::write(bench.path(name), text).unwrap();
    }
    let mut processes = Processes(Vec::new());
    let mut command = Command::new("nats-server");
    command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    processes.add(command.arg("-c").arg(bench.path("nats.conf")));
    eventually("a connection to NATS", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = |options: &str| format!("tls://localhost:{port}?{options}");
    let secured = url("ca=cert.pem&nkey=seed");
    processes.add(&mut bench.narrows(&["agent", "--name", "one", "--nats", &secured]));
    let output = bench.run(&["run", "--agents", "1", "--nats", &secured, "--out", "run.narrows"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(sent(&bench.path("run.narrows")), 100);
    for (options, expected) in [
        ("nkey=seed", "cannot connect to NATS localhost"),
        ("ca=cert.pem&nkey=other", "cannot connect to NATS localhost"),
        ("ca=cert.pem&nkey=absent", "cannot read absent"),
        ("ca=cert.pem", "cannot connect to NATS localhost"),
    ] {
        let output = bench.run(&["run", "--agents", "1", "--nats", &url(options), "--out", "refused.narrows"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options}: {said}");
        assert!(said.contains(expected) && !said.contains("SUACSSL3"), "{options}: {said}");
        let _ = std::fs::remove_file(bench.path("refused.narrows"));
    }
}

/// Kills an agent, the coordinator or the server while they work, at moments drawn: `NARROWS_TORTURE_ROUNDS` times.
#[test]
fn nothing_counts_twice_whoever_is_killed() {
    if !is_there() {
        return;
    }
    const REQUESTS: usize = 600;
    let (rounds, mut chance) = torture(2);
    let server = Server::plain(hello);
    let mut farm = Farm::new(&experiment(&server, &arrivals(100, 6)), &[("one", "zone=a"), ("two", "zone=a")]);
    for round in 0..rounds {
        let before = received(&server).len();
        let run = format!("run-{round}.narrows");
        let arguments = ["run", "--agents", "2", "--out", &run];
        let said = std::fs::File::create(farm.bench.path("said")).unwrap();
        let mut coordinator = farm.command(&arguments).stdout(Stdio::null()).stderr(said).spawn().unwrap();
        let said = farm.bench.path("said");
        let said = || std::fs::read_to_string(&said).unwrap();
        eventually("the load", || received(&server).len() > before + 10);
        std::thread::sleep(Duration::from_millis(chance.below(4_000) as u64));
        let victim = chance.below(3);
        match victim {
            0 => {
                farm.processes.kill(1);
                assert!(coordinator.wait().unwrap().success(), "round {round}: {}", said());
                let mut command = farm.bench.narrows(&["agent", "--name", "one", "--threads", "1"]);
                farm.processes.0[1] = command
                    .env("NARROWS_NATS", farm.url())
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap();
            }
            1 => {
                coordinator.kill().unwrap();
                coordinator.wait().unwrap();
                let output = end(farm.command(&["run", "--agents", "2", "--out", &run, "--resume"]));
                assert!(output.status.success(), "round {round}: {}", text(&output.stderr));
            }
            _ => {
                farm.processes.kill(0);
                std::thread::sleep(Duration::from_millis(chance.below(5_000) as u64));
                let restarted = farm.serve(&["-js"]);
                farm.processes.0.swap(0, restarted);
                farm.processes.0.pop();
                assert!(coordinator.wait().unwrap().success(), "round {round}: {}", said());
            }
        }
        let path = farm.bench.path(&run);
        let (counted, came) = (sent(&path), received(&server).len() - before);
        let lost = reasons(&path).contains("Agent one was not heard from");
        match victim {
            0 => assert!(counted <= came && lost, "round {round}: {counted} counted of {came}, {}", reasons(&path)),
            _ => assert_eq!((counted, came, lost), (REQUESTS, REQUESTS, false), "round {round}, victim {victim}"),
        }
    }
}

#[test]
fn arrivals_are_those_of_one_process() {
    if !is_there() {
        return;
    }
    let server = Server::plain(hello);
    let bench = Bench::new(&experiment(&server, &arrivals(300, 4)));
    for (name, agents) in [("one.narrows", None), ("three.narrows", Some("3"))] {
        let mut arguments = vec!["run", "--out", name];
        arguments.extend(agents.iter().flat_map(|agents| ["--agents", agents]));
        let output = bench.run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    for column in ["sum(due)", "sum(sent)"] {
        let of = |name| ask(&bench.path(name), &format!("select {column} from load_seconds"));
        assert_eq!((of("one.narrows"), of("three.narrows")), ("1200".to_owned(), "1200".to_owned()), "{column}");
    }
}
