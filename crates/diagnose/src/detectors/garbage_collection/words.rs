//! Texts of `garbage-collection` findings.

use narrows_model::finding::evidence::garbage_collection::{GarbageCollection, PauseSign, Runtime};
use narrows_model::finding::{Figure, Finding};
use narrows_model::series::names;
use narrows_model::units;

use crate::detectors::words::{Words, proof};

impl Words for GarbageCollection {
    fn title(&self, finding: &Finding) -> String {
        let (service, share) = (&finding.resource, units::percent(self.share));
        match (self.sign, self.long) {
            (PauseSign::Length, Some(long)) => format!(
                "garbage collection stops {service} for {} at a time, and the slowest requests wait for it",
                units::duration(long.mean_ns)
            ),
            (PauseSign::Helpers, _) => format!("garbage collection takes {share} of the CPU time of {service}"),
            _ => format!("garbage collection stops {service} for {share} of the time"),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        match self.sign {
            PauseSign::Share => format!("of the time of {}", finding.resource),
            PauseSign::Length => "of the mean latency".to_owned(),
            PauseSign::Helpers => format!("of the CPU time of {}", finding.resource),
        }
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let replicas = if self.replicas > 1 {
            format!(" ({} of {} replicas)", self.hot_replicas, self.replicas)
        } else {
            String::new()
        };
        let counted = self.collections.zip(self.pause_ns).map_or(String::new(), |(rate, pause_ns)| {
            format!(": {} collections with a mean pause of {}", units::rate(rate), units::duration(pause_ns))
        });
        let share = units::duration(self.share * 1e9);
        let seen = if self.metric == names::COLLECTOR_THREAD {
            format!("the busiest thread that collects garbage ran or waited for a processor for {share} of each second")
        } else {
            format!("`{}` reports {share} of pauses per second", self.metric)
        };
        let mut reasons = match (self.helper_cores, self.cores) {
            (Some(helpers), Some(cores)) => vec![format!(
                "In {}, threads beside the busiest use {} of {} cores{replicas}, and the event loop never waits for events.",
                self.interval,
                units::number(helpers),
                units::number(cores)
            )],
            _ => vec![format!("In {}, {seen}{replicas}{counted}.", self.interval)],
        };
        reasons.extend(self.long.filter(|_| self.sign == PauseSign::Length).map(|long| {
            format!(
                "{} pauses took {} on average; the 99th percentile of the latency is {}.",
                units::number(long.count),
                units::duration(long.mean_ns),
                units::duration(self.p99_ns)
            )
        }));
        let of_process = self.heap.as_ref().filter(|_| self.sign == PauseSign::Helpers);
        reasons.extend(of_process.map(|heap| {
            format!(
                "The process has {} of memory, and its heap may have {} (`--max-old-space-size`).",
                units::bytes(heap.used_bytes),
                units::bytes(heap.limit_bytes)
            )
        }));
        reasons.extend(self.heap.as_ref().filter(|_| of_process.is_none()).map(|heap| {
            let verdict = if self.is_heap_full() {
                "so a collection frees little and the next one follows soon"
            } else {
                "so the heap is not full; the rate of allocation drives the collections"
            };
            format!(
                "After collections {} of {} is in use ({} of {}), {verdict}.",
                units::percent(heap.share()),
                heap.pool,
                units::bytes(heap.used_bytes),
                units::bytes(heap.limit_bytes)
            )
        }));
        reasons.extend(self.proof.as_ref().map(|shown| proof(Some(shown))));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let share = if self.sign == PauseSign::Helpers {
            "CPU time of helper threads"
        } else {
            "time in which collections stop it"
        };
        let mut figures = vec![
            Figure::new(share, self.share * 100.0, "%"),
            Figure::new("throughput at that time", self.rate, "/s"),
            Figure::new("mean latency at that time", self.latency_ns, "ns"),
            Figure::new("99th percentile of the latency", self.p99_ns, "ns"),
        ];
        figures.extend(self.collections.map(|rate| Figure::new("collections that stop it", rate, "/s")));
        figures.extend(self.pause_ns.map(|ns| Figure::new("pause, mean", ns, "ns")));
        figures.extend(self.long.map(|long| Figure::new("long pauses, mean", long.mean_ns, "ns")));
        if self.concurrent > 0.0 {
            figures.push(Figure::new("collections beside the program", self.concurrent, "s/s"));
        }
        if let Some(heap) = &self.heap {
            let what = if self.sign == PauseSign::Helpers {
                "memory as a share of the heap's limit"
            } else {
                "heap in use after collections"
            };
            figures.push(Figure::new(what, heap.share() * 100.0, "%"));
        }
        figures.extend(self.cores.map(|cores| Figure::new("CPU, all replicas, median", cores, "{cores}")));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        if self.sign == PauseSign::Helpers {
            return vec![
                "A busy program with one thread: its helpers would use little CPU beside it.".to_owned(),
                "Hashing or compression in helpers alone: the event loop would wait for events meanwhile.".to_owned(),
            ];
        }
        let mut ruled_out =
            vec!["A single full collection: the pauses are spread over several readings of the metric.".to_owned()];
        if self.runtime == Runtime::Jvm {
            ruled_out.push("Collection beside the program: concurrent cycles are not counted as pauses.".to_owned());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        match self.sign {
            PauseSign::Share | PauseSign::Helpers => format!(
                "With a heap twice as large, or half the allocation in each request, {service} is stopped for as long, \
                 or throughput and latency stay the same."
            ),
            PauseSign::Length => {
                format!("With shorter pauses in {service}, the 99th percentile of the latency stays the same.")
            }
        }
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let first = if self.is_heap_full() {
            format!(
                "Give {service} a larger heap{}, and look for what it keeps: a cache without a bound, a leak.",
                larger_heap(self.runtime)
            )
        } else {
            format!(
                "Allocate less in each request of {service} (an allocation profile shows where), then give it a larger \
                 heap{}.",
                larger_heap(self.runtime)
            )
        };
        let pauses = match (self.sign, self.runtime) {
            (PauseSign::Length, Runtime::Jvm) => " A concurrent collector (`-XX:+UseZGC`) has pauses below 1 ms.",
            (PauseSign::Length, Runtime::DotNet) => {
                " Check that background collection is on (`DOTNET_gcConcurrent=1`)."
            }
            _ => "",
        };
        format!("{first}{pauses}")
    }
}

/// Setting that gives a runtime more memory.
fn larger_heap(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Jvm => " (`-Xmx`)",
        Runtime::V8 => " (`--max-old-space-size`, and `--max-semi-space-size` for short-lived objects)",
        Runtime::Go => " (`GOGC`, `GOMEMLIMIT`)",
        Runtime::DotNet => " (`DOTNET_GCHeapHardLimit`, or the server collector)",
    }
}
