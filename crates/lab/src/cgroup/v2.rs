//! Version 2: one hierarchy. A group with processes in it cannot hand controllers to its children, so the place for
//! ours is the nearest ancestor of this process's group where a child with the needed controllers can be made.

use std::path::{Path, PathBuf};

use crate::cgroup::{CapError, Host, Limits, make, quota, write};

pub(super) fn create(
    host: &Host,
    name: &str,
    limits: Limits,
    made: &mut Vec<PathBuf>,
    tell: &mut dyn FnMut(&Path),
) -> Result<(), CapError> {
    let (mount, own) = host.v2.as_ref().ok_or_else(|| CapError("no cgroup hierarchy is mounted".into()))?;
    let mut refusal = None;
    for ancestor in own.ancestors() {
        let place = mount.join(ancestor);
        match create_at(&place, name, limits, made, tell) {
            Ok(()) => return Ok(()),
            Err(denied) => refusal = refusal.or(Some(denied)),
        }
        made.drain(..).for_each(|folder| super::empty_and_remove(&folder));
    }
    Err(refusal.unwrap_or_else(|| CapError("no place for a control group was found".into())))
}

fn create_at(
    place: &Path,
    name: &str,
    limits: Limits,
    made: &mut Vec<PathBuf>,
    tell: &mut dyn FnMut(&Path),
) -> Result<(), CapError> {
    for controller in needed(limits) {
        hand_down(place, controller)?;
    }
    let folder = place.join(name);
    make(&folder, made, tell)?;
    if let Some(cpus) = limits.cpus {
        let (quota, period) = quota(cpus);
        write(&folder.join("cpu.max"), &format!("{quota} {period}"))?;
    }
    if let Some(bytes) = limits.memory_bytes {
        write(&folder.join("memory.max"), &bytes.to_string())?;
    }
    Ok(())
}

fn needed(limits: Limits) -> impl Iterator<Item = &'static str> {
    [limits.cpus.map(|_| "cpu"), limits.memory_bytes.map(|_| "memory")].into_iter().flatten()
}

fn hand_down(place: &Path, controller: &str) -> Result<(), CapError> {
    let control = place.join("cgroup.subtree_control");
    let enabled = std::fs::read_to_string(&control).map_err(|error| super::denied("read", &control, &error))?;
    if enabled.split_whitespace().any(|name| name == controller) {
        return Ok(());
    }
    write(&control, &format!("+{controller}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_that_hands_down_controllers_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let scope = root.path().join("user.slice/run.scope");
        std::fs::create_dir_all(&scope).unwrap();
        std::fs::write(root.path().join("user.slice/cgroup.subtree_control"), "cpu memory").unwrap();
        let host = Host { v1: vec![], v2: Some((root.path().to_owned(), "user.slice/run.scope".into())) };
        let (mut made, mut told) = (Vec::new(), Vec::new());
        let limits = Limits { cpus: Some(0.5), memory_bytes: Some(1 << 20) };
        create(&host, "narrows-x", limits, &mut made, &mut |path| told.push(path.to_owned())).unwrap();
        let folder = root.path().join("user.slice/narrows-x");
        assert_eq!((&made, &told), (&vec![folder.clone()], &vec![folder.clone()]));
        assert_eq!(std::fs::read_to_string(folder.join("cpu.max")).unwrap(), "5000 10000");
        assert_eq!(std::fs::read_to_string(folder.join("memory.max")).unwrap(), "1048576");
    }

    #[test]
    fn a_refusal_leaves_nothing_and_gives_the_first_reason() {
        let root = tempfile::tempdir().unwrap();
        let host = Host { v1: vec![], v2: Some((root.path().to_owned(), "a".into())) };
        let mut made = Vec::new();
        let refused = create(&host, "n", Limits { cpus: Some(1.0), memory_bytes: None }, &mut made, &mut |_| {});
        assert!(refused.unwrap_err().0.contains("a/cgroup.subtree_control"));
        assert!(made.is_empty());
    }
}
