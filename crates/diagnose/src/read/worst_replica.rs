//! Which interval and which replica speak for a service that is held up from inside, by its event loop or by its garbage
//! collector: the interval that demands most among those in which any replica shows it, and in it the replica that
//! shows most of it. Intervals in which other programs take the machine do not count.

use crate::read::Reading;
use crate::read::machine::is_crowded_out;

/// Reading of one replica of a service.
#[derive(Debug)]
pub(crate) struct Worst<T> {
    pub(crate) shown: T,
    /// Replicas that show it in that interval, and all.
    pub(crate) replicas: (usize, usize),
}

/// `None` if no replica shows it in any interval. `shows` takes the replica and the place of the interval.
pub(crate) fn worst_replica<T>(
    reading: &Reading<'_>,
    service: &str,
    shows: impl Fn(u32, usize) -> Option<T>,
    amount: impl Fn(&T) -> f64,
) -> Option<Worst<T>> {
    let instances = reading.trial.services.iter().filter(|instance| instance.service == service);
    let replicas: Vec<u32> = instances.map(|instance| instance.replica).collect();
    let in_interval = |at: usize| -> (usize, Vec<T>) {
        let counts = !is_crowded_out(reading, at);
        (at, replicas.iter().filter(|_| counts).filter_map(|replica| shows(*replica, at)).collect())
    };
    let found = (0..reading.intervals.len()).map(in_interval).filter(|(_, shown)| !shown.is_empty());
    let (_, heaviest) = found.max_by(|(a, _), (b, _)| reading.intervals[*a].by_demand(&reading.intervals[*b]))?;
    let counts = (heaviest.len(), replicas.len());
    let shown = heaviest.into_iter().max_by(|a, b| amount(a).total_cmp(&amount(b)))?;
    Some(Worst { shown, replicas: counts })
}
