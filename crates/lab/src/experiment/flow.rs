//! What the iterations of a scenario do: one request, steps, or a mix of flows.
//!
//! A scenario with one request is a flow of one step without a name; so is a flow of a mix that has one request. All
//! flows of a scenario share its variables, but a step only knows what earlier steps of its own flow extracted.

use narrows_model::load::{Cookies, Flow, Step};

use super::data::Sources;
use super::drawn::{Drawn, Variables};
use super::mistake::{Report, Wrong};
use super::tree::{At, Form};
use super::{expect, read, request};

/// Builds the flows of a scenario. `host` is the value of `Host` headers. None if an error was reported.
pub(super) fn build(scenario: At<'_>, host: &str, sources: &Sources, report: &mut Report) -> Option<Vec<Flow>> {
    with_steps(scenario, |flows| {
        check_names(flows, report);
        let extracts: Vec<(At<'_>, (usize, usize))> =
            numbered(flows).filter_map(|(at, step)| Some((step.get("extract")?, at))).collect();
        let mut variables = Variables::default();
        for (extract, at) in &extracts {
            variables.add(extract, *at, sources, report);
        }
        let mut built = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            let steps = flow.steps.iter().enumerate().map(|(position, at)| {
                let drawn = Drawn { sources, variables: &variables, at: (number, position) };
                step(*at, host, &drawn, report)
            });
            // All, so that all mistakes are told.
            let steps: Vec<Option<Step>> = steps.collect();
            let weight = if flow.name.is_empty() { Some(1.0) } else { read::number(flow.at, "weight") };
            built.push((|| {
                Some(Flow {
                    name: flow.name.to_owned(),
                    weight: weight?,
                    steps: steps.into_iter().collect::<Option<_>>()?,
                })
            })());
        }
        built.into_iter().collect()
    })
}

/// A flow of the file.
struct Written<'a> {
    /// Empty when the scenario has no mix.
    name: &'a str,
    at: At<'a>,
    /// The items of its list, or itself when it has one request.
    steps: Vec<At<'a>>,
}

/// Hands over the flows of a scenario, each with its steps.
fn with_steps<T>(scenario: At<'_>, then: impl FnOnce(&[Written<'_>]) -> T) -> T {
    let mix = scenario.get("mix");
    let flows: Vec<(&str, At<'_>)> = match &mix {
        Some(mix) => mix.entries().collect(),
        None => vec![("", scenario)],
    };
    let is_list = |at: &At<'_>| matches!(at.node.form, Form::List(_));
    let lists: Vec<Option<At<'_>>> = flows.iter().map(|(_, at)| at.get("steps").filter(is_list)).collect();
    let written: Vec<Written<'_>> = flows
        .iter()
        .zip(&lists)
        .map(|((name, at), list)| {
            let steps = list.as_ref().map_or_else(|| vec![*at], |list| list.items().collect());
            Written { name, at: *at, steps }
        })
        .collect();
    then(&written)
}

fn numbered<'a>(flows: &'a [Written<'a>]) -> impl Iterator<Item = ((usize, usize), &'a At<'a>)> {
    flows.iter().enumerate().flat_map(|(number, flow)| {
        flow.steps.iter().enumerate().map(move |(position, step)| ((number, position), step))
    })
}

fn check_names(flows: &[Written<'_>], report: &mut Report) {
    let mut known: Vec<(String, usize)> = Vec::new();
    for (flow, step) in flows.iter().flat_map(|flow| flow.steps.iter().map(move |step| (flow, step))) {
        let name = step.get("name");
        let (called, place) = match &name {
            Some(at) => (at.text().unwrap_or_default(), at.place()),
            // A flow of one request goes by its own name.
            None => (flow.name, flow.at.key_place()),
        };
        if called.is_empty() {
            continue;
        }
        match known.iter().find(|(name, _)| name == called) {
            Some((_, line)) => {
                let wrong = Wrong::new(format!("`{called}` is the name of two steps, the first on line {line}"));
                report.add(place, step.path(), wrong.hint("steps of all flows of a scenario need different names"));
            }
            None => known.push((called.to_owned(), place.0)),
        }
    }
}

fn step(at: At<'_>, host: &str, drawn: &Drawn<'_>, report: &mut Report) -> Option<Step> {
    // Only steps of a list have a name; the others are their scenario or flow, whose think time is not the step's.
    let name = at.get("name");
    let request = at.get("request").and_then(|request| request::build(request, host, drawn, report));
    Some(Step {
        name: name.and_then(|name| name.text().map(str::to_owned)).unwrap_or_default(),
        request: request?,
        checks: expect::checks(at, report),
        extract: expect::extracts(at, |name| drawn.variables.index_of(name)),
        think_time: name.and_then(|_| read::duration(at, "think_time")),
        redirects_max: read::whole(at, "redirects").unwrap_or(0),
    })
}

/// What becomes of cookies in a scenario with these flows.
pub(super) fn cookies(scenario: At<'_>, flows: &[Flow]) -> Cookies {
    match scenario.get("cookies").and_then(|at| at.text()) {
        Some("per-iteration") => Cookies::PerIteration,
        Some("per-user") => Cookies::PerUser,
        None if flows.iter().any(|flow| flow.steps.len() > 1) => Cookies::PerIteration,
        _ => Cookies::Ignored,
    }
}

/// What the requests of a scenario are called in results, as `LoadSecond::request` has it; none when that cannot be
/// told. A scenario with a single request has one without a name.
pub(super) fn request_names(scenario: At<'_>) -> Option<Vec<String>> {
    with_steps(scenario, |flows| {
        let mut names = Vec::new();
        for flow in flows {
            for step in &flow.steps {
                let name = step.get("name").map_or(Some(""), |name| name.text())?;
                names.push(match (flows.len(), flow.steps.len()) {
                    (1, 1) => String::new(),
                    (1, _) => name.to_owned(),
                    (_, 1) if name.is_empty() => flow.name.to_owned(),
                    _ => format!("{}/{name}", flow.name),
                });
            }
        }
        Some(names)
    })
}
