//! The variants of an experiment and the parameters each of them binds.

mod added;
pub(crate) mod fallback;
mod overrides;
mod scaled;
pub(crate) mod used;

use std::collections::BTreeMap;

use super::document::at::At;
use super::error::{Problem, Report, nearest};
use super::grammar::key::{Key, Value, literal, optional};
use super::grammar::kind::{self, AnyKind};
use super::grammar::shape::{Field, Map, NamedMap, Rule, Shape};
use super::grammar::values::{LISTED_MAX, MANY, TEXT};
use super::language::Language;
use super::placeholders::names::{Names, PARAMETERS_KEY, RESERVED_FOR_PARAMETERS};
pub(crate) use scaled::scaled as scaled_value;

/// The name of the one variant of an experiment that lists none.
const BASELINE: &str = "baseline";

pub(crate) const VARIANT_NAME: Value<String> = literal(&kind::VARIANT_NAME);

pub(crate) const NAME: Key<String> =
    Key::required("name", VARIANT_NAME, "The variant's name; a trial is addressed as `RUN:NAME`.");

const FROM: Key<String> =
    Key::optional("from", VARIANT_NAME, "A variant listed earlier whose parameters this one starts from.");

/// A variant's keys, beside which it has parameters.
const KEYS: [&str; 2] = [NAME.name(), FROM.name()];

static VARIANT: Shape = Shape::Map(Map { fields: &[NAME.field, FROM.field], rules: &[], others: Some(&TEXT.shape()) });

pub(crate) const VALUE: Key<String> = Key::required("value", TEXT, "The value.");

pub(crate) const REASON: Key<String> =
    Key::required("reason", TEXT, "The reason for the value, in a sentence that reports show.");

pub(crate) const HELD_BY: Field = optional(
    "held_by",
    Shape::List { item: &VARIANT_NAME.shape(), least: 1, most: MANY },
    "Variants that must have reached the value, in requests per second, for later variants to be given it.",
);

pub(crate) const OTHERWISE: Key<f64> = Key::optional(
    "otherwise",
    literal(&kind::SHARE),
    "The share of what the slowest of them reached that later variants are given otherwise.",
);

const USED_BY: Key<String> = Key::optional(
    "used_by",
    VARIANT_NAME,
    "A variant that is run first, wherever it is listed. All variants that do not set the parameter themselves are given \
     the CPU, in cores, that each replica of a service used in it. `none`: the value as written.",
);

const OF: Key<String> = Key::optional("of", literal(&kind::NAME), "The service.");

const TIMES: Key<f64> = Key::optional(
    "times",
    literal(&kind::WEIGHT),
    "The parameter as a multiple of that, such as 1, or 0.8 for a limit below it.",
);

static PARAMETER: Shape = Shape::Either(&[
    TEXT.shape(),
    Shape::Map(Map {
        fields: &[VALUE.field, REASON.field, HELD_BY, OTHERWISE.field, USED_BY.field, OF.field, TIMES.field],
        rules: &[
            Rule::Needs(HELD_BY.name(), OTHERWISE.name()),
            Rule::Needs(OTHERWISE.name(), HELD_BY.name()),
            Rule::Needs(USED_BY.name(), OF.name()),
            Rule::Needs(USED_BY.name(), TIMES.name()),
            Rule::Needs(OF.name(), USED_BY.name()),
            Rule::Needs(TIMES.name(), USED_BY.name()),
            Rule::NotBeside(&[HELD_BY.name()], USED_BY.name()),
        ],
        others: None,
    }),
]);

pub(crate) const PARAMETERS: Field = optional(
    PARAMETERS_KEY,
    Shape::Named(NamedMap { what: "parameter", name: &kind::NAME, value: &PARAMETER, least: 0, most: LISTED_MAX }),
    "Names and values that `${name}` stands for. Variants give them other values.",
);

pub(crate) const VARIANTS: Field = optional(
    "variants",
    Shape::List { item: &VARIANT, least: 1, most: MANY },
    "The versions of the system; all are compared with the first. Without it there is one, `baseline`.",
);

/// One version of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its name, unique in the experiment.
    pub name: String,
    /// Every parameter of the experiment with the value it has in this variant.
    pub parameters: BTreeMap<String, String>,
}

/// The parameters as the experiment gives them, before any variant.
pub(crate) fn parameters(root: At<'_>, report: &mut Report) -> BTreeMap<String, String> {
    let Some(section) = root.get(&PARAMETERS) else { return BTreeMap::new() };
    for (name, at) in section.entries() {
        if RESERVED_FOR_PARAMETERS.contains(&name) {
            let problem = Problem::new(format!("a parameter cannot be named `{name}`, which is reserved"));
            report.add(at.key_place(), section.path(), problem.hint("give it a longer name"));
        }
    }
    section.entries().filter_map(|(name, at)| Some((name.to_owned(), parameter(at)?.to_owned()))).collect()
}

/// A parameter's value, whether it stands alone or beside its reason.
pub(crate) fn parameter(at: At<'_>) -> Option<&str> {
    at.node.get(VALUE.name()).unwrap_or(at.node).text()
}

/// The variants in their order; the one of an experiment that lists none.
pub(crate) fn variants(
    root: At<'_>,
    language: Language,
    parameters: &BTreeMap<String, String>,
    report: &mut Report,
) -> Vec<Variant> {
    let listed = root.get(&VARIANTS);
    let names = Names::of(root.node, language);
    let mut variants: Vec<Variant> = Vec::new();
    let mut lines: Vec<usize> = Vec::new();
    for at in listed.iter().flat_map(At::items) {
        let mut resolved = base(at, &variants, root, report).unwrap_or_else(|| parameters.clone());
        set(at, &names, &mut resolved, report);
        let Some(name) = at.get(&NAME) else { continue };
        let Some(text) = name.text() else { continue };
        if let Some(first) = variants.iter().position(|variant| variant.name == text) {
            let message = format!("`{text}` is the name of two variants, the first on line {}", lines[first]);
            report.add(name.place(), name.path(), Problem::new(message));
            continue;
        }
        variants.push(Variant { name: text.to_owned(), parameters: resolved });
        lines.push(name.place().0);
    }
    if variants.is_empty() {
        variants.push(Variant { name: BASELINE.to_owned(), parameters: parameters.clone() });
    }
    variants
}

/// Variant that it starts from, if it names one.
fn base(at: At<'_>, earlier: &[Variant], root: At<'_>, report: &mut Report) -> Option<BTreeMap<String, String>> {
    let from = at.get(&FROM)?;
    let text = from.text()?;
    if let Some(variant) = earlier.iter().find(|variant| variant.name == text) {
        return Some(variant.parameters.clone());
    }
    if !kind::VARIANT_NAME.is_met_by(from.node) {
        return None;
    }
    let list = root.get(&VARIANTS)?;
    let is_listed = list.items().any(|at| at.get(&NAME).and_then(|name| name.text()) == Some(text));
    let problem = if is_listed {
        Problem::new(format!("`{text}` is not listed before this variant")).hint("a variant starts from an earlier one")
    } else {
        Problem::unknown("variant", text, earlier.iter().map(|variant| variant.name.as_str()))
    };
    report.add(from.place(), from.path(), problem);
    None
}

/// The variant's own values. A key that is no parameter is an error, unless the parameters are unknown.
fn set(at: At<'_>, names: &Names<'_>, resolved: &mut BTreeMap<String, String>, report: &mut Report) {
    let Some(known) = names.parameters() else { return };
    for (key, value) in at.entries().filter(|(key, _)| !KEYS.contains(key)) {
        if known.contains(&key) {
            resolved.extend(value.text().map(|text| (key.to_owned(), text.to_owned())));
        } else {
            let problem = Problem::unknown("parameter", key, known.iter().copied());
            let problem = match nearest(key, &KEYS) {
                Some(meant) if at.node.get(meant).is_none() => problem.hint(format!("did you mean `{meant}`?")),
                _ if known.is_empty() => problem.hint("give it a first value under `parameters`"),
                _ => problem,
            };
            report.add(value.key_place(), at.path(), problem);
        }
    }
}
