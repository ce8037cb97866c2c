//! A replica that hangs at its memory limit.
//!
//! Usage at the limit alone is no shortage: the page cache fills each control group that reads or writes files. In a
//! shortage, tasks wait while the kernel takes pages from the replica, among them its program, and reads them again. The
//! kernel counts these waits as waits for memory only if it dropped the pages a short time ago, else as waits for a disk;
//! those count if resident memory, which has no unmapped files in it, fills the limit.

use narrows_model::finding::evidence::memory_growth::Shortage;
use narrows_model::series::{Point, names};

use super::Replica;
use crate::stats::finite;

/// Bytes per second read from disks from which pages are read again.
const READ_MIN: f64 = 1_048_576.0;

impl Replica<'_> {
    /// The longest time at the limit while the load counted; `None` if too short, or if few tasks waited for memory.
    pub(super) fn shortage(&self) -> Option<Shortage> {
        let thresholds = &self.reading.thresholds.memory_growth;
        let full = thresholds.memory_full_share * self.own_limit()?.bytes;
        let usage = self.readings.counted_points(names::CGROUP_MEMORY_USAGE, None);
        let times = usage.split(|point| point.value < full).filter_map(|part| Some((part.first()?, part.last()?)));
        let (from, until) = times.max_by_key(|(from, until)| until.time_ns - from.time_ns)?;
        let mean = |points: &[Point]| {
            let here = points.iter().filter(|point| (from.time_ns..=until.time_ns).contains(&point.time_ns));
            let (sum, count) = here.fold((0.0, 0), |(sum, count), point| (sum + point.value, count + 1));
            (count > 0).then(|| finite(sum / f64::from(count)))
        };
        let length_ns = until.time_ns - from.time_ns;
        let reads = Some((names::DISK_DIRECTION, "read"));
        let read = mean(&self.readings.counted_points(names::DISK_IO, reads));
        let resident = mean(&self.readings.counted_points(names::MEMORY_BYTES, None));
        let reads_pages = resident.is_some_and(|bytes| bytes >= full) && read.is_some_and(|read| read >= READ_MIN);
        let of_memory = mean(&self.readings.pressure("memory")).unwrap_or(0.0);
        let of_disk = mean(&self.readings.pressure("io")).filter(|_| reads_pages).unwrap_or(0.0);
        let waiting = of_memory.max(of_disk).min(1.0);
        let is_shown = length_ns >= thresholds.memory_shortage_ns && waiting >= thresholds.memory_pressure_share;
        is_shown.then_some(Shortage { length_ns, waiting, read })
    }
}
