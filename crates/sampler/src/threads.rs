//! The threads of a process: how long each ran and how often it was switched.
//!
//! The scheduler's own counts (`schedstat`) are short, exact to the nanosecond and cheap to read. The dear `status`,
//! which alone separates voluntary from involuntary switches, is read only of threads that ran since. Where a kernel
//! has no `schedstat`, or a file could not be kept open, a thread's `stat` says how long it ran, in clock ticks, and
//! who it is. Threads are listed again only when their number changed or one of them was not there any more.

use std::collections::HashMap;
use std::io;

use super::files::{Files, KeptFile};
use super::limits::{Budget, Depth};
use super::stat::{self, TaskId};
use super::text::{self, Switches};

/// Beginnings of the names of threads that collect garbage while the program stands still: those of HotSpot's serial,
/// parallel and G1 collectors. Threads that collect beside the program have other names, such as `G1 Conc#0`.
const COLLECTORS: [&[u8]; 2] = [b"GC Thread#", b"VM Thread"];

/// Unit in which this machine's kernel counts threads' time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) has_schedstat: bool,
    pub(super) tick_ns: u64,
}

/// Counts of a thread so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct SchedulerCounts {
    /// Nanoseconds on a processor.
    pub(super) run_ns: u64,
    /// Nanoseconds ready to run and waiting for one; `None` where the kernel does not say.
    pub(super) wait_ns: Option<u64>,
}

/// The threads of one process, with their files.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<u32, Thread>,
    /// How many the process had when they were listed. 0 requests a new list.
    listed: u64,
    /// How many were beyond the limit then.
    beyond: u64,
}

#[derive(Debug)]
struct Thread {
    id: TaskId,
    /// Whether it had the name of a collector when it was first read.
    is_collector: bool,
    /// `schedstat` or `stat`.
    run_file: KeptFile,
    status_file: KeptFile,
    name_file: KeptFile,
    call_file: KeptFile,
    ran: SchedulerCounts,
    /// How often it had been put on a processor; `None` where that is not known.
    times_run: Option<u64>,
    /// Its switches, and `times_run` before they were read.
    switches: Option<(Switches, Option<u64>)>,
}

impl Threads {
    /// Reads those that there are, at most as many as the budget allows. `count` is what the process says it has.
    pub(super) fn read(&mut self, at: &mut At<'_>, count: u64) {
        let before = self.known.len();
        self.known.retain(|_, thread| thread.read(at));
        if self.known.len() < before || self.listed != count {
            self.list(at);
            self.listed = count;
        }
        if self.known.len() > at.budget.threads {
            self.beyond += self.known.len() as u64;
            self.known.clear();
            self.listed = 0;
        }
        at.budget.threads -= self.known.len();
        at.budget.left_out.threads += self.beyond;
    }

    /// Learns of threads that began and reads them.
    fn list(&mut self, at: &mut At<'_>) {
        let path = format_args!("{}/task", at.pid);
        let (ids, beyond) = at.files.numbered(path, at.budget.threads).unwrap_or_default();
        self.beyond = beyond;
        for (id, _) in ids {
            if !self.known.contains_key(&id)
                && let Some(thread) = Thread::first_read(at, id)
            {
                self.known.insert(id, thread);
            }
        }
    }

    /// Counts of each so far; with a prefix, of those whose name begins with it now.
    pub(super) fn ran(&mut self, files: &mut Files, pid: u32, name_prefix: &[u8]) -> Vec<(TaskId, SchedulerCounts)> {
        let mut has_name = |thread: &mut Thread| {
            let path = format_args!("{pid}/task/{}/comm", thread.id.id);
            let name = files.record(&mut thread.name_file, path);
            name.is_ok_and(|name| name.starts_with(name_prefix))
        };
        let wanted = self.known.values_mut().filter_map(|thread| {
            let is_wanted = name_prefix.is_empty() || has_name(thread);
            is_wanted.then_some((thread.id, thread.ran))
        });
        wanted.collect()
    }

    /// Those that collect garbage while the program stands still.
    pub(super) fn collectors(&self) -> impl Iterator<Item = TaskId> {
        self.known.values().filter(|thread| thread.is_collector).map(|thread| thread.id)
    }

    /// The numbers of those that were there at the last reading.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.known.keys().copied()
    }

    /// The call that a thread is blocked in, as the kernel writes it.
    pub(super) fn call<'f>(&mut self, files: &'f mut Files, pid: u32, id: u32) -> io::Result<&'f [u8]> {
        let thread = self.known.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
        files.record(&mut thread.call_file, format_args!("{pid}/task/{id}/syscall"))
    }

    /// Whether the file of a thread's call is open.
    pub(super) fn keeps_call(&self, id: u32) -> bool {
        self.known.get(&id).is_some_and(|thread| thread.call_file.is_open())
    }

    /// Switches of each so far, where they could be read.
    pub(super) fn switches(&self) -> impl Iterator<Item = (TaskId, Switches)> {
        self.known.values().filter_map(|thread| Some((thread.id, thread.switches?.0)))
    }
}

/// Where and how threads are read.
pub(super) struct At<'a> {
    pub(super) files: &'a mut Files,
    pub(super) pid: u32,
    pub(super) depth: Depth,
    pub(super) clock: Clock,
    pub(super) budget: &'a mut Budget,
}

impl Thread {
    fn first_read(at: &mut At<'_>, id: u32) -> Option<Self> {
        let (name, stat) = stat::task(at.files.once(format_args!("{}/task/{id}/stat", at.pid)).ok()?)?;
        let mut thread = Self {
            id: stat.id(id),
            is_collector: COLLECTORS.iter().any(|collector| name.starts_with(collector)),
            run_file: KeptFile::default(),
            status_file: KeptFile::default(),
            name_file: KeptFile::default(),
            call_file: KeptFile::default(),
            ran: SchedulerCounts { run_ns: stat.own.ticks().saturating_mul(at.clock.tick_ns), wait_ns: None },
            times_run: None,
            switches: None,
        };
        thread.read(at).then_some(thread)
    }

    /// False when it has ended.
    fn read(&mut self, at: &mut At<'_>) -> bool {
        let is_there = if at.clock.has_schedstat { self.read_schedule(at) } else { self.read_stat(at) };
        if is_there && at.depth >= Depth::Details {
            self.read_switches(at);
        }
        is_there
    }

    fn read_schedule(&mut self, at: &mut At<'_>) -> bool {
        let was_open = self.run_file.is_open();
        let path = format_args!("{}/task/{}/schedstat", at.pid, self.id.id);
        let schedule = at.files.record(&mut self.run_file, path).ok().and_then(text::schedule);
        let Some(schedule) = schedule else { return false };
        self.ran = SchedulerCounts { run_ns: schedule.run_ns, wait_ns: Some(schedule.wait_ns) };
        self.times_run = Some(schedule.times_run);
        // A file opened just now may be that of a later thread with the same number.
        was_open || self.is_same(at)
    }

    fn is_same(&self, at: &mut At<'_>) -> bool {
        let line = at.files.once(format_args!("{}/task/{}/stat", at.pid, self.id.id));
        line.ok().and_then(stat::task).is_some_and(|(_, stat)| stat.id(self.id.id) == self.id)
    }

    fn read_stat(&mut self, at: &mut At<'_>) -> bool {
        let path = format_args!("{}/task/{}/stat", at.pid, self.id.id);
        let stat = at.files.record(&mut self.run_file, path).ok().and_then(stat::task).map(|(_, stat)| stat);
        let stat = stat.filter(|stat| stat.id(self.id.id) == self.id);
        let run_ns = stat.map_or(0, |stat| stat.own.ticks().saturating_mul(at.clock.tick_ns));
        self.ran = SchedulerCounts { run_ns, wait_ns: None };
        stat.is_some()
    }

    fn read_switches(&mut self, at: &mut At<'_>) {
        let has_not_run = self.times_run.is_some_and(|now| self.switches.is_some_and(|(_, then)| then == Some(now)));
        if has_not_run {
            return;
        }
        let path = format_args!("{}/task/{}/status", at.pid, self.id.id);
        let switches = at.files.record(&mut self.status_file, path).ok().and_then(text::switches);
        self.switches = switches.map(|switches| (switches, self.times_run));
    }
}
