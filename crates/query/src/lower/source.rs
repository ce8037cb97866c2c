//! Where a table comes from: its name, a pipeline, `materialize`, `print`, `datatable`, `range`.

use super::{Binding, COLUMNS_MAX, Lowering, Scope, check_length};
use crate::catalog::{self, FieldSource};
use crate::error::{Fault, TextRange};
use crate::functions::json;
use crate::sql::{Column, Constant, Relation, Value, named, quoted};
use crate::syntax::{Expression, Item, Name, Pipeline, Shape, Source};
use crate::types::Type;

impl Lowering<'_> {
    /// Whether an expression is a table and not a value.
    pub(super) fn is_table(&self, expression: &Expression) -> bool {
        match &expression.kind {
            Shape::Pipeline(_) => true,
            Shape::Call(name, _) => {
                let is_table = |binding: &Binding| matches!(binding, Binding::Function(it) if it.is_table);
                name.text == "materialize" || self.binding(&name.text).is_some_and(is_table)
            }
            Shape::Name(name) => self.is_known_table(name),
            _ => false,
        }
    }

    pub(super) fn is_known_table(&self, name: &str) -> bool {
        match self.binding(name) {
            Some(binding) => matches!(binding, Binding::Table(_)),
            None => catalog::table(name).is_some(),
        }
    }

    pub(super) fn table(&mut self, expression: &Expression) -> Result<Relation, Fault> {
        match &expression.kind {
            Shape::Name(name) => self.table_named(name, expression.place),
            Shape::Pipeline(pipeline) => self.pipeline(pipeline, expression.place),
            Shape::Call(name, arguments) if name.text == "materialize" => match arguments.as_slice() {
                [table] => {
                    let relation = self.table(table)?;
                    self.share(relation, table.place)
                }
                _ => Err(Fault::new(name.place, "`materialize` takes one table")),
            },
            Shape::Call(name, arguments) if self.is_table(expression) => self.call_of_table(name, arguments, None),
            _ => Err(Fault::new(expression.place, "this is a value, where a table was expected")),
        }
    }

    pub(super) fn table_named(&mut self, name: &str, place: TextRange) -> Result<Relation, Fault> {
        match self.binding(name) {
            Some(Binding::Table(relation)) => return Ok(relation.clone()),
            Some(Binding::Function(function)) if function.is_table => {
                let name = Name { text: name.to_owned(), place };
                return self.call_of_table(&name, &[], None);
            }
            Some(Binding::Value(_) | Binding::Function(_)) => {
                return Err(Fault::new(place, format!("`{name}` is a value, where a table was expected")));
            }
            None => {}
        }
        let Some(table) = catalog::table(name) else { return Err(self.unknown_table(name, place)) };
        let alias = self.alias();
        let columns = table.fields.iter().map(|field| Column {
            name: field.name.clone(),
            value: Value::new(
                field.kind,
                match field.source {
                    FieldSource::Column(column) => format!("{alias}.{}", named(column)),
                    FieldSource::Expression { sql, .. } => sql.replace("{}", &alias),
                    FieldSource::Text(text) => quoted(text),
                    FieldSource::Nothing => "NULL".to_owned(),
                },
            ),
        });
        let rows = table.view.map_or_else(|| "(SELECT 0 WHERE 0)".to_owned(), named);
        Ok(Relation {
            columns: columns.collect(),
            from: Some(format!("{rows} AS {alias}")),
            name: Some(name.to_owned()),
            ..Relation::default()
        })
    }

    fn unknown_table(&self, name: &str, place: TextRange) -> Fault {
        let fault = Fault::new(place, format!("there is no table `{name}`"));
        let lets = self.lets.iter().filter(|(_, binding)| matches!(binding, Binding::Table(_)));
        let known = catalog::all().iter().map(|table| table.name);
        let fault = fault.near(name, known.clone().chain(lets.map(|(name, _)| name.as_str())));
        match fault.hint {
            Some(_) => fault,
            None => {
                let names: Vec<_> = known.filter(|name| !catalog::is_workspace(name)).collect();
                fault.hint(format!("tables are {}", names.join(", ")))
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, place: TextRange) -> Result<Relation, Fault> {
        let mut relation = match &pipeline.source {
            Source::Expression(expression) => self.table(expression)?,
            Source::Union(union) => self.union(union, None, place)?,
            Source::Print(items) => self.print(items)?,
            Source::Datatable(columns, cells, place) => self.datatable(columns, cells, *place)?,
            Source::Range(name, bounds) => self.range(name, bounds)?,
        };
        for operator in &pipeline.operators {
            relation = Relation { name: None, ..self.step(relation, operator)? };
            if relation.columns.len() > COLUMNS_MAX {
                return Err(Fault::new(operator.place, format!("this table has more than {COLUMNS_MAX} columns")));
            }
        }
        Ok(relation)
    }

    fn print(&mut self, items: &[Item]) -> Result<Relation, Fault> {
        let mut relation = Relation::default();
        for (position, item) in items.iter().enumerate() {
            let value = self.value(&item.value, Scope::Nothing)?;
            let name = match item.names.as_slice() {
                [] => format!("print_{position}"),
                [name] => name.text.clone(),
                [_, second, ..] => return Err(Fault::new(second.place, "one value gets one name here")),
            };
            if relation.column(&name).is_some() {
                return Err(Fault::new(item.value.place, format!("there are two columns `{name}`")));
            }
            relation.columns.push(Column { name, value });
        }
        Ok(relation)
    }

    fn datatable(
        &mut self,
        columns: &[(Name, Type)],
        cells: &[Expression],
        place: TextRange,
    ) -> Result<Relation, Fault> {
        if !cells.len().is_multiple_of(columns.len()) {
            let message = format!("{} values do not fill rows of {} columns", cells.len(), columns.len());
            return Err(Fault::new(place, message));
        }
        let alias = self.alias();
        let mut relation = Relation::default();
        for (position, (name, kind)) in columns.iter().enumerate() {
            if relation.column(&name.text).is_some() {
                return Err(Fault::new(name.place, format!("there are two columns `{}`", name.text)));
            }
            let value = Value::new(*kind, format!("{alias}.column{}", position + 1));
            relation.columns.push(Column { name: name.text.clone(), value });
        }
        let mut rows = Vec::new();
        for row in cells.chunks(columns.len()) {
            let values = row.iter().zip(columns).map(|(cell, (_, kind))| self.cell(cell, *kind));
            rows.push(format!("({})", values.collect::<Result<Vec<_>, _>>()?.join(", ")));
        }
        let no_rows = || {
            let nulls = (1..=columns.len()).map(|position| format!("NULL AS column{position}"));
            format!("SELECT {} WHERE 0", nulls.collect::<Vec<_>>().join(", "))
        };
        let text = if rows.is_empty() { no_rows() } else { format!("VALUES {}", rows.join(", ")) };
        check_length(&text, place)?;
        relation.from = Some(format!("({text}) AS {alias}"));
        Ok(relation)
    }

    /// A cell of `datatable`, as its column's type has it.
    fn cell(&mut self, cell: &Expression, kind: Type) -> Result<String, Fault> {
        let value = self.value(cell, Scope::Nothing)?;
        if value.is_null() {
            return Ok(value.sql);
        }
        match (value.kind, kind) {
            (from, to) if from == to => Ok(value.sql),
            (Type::Long, Type::Real) => Ok(format!("CAST({} AS REAL)", value.sql)),
            (_, Type::Dynamic) => Ok(json(&value)),
            (from, to) => {
                let message = format!("this is a {}, in a column of {}", from.word(), to.word());
                Err(Fault::new(cell.place, message).hint(format!("write it as `{}(…)`", to.word())))
            }
        }
    }

    fn range(&mut self, name: &Name, bounds: &[Expression; 3]) -> Result<Relation, Fault> {
        let [from, to, step] = bounds;
        let (from, to) = (self.value(from, Scope::Nothing)?, self.value(to, Scope::Nothing)?);
        let by = self.value(step, Scope::Nothing)?;
        let kind = match (from.kind, to.kind, by.kind) {
            (Type::Datetime, Type::Datetime, Type::Timespan) => Type::Datetime,
            (Type::Timespan, Type::Timespan, Type::Timespan) => Type::Timespan,
            (a, b, c) if a.is_number() && b.is_number() && c.is_number() => {
                if [a, b, c].contains(&Type::Real) {
                    Type::Real
                } else {
                    Type::Long
                }
            }
            (a, b, c) => {
                let words = [a, b, c].map(Type::word);
                return Err(Fault::new(
                    step.place,
                    format!("no range goes from {} to {} by {}", words[0], words[1], words[2]),
                ));
            }
        };
        let is_down = match by.constant {
            Some(Constant::Whole(by)) if by != 0 => by < 0,
            Some(Constant::Real(by)) if by != 0.0 => by < 0.0,
            _ => return Err(Fault::new(step.place, "the step of a range is a constant and not 0")),
        };
        let end = if is_down { ">=" } else { "<=" };
        let (shared, alias) = (format!("c{}", self.shared.len() + 1), self.alias());
        let (first, last, by) = (&from.sql, &to.sql, &by.sql);
        self.shared.push(format!(
            "{shared}(v) AS (SELECT {first} WHERE {first} {end} {last} UNION ALL SELECT v + {by} FROM {shared} WHERE v + {by} {end} {last})"
        ));
        let value = Value::new(kind, format!("{alias}.v"));
        let columns = vec![Column { name: name.text.clone(), value }];
        Ok(Relation { columns, from: Some(format!("{shared} AS {alias}")), is_costly: true, ..Relation::default() })
    }
}
