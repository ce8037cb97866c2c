//! Metrics of a hub, compared with the work it did.

use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

use super::{TIMEOUT, block, open, options, start};
use crate::options::HubOptions;
use crate::partition::testing::id;
use crate::store::MemoryStore;

struct Bench {
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
}

impl Bench {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { provider: SdkMeterProvider::builder().with_reader(reader).build(), exporter }
    }

    /// Looks at the metrics as exported now.
    fn collect<T>(&self, look: impl Fn(&[&Metric]) -> T) -> T {
        self.exporter.reset();
        self.provider.force_flush().expect("flushed");
        let all = self.exporter.get_finished_metrics().expect("metrics");
        let scopes = all.iter().flat_map(|resource| resource.scope_metrics());
        look(&scopes.flat_map(|scope| scope.metrics()).collect::<Vec<_>>())
    }
}

/// The sum of a metric's points that have this attribute, over all partitions; histograms count their values.
fn sum(metrics: &[&Metric], name: &str, attribute: Option<(&'static str, &'static str)>) -> f64 {
    let wanted = attribute.map(|(key, value)| KeyValue::new(key, value));
    let passes = |mut attributes: Box<dyn Iterator<Item = &KeyValue> + '_>| {
        wanted.as_ref().is_none_or(|wanted| attributes.any(|found| found == wanted))
    };
    let metric = metrics.iter().find(|metric| metric.name() == name);
    macro_rules! add {
        ($data:expr) => {
            match $data {
                MetricData::Sum(sum) => {
                    let points = sum.data_points().filter(|point| passes(Box::new(point.attributes())));
                    points.map(|point| point.value() as f64).sum()
                }
                MetricData::Gauge(gauge) => {
                    let points = gauge.data_points().filter(|point| passes(Box::new(point.attributes())));
                    points.map(|point| point.value() as f64).sum()
                }
                MetricData::Histogram(histogram) => {
                    let points = histogram.data_points().filter(|point| passes(Box::new(point.attributes())));
                    points.map(|point| point.count() as f64).sum()
                }
                MetricData::ExponentialHistogram(_) => f64::NAN,
            }
        };
    }
    match metric.map(|metric| metric.data()) {
        Some(AggregatedMetrics::F64(data)) => add!(data),
        Some(AggregatedMetrics::U64(data)) => add!(data),
        Some(AggregatedMetrics::I64(data)) => add!(data),
        None => f64::NAN,
    }
}

#[test]
fn metrics_say_what_the_hub_did_and_holds() {
    let bench = Bench::new();
    let store = Arc::new(MemoryStore::new());
    let meter = Some(bench.provider.meter("test"));
    let hub = open(&store, HubOptions { meter, cursor_cache_bytes: 0, ..options() });
    let client = hub.client();
    block(async {
        for n in 0..10 {
            start(&client, "Cities", &format!("c{n}"), 5).await.expect("started");
        }
        start(&client, "Wait", "w", 1).await.expect("started");
        for n in 0..10 {
            client.wait(&id(&format!("c{n}")), TIMEOUT).await.expect("ended");
        }
    });
    hub.close().expect("closed");
    let stats = hub.stats().partitions;
    let commits: u64 = stats.iter().map(|partition| partition.commits).sum();
    let misses: u64 = stats.iter().map(|partition| partition.counts.cursor_misses).sum();
    bench.collect(|metrics| {
        let (status, result) = ("durable.instance.status", "durable.cursor.result");
        for (name, attribute, expected) in [
            ("durable.events", None, 100.0),
            ("durable.orchestrations.started", None, 11.0),
            ("durable.orchestrations.ended", None, 10.0),
            ("durable.instances", Some((status, "completed")), 10.0),
            ("durable.instances", Some((status, "running")), 1.0),
            ("durable.instances", Some((status, "pending")), 0.0),
            ("durable.log.commit.duration", None, commits as f64),
            ("durable.log.commit.size", None, commits as f64),
            ("durable.log.commit.frames", None, commits as f64),
            ("durable.cursor.lookups", Some((result, "miss")), misses as f64),
            ("durable.inbox.inputs", None, 0.0),
            ("durable.activities.open", None, 0.0),
            ("durable.snapshots", None, 0.0),
        ] {
            assert_eq!(sum(metrics, name, attribute), expected, "{name} {attribute:?}");
        }
        assert!(commits > 0 && misses > 0);
        assert!(sum(metrics, "durable.recovery.duration", None) > 0.0);
        assert!(sum(metrics, "durable.instances.size", None) > 0.0);
        for metric in metrics {
            assert!(metric.name().starts_with("durable."), "{}", metric.name());
            assert!(!metric.unit().is_empty() && !metric.description().is_empty(), "{}", metric.name());
        }
    });
}

#[test]
fn each_partition_is_a_series_until_the_hub_is_gone() {
    let bench = Bench::new();
    let meter = Some(bench.provider.meter("test"));
    let hub = open(&Arc::new(MemoryStore::new()), HubOptions { meter, ..options() });
    let series = |metrics: &[&Metric]| {
        let found = metrics.iter().find(|metric| metric.name() == "durable.timers")?;
        let AggregatedMetrics::I64(MetricData::Sum(sum)) = found.data() else { return None };
        let mut partitions: Vec<String> = Vec::new();
        for point in sum.data_points() {
            partitions.extend(point.attributes().map(|attribute| format!("{}={}", attribute.key, attribute.value)));
        }
        partitions.sort();
        Some(partitions)
    };
    let expected = ["durable.partition.id=0", "durable.partition.id=1", "durable.partition.id=2"];
    assert_eq!(bench.collect(series).expect("a metric"), expected);
    drop(hub);
    assert_eq!(bench.collect(series).unwrap_or_default(), Vec::<String>::new());
}

#[test]
fn states_are_counted_through_restarts_and_recovery() {
    let store = Arc::new(MemoryStore::new());
    let counted = |hub: &crate::hub::Hub| {
        let mut sum = [0; 7];
        for partition in hub.stats().partitions {
            sum.iter_mut().zip(partition.counts.instances_by_status).for_each(|(sum, count)| *sum += count);
        }
        sum
    };
    let hub = open(&store, options());
    let client = hub.client();
    block(async {
        start(&client, "Again", "again", 5).await.expect("started");
        start(&client, "Cities", "gone", 1).await.expect("started");
        start(&client, "Wait", "wait", 1).await.expect("started");
        start(&client, "Wait", "still", 1).await.expect("started");
        client.suspend(&id("still"), "later").await.expect("suspended");
        client.wait(&id("again"), TIMEOUT).await.expect("ended");
        client.wait(&id("gone"), TIMEOUT).await.expect("ended");
        client.purge(&id("gone")).await.expect("purged");
    });
    hub.close().expect("closed");
    let expected = [0, 1, 1, 1, 0, 0, 0];
    assert_eq!(counted(&hub), expected);
    let hub = open(&store, options());
    assert_eq!(counted(&hub), expected);
}
