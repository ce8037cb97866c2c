//! Reports of pools of threads: how many threads work, how many there may be, and how many requests wait for one.
//!
//! Nothing is judged here. Names are those of Micrometer and of OpenTelemetry's JMX metrics for Tomcat and Jetty, of
//! Micrometer for executors, of .NET's runtime in both generations of its metrics, and of Puma's statistics. On a page of
//! Prometheus metrics dots are underscores, and the unit (threads or tasks) may follow.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::finding::evidence::thread_pool::PoolRuntime;
use narrows_model::series::{Series, SeriesKey};

use crate::read::intervals::Interval;
use crate::stats::median;

/// Units that Micrometer appends to names.
const UNITS: [&str; 2] = [".threads", ".tasks"];
/// Labels of this project, which tell no two pools apart.
const OWN_LABELS: &str = "narrows.";

/// One library's names, dots for dots and underscores.
struct Source {
    runtime: PoolRuntime,
    busy: Option<&'static str>,
    size: Option<&'static str>,
    queue: Option<&'static str>,
    /// The label with the pool's own name.
    name: Option<&'static str>,
}

const SOURCES: [Source; 9] = [
    Source {
        runtime: PoolRuntime::Tomcat,
        busy: Some("tomcat.thread.busy.count"),
        size: Some("tomcat.thread.limit"),
        queue: None,
        name: Some("tomcat.thread.pool.name"),
    },
    Source {
        runtime: PoolRuntime::Tomcat,
        busy: Some("tomcat.threads.busy"),
        size: Some("tomcat.threads.config.max"),
        queue: None,
        name: Some("name"),
    },
    Source {
        runtime: PoolRuntime::Jetty,
        busy: Some("jetty.thread.busy.count"),
        size: Some("jetty.thread.limit"),
        queue: Some("jetty.thread.queue.size"),
        name: Some("jetty.thread.pool.id"),
    },
    Source {
        runtime: PoolRuntime::Jetty,
        busy: Some("jetty.threads.busyThreads"),
        size: Some("jetty.threads.maxThreads"),
        queue: Some("jetty.threads.queueSize"),
        name: None,
    },
    Source {
        runtime: PoolRuntime::Jetty,
        busy: Some("jetty.threads.busy"),
        size: Some("jetty.threads.config.max"),
        queue: Some("jetty.threads.jobs"),
        name: None,
    },
    // An executor with an unbounded queue never has more threads than it begins with, so those that there are count.
    Source {
        runtime: PoolRuntime::Executor,
        busy: Some("executor.active"),
        size: Some("executor.pool.size"),
        queue: Some("executor.queued"),
        name: Some("name"),
    },
    Source {
        runtime: PoolRuntime::DotNet,
        busy: None,
        size: Some("dotnet.thread.pool.thread.count"),
        queue: Some("dotnet.thread.pool.queue.length"),
        name: None,
    },
    Source {
        runtime: PoolRuntime::DotNet,
        busy: None,
        size: Some("process.runtime.dotnet.thread.pool.threads.count"),
        queue: Some("process.runtime.dotnet.thread.pool.queue.length"),
        name: None,
    },
    Source {
        runtime: PoolRuntime::Puma,
        busy: Some("puma.busy.threads"),
        size: Some("puma.max.threads"),
        queue: Some("puma.backlog"),
        name: Some("index"),
    },
];

/// One pool of a replica, with the series that it reports.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) runtime: PoolRuntime,
    pub(crate) name: Option<&'a str>,
    busy: Option<&'a Series>,
    size: Option<&'a Series>,
    queue: Option<&'a Series>,
}

/// A pool in an interval, medians of its readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct State {
    pub(crate) readings: usize,
    pub(crate) busy: Option<f64>,
    pub(crate) size: Option<f64>,
    pub(crate) queued: Option<f64>,
}

/// Puts a series where it belongs in a pool.
type Put<'a> = fn(&mut Pool<'a>, &'a Series);

impl<'a> Pool<'a> {
    /// The pools of a replica; one that is reported under two names is read once.
    pub(crate) fn of(trial: &'a TrialEvidence, service: &str, replica: u32) -> Vec<Self> {
        let is_meant = |key: &SeriesKey| key.service == service && key.replica == replica;
        let series: Vec<(&Series, String)> =
            trial.series.iter().filter(|one| is_meant(&one.key)).map(|one| (one, plain(&one.key.name))).collect();
        let mut pools: Vec<Pool<'a>> = Vec::new();
        for source in &SOURCES {
            let of_source = Self::of_source(source, &series);
            // Every executor is one of its own; a server of a kind has its pools in one library's metrics.
            if pools.iter().all(|known| known.runtime != source.runtime) {
                pools.extend(of_source);
            }
        }
        pools
    }

    fn of_source(source: &Source, series: &[(&'a Series, String)]) -> Vec<Self> {
        let mut pools: BTreeMap<Vec<(&str, &str)>, Pool<'a>> = BTreeMap::new();
        let parts: [(Option<&str>, Put<'a>); 3] = [
            (source.busy, |pool, series| pool.busy = Some(series)),
            (source.size, |pool, series| pool.size = Some(series)),
            (source.queue, |pool, series| pool.queue = Some(series)),
        ];
        for (name, put) in parts {
            let Some(name) = name.map(plain) else { continue };
            for (series, _) in series.iter().filter(|(_, written)| is_named(written, &name)) {
                let key = &series.key;
                let labels = key.labels.iter().filter(|(label, _)| !label.starts_with(OWN_LABELS));
                let labels: Vec<(&str, &str)> = labels.map(|(label, value)| (label.as_str(), value.as_str())).collect();
                let own = source.name.and_then(|label| {
                    labels.iter().find(|(written, _)| plain(written) == plain(label)).map(|(_, value)| *value)
                });
                let pool = Pool { runtime: source.runtime, name: own, busy: None, size: None, queue: None };
                put(pools.entry(labels).or_insert(pool), series);
            }
        }
        pools.into_values().collect()
    }

    /// None with fewer readings than these.
    pub(crate) fn during(&self, interval: &Interval, readings_min: usize) -> Option<State> {
        let values = |series: &Series| -> Vec<f64> {
            let here = series.points.iter().filter(|point| interval.contains(point.time_ns));
            here.map(|point| point.value).collect()
        };
        let readings = self.queue.or(self.busy).map(|series| values(series).len())?;
        let of = |series: Option<&Series>| median(values(series?));
        let state = State { readings, busy: of(self.busy), size: of(self.size), queued: of(self.queue) };
        (readings >= readings_min).then_some(state)
    }

    /// The metric that shows whether requests wait, as the service reports it.
    pub(crate) fn metric(&self) -> &'a str {
        self.queue.or(self.busy).map_or("", |series| series.key.name.as_str())
    }
}

/// A name with dots only.
fn plain(name: &str) -> String {
    name.replace('_', ".")
}

fn is_named(written: &str, name: &str) -> bool {
    written.strip_prefix(name).is_some_and(|rest| rest.is_empty() || UNITS.contains(&rest))
}

#[cfg(test)]
mod tests {
    use narrows_testkit::trial::{Load, TrialBuilder};

    use super::*;

    #[test]
    fn pools_are_read_under_the_names_of_libraries_and_pages() {
        let trial =
            TrialBuilder::new("a").service("shop", None).steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 });
        let labelled = |trial: TrialBuilder, name: &str, labels: &[(&str, &str)], value: f64| {
            trial.labelled_series(name, ("shop", 0), labels, move |_| value)
        };
        let http = [("name", "http-nio-8080")];
        let trial = labelled(trial, "tomcat_threads_busy_threads", &http, 200.0);
        let trial = labelled(trial, "tomcat_threads_config_max_threads", &http, 200.0);
        let trial = labelled(trial, "executor.active", &[("name", "mail")], 3.0);
        let trial = labelled(trial, "executor.pool.size", &[("name", "mail")], 4.0);
        let trial = labelled(trial, "executor.queued", &[("name", "mail")], 0.0);
        let trial = labelled(trial, "executor.queued", &[("name", "report")], 9.0);
        let trial = labelled(trial, "process.runtime.dotnet.thread_pool.queue.length", &[], 5.0);
        let evidence = trial.build();
        let thresholds = crate::thresholds::Thresholds::default();
        let interval = &crate::read::intervals::intervals(&evidence, &thresholds)[0];
        let found: Vec<_> = Pool::of(&evidence, "shop", 0)
            .iter()
            .map(|pool| {
                let state = pool.during(interval, 3).unwrap();
                (pool.runtime, pool.name.map(str::to_owned), state.busy, state.size, state.queued)
            })
            .collect();
        let named = |name: &str| Some(name.to_owned());
        let expected = [
            (PoolRuntime::Tomcat, named("http-nio-8080"), Some(200.0), Some(200.0), None),
            (PoolRuntime::Executor, named("mail"), Some(3.0), Some(4.0), Some(0.0)),
            (PoolRuntime::Executor, named("report"), None, None, Some(9.0)),
            (PoolRuntime::DotNet, None, None, None, Some(5.0)),
        ];
        assert_eq!(found, expected);
        assert!(Pool::of(&evidence, "shop", 1).is_empty());
    }

    #[test]
    fn one_pool_under_two_names_is_read_once() {
        let trial =
            TrialBuilder::new("a").service("shop", None).steady(20, Load { vus: 8, rate: 80.0, latency_ms: 100.0 });
        let trial = trial.series("jetty.threads.busy", "shop", 0, |_| 8.0);
        let trial = trial.series("jetty.thread.busy.count", "shop", 0, |_| 8.0).build();
        let pools = Pool::of(&trial, "shop", 0);
        assert_eq!(pools.iter().map(Pool::metric).collect::<Vec<_>>(), ["jetty.thread.busy.count"]);
    }
}
