//! Holds a document against the grammar and reports everything that does not fit.
//!
//! It judges form only: keys, types, texts, and the names in `${…}`. What one part says about another (a target that
//! is no service, data that nobody describes) is judged where that part is read. A part that does not fit is reported
//! once and not looked into; its neighbours are.

use super::kind::{AnyKind, TEXT};
use super::shape::{Branch, Field, GivenKey, Map, NamedMap, Need, Rule, Scope, Shape, TaggedMap};
use crate::experiment::document::at::At;
use crate::experiment::document::tree::{Form, Origin, Scalar};
use crate::experiment::error::{Problem, Report, did_you_mean, listed, nearest, shortened};
use crate::experiment::placeholders::names::Names;
use crate::experiment::placeholders::syntax;

/// Treatment of a scalar that holds `${…}`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pass<'a> {
    /// Nothing is replaced yet: its names are judged, its kind cannot be.
    Open(&'a Names<'a>),
    /// All is replaced.
    Bound,
}

/// Checks a part of the document and all below it.
pub(crate) fn check(at: At<'_>, shape: &'static Shape, pass: Pass<'_>, report: &mut Report) {
    if matches!(&at.node.form, Form::Scalar(scalar) if scalar.origin == Origin::Broken) {
        return;
    }
    match shape {
        Shape::Map(map) => check_map(at, map, pass, report),
        Shape::Tagged(tagged) => check_tagged(at, tagged, pass, report),
        Shape::Named(named) => check_named(at, named, pass, report),
        Shape::List { item, least, most } => check_list(at, item, *least, *most, pass, report),
        Shape::Arguments(scope) => check_arguments(at, *scope, pass, report),
        Shape::Either(shapes) => check_either(at, shapes, pass, report),
        Shape::Scalar(kind, scope) => check_scalar(at, *kind, *scope, pass, report),
        Shape::Json(scope) => check_json(at, *scope, pass, report),
    }
}

fn report_at(at: At<'_>, problem: Problem, report: &mut Report) {
    report.add(at.place(), at.path(), problem);
}

fn expected(at: At<'_>, what: &str) -> Problem {
    Problem::new(format!("expected {what}, found {}", at.node.described()))
}

fn is_map(at: At<'_>) -> bool {
    matches!(at.node.form, Form::Map(_))
}

fn check_map(at: At<'_>, map: &'static Map, pass: Pass<'_>, report: &mut Report) {
    if !is_map(at) {
        let keys: Vec<&str> = map.fields.iter().map(|field| field.key).collect();
        return report_at(at, expected(at, "a map").hint(format!("its keys are {}", listed(&keys))), report);
    }
    check_fields(at, map.fields.iter(), &[], |_| None, map.others, pass, report);
    check_rules(at, map.fields.iter(), map.rules.iter(), pass, report);
}

/// `elsewhere` says where a key that does not belong here does.
fn check_fields(
    at: At<'_>,
    fields: impl Iterator<Item = &'static Field> + Clone,
    known_beside: &[&str],
    elsewhere: impl Fn(&str) -> Option<String>,
    others: Option<&'static Shape>,
    pass: Pass<'_>,
    report: &mut Report,
) {
    let known: Vec<&str> = fields.clone().map(|field| field.key).chain(known_beside.iter().copied()).collect();
    let mut meant: Vec<&str> = Vec::new();
    for (key, value) in at.entries() {
        match (fields.clone().find(|field| field.key == key), others) {
            (Some(field), _) => check(value, &field.shape, pass, report),
            (None, Some(shape)) => check(value, shape, pass, report),
            (None, None) if known.contains(&key) => {}
            (None, None) => {
                let mut problem = Problem::unknown("key", key, known.iter().copied());
                match elsewhere(key) {
                    Some(hint) => problem.hint = Some(hint),
                    None => meant.extend(nearest(key, &known)),
                }
                report.add(value.key_place(), at.path(), problem);
            }
        }
    }
    // A key that is there under a misspelt name is not missing as well.
    for field in fields.filter(|field| field.need == Need::Required && !meant.contains(&field.key)) {
        if at.node.get(field.key).is_none() {
            report.add(at.key_place(), at.path(), Problem::new(format!("`{}` is missing", field.key)));
        }
    }
}

/// Keys are what they are before anything is replaced; afterwards, those with defaults are there unasked.
fn check_rules(
    at: At<'_>,
    fields: impl Iterator<Item = &'static Field> + Clone,
    rules: impl Iterator<Item = &'static Rule>,
    pass: Pass<'_>,
    report: &mut Report,
) {
    if matches!(pass, Pass::Bound) {
        return;
    }
    let before = report.len();
    for rule in rules {
        // After an error, the keys that are allowed beside others are unknown.
        if !matches!(rule, Rule::OnlyBeside(..)) || report.len() == before {
            check_rule(at, fields.clone(), rule, report);
        }
    }
    if report.len() > before {
        return;
    }
    for field in fields {
        if let Need::OptionalBeside(keys) = field.need {
            check_beside(at, field.key, keys, report);
        }
    }
}

fn check_rule(
    at: At<'_>,
    fields: impl Iterator<Item = &'static Field> + Clone,
    rule: &'static Rule,
    report: &mut Report,
) {
    let given = |all: &[GivenKey]| -> Vec<GivenKey> { all.iter().copied().filter(|one| one.is_in(at.node)).collect() };
    let shown = |all: &[GivenKey]| all.iter().map(|one| one.shown()).collect::<Vec<_>>().join(", ");
    let mut add = |message| report.add(at.key_place(), at.path(), Problem::new(message));
    match rule {
        Rule::OnlyBeside(keys, beside) => keys.iter().for_each(|key| check_beside(at, key, &[beside], report)),
        Rule::NotBeside(keys, beside) if at.node.get(beside).is_some() => {
            for (key, value) in at.entries().filter(|(key, _)| keys.contains(key)) {
                let message = format!("`{key}` cannot be combined with `{beside}`");
                report.add(value.key_place(), at.path(), Problem::new(message));
            }
        }
        Rule::NotBeside(..) => {}
        Rule::Needs(key, needed) => {
            if at.node.get(key).is_some() && at.node.get(needed).is_none() && !is_misspelt(at, fields, &[needed]) {
                add(format!("`{needed}` is missing"));
            }
        }
        Rule::AtMostOne(all) => {
            if given(all).len() > 1 {
                add(format!("{} cannot be combined", shown(all)));
            }
        }
        Rule::ExactlyOne(all) => {
            let keys: Vec<&str> = all.iter().map(|one| one.key).collect();
            match given(all).as_slice() {
                [_] => {}
                [] if is_misspelt(at, fields, &keys) => {}
                [] => add(format!("one of {} is missing", shown(all))),
                several => add(format!("{} cannot be combined", shown(several))),
            }
        }
    }
}

/// Whether one of these keys is probably there under a misspelt name.
fn is_misspelt(at: At<'_>, fields: impl Iterator<Item = &'static Field> + Clone, keys: &[&str]) -> bool {
    let known: Vec<&str> = fields.map(|field| field.key).collect();
    let strangers = at.entries().filter(|(key, _)| !known.contains(key));
    strangers.into_iter().any(|(key, _)| nearest(key, &known).is_some_and(|meant| keys.contains(&meant)))
}

fn check_beside(at: At<'_>, key: &str, beside: &[&str], report: &mut Report) {
    if let Some(value) = at.named(key)
        && beside.iter().all(|key| at.node.get(key).is_none())
    {
        let message = format!("`{key}` is allowed only with {}", listed(beside));
        report.add(value.key_place(), at.path(), Problem::new(message));
    }
}

fn check_tagged(at: At<'_>, tagged: &'static TaggedMap, pass: Pass<'_>, report: &mut Report) {
    if !is_map(at) {
        return report_at(at, expected(at, "a map"), report);
    }
    let values: Vec<&str> = tagged.branches.iter().map(|branch| branch.value).collect();
    let tag = at.get(tagged.tag);
    let branch = tag.and_then(|tag| tagged.branch(tag.text()?));
    if let Some(branch) = branch {
        let elsewhere = |key: &str| belongs_to(tagged, branch, key);
        check_fields(at, tagged.fields_of(branch), &[tagged.tag.key], elsewhere, None, pass, report);
        let rules = tagged.rules.iter().chain(branch.map.rules);
        return check_rules(at, tagged.fields_of(branch), rules, pass, report);
    }
    let is_misspelt = at.entries().any(|(key, _)| nearest(key, &[tagged.tag.key]).is_some());
    match tag {
        None if is_misspelt => {}
        None => {
            let problem = Problem::new(format!("`{}` is missing", tagged.tag.key));
            report.add(at.key_place(), at.path(), problem.hint(format!("one of {}", listed(&values))));
        }
        Some(tag) => {
            let problem = expected(tag, &format!("one of {}", listed(&values)));
            let hint = tag.text().and_then(|text| did_you_mean(text, &values));
            report_at(tag, Problem { hint, ..problem }, report);
        }
    }
    // Which keys belong here is unknown without the tag, but the keys that every branch has can be judged.
    let other_keys: Vec<&str> =
        tagged.branches.iter().flat_map(|branch| branch.map.fields).map(|field| field.key).collect();
    let beside: Vec<&str> = other_keys.into_iter().chain([tagged.tag.key]).collect();
    check_fields(at, tagged.common.iter(), &beside, |_| None, None, pass, report);
}

/// For a key that only other branches have: which.
fn belongs_to(tagged: &'static TaggedMap, here: &Branch, key: &str) -> Option<String> {
    let has_it = |branch: &&Branch| branch.map.fields.iter().any(|field| field.key == key);
    let others: Vec<&str> = tagged.branches.iter().filter(has_it).map(|branch| branch.value).collect();
    let (tag, here) = (tagged.tag.key, here.value);
    (!others.is_empty()).then(|| format!("it goes with `{tag}` {}, not with `{here}`", listed(&others)))
}

fn check_named(at: At<'_>, named: &'static NamedMap, pass: Pass<'_>, report: &mut Report) {
    if !is_map(at) {
        let hint = format!("write `name: …` for each {}", named.what);
        return report_at(at, expected(at, "a map").hint(hint), report);
    }
    check_count(at, at.node.entries().len(), named.least, named.most, named.what, report);
    for (key, value) in at.entries() {
        let name = Scalar { text: key.to_owned(), origin: Origin::String };
        let described = format!("\"{}\"", shortened(key));
        if let Err(problem) = named.name.check(&name, &described) {
            report.add(value.key_place(), at.path(), problem);
        }
        check(value, named.value, pass, report);
    }
}

fn check_list(at: At<'_>, item: &'static Shape, least: usize, most: usize, pass: Pass<'_>, report: &mut Report) {
    let Form::List(items) = &at.node.form else {
        return report_at(at, expected(at, "a list"), report);
    };
    check_count(at, items.len(), least, most, "item", report);
    at.items().for_each(|at| check(at, item, pass, report));
}

fn check_count(at: At<'_>, count: usize, least: usize, most: usize, what: &str, report: &mut Report) {
    if count < least {
        report_at(at, Problem::new(format!("expected at least {least} {what}, found none")), report);
    } else if count > most {
        report_at(at, Problem::new(format!("expected at most {most} of {what}, found {count}")), report);
    }
}

fn check_arguments(at: At<'_>, scope: Scope, pass: Pass<'_>, report: &mut Report) {
    let Form::List(items) = &at.node.form else {
        let problem = expected(at, "a list of a program and its arguments");
        let words: Vec<&str> = at.text().unwrap_or_default().split_whitespace().collect();
        let problem = match words.is_empty() {
            true => problem,
            false => problem.hint(format!("commands do not run in a shell; write [{}]", quoted(&words).join(", "))),
        };
        return report_at(at, problem, report);
    };
    if items.is_empty() {
        report_at(at, Problem::new("expected a program and its arguments, found an empty list"), report);
    }
    for (position, item) in at.items().enumerate() {
        check_scalar(item, &TEXT, scope, pass, report);
        if position == 0 && item.text() == Some("") {
            report_at(item, Problem::new("expected a program, found \"\""), report);
        }
    }
}

fn quoted(words: &[&str]) -> Vec<String> {
    let needs_quotes = |word: &str| {
        word.contains(['$', '{', '}', '[', ']', ',', ':', '#', '&', '*', '!', '"', '\'', '|', '>', '%', '@'])
    };
    words.iter().map(|word| if needs_quotes(word) { format!("{word:?}") } else { (*word).to_owned() }).collect()
}

fn check_either(at: At<'_>, shapes: &'static [Shape], pass: Pass<'_>, report: &mut Report) {
    match Shape::choose(shapes, &at.node.form) {
        Some(shape) => check(at, shape, pass, report),
        None => {
            let names: Vec<String> = shapes.iter().map(described).collect();
            report_at(at, expected(at, &names.join(", or ")), report);
        }
    }
}

fn described(shape: &Shape) -> String {
    match shape {
        Shape::Scalar(kind, _) => kind.expected(),
        Shape::List { .. } | Shape::Arguments(_) => "a list".to_owned(),
        Shape::Map(_) | Shape::Tagged(_) | Shape::Named(_) => "a map".to_owned(),
        Shape::Either(shapes) => shapes.iter().map(described).collect::<Vec<_>>().join(", or "),
        Shape::Json(_) => "anything".to_owned(),
    }
}

fn check_scalar(at: At<'_>, kind: &dyn AnyKind, scope: Scope, pass: Pass<'_>, report: &mut Report) {
    let Form::Scalar(scalar) = &at.node.form else {
        return report_at(at, expected(at, &kind.expected()), report);
    };
    if !check_places(at, scope, pass, report) {
        return;
    }
    if let Err(problem) = kind.check(scalar, &at.node.described()) {
        report_at(at, problem, report);
    } else if scalar.text.contains('\0') {
        report_at(at, Problem::new("a NUL character, which no text here can hold"), report);
    }
}

fn check_json(at: At<'_>, scope: Scope, pass: Pass<'_>, report: &mut Report) {
    check_places(at, scope, pass, report);
    at.entries().for_each(|(_, value)| check_json(value, scope, pass, report));
    at.items().for_each(|item| check_json(item, scope, pass, report));
}

/// Judges the `${…}` of a scalar. False when its kind cannot be judged: something is still to be replaced, or wrong.
fn check_places(at: At<'_>, scope: Scope, pass: Pass<'_>, report: &mut Report) -> bool {
    let (Pass::Open(names), Some(text)) = (pass, at.text()) else { return true };
    if !syntax::is_open(text) {
        return true;
    }
    let problems = match scope {
        Scope::Literal => vec![Problem::new("`${…}` is not replaced here").hint("write the value itself")],
        _ => names.judge(text, scope),
    };
    problems.into_iter().for_each(|problem| report_at(at, problem, report));
    false
}
