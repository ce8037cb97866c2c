//! `narrows guard`: the process that outlives a killed run for as long as it takes to end its services.

use crate::Outcome;
use crate::exit::{Exit, Failure};

pub(crate) fn execute() -> Outcome {
    crate::signals::ignore().map_err(|error| Failure::new(format!("cannot ignore signals: {error}")))?;
    narrows_lab::guard::watch(std::io::stdin().lock());
    Ok(Exit::Fine)
}
