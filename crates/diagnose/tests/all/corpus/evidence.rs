//! From a case to the evidence of a trial.

use std::collections::BTreeMap;

use narrows_model::evidence::TrialEvidence;
use narrows_model::load::LoadSecond;
use narrows_model::run::{Machine, ServiceInstance, Trial, TrialState, Validity, Verdict, WindowKind};
use narrows_model::stalls::{Stall, Stalls};
use narrows_testkit::TRIAL_START_NS;
use narrows_testkit::tally::Tally;
use narrows_testkit::trial::FIRST_PORT;

use super::case::{Case, Expect, YesNo};
use super::imported::first_trace_of;
use super::load::{Phase, load_of};
use super::series::series_of;
use super::simulated;

const SECOND_NS: i64 = 1_000_000_000;
/// Share of its cap that a service may use unless its case is about saturation.
const FULL: f64 = 0.8;
/// Requests of a second that the generator keeps in full.
const SAMPLED: f64 = 24.0;

/// The evidence that a case describes or its simulation brings about.
///
/// # Errors
/// Fault of the case.
pub(crate) fn evidence_of(case: &Case) -> Result<TrialEvidence, String> {
    if let Some(system) = &case.simulate {
        return simulated::evidence_of(&case.case, system);
    }
    let services = services_of(case);
    let ports: BTreeMap<String, u16> = services.iter().rev().map(|one| (one.service.clone(), one.port)).collect();
    let (phases, mut seconds) = load_of(case, &ports)?;
    let stalls = stalls_of(case, &phases, &mut seconds);
    check_demand(case, &phases)?;
    let end_ns = phases.last().map(|phase| phase.window.end_ns);
    let traces: Vec<_> = counted(&phases).flat_map(|phase| &phase.samples).flat_map(|s| s.traces.clone()).collect();
    let mut traces = traces;
    traces.sort_by_key(|trace| trace.spans.first().map(|span| span.start_ns));
    let trial = Trial {
        id: 1,
        variant: case.case.clone(),
        repetition: 1,
        state: TrialState::Done,
        started_ns: Some(TRIAL_START_NS),
        ended_ns: end_ns,
        parameters: BTreeMap::new(),
        validity: validity_of(case)?,
        error: None,
        caveats: Vec::new(),
        load_program: None,
    };
    let evidence = TrialEvidence {
        client_addresses: case.client_addresses,
        arrivals: None,
        trial,
        windows: phases.iter().map(|phase| phase.window.clone()).collect(),
        series: series_of(case, &services, &phases),
        services,
        seconds,
        operations: operations_of(&phases).into_operations(),
        spans_total: spans_of(&phases).round() as u64,
        traces,
        messages: Default::default(),
        stalls,
        spans_refused: case.spans_refused,
        spans_thinned: 0,
        cores: case.cores,
    };
    if case.spans == YesNo::No {
        return Ok(TrialEvidence { operations: Vec::new(), traces: Vec::new(), spans_total: 0, ..evidence });
    }
    Ok(if case.one_imported == YesNo::Yes { first_trace_of(evidence) } else { evidence })
}

/// The stalls of a case in counted time. The requests that wait for their end join the load's seconds.
fn stalls_of(case: &Case, phases: &[Phase], seconds: &mut [LoadSecond]) -> Stalls {
    let Some(stalling) = case.stalls else { return Stalls::default() };
    let ns = |ms: f64| (ms * 1e6) as i64;
    let mut each = Vec::new();
    for window in counted(phases).map(|phase| &phase.window) {
        let starts = (0..).map(|n| window.start_ns + ns(stalling.every / 3.0) + n * ns(stalling.every));
        let stalls = starts.map(|start_ns| Stall { start_ns, end_ns: start_ns + ns(stalling.length) });
        each.extend(stalls.take_while(|stall| stall.end_ns < window.end_ns));
    }
    for stall in &each {
        let Some(row) = seconds.iter_mut().find(|row| (row.start_ns..row.end_ns()).contains(&stall.end_ns)) else {
            continue;
        };
        row.latency.record_n(stall.length_ns() as u64, stalling.requests);
        row.service.record_n(stall.length_ns() as u64, stalling.requests);
        row.sent += stalling.requests;
        row.succeeded += stalling.requests;
    }
    // As many as the generator keeps of each second.
    let quick_expected = SAMPLED * each.len() as f64 * stalling.length / 1000.0;
    Stalls {
        each,
        slow_from_ns: ns(stalling.length / 4.0),
        quick_expected,
        quick_seen: stalling.served * quick_expected,
    }
}

/// Refuses a case in which a service is full by accident: its demand × rate is near its cap, and the case speaks of no
/// saturation.
fn check_demand(case: &Case, phases: &[Phase]) -> Result<(), String> {
    let texts = match &case.expect {
        Expect::List(list) => list.iter().chain(&case.allow),
        Expect::Word(_) => [].iter().chain(&case.allow),
    };
    if texts.into_iter().any(|text| text.contains("saturation")) {
        return Ok(());
    }
    for phase in counted(phases) {
        let rate = phase.rates.iter().sum::<f64>() / phase.rates.len().max(1) as f64;
        for (name, service) in &case.services {
            let demand = case.cpu.get(name).copied().unwrap_or(0.0) / 1000.0 * rate;
            let cores = service.cap.unwrap_or(f64::from(case.cores)) * f64::from(service.replicas.unwrap_or(1));
            if demand > FULL * cores {
                return Err(format!(
                    "`{name}` needs {demand:.2} of {cores} cores at {rate:.0} a second, but nothing says so"
                ));
            }
        }
    }
    Ok(())
}

/// In the file: those of the traces that each stands for, warm-up too.
fn spans_of(phases: &[Phase]) -> f64 {
    let traces = phases.iter().flat_map(|phase| &phase.samples).flat_map(|sample| &sample.traces);
    traces.map(|trace| trace.weight * trace.spans.len() as f64).sum()
}

fn counted(phases: &[Phase]) -> impl Iterator<Item = &Phase> {
    phases.iter().filter(|phase| phase.window.kind != WindowKind::Warmup)
}

fn services_of(case: &Case) -> Vec<ServiceInstance> {
    let mut services = Vec::new();
    for (name, service) in &case.services {
        for replica in 0..service.replicas.unwrap_or(1) {
            let position = services.len() as u16;
            services.push(ServiceInstance {
                service: name.clone(),
                replica,
                pid: 1000 + u32::from(position),
                port: FIRST_PORT + position,
                command: service.run.as_ref().unwrap_or(name).split_whitespace().map(str::to_owned).collect(),
                cpu_limit_cores: service.cap,
                memory_limit_bytes: None,
                stand_in_ports: service.stand_in_ports.clone(),
                machine: Machine::Here,
            });
        }
    }
    services
}

fn operations_of(phases: &[Phase]) -> Tally {
    let mut tally = Tally::default();
    for phase in counted(phases) {
        for sample in &phase.samples {
            let each = sample.share / sample.traces.len() as f64;
            let at = |s: usize| phase.window.start_ns + s as i64 * SECOND_NS;
            let times: Vec<(i64, f64)> = phase.rates.iter().enumerate().map(|(s, rate)| (at(s), rate * each)).collect();
            sample.traces.iter().for_each(|trace| tally.add(trace, &times));
        }
    }
    tally
}

fn validity_of(case: &Case) -> Result<Validity, String> {
    let Some(told) = &case.generator.verdict else { return Ok(Validity::default()) };
    let (word, reason) = told.split_once(": ").ok_or("a verdict needs a reason")?;
    let verdict = match word {
        "valid" => Verdict::Valid,
        "doubtful" => Verdict::Doubtful,
        "invalid" => Verdict::Invalid,
        other => return Err(format!("`{other}` is no verdict")),
    };
    Ok(Validity { verdict, reasons: vec![reason.into()] })
}
