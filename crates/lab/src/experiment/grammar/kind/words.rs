//! One of a few words.

use std::fmt;

use serde_json::{Value as Json, json};

use super::{AnyKind, Kind, Refusal};
use crate::experiment::document::tree::Origin;
use crate::experiment::error::{Problem, did_you_mean, listed};

/// One of these words, each with its meaning.
pub(crate) struct Words<T: 'static>(pub(crate) &'static [(&'static str, T)]);

/// One of these words, which mean nothing further here.
#[derive(Debug)]
pub(crate) struct OneOf(pub(crate) &'static [&'static str]);

impl<T> Words<T> {
    fn words(&self) -> Vec<&'static str> {
        self.0.iter().map(|(word, _)| *word).collect()
    }
}

impl<T> fmt::Debug for Words<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.words()).finish()
    }
}

impl<T: Copy + Sync> AnyKind for Words<T> {
    fn expected(&self) -> String {
        expected(&self.words())
    }

    fn name(&self) -> String {
        name(&self.words())
    }

    fn is_written_as(&self, origin: Origin) -> bool {
        origin == Origin::String
    }

    fn accepts(&self, text: &str) -> Result<(), Refusal> {
        self.read(text).map(drop)
    }

    fn with_hint(&self, problem: Problem, text: &str) -> Problem {
        Problem { hint: did_you_mean(text, &self.words()), ..problem }
    }

    fn schema(&self) -> Json {
        schema(&self.words())
    }
}

impl<T: Copy + Sync> Kind for Words<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, Refusal> {
        self.0.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or(None)
    }
}

impl AnyKind for OneOf {
    fn expected(&self) -> String {
        expected(self.0)
    }

    fn name(&self) -> String {
        name(self.0)
    }

    fn is_written_as(&self, origin: Origin) -> bool {
        origin == Origin::String
    }

    fn accepts(&self, text: &str) -> Result<(), Refusal> {
        self.read(text).map(drop)
    }

    fn with_hint(&self, problem: Problem, text: &str) -> Problem {
        Problem { hint: did_you_mean(text, self.0), ..problem }
    }

    fn schema(&self) -> Json {
        schema(self.0)
    }
}

impl Kind for OneOf {
    type Value = &'static str;

    fn read(&self, text: &str) -> Result<&'static str, Refusal> {
        self.0.iter().copied().find(|word| *word == text).ok_or(None)
    }
}

fn expected(words: &[&str]) -> String {
    format!("one of {}", listed(words))
}

/// `` `a`, `b` or `c` ``.
fn name(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

fn schema(words: &[&str]) -> Json {
    json!({ "type": "string", "enum": words })
}
