//! `narrows guard`: the process that outlives a killed run for as long as it takes to end its services.

use crate::Outcome;
use crate::exit::Exit;

pub(crate) fn execute() -> Outcome {
    narrows_lab::guard::watch(std::io::stdin().lock());
    Ok(Exit::Fine)
}
