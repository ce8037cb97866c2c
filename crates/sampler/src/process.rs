//! One process of a replica: what is read of it besides its `stat`.

use std::collections::HashMap;

use super::files::{Files, KeptFile};
use super::limits::{Absence, Budget, Depth};
use super::stat::{TaskId, TaskStat};
use super::text::{self, Disk, Switches};
use super::threads::{At, Clock, SchedulerCounts, Threads};

/// Features of the kernel that `/proc` has no word for: kernels that count descriptors say so by the size of
/// `/proc/PID/fd` (Linux 6.2).
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    pub(super) clock: Clock,
    pub(super) counts_descriptors: bool,
}

/// A process with its files.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: TaskId,
    disk_file: KeptFile,
    descriptors_folder: KeptFile,
    descriptors_limit: Option<u64>,
    pub(super) threads: Threads,
}

/// Findings of one reading.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    /// Counts so far of threads which count towards the busiest.
    pub(super) threads: Vec<(TaskId, SchedulerCounts)>,
    /// Its threads that collect garbage while the program stands still.
    pub(super) collectors: Vec<TaskId>,
    /// None in a quick reading.
    pub(super) details: Option<Details>,
}

/// Of one process.
#[derive(Debug, Clone)]
pub(super) struct Details {
    pub(super) threads: u64,
    pub(super) descriptors: Result<u64, Absence>,
    /// The soft limit on these; `None` if there is none or it may not be read.
    pub(super) descriptors_limit: Option<u64>,
    pub(super) disk: Result<Disk, Absence>,
    pub(super) pss_bytes: Result<u64, Absence>,
    pub(super) switches: HashMap<TaskId, Switches>,
}

impl Process {
    pub(super) fn new(id: TaskId) -> Self {
        Self {
            id,
            disk_file: KeptFile::default(),
            descriptors_folder: KeptFile::default(),
            descriptors_limit: None,
            threads: Threads::default(),
        }
    }

    /// Reads it; `stat` is what its line said in this reading. Only threads whose name begins with the prefix count
    /// towards the busiest.
    pub(super) fn read(
        &mut self,
        files: &mut Files,
        stat: &TaskStat,
        name_prefix: &[u8],
        depth: Depth,
        kernel: Kernel,
        budget: &mut Budget,
    ) -> Figures {
        let pid = self.id.id;
        self.threads.read(&mut At { files, pid, depth, clock: kernel.clock, budget }, stat.threads);
        let threads = self.threads.ran(files, pid, name_prefix);
        let is_limit_due = depth == Depth::Rare || self.descriptors_limit.is_none();
        if depth >= Depth::Details && is_limit_due {
            let limits = files.once(format_args!("{pid}/limits")).ok();
            self.descriptors_limit = limits.and_then(text::open_files_limit);
        }
        let details = (depth >= Depth::Details).then(|| Details {
            threads: stat.threads,
            descriptors: self.descriptors(files, depth, kernel, budget),
            descriptors_limit: self.descriptors_limit,
            disk: self.disk(files, budget),
            pss_bytes: if depth == Depth::Rare { self.pss_bytes(files, stat, budget) } else { Err(Absence::Unread) },
            switches: self.threads.switches().collect(),
        });
        Figures { threads, collectors: self.threads.collectors().collect(), details }
    }

    fn descriptors(
        &mut self,
        files: &mut Files,
        depth: Depth,
        kernel: Kernel,
        budget: &mut Budget,
    ) -> Result<u64, Absence> {
        let path = format_args!("{}/fd", self.id.id);
        if kernel.counts_descriptors {
            let counted = files.size(&mut self.descriptors_folder, path);
            return counted.map_err(|error| Absence::from(&error, &mut budget.denied.descriptors));
        }
        if depth < Depth::Rare {
            return Err(Absence::Unread);
        }
        let listed = files.numbered(path, budget.descriptors);
        let (found, beyond) = listed.map_err(|error| Absence::from(&error, &mut budget.denied.descriptors))?;
        budget.descriptors -= found.len();
        if beyond > 0 {
            budget.left_out.descriptors += 1;
            return Err(Absence::Unread);
        }
        Ok(found.len() as u64)
    }

    fn disk(&mut self, files: &mut Files, budget: &mut Budget) -> Result<Disk, Absence> {
        let text = files.record(&mut self.disk_file, format_args!("{}/io", self.id.id));
        let text = text.map_err(|error| Absence::from(&error, &mut budget.denied.disk))?;
        text::disk(text).ok_or(Absence::Gone)
    }

    /// Not kept open: an open file holds on to the memory of a process that ended.
    fn pss_bytes(&self, files: &mut Files, stat: &TaskStat, budget: &mut Budget) -> Result<u64, Absence> {
        let walked = stat.resident_pages.saturating_mul(rustix::param::page_size() as u64);
        if walked > budget.pss_bytes {
            budget.left_out.pss += 1;
            return Err(Absence::Unread);
        }
        budget.pss_bytes -= walked;
        let text = files.once(format_args!("{}/smaps_rollup", self.id.id));
        let text = text.map_err(|error| Absence::from(&error, &mut budget.denied.pss))?;
        text::number(text, "Pss").map(|kibibytes| kibibytes.saturating_mul(1024)).ok_or(Absence::Gone)
    }
}
