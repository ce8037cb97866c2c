//! Expectation against findings.

use std::fmt;

use narrows_diagnose::detectors::ALL;
use narrows_model::finding::{Finding, Role};

use super::case::{Case, Expect};

/// `id at resource|resource on operation under id`; only the id must be there.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) detector: String,
    pub(crate) resources: Vec<String>,
    pub(crate) operation: Option<String>,
    /// The cause whose effect it must be.
    pub(crate) under: Option<String>,
}

/// Outcome of a case.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) case: String,
    pub(crate) is_trap: bool,
    pub(crate) expected: Vec<String>,
    pub(crate) found: Vec<String>,
    /// Detectors whose expected finding is there.
    pub(crate) hits: Vec<String>,
    /// Detectors whose expected finding is not.
    pub(crate) misses: Vec<String>,
    /// Detectors that say what nobody expects.
    pub(crate) false_alarms: Vec<String>,
    /// Whether the first finding is the narrow place; `None` if the case does not say.
    pub(crate) is_narrow_place_right: Option<bool>,
}

impl Verdict {
    pub(crate) fn is_right(&self) -> bool {
        self.misses.is_empty() && self.false_alarms.is_empty() && self.is_narrow_place_right != Some(false)
    }
}

impl Expected {
    /// Reads one line of `expect`.
    ///
    /// # Errors
    /// When its detector does not exist.
    pub(crate) fn parse(text: &str) -> Result<Expected, String> {
        let (text, under) = split(text, " under ");
        let (text, operation) = split(text, " on ");
        let (detector, resources) = split(text, " at ");
        known(detector)?;
        if let Some(cause) = under {
            known(cause)?;
        }
        Ok(Expected {
            detector: detector.into(),
            resources: resources.map_or(Vec::new(), |all| all.split('|').map(str::to_owned).collect()),
            operation: operation.map(str::to_owned),
            under: under.map(str::to_owned),
        })
    }

    fn is(&self, finding: &Finding, cause: Option<&str>) -> bool {
        let is_there = |resource: &String| finding.resource.contains(resource.as_str());
        let is_operation = |expected: &String| finding.operation.as_ref().is_some_and(|found| found.contains(expected));
        finding.kind().id() == self.detector
            && (self.resources.is_empty() || self.resources.iter().any(is_there))
            && self.operation.as_ref().is_none_or(is_operation)
            && self.under.as_ref().is_none_or(|under| Some(under.as_str()) == cause)
    }
}

/// Findings that a case expects.
///
/// # Errors
/// Fault of the case's words.
pub(crate) fn expected_of(case: &Case) -> Result<Vec<Expected>, String> {
    match &case.expect {
        Expect::Word(word) if word == "none" => Ok(Vec::new()),
        Expect::Word(word) => Err(format!("`expect: {word}`, expected `none` or a list")),
        Expect::List(list) => list.iter().map(|text| Expected::parse(text)).collect(),
    }
}

/// Judges what was found in a case.
///
/// # Errors
/// Fault of the case's words.
pub(crate) fn judge(case: &Case, findings: &[Finding]) -> Result<Verdict, String> {
    let expected = expected_of(case)?;
    let allowed: Result<Vec<Expected>, String> = case.allow.iter().map(|text| allowance(text)).collect();
    let allowed = allowed?;
    let mut verdict =
        Verdict { case: case.case.clone(), is_trap: case.trap == super::case::YesNo::Yes, ..Verdict::default() };
    let all = flattened(findings);
    for one in &expected {
        let is_found = all.iter().any(|(finding, cause)| one.is(finding, *cause));
        if is_found { &mut verdict.hits } else { &mut verdict.misses }.push(one.detector.clone());
    }
    for (finding, cause) in &all {
        verdict.found.push(reported(finding, *cause));
        if !expected.iter().chain(&allowed).any(|one| one.is(finding, *cause)) {
            verdict.false_alarms.push(finding.kind().id().to_owned());
        }
    }
    verdict.expected = expected.iter().map(ToString::to_string).collect();
    verdict.is_narrow_place_right = match case.narrow_place.as_deref() {
        None => None,
        Some("none") => Some(findings.iter().all(|finding| finding.role != Role::NarrowPlace)),
        Some(place) => {
            let place = Expected::parse(place)?;
            Some(findings.first().is_some_and(|first| place.is(first, None)))
        }
    };
    Ok(verdict)
}

fn flattened(findings: &[Finding]) -> Vec<(&Finding, Option<&str>)> {
    let with_effects = |cause| {
        let finding: &Finding = cause;
        let effects = finding.effects.iter().map(|effect| (effect, Some(finding.kind().id())));
        std::iter::once((finding, None)).chain(effects)
    };
    findings.iter().flat_map(with_effects).collect()
}

fn allowance(text: &str) -> Result<Expected, String> {
    let (what, reason) = text.split_once(": ").unwrap_or((text, ""));
    if reason.is_empty() {
        return Err(format!("`allow: {text}` needs a reason after a colon"));
    }
    Expected::parse(what)
}

fn split<'a>(text: &'a str, by: &str) -> (&'a str, Option<&'a str>) {
    text.split_once(by).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn known(detector: &str) -> Result<(), String> {
    let is_known = ALL.iter().any(|one| one.id() == detector);
    if is_known { Ok(()) } else { Err(format!("there is no detector `{detector}`")) }
}

fn reported(finding: &Finding, cause: Option<&str>) -> String {
    let operation = finding.operation.as_ref().map_or(String::new(), |operation| format!(" on {operation}"));
    let under = cause.map_or(String::new(), |cause| format!(" under {cause}"));
    format!("{} at {}{operation}{under}", finding.kind(), finding.resource)
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.detector)?;
        if !self.resources.is_empty() {
            write!(f, " at {}", self.resources.join("|"))?;
        }
        if let Some(operation) = &self.operation {
            write!(f, " on {operation}")?;
        }
        self.under.as_ref().map_or(Ok(()), |under| write!(f, " under {under}"))
    }
}
