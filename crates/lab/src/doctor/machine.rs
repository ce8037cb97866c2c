//! The machine: processors, memory, control groups, ports, descriptors, noise.

use std::time::{Duration, Instant};

use narrows_model::units;

use crate::cgroup::{Cgroup, Limits};
use crate::doctor::{Check, CheckStatus, check};
use crate::environment;
use crate::ports::Ports;

const WATCHED: Duration = Duration::from_secs(1);
/// A gap in a busy loop longer than this is someone else's work.
const GAP: Duration = Duration::from_micros(200);
const DESCRIPTORS_FINE: u64 = 4_096;

pub(super) fn checks() -> Vec<Check> {
    vec![processor(), memory(), cgroups(), ports(), descriptors(), noise()]
}

fn processor() -> Check {
    let machine = environment::fingerprint();
    let detail = format!("{} × {}, {}", machine.cores, machine.cpu_model, machine.kernel);
    match machine.cores {
        1 => check(
            "processor",
            CheckStatus::Limited,
            detail,
            Some("generator and system share one core: expect `generator-limited`"),
        ),
        _ => check("processor", CheckStatus::Fine, detail, None),
    }
}

fn memory() -> Check {
    check("memory", CheckStatus::Fine, units::bytes(environment::fingerprint().memory_bytes as f64), None)
}

fn cgroups() -> Check {
    let name = format!("narrows-doctor-{}", std::process::id());
    let try_caps = |limits| Cgroup::create(&name, limits, |_| {}).map(|cgroup| cgroup.remove());
    let cpu = try_caps(Limits { cpus: Some(1.0), memory_bytes: None });
    let memory = try_caps(Limits { cpus: None, memory_bytes: Some(256 << 20) });
    let hint = "`cpus:` and `memory:` are then left out and the result says so; run as root, or under `systemd-run --user --scope -p Delegate=yes`";
    match (cpu, memory) {
        (Ok(()), Ok(())) => check("caps (cgroups)", CheckStatus::Fine, "CPU and memory can be capped", None),
        (Ok(()), Err(why)) => check("caps (cgroups)", CheckStatus::Limited, format!("CPU only: {why}"), Some(hint)),
        (Err(why), Ok(())) => check("caps (cgroups)", CheckStatus::Limited, format!("memory only: {why}"), Some(hint)),
        (Err(why), Err(_)) => check("caps (cgroups)", CheckStatus::Missing, why.to_string(), Some(hint)),
    }
}

fn ports() -> Check {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let outgoing = range.split_whitespace().collect::<Vec<_>>().join("–");
    match Ports::new().take() {
        Ok(_) => {
            check("ports", CheckStatus::Fine, format!("free on 127.0.0.1; outgoing connections use {outgoing}"), None)
        }
        Err(why) => check("ports", CheckStatus::Missing, why.to_string(), None),
    }
}

fn descriptors() -> Check {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    match limit.current {
        Some(n) if n < DESCRIPTORS_FINE => check(
            "open files",
            CheckStatus::Limited,
            format!("at most {n}"),
            Some("`ulimit -n 65536` before a load with thousands of users"),
        ),
        Some(n) => check("open files", CheckStatus::Fine, format!("up to {n}"), None),
        None => check("open files", CheckStatus::Fine, "no limit", None),
    }
}

/// Spins for a second and adds up the gaps: time this thread was not allowed to run.
fn noise() -> Check {
    let start = Instant::now();
    let (mut last, mut lost, mut longest) = (start, Duration::ZERO, Duration::ZERO);
    while last.duration_since(start) < WATCHED {
        let now = Instant::now();
        let gap = now.duration_since(last);
        if gap > GAP {
            lost += gap;
            longest = longest.max(gap);
        }
        last = now;
    }
    let share = lost.as_secs_f64() / WATCHED.as_secs_f64();
    let detail = format!(
        "a busy loop lost {} of its time, {} at the longest",
        units::percent(share),
        units::duration(longest.as_nanos() as f64)
    );
    if share < 0.02 {
        check("noise", CheckStatus::Fine, detail, None)
    } else {
        check(
            "noise",
            CheckStatus::Limited,
            detail,
            Some("other work shares this machine: use `--repeat 3` or more and read the noise floor"),
        )
    }
}
