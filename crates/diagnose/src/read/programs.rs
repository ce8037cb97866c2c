//! Kind of a service, by the program that it runs.
//!
//! Programs are known by name and not as components, because experiments start them by `run` too, and run files hold
//! systems that others started. A test of the lab checks that every component's program is known here.

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::interpreter_lock::Interpreter;

/// Database programs, by the name of the executable.
const DATABASES: [&str; 12] = [
    "postgres",
    "mysqld",
    "mariadbd",
    "mongod",
    "cockroach",
    "clickhouse-server",
    "sqlservr",
    "oracle",
    "redis-server",
    "valkey-server",
    "memcached",
    "cassandra",
];

/// Those of them whose connections are held for a transaction, and the ports that such databases listen at.
const TRANSACTIONAL: [&str; 6] = ["postgres", "mysqld", "mariadbd", "cockroach", "sqlservr", "oracle"];
const TRANSACTIONAL_PORTS: [&str; 6] = ["5432", "6432", "3306", "26257", "1433", "1521"];

/// Message brokers, by the name of the executable.
const BROKERS: [&str; 1] = ["nats-server"];

/// Proxies that have no tracing unless it is built in, by the name of the executable.
const PROXIES: [&str; 2] = ["haproxy", "nginx"];

/// The program that runs Java.
const JAVA: [&str; 1] = ["java"];
/// Programs that run Python, by the name of the executable, without its version.
const PYTHON: [&str; 8] = ["python", "pypy", "gunicorn", "uwsgi", "uvicorn", "hypercorn", "waitress-serve", "flask"];
/// Programs that run Ruby.
const RUBY: [&str; 5] = ["ruby", "puma", "rackup", "rails", "bundle"];
/// The program that runs JavaScript in V8, and its options for the largest heap, in MiB.
const NODE: &str = "node";
const NODE_HEAP_OPTIONS: [&str; 2] = ["--max-old-space-size", "--max_old_space_size"];
/// Programs whose runtimes collect garbage late.
const LATE_COLLECTORS: [&str; 2] = ["java", "dotnet"];
/// A program may stand behind another that starts it, such as `/usr/bin/env`.
const PROGRAM_ARGUMENTS: usize = 3;
/// Options that set the number of worker processes.
const WORKER_FLAGS: [&str; 3] = ["-w", "--workers", "--processes"];

/// True if a service of the trial runs the program of a database.
pub(crate) fn is_database_program(trial: &TrialEvidence, service: &str) -> bool {
    runs_one_of(&DATABASES, trial, service)
}

/// True if a peer, a service of the trial or an address, is a database whose connections are held for transactions.
pub(crate) fn keeps_transactions(trial: &TrialEvidence, peer: &str) -> bool {
    let has_port = |(_, port): (&str, &str)| TRANSACTIONAL_PORTS.contains(&port);
    runs_one_of(&TRANSACTIONAL, trial, peer) || peer.rsplit_once(':').is_some_and(has_port)
}

/// True if a service of the trial runs the program of a database or of a message broker, which sends no spans.
pub(crate) fn is_store_program(trial: &TrialEvidence, service: &str) -> bool {
    is_database_program(trial, service) || runs_one_of(&BROKERS, trial, service)
}

/// True if a service of the trial runs the program of a proxy that only passes on what its callers trace.
pub(crate) fn is_proxy_program(trial: &TrialEvidence, service: &str) -> bool {
    runs_one_of(&PROXIES, trial, service)
}

/// True if a service of the trial runs on a virtual machine of Java.
pub(crate) fn runs_java(trial: &TrialEvidence, service: &str) -> bool {
    runs_one_of(&JAVA, trial, service)
}

/// The service that the load calls, where no spans say so: the only one, or the only one that is neither a database nor a
/// message broker.
pub(crate) fn only_service(trial: &TrialEvidence) -> Option<&str> {
    let services = trial.service_names();
    if let [only] = services[..] {
        return Some(only);
    }
    let mut others = services.into_iter().filter(|service| !is_store_program(trial, service));
    others.next().filter(|_| others.next().is_none())
}

/// True if the diagnosis knows a program, by the name of its executable.
pub fn knows_program(name: &str) -> bool {
    DATABASES.iter().chain(&BROKERS).chain(&PROXIES).any(|known| *known == name)
}

/// The interpreter that runs a service's code in threads of which one computes at a time, if a command starts one.
pub(crate) fn locking_interpreter(command: &[String]) -> Option<Interpreter> {
    let names = command.iter().take(PROGRAM_ARGUMENTS).map(|argument| argument.rsplit('/').next().unwrap_or(argument));
    names.into_iter().find_map(|name| {
        let is_version = |rest: &str| rest.chars().all(|each| each.is_ascii_digit() || each == '.');
        let is_of = |stems: &[&str]| stems.iter().any(|stem| name.strip_prefix(stem).is_some_and(is_version));
        let python = is_of(&PYTHON).then_some(Interpreter::Python);
        python.or_else(|| is_of(&RUBY).then_some(Interpreter::Ruby))
    })
}

/// True if a command starts a runtime that lets garbage grow to its heap's limit: a JVM or .NET.
pub(crate) fn collects_late(command: &[String]) -> bool {
    let names = command.iter().take(PROGRAM_ARGUMENTS).map(|argument| argument.rsplit('/').next().unwrap_or(argument));
    names.into_iter().any(|name| LATE_COLLECTORS.contains(&name))
}

/// Limit of the heap that a command sets for Node.js, bytes; `None` if it starts something else or sets none.
pub(crate) fn node_heap_limit(command: &[String]) -> Option<f64> {
    let program = |argument: &String| argument.rsplit('/').next() == Some(NODE);
    let mut options = command.iter().skip(1 + command.iter().take(PROGRAM_ARGUMENTS).position(program)?);
    let mebibytes = options.find_map(|argument| {
        let (option, size) = argument.split_once('=')?;
        NODE_HEAP_OPTIONS.contains(&option).then(|| size.parse::<u32>().ok())?
    });
    mebibytes.filter(|size| *size > 0).map(|size| f64::from(size) * 1_048_576.0)
}

/// True if a command asks for more than one worker process. Each has its own interpreter.
pub(crate) fn has_workers(command: &[String]) -> bool {
    let is_many = |number: &str| number.parse::<u32>().is_ok_and(|number| number > 1);
    let is_flag = |argument: &str| WORKER_FLAGS.contains(&argument);
    let joined =
        |argument: &String| argument.split_once('=').is_some_and(|(flag, many)| is_flag(flag) && is_many(many));
    command.windows(2).any(|pair| is_flag(&pair[0]) && is_many(&pair[1])) || command.iter().any(joined)
}

fn runs_one_of(programs: &[&str], trial: &TrialEvidence, service: &str) -> bool {
    let is_one = |command: &[String]| {
        let program = command.first().map_or("", |first| first.rsplit('/').next().unwrap_or(first));
        programs.contains(&program)
    };
    trial.services.iter().any(|instance| instance.service == service && is_one(&instance.command))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::TrialBuilder;

    use super::*;

    #[test]
    fn interpreters_are_known_by_their_programs() {
        let of = |text: &str| {
            let command: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            locking_interpreter(&command)
        };
        assert_eq!(of("/usr/bin/python3.12 app.py"), Some(Interpreter::Python));
        assert_eq!(of("/usr/bin/env python3 app.py"), Some(Interpreter::Python));
        assert_eq!(of("venv/bin/gunicorn --threads 8 -w 1 app:app"), Some(Interpreter::Python));
        assert_eq!(of("bundle exec puma -t 8"), Some(Interpreter::Ruby));
        assert_eq!(of("python3.13t app.py"), None, "built without the lock");
        assert_eq!(of("pythonista"), None);
        assert_eq!(of("java -jar python.jar"), None);
        assert_eq!(of(""), None);
        let late = |command: &str| collects_late(&[command.to_owned()]);
        assert!(late("/usr/bin/java") && late("dotnet") && !late("build/ledger"));
    }

    #[test]
    fn the_heap_of_node_is_read_from_the_command() {
        let limit = |command: &str| {
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            node_heap_limit(&command).map(|bytes| bytes / 1_048_576.0)
        };
        assert_eq!(limit("/usr/bin/node --max-old-space-size=128 --require x shop.js"), Some(128.0));
        assert_eq!(limit("/usr/bin/env node --max_old_space_size=64 shop.js"), Some(64.0));
        assert_eq!(limit("node shop.js"), None);
        assert_eq!(limit("java --max-old-space-size=128"), None);
    }

    #[test]
    fn worker_processes_are_read_from_the_command() {
        let of = |text: &str| has_workers(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(of("gunicorn -w 4 app:app") && of("gunicorn --workers=4 app:app") && of("uwsgi --processes 2"));
        assert!(!of("gunicorn -w 1 app:app") && !of("puma -p 3000") && !of("gunicorn -w") && !of(""));
    }

    #[test]
    fn the_load_calls_the_only_service_that_is_no_database() {
        let trial = |commands: &[(&str, &str)]| {
            let trial = commands.iter().fold(TrialBuilder::new("a"), |trial, (name, _)| trial.service(name, None));
            let mut trial = trial.build();
            for (instance, (_, command)) in trial.services.iter_mut().zip(commands) {
                instance.command = vec![(*command).to_owned()];
            }
            trial
        };
        assert_eq!(only_service(&trial(&[("db", "postgres")])), Some("db"));
        assert_eq!(only_service(&trial(&[("db", "/usr/lib/postgres"), ("shop", "java")])), Some("shop"));
        assert_eq!(only_service(&trial(&[("bus", "/usr/sbin/nats-server"), ("shop", "java")])), Some("shop"));
        assert_eq!(only_service(&trial(&[("shop", "java"), ("stock", "node")])), None);
        assert_eq!(only_service(&trial(&[])), None);
    }
}
