//! Leftovers of a run whose process and guard were both killed. The next run on the machine removes them.
//!
//! The mark of a run names the process that made it. Processes, scratch folders and control groups carry the mark, so
//! that a later run can check whether their run is still alive. Only marks of this process's own PID namespace count:
//! process ids of another container mean nothing here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cgroup;
use crate::guard::{MARKER, kill_marked, kill_working_in};
use crate::processes::{self, Identity};

/// Prefix of the names of folders and control groups.
pub(crate) const PREFIX: &str = "narrows-";
/// Number of parts of a mark: run, process, start of the process and PID namespace, the last three in hexadecimal.
/// Marks are part of socket paths, so they must be short.
const PARTS: usize = 4;

/// A new mark for the processes and files of a run. It differs when another process resumes the run.
pub(crate) fn new_mark(run_id: &str) -> String {
    let own = Identity::from_pid(std::process::id() as i32);
    let (pid, ticks) = own.map_or((0, 0), |own| (own.pid, own.started_ticks));
    format!("{run_id}-{pid:x}-{ticks:x}-{:x}", namespace("self").unwrap_or(0))
}

/// Numbers of leftovers that were removed, and those that could not be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    pub(crate) processes: usize,
    pub(crate) folders: usize,
    pub(crate) cgroups: usize,
    pub(crate) kept: Vec<PathBuf>,
}

impl Leftovers {
    /// Ends the processes and removes the files that dead runs left on this machine.
    pub(crate) fn clean_up() -> Self {
        let mut all = Self::default();
        for mark in marks_of_processes() {
            all.processes += kill_marked(&mark);
        }
        for cgroup in cgroup::made_by_runs(PREFIX).into_iter().filter(|path| is_of_dead_run(path)) {
            cgroup::empty_and_remove(&cgroup);
            all.note(cgroup, |all| &mut all.cgroups);
        }
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        for folder in entries.map(|entry| entry.path()).filter(|path| is_of_dead_run(path)) {
            all.processes += kill_working_in(&folder);
            let _ = fs::remove_dir_all(&folder);
            all.note(folder, |all| &mut all.folders);
        }
        all
    }

    fn note(&mut self, path: PathBuf, count: impl Fn(&mut Self) -> &mut usize) {
        if path.exists() {
            self.kept.push(path);
        } else {
            *count(self) += 1;
        }
    }

    /// A sentence on the leftovers; `None` if there were none.
    pub(crate) fn sentence(&self) -> Option<String> {
        let counts = [(self.processes, "process"), (self.folders, "folder"), (self.cgroups, "control group")];
        let removed: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| match (count, *noun) {
                (1, noun) => format!("1 {noun}"),
                (count, "process") => format!("{count} processes"),
                (count, noun) => format!("{count} {noun}s"),
            })
            .collect();
        let kept: Vec<String> = self.kept.iter().map(|path| path.display().to_string()).collect();
        let removed =
            (!removed.is_empty()).then(|| format!("removed {} that a killed run had left", removed.join(", ")));
        let kept =
            (!kept.is_empty()).then(|| format!("could not remove what a killed run had left: {}", kept.join(", ")));
        let parts: Vec<String> = [removed, kept].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Marks of dead runs that running processes still carry.
fn marks_of_processes() -> BTreeSet<String> {
    let mut marks = BTreeSet::new();
    let variable = format!("{MARKER}=");
    let note = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mark = environment.split(|byte| *byte == 0).find_map(|one| one.strip_prefix(variable.as_bytes()));
        let mark = mark.and_then(|mark| str::from_utf8(mark).ok()).filter(|mark| is_dead(mark));
        if let Some(mark) = mark.filter(|_| namespace(&pid.to_string()) == namespace("self")) {
            marks.insert(mark.to_owned());
        }
    };
    processes::numbers().for_each(note);
    marks
}

/// Whether a folder or control group carries the mark of a dead run.
fn is_of_dead_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
    let end = name.and_then(|name| Some((name, name.match_indices('-').nth(PARTS - 1)?.0)));
    end.is_some_and(|(name, end)| is_dead(&name[..end]))
}

/// Whether a mark is of this PID namespace and its process has ended.
fn is_dead(mark: &str) -> bool {
    let parts: Vec<&str> = mark.split('-').collect();
    let [_, pid, ticks, of_namespace] = parts[..] else { return false };
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (Some(pid), Some(started_ticks)) = (number(pid), number(ticks)) else { return false };
    let Ok(pid) = i32::try_from(pid) else { return false };
    let is_here = number(of_namespace).is_some() && number(of_namespace) == namespace("self");
    is_here && pid > 1 && !Identity { pid, started_ticks }.is_there()
}

/// The number of a process's PID namespace.
fn namespace(pid: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{pid}/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_of_processes_that_ended_here_are_dead() {
        let own = new_mark("ab12");
        assert!(!is_dead(&own), "{own}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of_child(&child).unwrap();
        let here = namespace("self").unwrap();
        let of = |namespace: u64| format!("ab12-{:x}-{:x}-{namespace:x}", identity.pid, identity.started_ticks);
        assert!(!is_dead(&of(here)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_dead(&of(here)));
        assert!(!is_dead(&of(here + 1)), "of another container");
        for other in ["", "ab12-00000001", "ab12-x-1-1", "ab12-1-1-1"] {
            assert!(!is_dead(other), "{other}");
        }
        let folder = |name: String| is_of_dead_run(Path::new("/tmp").join(name).as_path());
        assert!(folder(format!("narrows-{}-3", of(here))) && folder(format!("narrows-{}-web-api-0", of(here))));
        assert!(!folder(of(here)) && !folder(format!("narrows-{}", of(here))) && !folder(format!("narrows-{own}-1")));
    }

    #[test]
    fn it_is_told_what_was_removed_and_what_was_not() {
        assert_eq!(Leftovers::default().sentence(), None);
        let all = Leftovers { processes: 2, folders: 1, cgroups: 0, kept: vec!["/tmp/a".into()] };
        assert_eq!(
            all.sentence().as_deref(),
            Some(
                "removed 2 processes, 1 folder that a killed run had left; could not remove what a killed run had left: \
                 /tmp/a"
            )
        );
    }
}
