//! Which value of an experiment a change stands for: each rule, none, and several.

use std::path::Path;

use super::*;

/// A shop whose web service has these parameters, environment and variants.
fn experiment(parameters: &str, service: &str, variants: &str) -> Experiment {
    let variants = if variants.is_empty() { String::new() } else { format!(", {variants}") };
    let source = format!(
        "experiment: shop
parameters: {{ {parameters} }}
system:
  services:
    db: {{ run: [db], env: {{ WORKERS: 2 }} }}
    web: {{ run: [web, \"${{port}}\"], {service} }}
load:
  target: web
  scenarios: {{ s: {{ model: constant-vus, vus: 1, duration: 1s, request: GET / }} }}
variants: [{{ name: main }}{variants}]
"
    );
    crate::language().parse(&source, "e.yaml", Path::new("/")).expect("an experiment")
}

fn request<'a>(experiment: &'a Experiment, change: &'a Change, size_now: Option<u32>) -> ChangeRequest<'a> {
    ChangeRequest { experiment, variant: &experiment.variants[0], change, size_now, chosen: None }
}

/// Counterpart of a change, in brief: `POOL 2 → 4`, `variant wide: POOL 2 → 8`, `several: …`, `code`.
fn said(request: &ChangeRequest<'_>) -> String {
    let one = |one: &Candidate| {
        format!("{} {} → {}", one.tunable.name, one.tunable.value, one.value.as_deref().unwrap_or("?"))
    };
    match counterpart(request) {
        Counterpart::Variant(name, candidate) => format!("variant {name}: {}", one(&candidate)),
        Counterpart::Value(candidate) => one(&candidate),
        Counterpart::Several(several) => format!("several: {}", several.iter().map(one).collect::<Vec<_>>().join(", ")),
        Counterpart::Code => "code".to_owned(),
    }
}

fn change(kind: ChangeKind, amount: Option<f64>) -> Change {
    Change { kind, target: "web".into(), amount }
}

#[test]
fn keys_of_a_service_are_what_a_change_itself_means() {
    let plain = experiment("", "cpus: 0.5", "");
    let several = experiment("n: 3", "replicas: \"${n}\"", "");
    for (experiment, kind, amount, expected) in [
        (&plain, ChangeKind::AddReplicas, None, "replicas 1 → 2"),
        (&plain, ChangeKind::AddReplicas, Some(5.0), "replicas 1 → 5"),
        (&plain, ChangeKind::AddCpu, Some(3.0), "cpus 0.5 → 1.5"),
        (&several, ChangeKind::AddReplicas, None, "replicas 3 → 6"),
        (&several, ChangeKind::AddCpu, None, "code"),
    ] {
        assert_eq!(said(&request(experiment, &change(kind, amount), None)), expected, "{kind:?} {amount:?}");
    }
}

#[test]
fn a_size_is_found_by_its_name_and_by_its_value() {
    let resize = |amount| change(ChangeKind::ResizePool, amount);
    for (service, size_now, amount, expected) in [
        ("env: { POOL: 2, THREADS: 4 }", Some(2), None, "POOL 2 → 4"),
        ("env: { POOL: 2, MAX: 2 }", Some(2), Some(10.0), "POOL 2 → 10"),
        ("env: { POOL: 4 }", Some(2), Some(10.0), "POOL 4 → 20"),
        ("env: { POOL: 4 }", None, Some(10.0), "POOL 4 → 10"),
        ("env: { MAX_ITEMS: 2, LIMIT: 9 }", Some(2), None, "MAX_ITEMS 2 → 4"),
        ("env: { N: 2, FAULT: 1 }", Some(2), None, "N 2 → 4"),
        ("env: { N: 1, FAULT: 1 }", Some(1), None, "code"),
        ("env: { N: 7 }", Some(2), None, "code"),
        ("env: { POOL: 2, THREADS: 2 }", Some(2), None, "several: POOL 2 → 4, THREADS 2 → 4"),
        ("env: { POOL: many }", None, None, "code"),
    ] {
        let experiment = experiment("", service, "");
        assert_eq!(said(&request(&experiment, &resize(amount), size_now)), expected, "{service}");
    }
}

#[test]
fn memory_is_doubled_whatever_the_amount_says() {
    let experiment = experiment("", "memory: 64MB, env: { CACHE_SIZE: 9 }", "");
    let change = change(ChangeKind::RaiseMemory, Some(1.5));
    let request = request(&experiment, &change, None);
    assert_eq!(said(&request), "memory 64MB → 128MB");
    let Counterpart::Value(candidate) = counterpart(&request) else { panic!("no value") };
    assert_eq!(sized(&Change::new(ChangeKind::RaiseMemory, "web"), &candidate, None).amount, None);
}

#[test]
fn a_switch_is_set_where_its_value_says_that_it_is_off() {
    let cached = change(ChangeKind::Cache, Some(0.5));
    for (service, expected) in [
        ("env: { CACHE: off }", "CACHE off → on"),
        ("env: { USE_CACHE: false }", "USE_CACHE false → true"),
        ("env: { CACHE_TTL: 7 }", "several: CACHE_TTL 7 → ?"),
        ("env: { OTHER: off }", "code"),
    ] {
        assert_eq!(said(&request(&experiment("", service, ""), &cached, None)), expected, "{service}");
    }
}

#[test]
fn a_variant_that_differs_in_nothing_else_takes_precedence() {
    let of = |variants: &str, change: &Change| {
        let experiment = experiment("pool: 2, mode: \"\"", "env: { POOL: \"${pool}\", MODE: \"${mode}\" }", variants);
        said(&request(&experiment, change, Some(2)))
    };
    let resize = |amount| change(ChangeKind::ResizePool, amount);
    assert_eq!(of("{ name: wide, pool: 8 }", &resize(None)), "variant wide: POOL 2 → 8");
    assert_eq!(of("{ name: wide, pool: 8 }", &resize(Some(4.0))), "POOL 2 → 4", "another size");
    assert_eq!(of("{ name: small, pool: 1 }", &resize(None)), "POOL 2 → 4", "the other direction");
    assert_eq!(of("{ name: wide, pool: 8, mode: fast }", &resize(None)), "POOL 2 → 4", "it differs in more");
    let parallel = change(ChangeKind::Parallelize, None);
    assert_eq!(of("{ name: parallel, mode: all }", &parallel), "variant parallel: MODE  → all");
    assert_eq!(of("{ name: fast, mode: all }", &parallel), "code");
}

#[test]
fn a_chosen_value_is_taken_whatever_the_change_means() {
    let experiment = experiment("fault: 1", "env: { FAULT: \"${fault}\" }", "");
    let change = change(ChangeKind::SpeedUp, None);
    let of = |name, value| said(&ChangeRequest { chosen: Some((name, value)), ..request(&experiment, &change, None) });
    assert_eq!(
        (of("fault", ""), of("FAULT", "0"), of("missing", "0")),
        ("FAULT 1 → ".into(), "FAULT 1 → 0".into(), "code".into())
    );
}

#[test]
fn the_amount_follows_from_the_new_value() {
    let experiment = experiment("", "cpus: 0.5, env: { POOL: 4 }", "");
    let amount = |kind, size_now| {
        let change = change(kind, None);
        match counterpart(&request(&experiment, &change, size_now)) {
            Counterpart::Value(candidate) => sized(&change, &candidate, size_now).amount,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(amount(ChangeKind::AddReplicas, None), Some(2.0));
    assert_eq!(amount(ChangeKind::AddCpu, None), Some(2.0));
    assert_eq!((amount(ChangeKind::ResizePool, Some(2)), amount(ChangeKind::ResizePool, None)), (Some(4.0), Some(8.0)));
}

#[test]
fn the_changed_experiment_has_both_variants() {
    let experiment = experiment("", "env: { POOL: 2 }", "");
    let change = change(ChangeKind::ResizePool, Some(8.0));
    let request = request(&experiment, &change, Some(2));
    let Counterpart::Value(candidate) = counterpart(&request) else { panic!("no value") };
    let made = changed(&request, &candidate).expect("an experiment");
    assert_eq!(made.variant, "main-resize-pool");
    let names: Vec<&str> = made.experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["main", "main-resize-pool"]);
    let parameters = |at: usize| made.experiment.variants[at].parameters["pool"].clone();
    assert_eq!((parameters(0), parameters(1)), ("2".into(), "8".into()));
}
