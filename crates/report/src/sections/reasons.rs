//! Parameters that the experiment file gives a reason for: what stands in for what.

use super::Context;
use crate::section::{Block, Column, Figure, Row, Section, Table};

/// Parameters shown at most.
const PARAMETERS_MAX: usize = 60;
/// Parameters in the terminal at most.
const TERMINAL_MAX: usize = 10;

pub(super) fn section(context: &Context<'_>) -> Section {
    let parameters = &context.outcome.notes.parameters;
    if parameters.is_empty() {
        return Section::default();
    }
    let columns = vec![Column::left("parameter"), Column::left("value"), Column::left("reason")];
    let rows = parameters
        .iter()
        .take(PARAMETERS_MAX)
        .map(|note| Row::new([Figure::new(&note.name), Figure::code(&note.value), Figure::new(&note.reason)]));
    let table = Table::new(columns, rows.collect()).terminal_rows(TERMINAL_MAX);
    let title = "What stands in for what: parameters with a reason";
    Section::new("reasons", "", vec![Block::Fold(title.to_owned(), vec![Block::Table(table)])])
}

#[cfg(test)]
mod tests {
    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture::{self, drones};

    #[test]
    fn parameters_say_why() {
        let mut outcome = drones::outcome();
        outcome.notes.parameters[0].reason = "<script>".to_owned();
        let page = in_page(section, &outcome);
        assert!(page.contains("<th scope=\"row\">throughput</th><td><code>900</code></td><td>&lt;script&gt;</td>"));
        assert_eq!(in_page(section, &fixture::outcome()), "");
        let note = outcome.notes.parameters[0].clone();
        outcome.notes.parameters = vec![note; TERMINAL_MAX + 3];
        let text = in_terminal(section, &outcome, 100);
        assert!(text.ends_with("3 more rows in the page and the JSON\n"), "{text}");
    }
}
