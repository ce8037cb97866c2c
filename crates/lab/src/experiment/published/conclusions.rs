//! Conclusions of those who published figures, each with the conditions under which a run comes to it too.

use narrows_model::finding::FindingKind;
use narrows_model::published::{Conclusion, Condition, Subject};
use serde_json::json;

use super::{FIGURES, name_of};
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, Value, literal, optional, required};
use crate::experiment::grammar::kind::{self, AS_TEXT, Simple, no_hint};
use crate::experiment::grammar::shape::{Field, Map, Rule, Shape};
use crate::experiment::grammar::values::{AMOUNT, MANY, TEXT};

/// The word of a kind of finding.
static FINDING_NAME: Simple<FindingKind> = Simple {
    expected: "a kind of finding such as `pool-wait`",
    name: "kind of finding",
    written: AS_TEXT,
    read: |text| text.parse().map_err(|_| None),
    hint: no_hint,
    schema: || json!({ "type": "string" }),
};

const CLAIM: Key<String> = Key::required("claim", TEXT, "The conclusion, in a sentence.");

const HOLDS: Field = required(
    "holds",
    Shape::List { item: &CONDITION, least: 1, most: MANY },
    "Conditions on a run. The conclusion comes back where all of them are true.",
);

const BECAUSE: Key<String> = Key::optional("because", TEXT, "Why it comes back, or does not, in a sentence.");

const VARIANT: Key<String> = Key::required("variant", literal(&kind::VARIANT_NAME), "The variant that it is about.");

const BOTTLENECK: Key<FindingKind> =
    Key::optional("bottleneck", literal(&FINDING_NAME), "Kind of the bottleneck that Narrows names for the variant.");

const FINDING: Key<FindingKind> = Key::optional(
    "finding",
    literal(&FINDING_NAME),
    "Kind of a finding that Narrows has for the variant, at any rank.",
);

const FIGURE: Key<String> = Key::optional(
    "figure",
    TEXT,
    "Name of a listed figure: its measure or metric, after its service or scenario if it has one, as in `writes: mean`.",
);

const TO: Key<String> = Key::optional(
    "to",
    literal(&kind::VARIANT_NAME),
    "The variant whose value of the figure is the base. Without it, the value itself is meant: latencies in nanoseconds.",
);

const AT_LEAST: Key<f64> = Key::optional("at_least", AMOUNT, "Least value, or ratio to the base.");

const AT_MOST: Key<f64> = Key::optional("at_most", AMOUNT, "Largest value, or ratio to the base.");

const OTHER_VARIANT: Value<String> = literal(&kind::VARIANT_NAME);

const LARGER_THAN_TO: Field = optional(
    "larger_than_to",
    Shape::List { item: &OTHER_VARIANT.shape(), least: 1, most: MANY },
    "Variants: the step from `to` to the variant is larger than that from the variant to each of these.",
);

static CONDITION: Shape = Shape::Map(Map {
    fields: &[
        VARIANT.field,
        BOTTLENECK.field,
        FINDING.field,
        FIGURE.field,
        TO.field,
        AT_LEAST.field,
        AT_MOST.field,
        LARGER_THAN_TO,
    ],
    rules: &[
        Rule::ExactlyOne(&[BOTTLENECK.given(), FINDING.given(), FIGURE.given()]),
        Rule::OnlyBeside(&[TO.name(), AT_LEAST.name(), AT_MOST.name()], FIGURE.name()),
        Rule::Needs(LARGER_THAN_TO.key, TO.name()),
    ],
    others: None,
});

static CONCLUSION: Shape = Shape::Map(Map::new(&[CLAIM.field, HOLDS, BECAUSE.field]));

pub(super) const CONCLUSIONS: Field = optional(
    "conclusions",
    Shape::List { item: &CONCLUSION, least: 1, most: MANY },
    "What those who published the figures concluded, and how a run shows the same.",
);

/// The conclusions, as far as they can be read.
pub(super) fn conclusions(section: At<'_>) -> Vec<Conclusion> {
    let list = section.get(&CONCLUSIONS);
    list.iter().flat_map(At::items).filter_map(conclusion).collect()
}

fn conclusion(at: At<'_>) -> Option<Conclusion> {
    let conditions = at.get(&HOLDS);
    let conditions = conditions.iter().flat_map(At::items);
    // Without one of its conditions, a conclusion would come back too easily.
    let holds = conditions.map(condition).collect::<Option<Vec<_>>>()?;
    Some(Conclusion { claim: at.read(&CLAIM)?, holds, because: at.read(&BECAUSE).unwrap_or_default() })
}

fn condition(at: At<'_>) -> Option<Condition> {
    let subject = if let Some(kind) = at.read(&BOTTLENECK) {
        Subject::Bottleneck(kind)
    } else if let Some(kind) = at.read(&FINDING) {
        Subject::Finding(kind)
    } else {
        let [at_least, at_most] = [&AT_LEAST, &AT_MOST].map(|key| at.read(key));
        let others = at.get(&LARGER_THAN_TO);
        let larger_than_to =
            others.iter().flat_map(At::items).filter_map(|one| one.text().map(str::to_owned)).collect();
        Subject::Figure { name: at.read(&FIGURE)?, to: at.read(&TO), at_least, at_most, larger_than_to }
    };
    Some(Condition { variant: at.read(&VARIANT)?, subject })
}

/// Judges what conclusions say about the rest of the section.
pub(super) fn check(section: At<'_>, variants: Option<&[&str]>, report: &mut Report) {
    let figures = section.get(&FIGURES);
    let figures: Vec<String> = figures.iter().flat_map(At::items).filter_map(name_of).collect();
    let figures: Vec<&str> = figures.iter().map(String::as_str).collect();
    let list = section.get(&CONCLUSIONS);
    for conclusion in list.iter().flat_map(At::items) {
        let conditions = conclusion.get(&HOLDS);
        for condition in conditions.iter().flat_map(At::items) {
            check_name(condition, &FIGURE.field, "figure", &figures, report);
            for key in variants.map(|_| [&VARIANT.field, &TO.field]).into_iter().flatten() {
                check_name(condition, key, "variant", variants.unwrap_or_default(), report);
            }
            check_others(condition, variants, report);
            check_bounds(condition, report);
        }
    }
}

fn check_name(condition: At<'_>, key: &Field, what: &'static str, known: &[&str], report: &mut Report) {
    let Some(at) = condition.get(key) else { return };
    if let Some(name) = at.text().filter(|name| !known.contains(name)) {
        report.add(at.place(), at.path(), Problem::unknown(what, name, known.iter().copied()));
    }
}

/// Steps are compared with those to known variants.
fn check_others(condition: At<'_>, variants: Option<&[&str]>, report: &mut Report) {
    let (Some(others), Some(known)) = (condition.get(&LARGER_THAN_TO), variants) else { return };
    for at in others.items() {
        if let Some(name) = at.text().filter(|name| !known.contains(name)) {
            report.add(at.place(), at.path(), Problem::unknown("variant", name, known.iter().copied()));
        }
    }
}

/// A figure has at least one bound, and the lower one is not above the other.
fn check_bounds(condition: At<'_>, report: &mut Report) {
    let Some(at) = condition.get(&FIGURE.field) else { return };
    match (condition.read(&AT_LEAST), condition.read(&AT_MOST)) {
        (None, None) if !condition.has(&AT_LEAST.field) && !condition.has(&AT_MOST.field) => {
            let problem = Problem::new("a figure without a bound is no condition".to_owned());
            report.add(at.place(), at.path(), problem.hint("add `at_least` or `at_most`"));
        }
        (Some(least), Some(most)) if least > most => {
            let text = format!("`at_least` {least} is above `at_most` {most}");
            report.add(at.place(), at.path(), Problem::new(text));
        }
        _ => {}
    }
}
