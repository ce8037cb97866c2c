//! A whole number between two bounds.

use std::fmt;
use std::marker::PhantomData;

use serde_json::{Value as Json, json};

use super::{AnyKind, Kind, Refusal};
use crate::experiment::document::tree::Origin;
use crate::experiment::error::Problem;

/// A whole number of 0 or more, from the first to the second, both included.
pub(crate) struct Whole<T> {
    least: u64,
    most: u64,
    value: PhantomData<fn() -> T>,
}

impl<T> Whole<T> {
    /// Numbers from `least` to `most`. It does not compile where `most` does not fit into the unsigned integer `T`.
    pub(crate) const fn new(least: u64, most: u64) -> Self {
        let bits = 8 * size_of::<T>() as u32;
        assert!(least <= most && (bits >= u64::BITS || most >> bits == 0));
        Self { least, most, value: PhantomData }
    }
}

impl<T> fmt::Debug for Whole<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Whole({}..={})", self.least, self.most)
    }
}

impl<T: TryFrom<u64>> AnyKind for Whole<T> {
    fn expected(&self) -> String {
        match self.most {
            u64::MAX => format!("a whole number of {} or more", self.least),
            most => format!("a whole number from {} to {most}", self.least),
        }
    }

    fn name(&self) -> String {
        match self.most {
            u64::MAX => format!("whole number of {} or more", grouped(self.least)),
            most => format!("{} to {}", grouped(self.least), grouped(most)),
        }
    }

    fn is_written_as(&self, origin: Origin) -> bool {
        origin == Origin::Integer
    }

    fn accepts(&self, text: &str) -> Result<(), Refusal> {
        self.read(text).map(drop)
    }

    fn with_hint(&self, problem: Problem, _: &str) -> Problem {
        problem
    }

    fn schema(&self) -> Json {
        match self.most {
            u64::MAX => json!({ "type": "integer", "minimum": self.least }),
            most => json!({ "type": "integer", "minimum": self.least, "maximum": most }),
        }
    }
}

impl<T: TryFrom<u64>> Kind for Whole<T> {
    type Value = T;

    fn read(&self, text: &str) -> Result<T, Refusal> {
        let number: Option<u64> = text.parse().ok().filter(|number| (self.least..=self.most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or(None)
    }
}

/// A number with a comma after every three digits: 1,000,000.
fn grouped(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}
