//! Errors of an experiment file, and their places.
//!
//! Errors are collected, never thrown: a reader of the file goes on past each of them, so that one look at the file
//! shows all. A [`Report`] keeps each fault once, however many passes stumble over it.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;

/// So many errors are kept; a file with more is not the kind that is corrected line by line.
const ERRORS_MAX: usize = 1000;

/// Why an experiment file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file was read and has errors: at least one, in the order of the file.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<FileError>),
    /// A parameter was given a value that the experiment does not have.
    #[error("no parameter is named `{name}`; the experiment has {}", all(known))]
    UnknownParameter {
        /// Key that was given a value.
        name: String,
        /// The experiment's parameters.
        known: Vec<String>,
        /// Which of them was probably meant.
        hint: Option<String>,
    },
    /// A parameter was given a value whose own is a block of lines.
    #[error("parameter `{name}` is a block of lines, which cannot be given another value")]
    BlockParameter {
        /// The parameter.
        name: String,
    },
    /// A variant was to be added, and the text is written in a way that cannot be added to.
    #[error("cannot add a variant to the text of {file}")]
    CannotAdd {
        /// The file.
        file: String,
        /// The variant, as an item of the list of variants.
        variant: String,
    },
    /// A parameter was to be scaled, and a value of it is no number.
    #[error("parameter `{name}` is `{value}`, expected a number or a quantity such as `1950ms`")]
    NoNumber {
        /// The parameter.
        name: String,
        /// Its value.
        value: String,
    },
}

/// All of these names in backquotes.
fn all(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One fault of an experiment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file's name as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Where in the document, such as `load.scenarios.list.vus`; empty for the document itself.
    pub path: String,
    /// Actual and expected value.
    pub message: String,
    /// Advice, if there is any.
    pub hint: Option<String>,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// A message and perhaps a hint, still without a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// For a name that is not among those known: the nearest one, or all of them.
    pub(crate) fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let problem = Self::new(format!("unknown {what} `{}`", shortened(name)));
        match did_you_mean(name, &known) {
            Some(hint) => problem.hint(hint),
            None if known.is_empty() => problem,
            None => problem.hint(format!("known: {}", listed(&known))),
        }
    }
}

/// A hint at the one known name that is nearest, if it is near.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    nearest(name, known).map(|near| format!("did you mean `{near}`?"))
}

/// The one known name that a name was probably meant to be; `None` if several or none are near.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    const LENGTH_MAX: usize = 64;
    if name.len() > LENGTH_MAX {
        return None;
    }
    let distance_to = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let (distance, near) = known.iter().map(|candidate| (distance_to(candidate), *candidate)).min()?;
    if known.iter().filter(|candidate| distance_to(candidate) == distance).count() > 1 {
        return None;
    }
    let is_near =
        distance <= 2 && distance < near.len().min(name.chars().count()) || strsim::jaro_winkler(name, near) > 0.85;
    is_near.then_some(near)
}

/// `a`, `b` and `c` in backquotes; a long list is cut short.
pub(crate) fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 20;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

/// Text as it may appear in a message: its first 60 characters.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The errors found so far.
#[derive(Debug)]
pub(crate) struct Report {
    file: String,
    errors: Vec<FileError>,
    seen: HashSet<(usize, usize, String)>,
}

impl Report {
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), seen: HashSet::new() }
    }

    /// Another report about the same file.
    pub(crate) fn sibling(&self) -> Self {
        Self::new(&self.file)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// How many errors there are.
    pub(crate) fn len(&self) -> usize {
        self.errors.len()
    }

    /// Writes an error down unless it is already known or the report is full.
    pub(crate) fn add(&mut self, place: (usize, usize), path: String, problem: Problem) {
        let (line, column) = place;
        let Problem { message, hint } = problem;
        if self.errors.len() < ERRORS_MAX && self.seen.insert((line, column, message.clone())) {
            self.errors.push(FileError { file: self.file.clone(), line, column, path, message, hint });
        }
    }

    /// Takes over what was found for each variant. What is wrong for every variant is wrong with the file and is told
    /// once; the rest names its variant.
    pub(crate) fn absorb(&mut self, reports: Vec<(&str, Report)>) {
        let mut variants_of: BTreeMap<(usize, usize, String), usize> = BTreeMap::new();
        let total = reports.len();
        for error in reports.iter().flat_map(|(_, report)| &report.errors) {
            *variants_of.entry((error.line, error.column, error.message.clone())).or_default() += 1;
        }
        for (variant, report) in reports {
            for error in report.errors {
                let key = (error.line, error.column, error.message);
                if self.seen.contains(&key) {
                    continue;
                }
                let is_everywhere = variants_of.get(&key) == Some(&total);
                let (line, column, message) = key;
                let message = if is_everywhere { message } else { format!("{message} (in variant `{variant}`)") };
                self.add((line, column), error.path, Problem { message, hint: error.hint });
            }
        }
    }

    /// The errors in the order of the file.
    pub(crate) fn into_errors(mut self) -> Vec<FileError> {
        self.errors.sort_by_key(|error| (error.line, error.column));
        self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_proposed_and_a_far_one_gets_the_list() {
        let cases = [
            ("think_tiem", Some("did you mean `think_time`?")),
            ("thinktime", Some("did you mean `think_time`?")),
            ("xyz", Some("known: `think_time`, `vus`")),
            ("users", Some("known: `think_time`, `vus`")),
        ];
        for (name, hint) in cases {
            assert_eq!(Problem::unknown("key", name, ["think_time", "vus"]).hint.as_deref(), hint, "{name}");
        }
        assert_eq!(Problem::unknown("key", "a", []).hint, None);
    }

    #[test]
    fn a_fault_is_kept_once_and_faults_of_single_variants_name_them() {
        let mut report = Report::new("e.yaml");
        report.add((3, 1), "a".into(), Problem::new("known"));
        let of_variant = |messages: &[&str]| {
            let mut inner = report.sibling();
            messages.iter().for_each(|message| inner.add((3, 1), "a".into(), Problem::new(*message)));
            inner
        };
        let reports = vec![("one", of_variant(&["known", "all"])), ("two", of_variant(&["known", "all", "two only"]))];
        report.absorb(reports);
        let messages: Vec<String> = report.into_errors().into_iter().map(|error| error.message).collect();
        assert_eq!(messages, ["known", "all", "two only (in variant `two`)"]);
    }

    #[test]
    fn a_report_is_bounded() {
        let mut report = Report::new("e.yaml");
        (0..2 * ERRORS_MAX).for_each(|line| report.add((line, 1), String::new(), Problem::new("x")));
        assert_eq!(report.into_errors().len(), ERRORS_MAX);
    }
}
