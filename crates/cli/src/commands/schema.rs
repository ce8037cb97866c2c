//! `narrows schema`: the JSON Schema of experiment files, for editors.

use crate::Outcome;

pub(crate) fn execute() -> Outcome {
    super::print_json(narrows_lab::language().json_schema())
}
