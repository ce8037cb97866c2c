//! Control groups of replicas: throttling, memory and pressure where a replica has a limit of its own.
//!
//! A replica is in the groups of its oldest process. Of each hierarchy the closest group upwards that has a limit
//! counts, short of any that the sampler itself is in: such a limit is not the replica's own. Where groups are is looked
//! up rarely, what they say at each detailed reading.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::ReplicaKey;
use super::files::{Files, KeptFile};
use super::limits::{Budget, Depth};
use super::mounts::{self, Controller, Mount, Version};
use super::stat::TaskId;
use super::text::{self, Pressure, lines};

/// Groups below one that is watched, itself included.
const GROUPS_MAX: usize = 256;
/// How deep they lie at most.
const DEPTH_MAX: usize = 16;
/// A limit of version 1 above this is none: the kernel writes almost 2⁶³ bytes.
const MEMORY_LIMIT_MAX: u64 = 1 << 60;
/// Subjects of pressure, in the order of [`Figures::pressure`].
pub(super) const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

/// Figures of the groups of a replica.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Figures {
    pub(super) cpu: Option<Cpu>,
    pub(super) memory: Option<Memory>,
    pub(super) pressure: [Option<Pressure>; 3],
    /// The group of the pressure; figures of another cannot be compared.
    pub(super) pressure_folder: Option<PathBuf>,
}

/// Effect of a limit on CPU since the group was made.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cpu {
    /// The group; figures of another cannot be compared.
    pub(super) folder: PathBuf,
    pub(super) limit_cores: f64,
    pub(super) periods: u64,
    pub(super) throttled_periods: u64,
    pub(super) throttled_ns: u64,
}

/// Memory charged to a group, and its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Memory {
    /// The group; figures of another cannot be compared.
    pub(super) folder: PathBuf,
    pub(super) used_bytes: u64,
    pub(super) limit_bytes: u64,
    /// Processes killed for lack of memory since the group was made; `None` if the kernel does not count them.
    pub(super) oom_kills: Option<u64>,
}

/// A group with files of its own.
#[derive(Debug)]
struct Group {
    folder: PathBuf,
    version: Version,
    files: [KeptFile; 3],
}

/// The groups of one replica that are of interest.
#[derive(Debug)]
struct ReplicaGroups {
    oldest: TaskId,
    cpu: Option<Group>,
    memory: Option<Group>,
    pressure: Option<Group>,
}

/// Finds and reads the control groups of replicas.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    mounts: Vec<Mount>,
    /// The groups that the sampler itself is in.
    own: Vec<Option<PathBuf>>,
    found: BTreeMap<ReplicaKey, ReplicaGroups>,
}

impl Cgroups {
    /// Learns what is mounted, when that is due, and forgets replicas that are not watched.
    pub(super) fn refresh(&mut self, files: &mut Files, depth: Depth, is_watched: impl Fn(&ReplicaKey) -> bool) {
        self.found.retain(|key, _| is_watched(key));
        if depth == Depth::Rare || self.mounts.is_empty() {
            self.mounts = mounts::mounts(files);
            let own = files.once(format_args!("self/cgroup")).unwrap_or_default();
            self.own = self.mounts.iter().map(|mount| mount.folder_of(own)).collect();
            self.found.clear();
        }
    }

    /// Reads the groups of a replica, given its oldest process and, if that is what is watched, its group.
    pub(super) fn read(
        &mut self,
        files: &mut Files,
        key: &ReplicaKey,
        oldest: TaskId,
        watched: Option<&Path>,
    ) -> Figures {
        if self.found.get(key).is_none_or(|found| found.oldest != oldest) {
            let found = self.find(files, oldest, watched);
            self.found.insert(key.clone(), found);
        }
        self.found.get_mut(key).map_or_else(Figures::default, |found| found.read(files))
    }

    fn find(&self, files: &mut Files, oldest: TaskId, watched: Option<&Path>) -> ReplicaGroups {
        let mut found = ReplicaGroups { oldest, cpu: None, memory: None, pressure: None };
        let Ok(text) = files.once(format_args!("{}/cgroup", oldest.id)) else { return found };
        let text = text.to_vec();
        for (mount, own) in self.mounts.iter().zip(&self.own) {
            let watched = watched.filter(|folder| folder.starts_with(&mount.point)).map(Path::to_path_buf);
            let Some(start) = watched.or_else(|| mount.folder_of(&text)) else { continue };
            let is_own = |folder: &Path| {
                folder != mount.point
                    && folder.starts_with(&mount.point)
                    && own.as_ref().is_none_or(|own| !own.starts_with(folder))
            };
            let upwards = || start.ancestors().take_while(|folder| is_own(folder));
            let mut closest = |controller| {
                let controls = mount.version == Version::V2 || mount.version == Version::V1(controller);
                let mut folders = upwards().filter(|_| controls);
                folders
                    .find(|folder| has_limit(files, folder, mount.version, controller))
                    .map(|f| Group::new(f, mount.version))
            };
            found.cpu = found.cpu.or_else(|| closest(Controller::Cpu));
            found.memory = found.memory.or_else(|| closest(Controller::Memory));
            if mount.version == Version::V2 {
                found.pressure = upwards().next().map(|folder| Group::new(folder, Version::V2));
            }
        }
        found
    }
}

fn has_limit(files: &mut Files, folder: &Path, version: Version, controller: Controller) -> bool {
    let mut group = Group::new(folder, version);
    match controller {
        Controller::Cpu => group.limit_cores(files).is_some(),
        Controller::Memory => group.limit_bytes(files).is_some(),
    }
}

impl ReplicaGroups {
    fn read(&mut self, files: &mut Files) -> Figures {
        let pressure = self.pressure.as_mut();
        Figures {
            cpu: self.cpu.as_mut().and_then(|group| group.cpu(files)),
            memory: self.memory.as_mut().and_then(|group| group.memory(files)),
            pressure_folder: pressure.as_ref().map(|group| group.folder.clone()),
            pressure: pressure.map_or([None; 3], |group| group.pressure(files)),
        }
    }
}

impl Group {
    fn new(folder: &Path, version: Version) -> Self {
        Self { folder: folder.to_owned(), version, files: Default::default() }
    }

    fn file<'a>(&mut self, files: &'a mut Files, at: usize, name: &str) -> Option<&'a [u8]> {
        files.record(&mut self.files[at], format_args!("{}/{name}", self.folder.display())).ok()
    }

    fn limit_cores(&mut self, files: &mut Files) -> Option<f64> {
        let (quota, period) = if self.version == Version::V2 {
            let text = self.file(files, 0, "cpu.max")?;
            let mut fields = lines(text).next()?.split_ascii_whitespace().map(str::parse::<u64>);
            (fields.next()?.ok()?, fields.next()?.ok()?)
        } else {
            let quota = text::first_number(self.file(files, 0, "cpu.cfs_quota_us")?)?;
            (quota, text::first_number(self.file(files, 1, "cpu.cfs_period_us")?)?)
        };
        (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
    }

    fn limit_bytes(&mut self, files: &mut Files) -> Option<u64> {
        let name = if self.version == Version::V2 { "memory.max" } else { "memory.limit_in_bytes" };
        text::first_number(self.file(files, 0, name)?).filter(|bytes| *bytes < MEMORY_LIMIT_MAX)
    }

    fn cpu(&mut self, files: &mut Files) -> Option<Cpu> {
        let limit_cores = self.limit_cores(files)?;
        let (key, unit_ns) = if self.version == Version::V2 { ("throttled_usec", 1000) } else { ("throttled_time", 1) };
        let folder = self.folder.clone();
        let text = self.file(files, 2, "cpu.stat")?;
        Some(Cpu {
            folder,
            limit_cores,
            periods: text::number(text, "nr_periods")?,
            throttled_periods: text::number(text, "nr_throttled")?,
            throttled_ns: text::number(text, key)?.saturating_mul(unit_ns),
        })
    }

    fn memory(&mut self, files: &mut Files) -> Option<Memory> {
        let limit_bytes = self.limit_bytes(files)?;
        let (current, events) = match self.version {
            Version::V2 => ("memory.current", "memory.events"),
            Version::V1(_) => ("memory.usage_in_bytes", "memory.oom_control"),
        };
        let used_bytes = text::first_number(self.file(files, 1, current)?)?;
        let oom_kills = self.file(files, 2, events).and_then(|text| text::number(text, "oom_kill"));
        Some(Memory { folder: self.folder.clone(), used_bytes, limit_bytes, oom_kills })
    }

    fn pressure(&mut self, files: &mut Files) -> [Option<Pressure>; 3] {
        let mut pressure = [None; 3];
        for (at, (slot, resource)) in pressure.iter_mut().zip(RESOURCES).enumerate() {
            *slot = self.file(files, at, &format!("{resource}.pressure")).and_then(text::pressure);
        }
        pressure
    }
}

/// The folder of a group that is named by its folder or, as `/proc/PID/cgroup` does, from its hierarchy's root.
pub(super) fn folder(files: &mut Files, path: &Path) -> Option<PathBuf> {
    let named = path.to_str().unwrap_or_default();
    let mounts = mounts::mounts(files);
    // Version 2 first: on a host that has both, only its groups are sure to hold a service as a whole.
    let (second, first): (Vec<&Mount>, Vec<&Mount>) = mounts.iter().partition(|mount| mount.version != Version::V2);
    let seen = first.into_iter().chain(second).filter_map(|mount| mount.folder(named));
    let candidates = std::iter::once(path.to_path_buf()).filter(|path| path.is_absolute()).chain(seen);
    candidates.into_iter().find(|folder| folder.join("cgroup.procs").is_file())
}

/// The processes in a group and below, by number. What is beyond the limits is counted as left out.
pub(super) fn processes(files: &mut Files, folder: &Path, budget: &mut Budget) -> Vec<u32> {
    let mut processes = BTreeSet::new();
    let mut read = 0;
    let mut to_read = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = to_read.pop() {
        if read >= GROUPS_MAX || depth > DEPTH_MAX {
            budget.left_out.groups += 1;
            continue;
        }
        // A threaded group refuses; its processes stand in the group above. A group may be gone by now.
        let text = files.whole(format_args!("{}/cgroup.procs", folder.display())).unwrap_or_default();
        // Processes of other number spaces stand as 0.
        processes.extend(lines(text).filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0));
        let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        to_read.extend(below.take(GROUPS_MAX).map(|entry| (entry.path(), depth + 1)));
        read += 1;
    }
    processes.into_iter().collect()
}
