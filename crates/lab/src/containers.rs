//! Containers of a Compose file: started for a trial, sampled by their control groups, and removed whatever happens.
//!
//! Compose starts them (`docker compose` or `podman-compose`, whichever is there), under a project that is named after the
//! run. They are removed by the label of that project and not by Compose, so that the guard can do it too: it needs no
//! file and no variable. Images that were built for the project lose its name and stay: they are the cache of the next
//! build. A second Compose file sets what the experiment says: limits, and where telemetry goes.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::Error;
use crate::components::process::Spec;
use crate::components::workshop::Workshop;
use crate::experiment::{BoundCompose, ContainerLimit, OTLP_TOKEN_VARIABLE};

/// As which the output of Compose is kept.
pub(crate) const NAME: &str = "compose";
/// The label of what belongs to a project. Both kinds of Compose set it.
const PROJECT_LABEL: &str = "com.docker.compose.project";
/// How long a question about containers may take, and their removal.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Seconds that containers have to end before they are killed.
const STOP_SECONDS: &str = "5";
/// Lines of a container's output that an error has.
const LOG_LINES: &str = "8";
/// Output that is read of one command, in bytes.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
const POLL: Duration = Duration::from_millis(20);

/// A program that runs containers, and its Compose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Engine {
    program: &'static str,
    compose: &'static [&'static str],
    /// A command that succeeds where both are usable.
    probe: &'static [&'static str],
    /// This machine, as containers call it.
    host: &'static str,
    /// Entry of the hosts file that gives the host this name, if the container program gives it none.
    extra_host: Option<&'static str>,
}

const ENGINES: [Engine; 2] = [
    Engine {
        program: "docker",
        compose: &["docker", "compose"],
        probe: &["docker", "compose", "ls"],
        host: "host.docker.internal",
        extra_host: Some("host.docker.internal:host-gateway"),
    },
    Engine {
        program: "podman",
        compose: &["podman-compose"],
        probe: &["podman-compose", "--version"],
        host: "host.containers.internal",
        extra_host: None,
    },
];

/// Where containers send telemetry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OtlpAddress<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<&'a str>,
}

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) service: String,
    pub(crate) replica: u32,
    /// Its first process, as this machine numbers it.
    pub(crate) pid: u32,
}

/// The containers of a trial.
#[derive(Debug)]
pub(crate) struct Project {
    engine: Engine,
    name: String,
    /// Of the Compose file.
    services: Vec<String>,
}

impl Project {
    /// Starts the containers of a Compose file. `folder` is the trial's.
    pub(crate) fn up(
        bound: &BoundCompose,
        name: String,
        folder: &Path,
        otlp: Option<OtlpAddress<'_>>,
        workshop: &mut Workshop<'_>,
    ) -> Result<Self, Error> {
        let engine = ENGINES.into_iter().find(|engine| ask(engine.probe).is_ok()).ok_or(Error::NoProgram {
            service: NAME.to_owned(),
            program: "docker compose` or `podman-compose".to_owned(),
            places: "PATH".to_owned(),
            install: "apt-get install podman podman-compose",
        })?;
        let project = Self { engine, name, services: bound.services.clone() };
        workshop.guard.add_containers(project.engine.program, &project.name)?;
        let overriding = folder.join("compose.override.yaml");
        let text = overridden(bound, engine, otlp).to_string();
        std::fs::write(&overriding, text).map_err(|source| Error::File {
            what: "write",
            path: overriding.clone(),
            source,
        })?;
        let mut command: Vec<String> = engine.compose.iter().map(|word| (*word).to_owned()).collect();
        let files = [&bound.file, &overriding].map(|file| file.to_string_lossy().into_owned());
        command.extend(files.into_iter().flat_map(|file| ["--file".to_owned(), file]));
        command.extend(["--project-name", &project.name, "up", "--detach"].map(str::to_owned));
        let token = otlp.and_then(|otlp| otlp.token).map(|token| (OTLP_TOKEN_VARIABLE.to_owned(), token.to_owned()));
        let spec = Spec {
            service: NAME.to_owned(),
            replica: 0,
            command,
            cwd: bound.file.parent().unwrap_or(Path::new("/")).to_owned(),
            env: bound.env.iter().cloned().chain(token).collect(),
            account: None,
            wanted_line: None,
        };
        let started = match workshop.last_output(&spec, bound.timeout) {
            Ok(Ok(last_lines)) => project.check(bound, last_lines),
            Ok(Err(failure)) => {
                let what = format!("cannot start {}: it {}", bound.file.display(), failure.how(bound.timeout));
                let last_lines = without_commands(failure.last_lines);
                Err(Error::Component { service: NAME.to_owned(), what, last_lines })
            }
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            project.down(workshop.guard)?;
            return Err(error);
        }
        Ok(project)
    }

    /// Errors where Compose ended well although a service has no container, or where containers find no other by name.
    fn check(&self, bound: &BoundCompose, last_lines: Vec<String>) -> Result<(), Error> {
        let missing = self.missing()?;
        if !missing.is_empty() {
            let what = format!("{} was not started: {}", bound.file.display(), missing.join(", "));
            let last_lines = without_commands(last_lines);
            return Err(Error::Component { service: NAME.to_owned(), what, last_lines });
        }
        match self.network_without_names().filter(|_| self.services.len() > 1) {
            Some(network) => Err(Error::NoNames { file: bound.file.clone(), network }),
            None => Ok(()),
        }
    }

    /// A network of the project, if it has networks and none has a name server. Docker's always have one.
    fn network_without_names(&self) -> Option<String> {
        if self.engine.program != "podman" {
            return None;
        }
        let label = format!("label={PROJECT_LABEL}={}", self.name);
        let networks = ask(&["podman", "network", "ls", "--quiet", "--filter", &label]).ok()?;
        let networks: Vec<&str> = networks.split_whitespace().collect();
        let format = ["podman", "network", "inspect", "--format", "{{.Name}} {{.DNSEnabled}}"];
        let described = ask(&[&format, &networks[..]].concat()).ok()?;
        let mut without = described.lines().map(|line| line.strip_suffix(" false"));
        let first = without.next()??;
        without.all(|one| one.is_some()).then(|| first.to_owned())
    }

    /// The services of its Compose file.
    pub(crate) fn services(&self) -> &[String] {
        &self.services
    }

    /// The last lines that the containers of a service printed.
    pub(crate) fn last_lines(&self, service: &str) -> Vec<String> {
        let described = self.described().unwrap_or_default();
        let containers = described.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next().filter(|_| words.next() == Some(service))
        });
        // The standard error of a container comes at that of this command.
        let both = ["sh", "-c", "exec \"$0\" \"$@\" 2>&1", self.engine.program, "logs", "--tail", LOG_LINES];
        let lines = containers.filter_map(|container| ask(&[&both[..], &[container]].concat()).ok());
        lines.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// The containers that run, in the order of their services and numbers.
    ///
    /// # Errors
    /// When the engine does not list them.
    pub(crate) fn containers(&self) -> Result<Vec<Container>, Error> {
        Ok(numbered(&self.described()?))
    }

    /// The services without a container: Compose may end well although a container was not made.
    fn missing(&self) -> Result<Vec<String>, Error> {
        let described = self.described()?;
        let has = |service: &String| described.lines().any(|line| line.split_whitespace().nth(2) == Some(service));
        Ok(self.services.iter().filter(|service| !has(service)).cloned().collect())
    }

    /// A line `PID NAME SERVICE` for each container, also for those that have ended.
    fn described(&self) -> Result<String, Error> {
        let failed = |what| Error::Component { service: NAME.to_owned(), what, last_lines: Vec::new() };
        let label = format!("label={PROJECT_LABEL}={}", self.name);
        let ids = ask(&[self.engine.program, "ps", "--all", "--quiet", "--filter", &label]).map_err(failed)?;
        let ids: Vec<&str> = ids.split_whitespace().collect();
        if ids.is_empty() {
            return Ok(String::new());
        }
        let format = "{{.State.Pid}} {{.Name}} {{index .Config.Labels \"com.docker.compose.service\"}}";
        ask(&[&[self.engine.program, "inspect", "--format", format], &ids[..]].concat()).map_err(failed)
    }

    /// Removes the containers, with their networks and volumes.
    pub(crate) fn down(&self, guard: &mut crate::guard::Guard) -> Result<(), Error> {
        remove(self.engine.program, &self.name);
        guard.drop_containers(self.engine.program, &self.name)
    }
}

/// The control group of a container that runs, by its name or id, from the root of its hierarchy.
///
/// # Errors
/// The words of docker or podman: there is no such container, it does not run, or neither program is here.
pub fn control_group_of(container: &str) -> Result<PathBuf, String> {
    let mut why = String::new();
    for Engine { program, .. } in ENGINES {
        match ask(&[program, "inspect", "--type", "container", "--format", "{{.State.Pid}}", "--", container]) {
            Ok(pid) => {
                let pid = pid.trim().parse().ok().filter(|pid| *pid > 0);
                let pid = pid.ok_or_else(|| format!("container {container} does not run"))?;
                return control_group(pid)
                    .ok_or_else(|| format!("container {container} has no control group of its own"));
            }
            Err(said) => why = said,
        }
    }
    Err(format!("no container {container}: {why}"))
}

/// The control group of a process, from the root of its hierarchy; `None` if it is the root itself or cannot be read.
pub(crate) fn control_group(pid: u32) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let of = |controller: &str| {
        let mut lines = groups.lines().filter_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|one| one == controller).then_some(path)
        });
        lines.next()
    };
    of("cpuacct").or_else(|| of("")).filter(|path| *path != "/").map(PathBuf::from)
}

/// Output of Compose without the commands that podman-compose repeats, their status and the containers that they started.
fn without_commands(mut lines: Vec<String>) -> Vec<String> {
    const COMMANDS: [&str; 4] = ["podman ", "['podman'", "exit code: ", "** "];
    let is_id = |line: &str| line.len() == 64 && line.chars().all(|c| c.is_ascii_hexdigit());
    lines.retain(|line| !is_id(line) && !COMMANDS.iter().any(|command| line.starts_with(command)));
    lines
}

/// The program of a container by its first process, behind shells and programs that only start others: its file, and the
/// name that it goes by. Without arguments, which may hold secrets.
pub(crate) fn program(pid: u32) -> Vec<String> {
    const STARTERS: [&str; 8] = ["sh", "dash", "bash", "busybox", "tini", "dumb-init", "catatonit", "docker-init"];
    const DEPTH_MAX: usize = 4;
    let child = |pid: &u32| {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    };
    let is_starter = |path: &PathBuf| STARTERS.iter().any(|name| path.file_name().is_some_and(|file| file == *name));
    let program = |pid: u32| {
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok().filter(|path| !is_starter(path))?;
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let name = line.split(['\0', ' ']).next().map(|name| name.trim_end_matches(':').to_owned());
        Some(std::iter::once(path.to_string_lossy().into_owned()).chain(name).collect())
    };
    std::iter::successors(Some(pid), child).take(DEPTH_MAX).find_map(program).unwrap_or_default()
}

/// Containers from lines of `PID NAME SERVICE`.
fn numbered(told: &str) -> Vec<Container> {
    let mut lines: Vec<(&str, &str, u32)> = told
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (pid, name, service) = (words.next()?, words.next()?, words.next()?);
            Some((service, name, pid.parse().ok().filter(|pid| *pid > 0)?))
        })
        .collect();
    lines.sort_unstable();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let numbered = lines.into_iter().map(|(service, _, pid)| {
        let count = counts.entry(service).or_default();
        *count += 1;
        Container { service: service.to_owned(), replica: *count - 1, pid }
    });
    numbered.collect()
}

/// The Compose file that is put over the experiment's.
fn overridden(bound: &BoundCompose, engine: Engine, otlp: Option<OtlpAddress<'_>>) -> Value {
    let mut services = Map::new();
    for name in &bound.services {
        let mut service = Map::new();
        if let Some(otlp) = otlp {
            let mut environment = json!({
                "OTEL_EXPORTER_OTLP_ENDPOINT": format!("http://{}:{}", engine.host, otlp.address.port()),
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
                "OTEL_SERVICE_NAME": name,
            });
            if otlp.token.is_some() {
                // The token itself is in the environment of Compose, and in no file.
                environment["OTEL_EXPORTER_OTLP_HEADERS"] =
                    json!(format!("authorization=Bearer%20${{{OTLP_TOKEN_VARIABLE}}}"));
            }
            service.insert("environment".to_owned(), environment);
            service.extend(engine.extra_host.map(|host| ("extra_hosts".to_owned(), json!([host]))));
        }
        if let Some(limit) = bound.limits.iter().find(|limit| limit.service == *name) {
            service.extend(limited(limit, engine));
        }
        if !service.is_empty() {
            services.insert(name.clone(), Value::Object(service));
        }
    }
    json!({ "services": services })
}

/// Keys that limit a service. Docker refuses a limit that is written in two places, so each is written where the Compose file
/// has it. Of two places, podman-compose prefers `deploy`; it refuses a value of another type than that of the Compose file.
fn limited(limit: &ContainerLimit, engine: Engine) -> Map<String, Value> {
    let (mut service, mut deployed) = (Map::new(), Map::new());
    let is_docker = engine.program == "docker";
    if let Some(cpus) = limit.cpus {
        if is_docker && limit.written.has_cpus {
            service.insert("cpus".to_owned(), json!(cpus));
        } else {
            let value = if limit.written.has_number_in_deploy { json!(cpus) } else { json!(cpus.to_string()) };
            deployed.insert("cpus".to_owned(), value);
        }
    }
    if let Some(bytes) = limit.memory_bytes {
        let (place, key) = match is_docker && limit.written.has_mem_limit {
            true => (&mut service, "mem_limit"),
            false => (&mut deployed, "memory"),
        };
        place.insert(key.to_owned(), json!(format!("{bytes}b")));
    }
    if !deployed.is_empty() {
        service.insert("deploy".to_owned(), json!({ "resources": { "limits": deployed } }));
    }
    service
}

/// Removes all of a project. Parts that are not there any more are no error.
pub(crate) fn remove(engine: &str, project: &str) {
    let label = format!("label={PROJECT_LABEL}={project}");
    let ids = |words: &[&str]| ask(&[words, &["--quiet", "--filter", &label]].concat()).unwrap_or_default();
    let each = |words: &[&str], ids: &str| {
        let ids: Vec<&str> = ids.split_whitespace().collect();
        if !ids.is_empty() {
            // The next step removes what is left of this one, and a later run names what stays.
            let _ = ask(&[words, &ids[..]].concat());
        }
    };
    let containers = ids(&[engine, "ps", "--all"]);
    each(&[engine, "stop", "--time", STOP_SECONDS], &containers);
    each(&[engine, "rm", "--force", "--volumes"], &containers);
    if engine == "podman" {
        let _ = ask(&[engine, "pod", "rm", "--force", "--ignore", &format!("pod_{project}")]);
    }
    each(&[engine, "network", "rm"], &ids(&[engine, "network", "ls"]));
    each(&[engine, "volume", "rm"], &ids(&[engine, "volume", "ls"]));
    let images = ask(&[engine, "images", "--format", "{{.Repository}}:{{.Tag}}"]).unwrap_or_default();
    for image in images.lines().filter(|image| is_built_for(image, project)) {
        // Docker keeps the layers of an image apart, in the cache of its builder; podman's cache is its images.
        let _ = match engine {
            "podman" => ask(&[engine, "untag", image, image]),
            _ => ask(&[engine, "image", "rm", image]),
        };
    }
}

/// Whether Compose built an image for a project: `localhost/shop_web:latest`, `shop-web:latest`.
fn is_built_for(image: &str, project: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name.strip_prefix(project).is_some_and(|service| service.starts_with(['_', '-']))
}

/// Runs a command for at most [`TIMEOUT`] and returns its output, or in words why not.
fn ask(words: &[&str]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let shown = words.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    let failed = |why: String| format!("`{shown}` {why}");
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let output = child.stdout.take().map(|output| {
        std::thread::spawn(move || {
            let mut text = String::new();
            output.take(OUTPUT_BYTES_MAX).read_to_string(&mut text).map(|_| text).unwrap_or_default()
        })
    });
    let deadline = Instant::now() + TIMEOUT;
    let status = loop {
        match child.try_wait().map_err(|error| failed(format!("cannot be waited for: {error}")))? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed("took too long".to_owned()));
            }
            None => std::thread::sleep(POLL),
        }
    };
    let text = output.and_then(|reader| reader.join().ok()).unwrap_or_default();
    if status.success() { Ok(text) } else { Err(failed(format!("ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::WrittenLimits;

    #[test]
    fn containers_are_numbered_by_service_in_the_order_of_their_names() {
        let found = numbered("12 shop-web-2 web\n11 shop-web-1 web\n0 shop-gone-1 gone\n9 shop-db-1 db\nnonsense\n");
        let shown: Vec<_> = found.iter().map(|one| (&*one.service, one.replica, one.pid)).collect();
        assert_eq!(shown, [("db", 0, 9), ("web", 0, 11), ("web", 1, 12)]);
    }

    #[test]
    fn the_file_on_top_has_limits_and_the_address_of_telemetry_but_no_token() {
        let mut bound = BoundCompose::of("/shop/compose.yaml".into());
        bound.services = vec!["web".to_owned(), "db".to_owned()];
        bound.limits = vec![limit(WrittenLimits::default())];
        let limits = json!({ "resources": { "limits": { "cpus": "0.5", "memory": "268435456b" } } });
        assert_eq!(overridden(&bound, ENGINES[0], None), json!({ "services": { "db": { "deploy": limits } } }));
        let otlp = OtlpAddress { address: "0.0.0.0:4318".parse().unwrap(), token: Some("not-written") };
        let text = overridden(&bound, ENGINES[0], Some(otlp)).to_string();
        assert!(text.contains("http://host.docker.internal:4318") && text.contains("${NARROWS_OTLP_TOKEN}"), "{text}");
        assert!(!text.contains("not-written"), "{text}");
        let text = overridden(&bound, ENGINES[1], Some(otlp)).to_string();
        assert!(text.contains("http://host.containers.internal:4318") && !text.contains("extra_hosts"), "{text}");
    }

    fn limit(written: WrittenLimits) -> ContainerLimit {
        ContainerLimit { service: "db".into(), cpus: Some(0.5), memory_bytes: Some(1 << 28), written }
    }

    #[test]
    fn limits_replace_those_of_the_compose_file_where_it_has_them() {
        let plain = limit(WrittenLimits { has_cpus: true, has_mem_limit: true, has_number_in_deploy: false });
        let shown = |limit: &ContainerLimit, engine| Value::Object(limited(limit, ENGINES[engine])).to_string();
        assert_eq!(shown(&plain, 0), r#"{"cpus":0.5,"mem_limit":"268435456b"}"#);
        let deployed = r#"{"deploy":{"resources":{"limits":{"cpus":"0.5","memory":"268435456b"}}}}"#;
        assert_eq!(shown(&plain, 1), deployed);
        let number = limit(WrittenLimits { has_number_in_deploy: true, ..WrittenLimits::default() });
        assert_eq!(shown(&number, 1), deployed.replace(r#""0.5""#, "0.5"));
    }

    #[test]
    fn the_program_of_a_container_stands_behind_its_shell() {
        let mut shell = Command::new("sh").args(["-c", "sleep 60; true"]).spawn().unwrap();
        let deadline = Instant::now() + TIMEOUT;
        let found = loop {
            match program(shell.id()) {
                found if found.is_empty() && Instant::now() < deadline => std::thread::sleep(POLL),
                found => break found,
            }
        };
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.id())).unwrap_or_default();
        let _ = Command::new("kill").args(children.split_whitespace()).status();
        let _ = shell.kill();
        let _ = shell.wait();
        assert!(found[0].starts_with('/') && !found[0].ends_with("sh") && found[1] == "sleep", "{found:?}");
    }

    #[test]
    fn errors_of_compose_are_shown_without_its_commands() {
        let id = "f9fa73fca493751e2002dee0e8d2e9b025a20bb74550b8eb791ecefdfe4cc4a7";
        let said = ["['podman', 'network']", "podman run --name=a", id, "Error: sysctl is invalid", "exit code: 125"];
        let shown = without_commands(said.map(str::to_owned).to_vec());
        assert_eq!(shown, ["Error: sysctl is invalid"]);
    }

    #[test]
    fn images_of_a_project_are_known_by_their_names() {
        let is_built = |image: &str| is_built_for(image, "narrows-ab-1");
        assert!(is_built("localhost/narrows-ab-1_web:latest") && is_built("narrows-ab-1-web:latest"));
        for other in ["narrows-ab-12-web:latest", "narrows-ab-1:latest", "docker.io/library/nginx:latest", ""] {
            assert!(!is_built(other), "{other}");
        }
    }

    #[test]
    fn a_command_that_cannot_run_or_fails_says_so() {
        assert_eq!(ask(&["echo", "a b"]).unwrap(), "a b\n");
        assert!(ask(&["false"]).unwrap_err().starts_with("`false` ended with"));
        assert!(ask(&["no-such-program", "x"]).unwrap_err().contains("cannot be started"));
    }
}
