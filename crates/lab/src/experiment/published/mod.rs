//! Notes of an experiment file for readers of its results: reasons of parameters, figures published elsewhere, prices.
//!
//! The grammar judges their form; here it is judged that services, variants and parameters exist, that no measure is given
//! twice, and that what only an operation has is said of one. Reading is lenient, because run files carry texts that may come from elsewhere: what does not read is left out.

mod conclusions;

use std::time::Duration;

use narrows_model::published::{Measure, Notes, ParameterNote, Part, Published, PublishedFigure, chosen, figure_name};
use serde_json::json;

use self::conclusions::CONCLUSIONS;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, Value, literal, optional, required};
use crate::experiment::grammar::kind::{self, AS_TEXT, Simple, no_hint};
use crate::experiment::grammar::shape::{Branch, Field, Map, NamedMap, Shape, TaggedMap};
use crate::experiment::grammar::values::{AMOUNT, MANY, TEXT};
use crate::experiment::language::Language;
use crate::experiment::load::{LOAD, SCENARIOS};
use crate::experiment::placeholders::names::Names;
use crate::experiment::prices::prices;
use crate::experiment::variants::{self, PARAMETERS, REASON, VARIANTS, Variant, parameter};

/// A service's name, a space, and the name of its spans.
static OPERATION_TEXT: Simple<(String, String)> = Simple {
    expected: "a service and the name of its spans such as `orders GET /orders`",
    name: "`SERVICE SPAN`",
    written: AS_TEXT,
    read: |text| {
        let (service, name) = operation(text).ok_or(None)?;
        Ok((service.to_owned(), name.to_owned()))
    },
    hint: no_hint,
    schema: || json!({ "type": "string", "pattern": OPERATION_PATTERN }),
};

/// A measure of published figures.
static MEASURE_NAME: Simple<Measure> = Simple {
    expected: "a measure",
    name: "measure",
    written: AS_TEXT,
    read: |text| measure(text).ok_or(None),
    hint: no_hint,
    schema: || json!({ "type": "string" }),
};

const SOURCE: Key<String> =
    Key::required("source", TEXT, "Where the figures were published: title, publisher, perhaps the address.");

const OPERATION: Key<(String, String)> = Key::optional(
    "operation",
    literal(&OPERATION_TEXT),
    "The service, a space, and the name of its spans that the figures are about. Without \
     it, durations and `completed` are those of all requests of the load.",
);

const FOUND: Key<String> = Key::optional("found", TEXT, "What those who published them found, in a few sentences.");

const FIGURES: Field = required(
    "figures",
    Shape::List { item: &FIGURE, least: 1, most: MANY },
    "The figures, each with a name of its own.",
);

const RATIO_TO: Field = optional(
    "ratio_to",
    by_variant(&TEXT.shape()),
    "By variant, the variant that its ratios are to; itself if it has none. Those of the others are to the first variant.",
);

const PUBLISHED_SHAPE: Shape =
    Shape::Map(Map::new(&[SOURCE.field, OPERATION.field, FOUND.field, RATIO_TO, FIGURES, CONCLUSIONS]));

pub(super) const PUBLISHED: Field =
    optional("published", PUBLISHED_SHAPE, "Figures published elsewhere, shown beside the measured ones.");

const MEASURE: Key<Measure> = Key::required(
    "measure",
    literal(&MEASURE_NAME),
    "What was measured: one of those below, each at most once for the whole, for each service or scenario and for each \
     metric.",
);

const REMARK: Key<String> =
    Key::optional("remark", TEXT, "What a reader must know to compare, such as why the measured value differs.");

const FITTED: Field = optional(
    "fitted",
    by_variant(&TEXT.shape()),
    "By variant, what was chosen so that the measured value comes out as published: parameters, separated by commas, or \
     a few words. A single word must be a parameter. Reports mark these cells, which prove nothing, and `narrows \
     sensitivity` scales the parameters.",
);

const GIVEN: Field = optional(
    "given",
    by_variant(&TEXT.shape()),
    "By variant, what was published too and gives the measured value by arithmetic, such as a number of partitions. \
     Reports mark these cells, and do not count them as agreement.",
);

const RESTATES: Key<String> = Key::optional(
    "restates",
    TEXT,
    "Name of the figure that this one has in another unit. It is shown, and counts once.",
);

const METRIC: Key<String> = Key::required("metric", TEXT, "The name of a metric that a service reports.");

const LENGTH: Value<Duration> = literal(&kind::POSITIVE_DURATION);

const TIMES: Field = optional(
    "values",
    by_variant(&LENGTH.shape()),
    "The figure by variant, with its unit. Variants may be left out. Without it, only the measured value is shown.",
);

const NUMBERS: Field = optional(
    "values",
    by_variant(&AMOUNT.shape()),
    "The figure by variant. Variants may be left out. Without it, only the measured value is shown.",
);

const SIZE: Value<u64> = literal(&kind::MEMORY);

const SIZES: Field = optional(
    "values",
    by_variant(&SIZE.shape()),
    "The figure by variant, such as `256MiB`. Variants may be left out. Without it, only the measured value is shown.",
);

const SCENARIO: Key<String> = Key::optional(
    "scenario",
    literal(&kind::NAME),
    "The scenario whose requests the figure is about, as their clients saw them.",
);

const SERVICE: Key<String> =
    Key::optional("service", literal(&kind::NAME), "The service that the figure is about. Without it, all together.");

const SERVICE_OF_REPLICAS: Key<String> =
    Key::required("service", literal(&kind::NAME), "The service whose replicas are compared.");

/// Keys of figures of the load.
const LOAD_NUMBERS: &[Field] = &[NUMBERS, SCENARIO.field];
const LOAD_TIMES: &[Field] = &[TIMES, SCENARIO.field];

/// Measures that are lengths of time, amounts of memory and numbers, as [`Measure`] has them.
static FIGURE: Shape = Shape::Tagged(TaggedMap {
    tag: &MEASURE.field,
    common: &[REMARK.field, FITTED, GIVEN, RESTATES.field],
    rules: &[],
    branches: &[
        figure_of("rate", LOAD_NUMBERS),
        figure_of("requests", LOAD_NUMBERS),
        figure_of("failed", LOAD_NUMBERS),
        figure_of("error_rate", LOAD_NUMBERS),
        figure_of("mean", LOAD_TIMES),
        figure_of("p50", LOAD_TIMES),
        figure_of("p95", LOAD_TIMES),
        figure_of("p99", LOAD_TIMES),
        figure_of("cpu", &[NUMBERS, SERVICE.field]),
        figure_of("memory", &[SIZES, SERVICE.field]),
        figure_of("cpu_share", &[NUMBERS, SERVICE_OF_REPLICAS.field]),
        figure_of("request_share", &[NUMBERS, SERVICE_OF_REPLICAS.field]),
        figure_of("completed", &[NUMBERS]),
        figure_of("throttled", &[NUMBERS]),
        figure_of("calls_per_operation", &[NUMBERS]),
        figure_of("attempts_per_operation", &[NUMBERS]),
        figure_of("charge_per_operation", &[NUMBERS]),
        figure_of("metric", &[METRIC.field, NUMBERS]),
    ],
});

const fn figure_of(measure: &'static str, fields: &'static [Field]) -> Branch {
    Branch { value: measure, map: Map::new(fields) }
}

const fn by_variant(value: &'static Shape) -> Shape {
    Shape::Named(NamedMap { what: "variant", name: &kind::VARIANT_NAME, value, least: 1, most: MANY })
}

/// Regular expression of the texts that [`operation`] accepts.
const OPERATION_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63} [^ ].*$";

/// Takes a service and the name of its spans apart.
fn operation(text: &str) -> Option<(&str, &str)> {
    let (service, name) = text.split_once(' ')?;
    let is_whole = kind::is_name(service) && !name.is_empty() && !name.starts_with(' ');
    is_whole.then_some((service, name))
}

/// The notes in an experiment, as far as they can be read.
pub(super) fn notes(root: At<'_>) -> Notes {
    let section = root.get(&PARAMETERS);
    let parameters = section.iter().flat_map(At::entries).filter_map(|(name, at)| {
        let reason = at.read(&REASON)?;
        Some(ParameterNote { name: name.to_owned(), value: parameter(at)?.to_owned(), reason })
    });
    let published = root.get(&PUBLISHED).and_then(published);
    Notes { parameters: parameters.collect(), published, prices: prices(root) }
}

fn published(at: At<'_>) -> Option<Published> {
    let (service, operation) = at.read(&OPERATION).unzip();
    let figures = at.get(&FIGURES);
    let figures: Vec<PublishedFigure> = figures.iter().flat_map(At::items).filter_map(figure).collect();
    let found = at.read(&FOUND).unwrap_or_default();
    let ratio_to = texts(at.get(&RATIO_TO));
    let conclusions = conclusions::conclusions(at);
    Some(Published { source: at.read(&SOURCE)?, service, operation, found, ratio_to, figures, conclusions })
}

fn figure(at: At<'_>) -> Option<PublishedFigure> {
    let measure = at.read(&MEASURE)?;
    let values = at.get(&NUMBERS);
    let values = values.iter().flat_map(At::entries);
    let values = values.filter_map(|(variant, at)| Some((variant.to_owned(), value(measure, at)?)));
    let metric = (measure == Measure::Metric).then(|| at.read(&METRIC)).flatten();
    let part = at.read(&SERVICE).map(Part::Service).or_else(|| at.read(&SCENARIO).map(Part::Scenario));
    let remark = at.read(&REMARK).unwrap_or_default();
    let [fitted, given] = [&FITTED, &GIVEN].map(|key| texts(at.get(key)));
    let restates = at.read(&RESTATES);
    Some(PublishedFigure { measure, metric, part, values: values.collect(), fitted, given, restates, remark })
}

/// Variants and their texts.
fn texts(at: Option<At<'_>>) -> Vec<(String, String)> {
    let entries = at.iter().flat_map(At::entries);
    entries.filter_map(|(variant, at)| Some((variant.to_owned(), at.value(TEXT)?))).collect()
}

/// The measure of that name.
fn measure(word: &str) -> Option<Measure> {
    Measure::ALL.into_iter().find(|measure| measure.as_str() == word)
}

/// A value in the measure's unit.
fn value(measure: Measure, at: At<'_>) -> Option<f64> {
    match measure {
        Measure::Memory => at.value(SIZE).map(|bytes| bytes as f64),
        measure if measure.is_duration() => at.value(LENGTH).map(|duration| duration.as_nanos() as f64),
        _ => at.value(AMOUNT),
    }
}

/// Judges what published figures say about the rest of the file.
pub(super) fn check(root: At<'_>, language: Language, variants: &[Variant], report: &mut Report) {
    let Some(section) = root.get(&PUBLISHED) else { return };
    let names = Names::of(root.node, language);
    check_service(section, &names, report);
    let known = known_variants(root, language, variants);
    check_bases(section, known.as_deref(), report);
    conclusions::check(section, known.as_deref(), report);
    let mut lines: Vec<(String, usize)> = Vec::new();
    for at in section.get(&FIGURES).iter().flat_map(At::items) {
        check_repetition(at, &mut lines, report);
        check_subject(at, section, report);
        check_part(at, root, &names, report);
        check_fitted(at, &names, report);
        check_restated(at, section, report);
        let Some(known) = &known else { continue };
        for values in [&NUMBERS, &FITTED, &GIVEN].into_iter().filter_map(|key| at.get(key)) {
            check_keys(values, known, report);
        }
    }
}

/// That ratios are to and of variants that exist.
fn check_bases(section: At<'_>, known: Option<&[&str]>, report: &mut Report) {
    let (Some(bases), Some(known)) = (section.get(&RATIO_TO), known) else { return };
    check_keys(bases, known, report);
    for (_, base) in bases.entries() {
        let Some(name) = base.text().filter(|name| !known.contains(name)) else { continue };
        report.add(base.place(), base.path(), Problem::unknown("variant", name, known.iter().copied()));
    }
}

fn check_keys(values: At<'_>, known: &[&str], report: &mut Report) {
    for (name, value) in values.entries().filter(|(name, _)| !known.contains(name)) {
        report.add(value.key_place(), values.path(), Problem::unknown("variant", name, known.iter().copied()));
    }
}

fn check_service(section: At<'_>, names: &Names<'_>, report: &mut Report) {
    let Some(at) = section.get(&OPERATION) else { return };
    let (Some((service, _)), Some(known)) = (section.read(&OPERATION), names.services()) else { return };
    if !known.contains(&service.as_str()) {
        report.add(at.place(), at.path(), Problem::unknown("service", &service, known.iter().copied()));
    }
}

/// Measures that clients cannot see belong to an operation.
fn check_subject(figure: At<'_>, section: At<'_>, report: &mut Report) {
    let (Some(at), Some(measure)) = (figure.get(&MEASURE), figure.read(&MEASURE)) else { return };
    let is_of_operation = matches!(
        measure,
        Measure::Throttled | Measure::CallsPerOperation | Measure::AttemptsPerOperation | Measure::ChargePerOperation
    );
    if !section.has(&OPERATION) && is_of_operation {
        let problem = Problem::new(format!("`{}` needs `operation`, which `published` does not set", measure.as_str()));
        report.add(at.place(), at.path(), problem.hint("add `operation: SERVICE NAME`"));
    }
}

/// A word that could be a parameter's name must be one; several words describe something else.
fn check_fitted(figure: At<'_>, names: &Names<'_>, report: &mut Report) {
    let (Some(fitted), Some(known)) = (figure.get(&FITTED), names.parameters()) else { return };
    for (_, at) in fitted.entries() {
        let parts = at.text().into_iter().flat_map(chosen);
        for part in parts.filter(|part| kind::is_name(part) && !known.contains(part)) {
            report.add(at.place(), at.path(), Problem::unknown("parameter", part, known.iter().copied()));
        }
    }
}

/// A figure is about a service or a scenario that exists.
fn check_part(figure: At<'_>, root: At<'_>, names: &Names<'_>, report: &mut Report) {
    let load = root.get(&LOAD);
    let scenarios = load.as_ref().and_then(|load| load.get(&SCENARIOS));
    let scenarios: Option<Vec<&str>> = scenarios.as_ref().map(|all| all.entries().map(|(name, _)| name).collect());
    for (key, what, known) in
        [(&SERVICE.field, "service", names.services()), (&SCENARIO.field, "scenario", scenarios.as_deref())]
    {
        let (Some(at), Some(known)) = (figure.get(key), known) else { continue };
        if let Some(name) = at.text().filter(|name| !known.contains(name)) {
            report.add(at.place(), at.path(), Problem::unknown(what, name, known.iter().copied()));
        }
    }
}

/// The name by which a figure is known in its section.
fn name_of(figure: At<'_>) -> Option<String> {
    let text = |key: &str| figure.node.get(key)?.text();
    let word = text(METRIC.name()).or_else(|| text(MEASURE.name()))?;
    Some(figure_name(word, text(SERVICE.name()).or_else(|| text(SCENARIO.name()))))
}

/// A figure restates another one, and that one is no restatement.
fn check_restated(figure: At<'_>, section: At<'_>, report: &mut Report) {
    let Some(at) = figure.get(&RESTATES.field) else { return };
    let Some(name) = at.text() else { return };
    let figures = section.get(&FIGURES);
    let others = figures.iter().flat_map(At::items).filter(|other| !other.has(&RESTATES.field));
    let known: Vec<String> = others.filter_map(name_of).collect();
    if !known.iter().any(|known| known == name) {
        report.add(at.place(), at.path(), Problem::unknown("figure", name, known.iter().map(String::as_str)));
    }
}

fn check_repetition(figure: At<'_>, lines: &mut Vec<(String, usize)>, report: &mut Report) {
    let Some(at) = figure.get(&METRIC).or_else(|| figure.get(&MEASURE)) else { return };
    let Some(name) = name_of(figure) else { return };
    match lines.iter().find(|(known, _)| *known == name) {
        Some((_, line)) => {
            report.add(at.place(), at.path(), Problem::new(format!("`{name}` is given twice, first on line {line}")));
        }
        None => lines.push((name, at.place().0)),
    }
}

/// The names of the variants; `None` if they are unknown because a name, or the whole section, may be misspelt.
fn known_variants<'a>(root: At<'_>, language: Language, variants: &'a [Variant]) -> Option<Vec<&'a str>> {
    let is_known = match root.get(&VARIANTS) {
        Some(list) => {
            list.items().next().is_some()
                && list.items().all(|at| at.get(&variants::NAME).is_some_and(|name| name.text().is_some()))
        }
        None => !language.experiment.has_strangers(root.node),
    };
    is_known.then(|| variants.iter().map(|variant| variant.name.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::RecordedExperiment;

    #[test]
    fn an_operation_is_a_service_and_a_name() {
        let cases = [
            ("orders GET /orders/{id}", Some(("orders", "GET /orders/{id}"))),
            ("orders list", Some(("orders", "list"))),
            ("orders", None),
            ("orders ", None),
            ("orders  list", None),
            (" list", None),
            ("GET/x list", None),
        ];
        let pattern = regex_lite::Regex::new(OPERATION_PATTERN).unwrap();
        for (text, expected) in cases {
            assert_eq!(operation(text), expected, "{text}");
            assert_eq!(pattern.is_match(text), expected.is_some(), "{text}");
        }
    }

    #[test]
    fn notes_are_read_in_the_measures_units() {
        let RecordedExperiment { notes: read, .. } = RecordedExperiment::read(
            "parameters: { a: 1, c: { value: 900, reason: too little }, b: { value: x, reason: so } }\n\
             published:\n  source: A Guide\n  found: It was slow.\n  operation: web GET /\n  figures:\n\
             \x20   - { measure: mean, values: { one: 669ms, two: soon }, fitted: { one: b }, remark: slower there }\n\
             \x20   - { measure: rate, values: { one: 19.5 } }\n\
             \x20   - { measure: speed, values: { one: 3 } }\n\
             \x20   - { measure: metric, metric: queue.length, values: { one: 4 } }\n\
             \x20   - { measure: metric, metric: cache.hit_ratio }\n\
             \x20   - { measure: cpu_share, service: web, values: { one: 0.5 } }\n\
             \x20   - { measure: mean, scenario: writes }\n",
        );
        let shown: Vec<_> = read.parameters.iter().map(|note| (&*note.name, &*note.value, &*note.reason)).collect();
        assert_eq!(shown, [("c", "900", "too little"), ("b", "x", "so")]);
        let published = read.published.unwrap();
        assert_eq!((published.source.as_str(), published.service.as_deref()), ("A Guide", Some("web")));
        assert_eq!((published.operation.as_deref(), published.found.as_str()), (Some("GET /"), "It was slow."));
        let [mean, rate, metric, unpublished, share, writes] = &published.figures[..] else {
            panic!("{:?}", published.figures)
        };
        assert_eq!((mean.measure, &mean.values[..]), (Measure::Mean, &[("one".to_owned(), 669e6)][..]));
        assert_eq!((mean.remark.as_str(), rate.remark.as_str()), ("slower there", ""));
        assert_eq!(rate.values, [("one".to_owned(), 19.5)]);
        assert_eq!((&mean.fitted[..], &rate.fitted[..]), (&[("one".to_owned(), "b".to_owned())][..], &[][..]));
        assert_eq!((metric.metric.as_deref(), rate.metric.as_deref()), (Some("queue.length"), None));
        assert_eq!((unpublished.metric.as_deref(), &unpublished.values[..]), (Some("cache.hit_ratio"), &[][..]));
        assert_eq!((&share.part, &share.values), (&Some(Part::Service("web".into())), &vec![("one".to_owned(), 0.5)]));
        assert_eq!((&writes.part, &mean.part), (&Some(Part::Scenario("writes".into())), &None));
    }

    #[test]
    fn texts_that_are_no_experiment_have_no_notes() {
        for source in ["", "[", "published: 7", "parameters: []", "published: { figures: [1] }"] {
            assert_eq!(RecordedExperiment::read(source).notes, Notes::default(), "{source}");
        }
    }
}
