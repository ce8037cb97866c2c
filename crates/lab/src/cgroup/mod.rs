//! CPU and memory caps by control groups, version 1 or 2, where this user may set them.
//!
//! The CPU period is 10 ms, not the kernel's default of 100 ms: a process that used up its quota then stalls for
//! milliseconds, which is less than most latencies measured here. Where caps cannot be set the caller gets the reason,
//! to print beside the result; nothing is pretended.

mod v1;
mod v2;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::processes::Handle;

/// The caps of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Limits {
    /// Cores, above 0.
    pub(crate) cpus: Option<f64>,
    /// Bytes.
    pub(crate) memory_bytes: Option<u64>,
}

impl Limits {
    /// Whether nothing is capped.
    pub(crate) fn is_none(self) -> bool {
        self.cpus.is_none() && self.memory_bytes.is_none()
    }
}

/// Why a cap could not be set, in one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CapError(pub String);

/// Control groups made for one replica. Removed by [`Cgroup::remove`].
#[derive(Debug)]
pub(crate) struct Cgroup {
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Makes the groups and sets the caps. `tell` hears each folder before it is made, so that someone else can remove
    /// it should this process die. On error nothing is left.
    pub(crate) fn create(name: &str, limits: Limits, mut tell: impl FnMut(&Path)) -> Result<Self, CapError> {
        let host = Host::read()?;
        let mut cgroup = Self { folders: Vec::new() };
        let made = if host.is_v1_for(limits) {
            v1::create(&host, name, limits, &mut cgroup.folders, &mut tell)
        } else {
            v2::create(&host, name, limits, &mut cgroup.folders, &mut tell)
        };
        match made.and_then(|()| cgroup.doors()) {
            Ok(_) => Ok(cgroup),
            Err(denied) => {
                cgroup.remove();
                Err(denied)
            }
        }
    }

    /// Files to write `0` to in a child before it executes: it then belongs to the groups.
    pub(crate) fn doors(&self) -> Result<Vec<File>, CapError> {
        self.folders
            .iter()
            .map(|folder| {
                let path = folder.join("cgroup.procs");
                OpenOptions::new().write(true).open(&path).map_err(|error| denied("open", &path, &error))
            })
            .collect()
    }

    /// Whether the kernel killed a process in it for its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        // Version 2 counts in memory.events, version 1 (since Linux 4.13) in memory.oom_control.
        let files = self.folders.iter().flat_map(|f| [f.join("memory.events"), f.join("memory.oom_control")]);
        let text: String = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
        text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }

    /// Kills what is still inside and removes the groups.
    pub(crate) fn remove(&self) {
        self.folders.iter().for_each(|folder| empty_and_remove(folder));
    }
}

/// Control groups whose names begin with `prefix`, in the group where [`Cgroup::create`] creates them.
pub(crate) fn made_by_runs(prefix: &str) -> Vec<PathBuf> {
    let Ok(host) = Host::read() else { return Vec::new() };
    let v2 = host.v2.iter().flat_map(|(mount, own)| own.ancestors().map(|ancestor| mount.join(ancestor)));
    let places = host.v1.iter().map(|(_, place)| place.clone()).chain(v2);
    let entries = places.flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten());
    let is_made = |entry: &std::fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
    entries.filter(is_made).map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// Kills all processes in a control group and removes it; waits at most two seconds for it to empty.
pub(crate) fn empty_and_remove(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(2);
    while folder.exists() && std::fs::remove_dir(folder).is_err() && Instant::now() < deadline {
        kill_inside(folder);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the processes in a control group. The group is read again for each one while its handle is open: a process that
/// has ended, and whose number is another's by now, is not in it any more.
fn kill_inside(folder: &Path) {
    for pid in inside(folder) {
        if let Ok(process) = Handle::open(pid)
            && inside(folder).contains(&pid)
        {
            process.send(Signal::KILL);
        }
    }
}

/// The numbers of the processes in a control group.
fn inside(folder: &Path) -> Vec<i32> {
    let list = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Quota and period in microseconds for a number of cores: a period of 10 ms, longer only where the kernel's smallest
/// quota (1 ms) asks for it.
fn quota(cpus: f64) -> (u64, u64) {
    const QUOTA_MIN: f64 = 1_000.0;
    const PERIOD: f64 = 10_000.0;
    const PERIOD_MAX: f64 = 1_000_000.0;
    let period = (QUOTA_MIN / cpus).clamp(PERIOD, PERIOD_MAX);
    ((cpus * period).max(QUOTA_MIN).round() as u64, period.round() as u64)
}

/// Where the controllers of this machine are mounted and where this process stands in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Host {
    /// Folder of this process's own group per version 1 controller.
    v1: Vec<(String, PathBuf)>,
    /// Mount point of version 2 and this process's group below it.
    v2: Option<(PathBuf, PathBuf)>,
}

/// This process's group for a controller of version 1, or, without a name, of version 2, by `/proc/self/cgroup`.
fn own_group(own: &str, controller: &str) -> Option<PathBuf> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?.trim_start_matches('/');
        let is_it = match controller {
            "" => controllers.is_empty(),
            _ => controllers.split(',').any(|listed| listed == controller),
        };
        is_it.then(|| PathBuf::from(path))
    })
}

impl Host {
    fn read() -> Result<Self, CapError> {
        let read = |path: &str| std::fs::read_to_string(path).map_err(|error| denied("read", Path::new(path), &error));
        Ok(Self::parse(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?))
    }

    fn parse(mountinfo: &str, own: &str) -> Self {
        let mut host = Host::default();
        for line in mountinfo.lines() {
            let Some((place, kind)) = line.split_once(" - ") else { continue };
            let Some(mount_point) = place.split(' ').nth(4) else { continue };
            let mut kind = kind.split(' ');
            match kind.next() {
                Some("cgroup2") => host.v2 = own_group(own, "").map(|group| (PathBuf::from(mount_point), group)),
                Some("cgroup") => {
                    let options = kind.nth(1).unwrap_or_default();
                    for controller in options.split(',').filter(|option| matches!(*option, "cpu" | "memory")) {
                        let group = own_group(own, controller).unwrap_or_default();
                        host.v1.push((controller.to_owned(), Path::new(mount_point).join(group)));
                    }
                }
                _ => {}
            }
        }
        host
    }

    fn is_v1_for(&self, limits: Limits) -> bool {
        let has = |name: &str| self.v1.iter().any(|(controller, _)| controller == name);
        (limits.cpus.is_none() || has("cpu")) && (limits.memory_bytes.is_none() || has("memory"))
    }
}

fn denied(what: &str, path: &Path, error: &std::io::Error) -> CapError {
    CapError(format!("cannot {what} {}: {error}", path.display()))
}

fn write(path: &Path, value: &str) -> Result<(), CapError> {
    std::fs::write(path, value).map_err(|error| denied(&format!("write `{value}` to"), path, &error))
}

fn make(folder: &Path, made: &mut Vec<PathBuf>, tell: &mut dyn FnMut(&Path)) -> Result<(), CapError> {
    tell(folder);
    std::fs::create_dir(folder).map_err(|error| denied("create", folder, &error))?;
    made.push(folder.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_keep_the_period_short() {
        let cases = [(2.0, (20_000, 10_000)), (0.25, (2_500, 10_000)), (0.1, (1_000, 10_000)), (0.05, (1_000, 20_000))];
        for (cpus, expected) in cases {
            assert_eq!(quota(cpus), expected, "{cpus} cores");
        }
    }

    #[test]
    fn mounts_are_understood() {
        let v1 = "25 24 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n\
                  30 25 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                  31 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let host = Host::parse(v1, "4:memory:/box/a\n1:cpu,cpuacct:/\n0::/\n");
        assert_eq!(
            host.v1,
            [
                ("cpu".to_owned(), PathBuf::from("/sys/fs/cgroup/cpu/")),
                ("memory".to_owned(), PathBuf::from("/sys/fs/cgroup/memory/box/a"))
            ]
        );
        let v2 = "30 25 0:27 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let host = Host::parse(v2, "0::/user.slice/session-1.scope\n");
        assert_eq!(host.v2, Some(("/sys/fs/cgroup".into(), "user.slice/session-1.scope".into())));
        assert!(!host.is_v1_for(Limits { cpus: Some(1.0), memory_bytes: None }));
    }
}
