//! CPU that sampling takes.

use std::time::Duration;

/// CPU that the sampler's thread used so far, by what the scheduler says.
pub(crate) fn sampler_cpu() -> Duration {
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim() == "sampler" {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap();
            return Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap());
        }
    }
    panic!("there is no thread named sampler");
}
