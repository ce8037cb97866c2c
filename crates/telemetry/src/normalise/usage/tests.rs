//! Reports of services and their platforms, as replicas: each source, several instances, limits of other names.

use narrows_model::run::{Trial, TrialState, Validity, Window, WindowKind};

use super::*;

const SECOND: i64 = 1_000_000_000;

fn trial(series: Vec<Series>) -> TrialEvidence {
    let window = Window {
        index: 0,
        kind: WindowKind::Steady,
        label: "all of it".into(),
        start_ns: 0,
        end_ns: 100 * SECOND,
        drained_ns: None,
        vus: 0,
        rate: None,
    };
    TrialEvidence {
        trial: Trial {
            id: 1,
            variant: "imported".into(),
            repetition: 1,
            state: TrialState::Done,
            started_ns: None,
            ended_ns: None,
            parameters: BTreeMap::new(),
            validity: Validity::default(),
            error: None,
            caveats: Vec::new(),
            load_program: None,
        },
        windows: vec![window],
        services: Vec::new(),
        seconds: Vec::new(),
        series,
        operations: Vec::new(),
        traces: Vec::new(),
        stalls: Default::default(),
        messages: Default::default(),
        spans_total: 0,
        spans_refused: 0,
        spans_thinned: 0,
        cores: 2,
        client_addresses: None,
        arrivals: None,
    }
}

fn series(name: &str, unit: &str, instance: &str, values: impl IntoIterator<Item = f64>) -> Series {
    let mut labels = BTreeMap::new();
    if !instance.is_empty() {
        labels.insert(INSTANCE.to_owned(), instance.to_owned());
    }
    let key = SeriesKey { name: name.into(), unit: unit.into(), service: "shop".into(), replica: 0, labels };
    let points = (0..).zip(values).map(|(at, value)| Point { time_ns: at * 10 * SECOND, value }).collect();
    Series { key, points }
}

fn with(mut series: Series, label: &str, value: &str) -> Series {
    series.key.labels.insert(label.into(), value.into());
    series
}

/// The values of a series of a replica of shop.
fn values(trial: &TrialEvidence, name: &str, replica: u32) -> Vec<f64> {
    let found = trial.series.iter().find(|s| s.key.name == name && s.key.service == "shop" && s.key.replica == replica);
    found
        .map(|series| series.points.iter().map(|point| (point.value * 1e6).round() / 1e6).collect())
        .unwrap_or_default()
}

#[test]
fn a_counter_by_mode_becomes_the_cores_of_a_replica() {
    let mode = |mode: &str, each: f64| {
        with(series("process.cpu.time", "s", "a", (0..4).map(|n| each * f64::from(n))), "cpu.mode", mode)
    };
    let mut found = trial(vec![mode("user", 6.0), mode("system", 2.0), mode("wait", 9.0)]);
    add_replicas(&mut found);
    assert_eq!(values(&found, names::CPU_CORES, 0), [0.8, 0.8, 0.8]);
    let [instance] = &found.services[..] else { panic!("{:?}", found.services) };
    assert_eq!((instance.service.as_str(), instance.replica, instance.machine), ("shop", 0, Machine::Unknown));
}

#[test]
fn pods_are_replicas_with_their_limits_and_their_containers_are_added_up() {
    let mut found = trial(vec![
        series("k8s.pod.cpu.usage", "{cpu}", "shop-1", [0.5, 0.5]),
        series("k8s.pod.cpu.usage", "{cpu}", "shop-2", [0.9, 0.9]),
        series("container.cpu.usage", "{cpu}", "shop-1/shop", [0.4, 0.4]),
        series("process.cpu.time", "s", "f00d", [0.0, 99.0]),
        series("k8s.container.cpu_limit", "{cpu}", "shop-1/shop", [1.0, 1.0]),
        series("k8s.container.cpu_limit", "{cpu}", "shop-1/proxy", [0.5, 0.5]),
        series("k8s.pod.memory.working_set", "By", "shop-1", [1e6, 2e6]),
        series("k8s.container.memory_limit", "By", "shop-1/shop", [4e6, 4e6]),
    ]);
    add_replicas(&mut found);
    assert_eq!([0, 1].map(|replica| values(&found, names::CPU_CORES, replica)), [[0.5, 0.5], [0.9, 0.9]]);
    assert_eq!(values(&found, names::MEMORY_BYTES, 0), [1e6, 2e6]);
    let limits: Vec<_> = found.services.iter().map(|one| (one.cpu_limit_cores, one.memory_limit_bytes)).collect();
    assert_eq!(limits, [(Some(1.5), Some(4_000_000)), (Some(1.5), Some(4_000_000))], "the one limit there is");
}

#[test]
fn a_container_of_docker_is_read_with_its_throttling() {
    let counted = |name: &str, unit: &str, each: f64| series(name, unit, "c0ffee", (0..3).map(|n| each * f64::from(n)));
    let mut found = trial(vec![
        counted("container.cpu.usage.total", "ns", 5e9),
        counted("container.cpu.throttling_data.periods", "{periods}", 100.0),
        counted("container.cpu.throttling_data.throttled_periods", "{periods}", 40.0),
        series("container.cpu.limit", "{cpus}", "c0ffee", [0.5; 3]),
    ]);
    add_replicas(&mut found);
    assert_eq!(values(&found, names::CPU_CORES, 0), [0.5, 0.5]);
    assert_eq!(values(&found, names::CGROUP_THROTTLED_PERIODS, 0), [4.0, 4.0]);
    assert_eq!(found.services[0].cpu_limit_cores, Some(0.5));
}

#[test]
fn samples_that_came_back_by_an_import_are_left_as_they_are() {
    let mut sampled = trial(vec![
        series(names::CPU_CORES, "{cores}", "", [0.25; 3]),
        series("process.cpu.time", "s", "", [0.0, 99.0]),
        series(names::CGROUP_CPU_LIMIT, "{cores}", "", [2.0; 3]),
    ]);
    let before = sampled.series.clone();
    add_replicas(&mut sampled);
    assert_eq!(sampled.series, before);
    assert_eq!((sampled.services.len(), sampled.services[0].cpu_limit_cores), (1, Some(2.0)));
    let again = sampled.clone();
    add_replicas(&mut sampled);
    assert_eq!(sampled, again);
    sampled.services[0].cpu_limit_cores = None; // as of a container, which is watched without one
    add_replicas(&mut sampled);
    assert_eq!(sampled, again);
}

#[test]
fn a_run_with_services_of_its_own_is_left_alone() {
    let mut own = trial(vec![series("process.cpu.time", "s", "", [0.0, 99.0])]);
    own.services.push(ServiceInstance { port: 8080, ..ServiceInstance::watched("gateway", 0, 0) });
    let before = own.clone();
    add_replicas(&mut own);
    assert_eq!(own, before);
}

/// A series on the kubelet's page of cAdvisor.
fn on_page(name: &str, pod: &str, container: &str, values: impl IntoIterator<Item = f64>) -> Series {
    let mut found = with(with(series(name, "", "", values), "pod", pod), "container", container);
    found.key.service = "node".into();
    found
}

#[test]
fn a_page_of_cadvisor_tells_of_the_pods_that_the_experiment_names() {
    const CPU: &str = "container_cpu_usage_seconds_total";
    let counted = |each: f64| (0..3).map(move |n| each * f64::from(n));
    let mut found = trial(vec![
        on_page(CPU, "shop-6d4cf56db6-aaaaa", "shop", counted(4.0)),
        on_page(CPU, "shop-6d4cf56db6-aaaaa", "proxy", counted(1.0)),
        on_page(CPU, "shop-6d4cf56db6-aaaaa", "", counted(5.0)),
        on_page(CPU, "shop-6d4cf56db6-bbbbb", "shop", counted(2.0)),
        on_page(CPU, "coredns-0", "coredns", counted(9.0)),
        on_page("container_spec_cpu_quota", "shop-6d4cf56db6-aaaaa", "shop", [50_000.0; 3]),
        on_page("container_memory_working_set_bytes", "shop-6d4cf56db6-bbbbb", "shop", [1e6; 3]),
        on_page("container_cpu_cfs_periods_total", "shop-6d4cf56db6-aaaaa", "shop", counted(100.0)),
        on_page("container_cpu_cfs_throttled_periods_total", "shop-6d4cf56db6-aaaaa", "shop", counted(30.0)),
    ]);
    let elsewhere =
        TrialCaveat::ServiceElsewhere { service: "shop".into(), places: vec!["10.0.0.7:80".into()], is_here: false };
    found.trial.caveats.push(elsewhere);
    add_replicas(&mut found);
    assert_eq!([0, 1].map(|replica| values(&found, names::CPU_CORES, replica)), [[0.5, 0.5], [0.2, 0.2]]);
    assert_eq!(values(&found, names::MEMORY_BYTES, 1), [1e6; 3]);
    assert_eq!(values(&found, names::CGROUP_THROTTLED_PERIODS, 0), [3.0, 3.0]);
    let replicas: Vec<_> = found.services.iter().map(|one| (&*one.service, one.cpu_limit_cores)).collect();
    assert_eq!(replicas, [("shop", Some(0.5)), ("shop", Some(0.5))], "and nothing of coredns");
}

#[test]
fn beside_services_that_were_started_only_those_elsewhere_are_added() {
    let with_started = |caveats: Vec<TrialCaveat>| {
        let mut found = trial(vec![series("process.cpu.time", "s", "a", [0.0, 5.0, 10.0])]);
        found.services.push(ServiceInstance { port: 8080, ..ServiceInstance::watched("gateway", 0, 1) });
        found.trial.caveats = caveats;
        add_replicas(&mut found);
        found
    };
    assert_eq!(values(&with_started(Vec::new()), names::CPU_CORES, 0), [0.0; 0]);
    for (is_here, machine) in [(false, Machine::Unknown), (true, Machine::Here)] {
        let named = TrialCaveat::ServiceElsewhere { service: "shop".into(), places: Vec::new(), is_here };
        let found = with_started(vec![named]);
        assert_eq!(values(&found, names::CPU_CORES, 0), [0.5, 0.5]);
        let services: Vec<_> = found.services.iter().map(|one| (&*one.service, one.machine)).collect();
        assert_eq!(services, [("gateway", Machine::Here), ("shop", machine)]);
    }
}

#[test]
fn sums_of_a_pod_count_where_its_containers_have_none() {
    let counted = |each: f64| (0..3).map(move |n| each * f64::from(n));
    let (both, sum) = ("shop-6d4cf56db6-aaaaa", "shop-6d4cf56db6-bbbbb");
    let quota = |pod: &str, container: &str, each: f64| on_page("container_spec_cpu_quota", pod, container, [each; 3]);
    let periods = |pod: &str, container: &str, each: f64| {
        on_page("container_cpu_cfs_periods_total", pod, container, counted(each))
    };
    let mut found = trial(vec![
        on_page("container_cpu_usage_seconds_total", both, "shop", counted(4.0)),
        on_page("container_cpu_usage_seconds_total", sum, "shop", counted(3.0)),
        quota(both, "", 90_000.0),
        quota(both, "shop", 50_000.0),
        quota(sum, "", 25_000.0),
        periods(both, "", 200.0),
        periods(both, "shop", 100.0),
        periods(sum, "", 100.0),
        periods(sum, "POD", 999.0),
    ]);
    let elsewhere =
        TrialCaveat::ServiceElsewhere { service: "shop".into(), places: vec!["10.0.0.7:80".into()], is_here: false };
    found.trial.caveats.push(elsewhere);
    add_replicas(&mut found);
    let limits: Vec<_> = found.services.iter().map(|one| one.cpu_limit_cores).collect();
    assert_eq!(limits, [Some(0.5), Some(0.25)]);
    assert_eq!([0, 1].map(|replica| values(&found, names::CGROUP_PERIODS, replica)), [[10.0, 10.0], [10.0, 10.0]]);
}
