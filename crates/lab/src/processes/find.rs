//! Finds processes in `/proc` by what they carries, where they work, and whose they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::processes::stat::Stat;
use crate::processes::{Handle, Identity};

/// How long processes may take to end after `SIGKILL`.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// At most this many descendants of a process are found.
const DESCENDANTS_MAX: usize = 10_000;

/// The ids of all processes but this one.
pub(crate) fn numbers() -> impl Iterator<Item = i32> {
    let own = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(move |pid| *pid != own)
}

/// All running processes but this one that have a property, one open at a time. The property is checked while the
/// handle is open.
pub(crate) fn each(has_property: impl Fn(i32) -> bool) -> impl Iterator<Item = Handle> {
    let handles = numbers().filter_map(|pid| Handle::open(pid).ok());
    handles.filter(move |handle| has_property(handle.pid()) && !handle.has_ended())
}

/// Kills every process that has a property, and waits, for at most five seconds, until none is left.
/// Returns how many there were.
pub(crate) fn kill_each(has_property: impl Fn(i32) -> bool) -> usize {
    let deadline = Instant::now() + KILL_TIMEOUT;
    let mut seen = BTreeSet::new();
    loop {
        let mut is_left = false;
        for handle in each(&has_property) {
            is_left = true;
            seen.insert(handle.pid());
            handle.send(Signal::KILL);
        }
        if !is_left || Instant::now() > deadline {
            return seen.len();
        }
        std::thread::sleep(POLL);
    }
}

/// Whether a process carries an environment variable, written `NAME=value`.
pub(crate) fn carries(pid: i32, variable: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|one| one == variable))
}

/// Whether a process works in a folder or below it.
pub(crate) fn works_in(pid: i32, folder: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
}

/// Whether a process has a terminal.
pub(crate) fn has_terminal(pid: i32) -> bool {
    Stat::read(pid).is_ok_and(|stat| stat.terminal != 0)
}

/// Whether a process belongs to the process group and session that `leader` made.
///
/// While the leader's number is its own, so is its group's. A leader that is gone leaves its number to the group until
/// the last member has ended; `lost_ticks` is when the leader could first be waited for, and a process that started
/// later may be in a new group with the old number, so it does not count. Nor does anyone once another process has the
/// number, for then the group had ended.
pub(crate) fn is_in_group(pid: i32, leader: Identity, lost_ticks: u64) -> bool {
    let Ok(stat) = Stat::read(pid) else { return false };
    let may_be = stat.group == leader.pid && stat.session == leader.pid && stat.started_ticks >= leader.started_ticks;
    // The order matters: a leader that is there after its member was read was there before.
    may_be
        && match Identity::from_pid(leader.pid) {
            Some(holder) => holder == leader,
            None => stat.started_ticks <= lost_ticks,
        }
}

/// The descendants of a process, parents before their children, at most [`DESCENDANTS_MAX`].
pub(crate) fn descendants(root: Identity) -> Vec<Identity> {
    let mut found = living_children(root);
    let mut next = 0;
    while next < found.len() && found.len() < DESCENDANTS_MAX {
        let more = living_children(found[next]);
        found.extend(more);
        next += 1;
    }
    found.truncate(DESCENDANTS_MAX);
    found
}

/// The children of a process whose number is still its own.
fn living_children(parent: Identity) -> Vec<Identity> {
    let is_child = |pid: i32| {
        let stat = Stat::read(pid).ok().filter(|stat| stat.parent == parent.pid)?;
        // The order matters: a parent that is there after its child was read was the one the child named.
        parent.is_there().then_some(Identity { pid, started_ticks: stat.started_ticks })
    };
    children(parent.pid).into_iter().filter_map(is_child).collect()
}

/// The numbers of a process's children, ended ones that were not waited for included.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>()).collect()
}

/// Now, in the clock ticks since boot that start times are given in, rounded up.
pub(crate) fn now_ticks() -> u64 {
    const NANOSECONDS: u128 = 1_000_000_000;
    let now = clock_gettime(ClockId::Boottime);
    let now_ns = now.tv_sec.unsigned_abs() as u128 * NANOSECONDS + now.tv_nsec.unsigned_abs() as u128;
    let ticks = now_ns * u128::from(rustix::param::clock_ticks_per_second());
    u64::try_from(ticks.div_ceil(NANOSECONDS)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a shell that prints the number of a process it started.
    fn shell(script: &str, command: &mut Command) -> (Child, i32) {
        let mut child = command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().parse().unwrap())
    }

    /// A shell that leads a session of its own.
    fn in_session(script: &str) -> (Child, i32) {
        shell(script, Command::new("setsid").arg("sh"))
    }

    #[test]
    fn descendants_are_found_through_sessions_of_their_own() {
        let (mut server, worker) = shell("setsid sleep 60 & echo $!; wait", Command::new("sh").process_group(0));
        let root = Identity::of_child(&server).unwrap();
        let worker = Identity::from_pid(worker).unwrap();
        assert_eq!(descendants(root), [worker]);
        let stale = Identity { started_ticks: root.started_ticks - 1, ..root };
        assert_eq!(descendants(stale), [], "another process with the root's number has no descendants of the root");
        server.kill().unwrap();
        server.wait().unwrap();
        worker.send(Signal::KILL);
    }

    #[test]
    fn a_group_without_its_leader_keeps_the_members_that_started_in_time() {
        let (mut leader, member) = in_session("sleep 60 >/dev/null & echo $!; wait");
        let group = Identity::of_child(&leader).unwrap();
        let began = Identity::from_pid(member).unwrap().started_ticks;
        assert!(is_in_group(member, group, 0), "the leader is there");
        leader.kill().unwrap();
        assert!(is_in_group(member, group, 0), "the leader has not been waited for");
        leader.wait().unwrap();
        assert!(is_in_group(member, group, began) && is_in_group(member, group, now_ticks()));
        assert!(!is_in_group(member, group, began - 1), "it started after the leader was gone");
        let later = Identity { started_ticks: began + 1, ..group };
        assert!(!is_in_group(member, later, now_ticks()), "it started before the leader");
        assert_eq!(kill_each(|pid| is_in_group(pid, group, now_ticks())), 1);
    }

    #[test]
    fn a_group_whose_number_another_process_leads_is_a_strangers() {
        let (mut leader, member) = in_session("sleep 60 >/dev/null & echo $!; wait");
        let group = Identity::of_child(&leader).unwrap();
        let gone = Identity { started_ticks: group.started_ticks - 1, ..group };
        for pid in [leader.id() as i32, member] {
            assert!(is_in_group(pid, group, now_ticks()));
            assert!(!is_in_group(pid, gone, now_ticks()));
        }
        assert_eq!(kill_each(|pid| is_in_group(pid, group, now_ticks())), 2);
        leader.wait().unwrap();
    }

    #[test]
    fn processes_are_found_by_where_they_work() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().canonicalize().unwrap();
        let mut child = Command::new("sleep").arg("60").current_dir(&there).spawn().unwrap();
        let pid = child.id() as i32;
        assert!(works_in(pid, &there) && !works_in(pid, Path::new("/no/such/folder")));
        assert_eq!(kill_each(|pid| works_in(pid, &there)), 1);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn now_is_not_before_a_process_that_has_started() {
        let own = Identity::from_pid(std::process::id() as i32).unwrap();
        let now = now_ticks();
        assert!((own.started_ticks..own.started_ticks + 100 * 86_400).contains(&now), "{own:?} at {now}");
    }
}
