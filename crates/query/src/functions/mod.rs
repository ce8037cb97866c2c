//! The functions that are known here: one table of scalar ones, one of aggregates.
//!
//! Functions that SQLite does not have begin with `kql_`; the program that runs the SQL registers them.

pub(crate) mod aggregates;
mod bags;
pub(crate) mod call;
mod conversions;
mod scalars;
mod typed;

use crate::error::Fault;
use crate::parser::is_known_function;
use crate::syntax::Name;
use call::Function;

pub(crate) use bags::bag;
pub(crate) use conversions::{json, of_text, text};
pub(crate) use typed::bin_shift;

/// Functions that the lowering itself understands.
const BUILT_IN: [&str; 9] =
    ["toscalar", "materialize", "row_number", "row_cumsum", "prev", "next", "typeof", "column_ifexists", "pack_all"];

pub(crate) fn scalar(name: &str) -> Option<&'static Function> {
    scalars::SCALARS.iter().find(|function| function.name == name)
}

pub(crate) fn aggregate(name: &str) -> Option<&'static aggregates::Aggregate> {
    aggregates::find(name)
}

/// The fault of calling what is no function here.
pub(crate) fn unknown(name: &Name) -> Fault {
    let scalars = scalars::SCALARS.iter().map(|function| function.name);
    let aggregates = aggregates::AGGREGATES.iter().map(|aggregate| aggregate.name);
    if is_known_function(&name.text) {
        let message = format!("the function `{}` is not in the part of KQL that is known here", name.text);
        return Fault::new(name.place, message);
    }
    let fault = Fault::new(name.place, format!("`{}` is no function", name.text));
    fault.near(&name.text, scalars.chain(aggregates).chain(BUILT_IN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_meaning() {
        let scalars = scalars::SCALARS.iter().map(|function| function.name);
        let aggregates = aggregates::AGGREGATES.iter().map(|aggregate| aggregate.name);
        let mut names: Vec<_> = scalars.chain(aggregates).chain(BUILT_IN).collect();
        assert!(names.iter().all(|name| !is_known_function(name)), "a known function is refused as unknown");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
