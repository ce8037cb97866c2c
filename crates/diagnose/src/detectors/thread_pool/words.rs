//! Texts of `thread-pool` findings.

use narrows_model::finding::evidence::thread_pool::{PoolRuntime, ThreadPool};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level, proof};

/// Share of its CPU below which a service has room for more threads.
const CPU_ROOM: f64 = 0.7;

impl Words for ThreadPool {
    fn title(&self, finding: &Finding) -> String {
        let waiting = units::number(self.waiting);
        if self.runtime == PoolRuntime::Sampled {
            let threads = units::number(self.size.unwrap_or_default());
            return format!("{}: {waiting} requests wait for one of {threads} threads", finding.resource);
        }
        format!("{}: {waiting} requests wait for a thread of {}", finding.resource, pool(self))
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the time that users wait".to_owned()
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let replicas = if self.replicas > 1 {
            format!(" ({} of {} replicas)", self.hot_replicas, self.replicas)
        } else {
            String::new()
        };
        let busy = match (self.busy, self.size) {
            (Some(busy), Some(size)) => {
                format!("{} of {} work", units::number(busy), units::counted(size, "thread"))
            }
            (None, Some(size)) => format!("the pool has {}", units::counted(size, "thread")),
            (_, None) => "no thread is free".to_owned(),
        };
        let waiting = if self.is_reported {
            format!("`{}` shows {} that wait for one", self.metric, units::number(self.waiting))
        } else {
            format!(
                "{} requests are under way, {} more than threads",
                units::number(self.under_way),
                units::number(self.waiting)
            )
        };
        let mut reasons = if self.runtime == PoolRuntime::Sampled {
            vec![format!(
                "At {}, {} of its threads work, as many as under a lighter load, and {} requests are under way.",
                level(&self.load),
                units::number(self.busy.unwrap_or_default()),
                units::number(self.under_way)
            )]
        } else {
            vec![format!("At {}, {busy}, and {waiting}{replicas} (medians).", level(&self.load))]
        };
        reasons.extend(self.proof.as_ref().map(|shown| proof(Some(shown))));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let average = if self.runtime == PoolRuntime::Sampled { "mean" } else { "median" };
        let waiting = format!("requests that wait for a thread, {average}");
        let mut figures = vec![Figure::new(waiting, self.waiting, "")];
        figures.extend(self.busy.map(|busy| Figure::new(format!("threads that work, {average}"), busy, "")));
        figures.extend(self.size.map(|size| Figure::new("threads", size, "")));
        figures.push(Figure::new("requests under way", self.under_way, ""));
        figures.extend(self.cpu_share.map(|share| Figure::new("CPU, share of what it can use", share * 100.0, "%")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.runtime == PoolRuntime::Sampled {
            return vec![
                "A lock, a semaphore or a pool of connections: each request that waits for it would have a thread."
                    .to_owned(),
                "A burst: as many threads work under two loads.".to_owned(),
            ];
        }
        let mut ruled_out = vec![format!("A burst: these are medians of {} readings.", self.readings)];
        if self.runtime == PoolRuntime::Executor {
            ruled_out.push(
                "Jobs that no request waits for: the queue grew with the load, and no more wait in it than requests are \
                 under way."
                    .to_owned(),
            );
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With twice the threads in {}, requests of {} take as long.", pool(self), finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        if self.runtime == PoolRuntime::DotNet {
            return format!(
                "Find what blocks threads of the pool in {service} (`.Result`, `.Wait()`, `Thread.Sleep`, synchronous I/O) and \
                 use its asynchronous form. Until then, `ThreadPool.SetMinThreads` makes the pool grow sooner."
            );
        }
        let room = match self.cpu_share {
            Some(share) if share < CPU_ROOM => format!(
                " Its CPU is {} in use, so the threads wait for something else: more of them help only if that has room.",
                units::percent(share)
            ),
            _ => String::new(),
        };
        format!(
            "Make what the threads of {service} wait for shorter, or call it without holding a thread (asynchronous \
             handlers, virtual threads); then give {} more threads, or add a replica.{room}",
            pool(self)
        )
    }
}

/// Name of the pool: `Tomcat's thread pool`, `the executor mail`.
fn pool(evidence: &ThreadPool) -> String {
    let of = match evidence.runtime {
        PoolRuntime::Tomcat => "Tomcat's thread pool",
        PoolRuntime::Jetty => "Jetty's thread pool",
        PoolRuntime::Executor => "the executor",
        PoolRuntime::DotNet => "the .NET thread pool",
        PoolRuntime::Puma => "Puma's thread pool",
        PoolRuntime::Sampled => "its pool of threads",
    };
    match (&evidence.pool, evidence.runtime) {
        (Some(name), PoolRuntime::Executor) => format!("{of} {name}"),
        _ => of.to_owned(),
    }
}
