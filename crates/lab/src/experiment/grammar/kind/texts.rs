//! Kinds that are texts of some form.

use narrows_model::load::Arrivals;
use serde_json::json;

use super::numbers::POSITIVE_DURATION;
use super::simple::{AS_TEXT, Simple, no_hint};
use crate::experiment::document::tree::Origin;
use crate::experiment::quantity;

/// As many as there may be virtual users, who send the requests of a burst.
const BURST_MAX: u32 = 100_000;

const AS_ANYTHING: &[Origin] = &[Origin::Boolean, Origin::Integer, Origin::Number, Origin::String];
const AS_ANYTHING_OR_NULL: &[Origin] =
    &[Origin::Boolean, Origin::Integer, Origin::Number, Origin::String, Origin::Null];

/// Any text; numbers and booleans count as the text they are written as.
pub(crate) static TEXT: Simple<String> = Simple {
    expected: "a text",
    name: "text",
    written: AS_ANYTHING,
    read: |text| Ok(text.to_owned()),
    hint: no_hint,
    schema: || json!({ "type": ["string", "number", "boolean"] }),
};

/// A text, or nothing.
pub(crate) static TEXT_OR_NOTHING: Simple<String> = Simple {
    expected: "a text, or nothing",
    name: "text, or nothing",
    written: AS_ANYTHING_OR_NULL,
    read: |text| Ok(text.to_owned()),
    hint: no_hint,
    schema: || json!({ "type": ["string", "number", "boolean", "null"] }),
};

/// How the arrivals of an open model are spaced.
pub(crate) static ARRIVALS: Simple<Arrivals> = Simple {
    expected: "`uniform`, `poisson`, `bursts of N`, N from 1 to 100000, or `bursts every` and a length of time",
    name: "`uniform`, `poisson`, `bursts of N` or `bursts every TIME`",
    written: AS_TEXT,
    read: |text| arrivals(text).ok_or(None),
    hint: no_hint,
    schema: || {
        let time = quantity::DURATION_PATTERN.trim_matches(['^', '$']);
        let pattern = format!("^(uniform|poisson|bursts of ([1-9][0-9]{{0,4}}|100000)|bursts every {time})$");
        json!({ "type": "string", "pattern": pattern })
    },
};

fn arrivals(text: &str) -> Option<Arrivals> {
    match text {
        "uniform" => Some(Arrivals::Uniform),
        "poisson" => Some(Arrivals::Poisson),
        _ => {
            if let Some(time) = text.strip_prefix("bursts every ") {
                let time = (POSITIVE_DURATION.read)(time).ok()?;
                return u64::try_from(time.as_nanos()).ok().map(Arrivals::BurstsEvery);
            }
            let digits = text.strip_prefix("bursts of ")?;
            let size =
                digits.starts_with(|first: char| first.is_ascii_digit() && first != '0').then(|| digits.parse().ok());
            size.flatten().filter(|size| *size <= BURST_MAX).map(Arrivals::Bursts)
        }
    }
}
