//! The report of a run, as `narrows report` makes it.

use narrows_report::html;

use crate::address::Parameters;
use crate::error::Refusal;
use crate::frame::Page;
use crate::library::{Entry, Library};

pub(super) fn page(library: &Library, entry: &Entry, _: &Parameters) -> Result<Page, Refusal> {
    let outcome = library.outcome(entry)?;
    Ok(Page { title: entry.name.clone(), run: Some((entry.name.clone(), "")), body: html::report(&outcome) })
}
