//! A kind without parameters, as a row of data.

use std::fmt;

use serde_json::Value as Json;

use super::{AnyKind, Kind, Refusal};
use crate::experiment::document::tree::Origin;
use crate::experiment::error::Problem;

/// A kind without parameters. `names`, `numbers` and `texts` list those of several sections; a section's own stand in its
/// file.
pub(crate) struct Simple<T> {
    pub(crate) expected: &'static str,
    /// In tables of the reference.
    pub(crate) name: &'static str,
    /// The YAML types it may be written as.
    pub(crate) written: &'static [Origin],
    pub(crate) read: fn(&str) -> Result<T, Refusal>,
    pub(crate) hint: fn(&str) -> Option<String>,
    pub(crate) schema: fn() -> Json,
}

/// Written as text only.
pub(crate) const AS_TEXT: &[Origin] = &[Origin::String];

/// No hint beyond what was expected.
pub(crate) fn no_hint(_: &str) -> Option<String> {
    None
}

impl<T> fmt::Debug for Simple<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<T> AnyKind for Simple<T> {
    fn expected(&self) -> String {
        self.expected.to_owned()
    }

    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn is_written_as(&self, origin: Origin) -> bool {
        self.written.contains(&origin)
    }

    fn accepts(&self, text: &str) -> Result<(), Refusal> {
        self.read(text).map(drop)
    }

    fn with_hint(&self, problem: Problem, text: &str) -> Problem {
        Problem { hint: (self.hint)(text), ..problem }
    }

    fn schema(&self) -> Json {
        (self.schema)()
    }
}

impl<T> Kind for Simple<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, Refusal> {
        (self.read)(text)
    }
}
