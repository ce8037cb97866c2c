//! Meaning of `{{name}}` at one place of a scenario: data, or a variable that an earlier step extracts.

use std::collections::BTreeMap;

use narrows_model::load::Segment;

use super::data::Sources;
use crate::experiment::document::at::At;
use crate::experiment::document::tree::Form;
use crate::experiment::error::{Problem, Report, shortened};

/// Most variables of a scenario: what the load engine allows.
const VARIABLES_MAX: usize = 256;

/// The variables of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Variables<'a> {
    by_name: BTreeMap<&'a str, Variable>,
    /// Whether some may be there that cannot be read.
    is_unknown: bool,
}

#[derive(Debug)]
struct Variable {
    index: usize,
    /// Every step that extracts it: flow and position in it.
    extracted_by: Vec<(usize, usize)>,
}

impl<'a> Variables<'a> {
    /// Writes down what a step extracts. Names that data has are reported.
    pub(crate) fn add(&mut self, extract: &'a At<'a>, at: (usize, usize), sources: &Sources, report: &mut Report) {
        self.is_unknown |= !matches!(extract.node.form, Form::Map(_));
        for (name, variable) in extract.entries() {
            if sources.has(name) {
                let problem = Problem::new(format!("`{name}` is the name of data as well"));
                report.add(variable.key_place(), variable.path(), problem.hint("give one of them another name"));
            }
            let index = self.by_name.len();
            if index >= VARIABLES_MAX && !self.by_name.contains_key(name) {
                let problem = Problem::new(format!("expected at most {VARIABLES_MAX} variables in a scenario"));
                report.add(variable.key_place(), extract.path(), problem);
                return;
            }
            let variable = self.by_name.entry(name).or_insert(Variable { index, extracted_by: Vec::new() });
            variable.extracted_by.push(at);
        }
    }

    /// The number of a variable.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|variable| variable.index)
    }
}

/// The names that a request may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestNames<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) variables: &'a Variables<'a>,
    /// The flow and the position in it of the step whose request it is.
    pub(crate) at: (usize, usize),
}

impl RequestNames<'_> {
    /// Meaning of `{{name}}` or `{{name.column}}`; `None` if that is something whose fault was reported.
    pub(crate) fn find(&self, name: &str, column: Option<&str>) -> Result<Option<Segment>, Problem> {
        match self.variables.by_name.get(name) {
            Some(variable) if !self.sources.has(name) => self.variable(name, column, variable).map(Some),
            None if self.variables.is_unknown && !self.sources.has(name) => Ok(None),
            _ => {
                let variables: Vec<&str> = self.variables.by_name.keys().copied().collect();
                let field = self.sources.find(name, column, &variables)?;
                Ok(field.map(|field| Segment::Field { source: field.source, column: field.column }))
            }
        }
    }

    fn variable(&self, name: &str, column: Option<&str>, variable: &Variable) -> Result<Segment, Problem> {
        if let Some(column) = column {
            let problem = Problem::new(format!(
                "`{name}` is extracted and has no columns, so `{name}.{}` does not exist",
                shortened(column)
            ));
            return Err(problem.hint(format!("write `{{{{{name}}}}}`")));
        }
        let (flow, position) = self.at;
        let in_flow = || variable.extracted_by.iter().filter(|(other, _)| *other == flow);
        if in_flow().any(|(_, other)| *other < position) {
            return Ok(Segment::Variable(variable.index));
        }
        let problem = match in_flow().next() {
            Some(_) => "is used before it is extracted",
            None => "is extracted in another flow only",
        };
        Err(Problem::new(format!("`{name}` {problem}"))
            .hint("a step can use only values that earlier steps of its flow extracted"))
    }
}
