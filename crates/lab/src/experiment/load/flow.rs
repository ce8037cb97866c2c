//! Flows of the iterations of a scenario: one request, steps, or a mix of flows.
//!
//! A scenario with one request is a flow of one step without a name; so is a flow of a mix that has one request. All
//! flows of a scenario share its variables, but a step only knows what earlier steps of its own flow extracted.

use std::time::Duration;

use narrows_model::load::{Cookies, Flow, Step, ThinkTime};

use super::checks::{self, CHECK, CHECK_BESIDE_REQUEST, EXTRACT};
use super::data::Sources;
use super::model::{BRANCHES, MODELS};
use super::request::{self, REQUEST, REQUEST_SHAPE};
use super::variables::{RequestNames, Variables};
use crate::experiment::document::at::At;
use crate::experiment::document::tree::Form;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, Value, literal, optional, parameter, required};
use crate::experiment::grammar::kind::{self, OneOf, Whole, Words};
use crate::experiment::grammar::shape::{Field, KeyForm, Map, NamedMap, Rule, Shape, TaggedMap};
use crate::experiment::grammar::values::{self, MANY, POSITIVE_DURATION, TEXT};

pub(crate) const MODEL: Key<&str> = Key::required(
    "model",
    literal(&OneOf(MODELS)),
    "How many virtual users there are, or how often iterations begin, when.",
);

const REDIRECT_COUNT: Value<u8> = parameter(&Whole::new(0, narrows_load::REDIRECTS_MAX as u64));

const REDIRECTS_BESIDE_REQUEST: Key<u8> = Key::beside(
    "redirects",
    REDIRECT_COUNT,
    &[REQUEST.name()],
    "How many redirects are followed at most, within the same target; the whole chain counts as one request. Without it, none.",
);

const MIX: Field = optional(
    "mix",
    Shape::Named(NamedMap { what: "flow", name: &kind::NAME, value: &FLOW, least: 1, most: MANY }),
    "Flows by name. Each iteration draws one by weight.",
);

const COOKIES: Key<Cookies> = Key::optional(
    "cookies",
    parameter(&Words(&[
        ("none", Cookies::Ignored),
        ("per-iteration", Cookies::PerIteration),
        ("per-user", Cookies::PerUser),
    ])),
    "How long cookies that responses set are kept and sent back. Without it, `per-iteration` where there are several \
     steps, else `none`.",
);

pub(crate) const THINK_TIME: Key<ThinkTime> = Key::default(
    "think_time",
    values::THINK_TIME,
    "0s",
    "The pause between a response to a user and its next request; of `1s to 3s`, each is drawn evenly. Iterations of an \
     arrival rate have none between them.",
);

pub(crate) const WHEN: Field = optional(
    "when",
    Shape::Named(NamedMap { what: "parameter", name: &kind::NAME, value: &TEXT.shape(), least: 1, most: MANY }),
    "Parameters and the values they must have for the scenario to take part in a variant. Without it, it always does.",
);

pub(crate) const PACE: Key<Duration> = Key::optional(
    "pace",
    POSITIVE_DURATION,
    "The least time between the beginnings of two iterations of a user. A user that is busy for longer begins at once. Without it \
     there is no limit.",
);

pub(crate) const STEP_LIST: Shape = Shape::List { item: &STEP, least: 1, most: MANY };

/// The steps of a flow. Beside a ramp, a map is another spelling of `levels`: see `ramp`.
pub(crate) const STEPS: Field = optional("steps", STEP_LIST, "The requests of an iteration, one after the other.");

/// A scenario.
pub(crate) static SCENARIO: Shape = Shape::Tagged(TaggedMap {
    tag: &MODEL.field,
    common: &[
        REQUEST,
        CHECK_BESIDE_REQUEST,
        REDIRECTS_BESIDE_REQUEST.field,
        MIX,
        COOKIES.field,
        THINK_TIME.field,
        WHEN,
    ],
    rules: &[Rule::ExactlyOne(&[REQUEST.given(), STEPS.given_as(KeyForm::AsList), MIX.given()])],
    branches: BRANCHES,
});

const WEIGHT: Key<f64> = Key::default(
    "weight",
    parameter(&kind::WEIGHT),
    "1",
    "How often it is drawn, against the weights of the other flows.",
);

const FLOW_REQUEST: Field = optional("request", REQUEST_SHAPE, "The one request of the flow.");

static FLOW: Shape = Shape::Map(Map {
    fields: &[WEIGHT.field, FLOW_REQUEST, CHECK_BESIDE_REQUEST, REDIRECTS_BESIDE_REQUEST.field, STEPS],
    rules: &[Rule::ExactlyOne(&[FLOW_REQUEST.given(), STEPS.given()])],
    others: None,
});

const NAME: Key<String> = Key::required(
    "name",
    literal(&kind::NAME),
    "Its name, unlike any other of the scenario's steps. Results show each step on its own.",
);

const STEP_REQUEST: Field = required("request", REQUEST_SHAPE, "What is sent.");

const THINK_TIME_AFTER: Key<ThinkTime> =
    Key::optional("think_time", values::THINK_TIME, "The pause after it, instead of the scenario's.");

const REDIRECTS: Key<u8> = Key::optional(
    "redirects",
    REDIRECT_COUNT,
    "How many redirects are followed at most, within the same target; the whole chain counts as one request. Without it, none.",
);

static STEP: Shape =
    Shape::Map(Map::new(&[NAME.field, STEP_REQUEST, CHECK, EXTRACT, THINK_TIME_AFTER.field, REDIRECTS.field]));

/// Builds the flows of a scenario. `host` is the value of `Host` headers. `None` after a reported error.
pub(crate) fn build(scenario: At<'_>, host: &str, sources: &Sources, report: &mut Report) -> Option<Vec<Flow>> {
    with_steps(scenario, |flows| {
        check_names(flows, report);
        let extracts: Vec<(At<'_>, (usize, usize))> =
            numbered(flows).filter_map(|(at, step)| Some((step.get(&EXTRACT)?, at))).collect();
        let mut variables = Variables::default();
        for (extract, at) in &extracts {
            variables.add(extract, *at, sources, report);
        }
        let mut built = Vec::new();
        for (number, flow) in flows.iter().enumerate() {
            let steps = flow.steps.iter().enumerate().map(|(position, at)| {
                let drawn = RequestNames { sources, variables: &variables, at: (number, position) };
                step(*at, host, &drawn, report)
            });
            // All, so that all errors are reported.
            let steps: Vec<Option<Step>> = steps.collect();
            let weight = if flow.name.is_empty() { Some(1.0) } else { flow.at.read(&WEIGHT) };
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
struct FlowAt<'a> {
    /// Empty when the scenario has no mix.
    name: &'a str,
    at: At<'a>,
    /// The items of its list, or itself when it has one request.
    steps: Vec<At<'a>>,
}

/// Hands over the flows of a scenario, each with its steps.
fn with_steps<T>(scenario: At<'_>, then: impl FnOnce(&[FlowAt<'_>]) -> T) -> T {
    let mix = scenario.get(&MIX);
    let flows: Vec<(&str, At<'_>)> = match &mix {
        Some(mix) => mix.entries().collect(),
        None => vec![("", scenario)],
    };
    let is_list = |at: &At<'_>| matches!(at.node.form, Form::List(_));
    let lists: Vec<Option<At<'_>>> = flows.iter().map(|(_, at)| at.get(&STEPS).filter(is_list)).collect();
    let written: Vec<FlowAt<'_>> = flows
        .iter()
        .zip(&lists)
        .map(|((name, at), list)| {
            let steps = list.as_ref().map_or_else(|| vec![*at], |list| list.items().collect());
            FlowAt { name, at: *at, steps }
        })
        .collect();
    then(&written)
}

fn numbered<'a>(flows: &'a [FlowAt<'a>]) -> impl Iterator<Item = ((usize, usize), &'a At<'a>)> {
    flows.iter().enumerate().flat_map(|(number, flow)| {
        flow.steps.iter().enumerate().map(move |(position, step)| ((number, position), step))
    })
}

fn check_names(flows: &[FlowAt<'_>], report: &mut Report) {
    let mut known: Vec<(String, usize)> = Vec::new();
    for (flow, step) in flows.iter().flat_map(|flow| flow.steps.iter().map(move |step| (flow, step))) {
        let name = step.get(&NAME);
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
                let problem = Problem::new(format!("`{called}` is the name of two steps, the first on line {line}"));
                report.add(place, step.path(), problem.hint("steps of all flows of a scenario need different names"));
            }
            None => known.push((called.to_owned(), place.0)),
        }
    }
}

fn step(at: At<'_>, host: &str, drawn: &RequestNames<'_>, report: &mut Report) -> Option<Step> {
    // Only steps of a list have a name; the others are their scenario or flow, whose think time is not the step's.
    let name = at.get(&NAME);
    let request = at.get(&STEP_REQUEST).and_then(|request| request::build(request, host, drawn, report));
    Some(Step {
        name: name.and_then(|name| name.text().map(str::to_owned)).unwrap_or_default(),
        request: request?,
        checks: checks::checks(at, report),
        extract: checks::extracts(at, |name| drawn.variables.index_of(name)),
        think_time: name.and_then(|_| at.read(&THINK_TIME_AFTER)),
        redirects_max: at.read(&REDIRECTS).unwrap_or(0),
    })
}

/// Fate of cookies in a scenario with these flows.
pub(crate) fn cookies(scenario: At<'_>, flows: &[Flow]) -> Cookies {
    let has_session = flows.iter().any(|flow| flow.steps.len() > 1);
    let usual = if has_session { Cookies::PerIteration } else { Cookies::Ignored };
    scenario.read(&COOKIES).unwrap_or(usual)
}

/// Names of the requests of a scenario in results, as `LoadSecond::request` has it; `None` if that cannot be
/// told. A scenario with a single request has one without a name.
pub(crate) fn request_names(scenario: At<'_>) -> Option<Vec<String>> {
    with_steps(scenario, |flows| {
        let mut names = Vec::new();
        for flow in flows {
            for step in &flow.steps {
                let name = step.get(&NAME).map_or(Some(""), |name| name.text())?;
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
