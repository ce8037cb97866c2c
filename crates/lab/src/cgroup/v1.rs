//! Version 1: one hierarchy per controller; a group of our own is made below this process's group in each that is
//! needed.

use std::path::{Path, PathBuf};

use crate::cgroup::{CapError, Host, Limits, make, quota, write};

pub(super) fn create(
    host: &Host,
    name: &str,
    limits: Limits,
    made: &mut Vec<PathBuf>,
    tell: &mut dyn FnMut(&Path),
) -> Result<(), CapError> {
    let folder = |controller: &str| {
        let found = host.v1.iter().find(|(c, _)| c == controller);
        found
            .map(|(_, base)| base.join(name))
            .ok_or_else(|| CapError(format!("the {controller} controller is not mounted")))
    };
    if let Some(cpus) = limits.cpus {
        let folder = folder("cpu")?;
        let (quota, period) = quota(cpus);
        make(&folder, made, tell)?;
        write(&folder.join("cpu.cfs_period_us"), &period.to_string())?;
        write(&folder.join("cpu.cfs_quota_us"), &quota.to_string())?;
    }
    if let Some(bytes) = limits.memory_bytes {
        let folder = folder("memory")?;
        if !made.contains(&folder) {
            make(&folder, made, tell)?;
        }
        write(&folder.join("memory.limit_in_bytes"), &bytes.to_string())?;
    }
    Ok(())
}
