//! Functions defined in the query. Each call is replaced by the function's body.
//!
//! A body sees the `let`s before the function, its parameters and its own `let`s, and only the columns of its own
//! tables. It cannot name itself, so every expansion ends. The total number of expansions is limited.

use std::rc::Rc;

use super::{Binding, Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::sql::{Constant, Relation, Value};
use crate::syntax::{Expression, Function, Name, Parameter, ParameterKind, Shape};
use crate::types::Type;

/// Maximum number of calls in a query after expansion.
const CALLS_MAX: usize = 2_000;

/// A function and the names it can see.
#[derive(Clone)]
pub(super) struct BoundFunction {
    function: Rc<Function>,
    /// Number of `let`s before it.
    visible: usize,
    pub(super) is_table: bool,
}

impl Lowering<'_> {
    /// A function as defined by `let`. Its body decides whether it returns a table.
    pub(super) fn bound_function(&mut self, function: &Rc<Function>) -> BoundFunction {
        let visible = self.lets.len();
        let stand_in = |is_table: bool| match is_table {
            true => Binding::Table(Relation::default()),
            false => Binding::Value(Value::null(Type::Dynamic)),
        };
        for parameter in &function.parameters {
            let is_table = matches!(parameter.kind, ParameterKind::Table(_));
            self.lets.push((parameter.name.text.clone(), stand_in(is_table)));
        }
        for it in &function.body.lets {
            let binding = match &it.value.kind {
                Shape::Function(inner) => Binding::Function(self.bound_function(inner)),
                _ => stand_in(self.is_table(&it.value)),
            };
            self.lets.push((it.name.text.clone(), binding));
        }
        let is_table = self.is_table(&function.body.body);
        self.lets.truncate(visible);
        BoundFunction { function: Rc::clone(function), visible, is_table }
    }

    pub(super) fn call_of_value(
        &mut self,
        function: &BoundFunction,
        name: &Name,
        arguments: &[Expression],
        scope: Scope<'_>,
    ) -> Result<Value, Fault> {
        let bound = self.bound_arguments(function, name, arguments, None, scope)?;
        self.expanded(function, name, bound, |lowering, body| lowering.value(body, Scope::Nothing))
    }

    /// A call that returns a table. The table before an `invoke` is its first argument.
    pub(super) fn call_of_table(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        first: Option<Relation>,
    ) -> Result<Relation, Fault> {
        let Some(Binding::Function(function)) = self.binding(&name.text) else { return Err(self.no_function(name)) };
        let function = function.clone();
        let bound = self.bound_arguments(&function, name, arguments, first, Scope::Nothing)?;
        self.expanded(&function, name, bound, |lowering, body| lowering.table(body))
    }

    /// The error for calling something that is not a function.
    pub(super) fn no_function(&self, name: &Name) -> Fault {
        if self.calling.contains(&name.text) {
            let message = format!("the function `{}` calls itself, which KQL does not allow", name.text);
            return Fault::new(name.place, message);
        }
        let functions = self.lets.iter().filter(|(_, binding)| matches!(binding, Binding::Function(_)));
        crate::functions::unknown(name).near(&name.text, functions.map(|(name, _)| name.as_str()))
    }

    /// Reads the body of a function, with its parameters bound to the arguments.
    fn expanded<T>(
        &mut self,
        function: &BoundFunction,
        name: &Name,
        bound: Vec<(String, Binding)>,
        read: impl FnOnce(&mut Self, &Expression) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.calls += 1;
        if self.calls > CALLS_MAX {
            let message = format!("this query comes to more than {CALLS_MAX} calls of its own functions");
            return Err(Fault::new(name.place, message));
        }
        let unseen = self.lets.split_off(function.visible);
        let outer_lets = std::mem::replace(&mut self.outer_lets, function.visible);
        self.lets.extend(bound);
        self.calling.push(name.text.clone());
        let body = &function.function.body;
        let result = body.lets.iter().try_for_each(|it| self.bind(it, 2)).and_then(|()| read(self, &body.body));
        self.calling.pop();
        self.outer_lets = outer_lets;
        self.lets.truncate(function.visible);
        self.lets.extend(unseen);
        result
    }

    fn bound_arguments(
        &mut self,
        function: &BoundFunction,
        name: &Name,
        arguments: &[Expression],
        first: Option<Relation>,
        scope: Scope<'_>,
    ) -> Result<Vec<(String, Binding)>, Fault> {
        let parameters = &function.function.parameters;
        let given = arguments.len() + usize::from(first.is_some());
        let least = parameters.iter().filter(|it| it.default.is_none()).count();
        if given > parameters.len() || given < least {
            let wanted =
                if least == parameters.len() { least.to_string() } else { format!("{least} to {}", parameters.len()) };
            let message = format!("`{}` takes {wanted} values and was given {given}", name.text);
            return Err(Fault::new(name.place, message));
        }
        let mut bound = Vec::new();
        let mut parameters = parameters.iter();
        if let (Some(table), Some(parameter)) = (first, parameters.clone().next()) {
            parameters.next();
            bound.push((parameter.name.text.clone(), table_for(parameter, table, name.place)?));
        }
        let mut arguments = arguments.iter();
        for parameter in parameters {
            let Some(argument) = arguments.next().or(parameter.default.as_ref()) else { continue };
            let binding = match &parameter.kind {
                ParameterKind::Table(_) => table_for(parameter, self.table(argument)?, argument.place)?,
                ParameterKind::Value(kind) => {
                    let value = self.value(argument, scope)?;
                    Binding::Value(value_for(parameter, *kind, value, argument.place)?)
                }
            };
            bound.push((parameter.name.text.clone(), binding));
        }
        Ok(bound)
    }
}

fn value_for(parameter: &Parameter, kind: Type, value: Value, place: TextRange) -> Result<Value, Fault> {
    match (value.kind, &value.constant) {
        (given, _) if given == kind => Ok(value),
        (_, Some(Constant::Null)) => Ok(Value::null(kind)),
        (Type::Long, Some(Constant::Whole(whole))) if kind == Type::Real => Ok(Value::real(*whole as f64)),
        (Type::Long, _) if kind == Type::Real => Ok(Value::new(kind, format!("CAST({} AS REAL)", value.sql))),
        (given, _) => {
            let (name, wanted, given) = (&parameter.name.text, kind.word(), given.word());
            Err(Fault::new(place, format!("the parameter `{name}` is a {wanted}, not a {given}"))
                .hint(format!("`to{wanted}(…)` converts it")))
        }
    }
}

fn table_for(parameter: &Parameter, table: Relation, place: TextRange) -> Result<Binding, Fault> {
    let ParameterKind::Table(columns) = &parameter.kind else {
        let message = format!("the parameter `{}` is a value and not a table", parameter.name.text);
        return Err(Fault::new(place, message));
    };
    for (name, kind) in columns {
        if table.column(&name.text).is_none_or(|column| column.value.kind != *kind) {
            let message = format!("this table has no column `{}` of type {}", name.text, kind.word());
            return Err(Fault::new(place, message));
        }
    }
    Ok(Binding::Table(table))
}
