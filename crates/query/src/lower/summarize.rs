//! `summarize`: the columns of `by` first, then the aggregates, each under the name that KQL gives it.

use super::names::{implied_name, numbered};
use super::steps::not_dynamic;
use super::{Lowering, Scope};
use crate::error::{Fault, TextRange};
use crate::functions::aggregates::{self, Aggregate, Form};
use crate::sql::{Column, Relation, Value};
use crate::syntax::{Expression, Item, Name, Shape};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn summarized(
        &mut self,
        relation: Relation,
        values: &[Item],
        by: &[Item],
        place: TextRange,
    ) -> Result<Relation, Fault> {
        let relation = self.without_limit(relation, place)?;
        let mut result = Relation {
            columns: Vec::new(),
            order: Vec::new(),
            is_costly: true,
            is_serialized: false,
            name: None,
            ..relation.clone()
        };
        let mut unnamed = 0;
        for item in by {
            let value = self.value(&item.value, Scope::Rows(&relation))?;
            self.no_window(item.value.place)?;
            not_dynamic(&value, item.value.place)?;
            let name = self.result_name(&result, item, 0, implied_name(&item.value), &mut unnamed)?;
            result.columns.push(Column { name, value });
        }
        let groups = result.columns.len();
        self.has_aggregate = false;
        for item in values {
            for (position, column) in self.summary(item, &relation, groups, &result)?.into_iter().enumerate() {
                let implied = Some(column.name).filter(|name| !name.is_empty());
                let name = self.result_name(&result, item, position, implied, &mut unnamed)?;
                result.columns.push(Column { name, value: column.value });
            }
        }
        if groups == 0 && !self.has_aggregate {
            // Values that look at no row: one row of them, as an aggregate would give.
            result = Relation { columns: result.columns, is_costly: true, ..Relation::default() };
        }
        let positions: Vec<_> = (1..=groups).map(|position| position.to_string()).collect();
        let grouping = if groups == 0 { String::new() } else { format!(" GROUP BY {}", positions.join(", ")) };
        self.grouped(&result, &grouping, place)
    }

    /// Closes a table under GROUP BY.
    pub(super) fn grouped(&mut self, relation: &Relation, grouping: &str, place: TextRange) -> Result<Relation, Fault> {
        let alias = self.alias();
        let names = relation.aliases();
        let select: Vec<_> = relation.columns.iter().zip(&names).collect();
        let texts: Vec<_> =
            select.iter().map(|(it, name)| format!("{} AS {}", it.value.sql, crate::sql::named(name))).collect();
        let text = relation.select(&texts, grouping);
        super::check_length(&text, place)?;
        let columns = select.into_iter().map(|(column, stored)| {
            let value = Value::new(column.value.kind, format!("{alias}.{}", crate::sql::named(stored)));
            Column { name: column.name.clone(), value }
        });
        Ok(Relation {
            columns: columns.collect(),
            from: Some(format!("({text}) AS {alias}")),
            is_costly: true,
            ..Relation::default()
        })
    }

    /// The columns that one item makes. Several when it is a lone call of an aggregate that gives several.
    fn summary(
        &mut self,
        item: &Item,
        relation: &Relation,
        groups: usize,
        result: &Relation,
    ) -> Result<Vec<Column>, Fault> {
        let columns = match &item.value.kind {
            Shape::Call(name, arguments) if aggregates::find(&name.text).is_some() => {
                let grouped: Vec<&str> = result.columns[..groups].iter().map(|column| column.name.as_str()).collect();
                self.columns_of(name, arguments, relation, &grouped)?
            }
            _ => {
                let value = self.value(&item.value, Scope::Summary(relation))?;
                vec![Column { name: String::new(), value }]
            }
        };
        match item.names.get(columns.len()) {
            Some(extra) => Err(Fault::new(
                extra.place,
                format!("there are {} names for {} columns", item.names.len(), columns.len()),
            )),
            None => Ok(columns),
        }
    }

    fn result_name(
        &self,
        result: &Relation,
        item: &Item,
        position: usize,
        implied: Option<String>,
        unnamed: &mut usize,
    ) -> Result<String, Fault> {
        match item.names.get(position) {
            Some(name) if result.column(&name.text).is_some() => {
                Err(Fault::new(name.place, format!("there are two columns `{}`", name.text)))
            }
            Some(name) => Ok(name.text.clone()),
            None => Ok(match implied {
                Some(name) => result.free_name(&name),
                None => numbered(result, unnamed),
            }),
        }
    }

    /// The columns of an aggregate that stands within an expression.
    pub(super) fn aggregate(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        relation: &Relation,
    ) -> Result<Vec<Column>, Fault> {
        self.columns_of(name, arguments, relation, &[])
    }

    fn columns_of(
        &mut self,
        name: &Name,
        arguments: &[Expression],
        relation: &Relation,
        grouped: &[&str],
    ) -> Result<Vec<Column>, Fault> {
        self.has_aggregate = true;
        let Some(aggregate) = aggregates::find(&name.text) else { return Err(crate::functions::unknown(name)) };
        let arguments = self.without_accuracy(aggregate, arguments)?;
        let (least, most) = aggregate.form.counts();
        if arguments.len() < least || arguments.len() > most {
            return Err(Fault::new(name.place, format!("`{}` takes {}", name.text, aggregate.form.takes())));
        }
        match aggregate.form {
            Form::Extreme => self.extreme(aggregate, arguments, relation, grouped),
            Form::Any => self.any(aggregate, arguments, relation, grouped),
            Form::Percentiles | Form::WeightedPercentiles => self.percentiles(aggregate, name, arguments, relation),
            _ => self.plain(aggregate, arguments, relation).map(|column| vec![column]),
        }
    }

    /// Arguments of `dcount` without the accuracy that may stand last: here it always counts exactly.
    fn without_accuracy<'a>(
        &mut self,
        aggregate: &Aggregate,
        arguments: &'a [Expression],
    ) -> Result<&'a [Expression], Fault> {
        let takes = aggregate.form.counts().1;
        let Some((accuracy, rest)) = arguments.split_last() else { return Ok(arguments) };
        if aggregate.sql != "dcount" || arguments.len() != takes + 1 || !aggregate.name.starts_with("dcount") {
            return Ok(arguments);
        }
        match self.value(accuracy, Scope::Nothing)?.as_whole() {
            Some(0..=4) => Ok(rest),
            _ => Err(Fault::new(accuracy.place, "an accuracy is a constant from 0 to 4")),
        }
    }

    fn operand(&mut self, expression: &Expression, relation: &Relation) -> Result<Value, Fault> {
        let value = self.value(expression, Scope::Rows(relation))?;
        self.no_window(expression.place)?;
        Ok(value)
    }

    fn plain(&mut self, aggregate: &Aggregate, arguments: &[Expression], relation: &Relation) -> Result<Column, Fault> {
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.operand(argument, relation)?);
        }
        let places: Vec<TextRange> = arguments.iter().map(|it| it.place).collect();
        let order = if relation.order.is_empty() { None } else { Some(relation.keys()) };
        let value = aggregate.value(&values, &places, order.as_deref())?;
        let subject = arguments.first().and_then(implied_name).unwrap_or_default();
        Ok(Column { name: format!("{}_{subject}", aggregate.prefix), value })
    }

    /// `percentile(x, 95)`, `percentiles(x, 50, 95)`, and with weights `percentilew(x, weight, 95)`.
    fn percentiles(
        &mut self,
        aggregate: &Aggregate,
        name: &Name,
        arguments: &[Expression],
        relation: &Relation,
    ) -> Result<Vec<Column>, Fault> {
        let weights = usize::from(aggregate.form == Form::WeightedPercentiles);
        let (given, shares) = arguments.split_at(1 + weights);
        if let ("percentile" | "percentilew", Some(extra)) = (name.text.as_str(), shares.get(1)) {
            let fault = Fault::new(extra.place, format!("`{}` takes one percentage", name.text));
            return Err(fault.hint(format!("`{}` takes several", name.text.replace("percentile", "percentiles"))));
        }
        let value = self.operand(&given[0], relation)?;
        if !(value.kind.is_number() || matches!(value.kind, Type::Datetime | Type::Timespan)) {
            let message = format!("`{}` is not defined for a {}", name.text, value.kind.word());
            return Err(Fault::new(given[0].place, message));
        }
        let mut sql = format!("{}({}", aggregate.sql, value.sql);
        if let Some(weight) = given.get(1) {
            let weighs = self.operand(weight, relation)?;
            if weighs.kind != Type::Long {
                return Err(Fault::new(weight.place, format!("a weight is a long, not a {}", weighs.kind.word())));
            }
            sql = format!("{sql}, {}", weighs.sql);
        }
        let subject = implied_name(&given[0]).unwrap_or_default();
        let mut columns = Vec::new();
        for share in shares {
            let percent = self.value(share, Scope::Nothing)?;
            let number = aggregates::percent(&percent)
                .ok_or_else(|| Fault::new(share.place, "a percentage is a constant number from 0 to 100"))?;
            let name = format!("percentile_{subject}_{}", number.replace('.', "_"));
            columns.push(Column { name, value: Value::new(value.kind, format!("{sql}, {})", percent.sql)) });
        }
        Ok(columns)
    }

    /// `arg_max(by, …)`: the values of the row in which `by` is greatest.
    fn extreme(
        &mut self,
        aggregate: &Aggregate,
        arguments: &[Expression],
        relation: &Relation,
        grouped: &[&str],
    ) -> Result<Vec<Column>, Fault> {
        let [by, rest @ ..] = arguments else { return Ok(Vec::new()) };
        let value = self.operand(by, relation)?;
        not_dynamic(&value, by.place)?;
        let picked = |kind: Type, sql: &str| Value::new(kind, format!("{}({}, {sql})", aggregate.sql, value.sql));
        let plain = if aggregate.sql == "arg_max" { "max" } else { "min" };
        let subject = implied_name(by).unwrap_or_default();
        let name = if subject.is_empty() { format!("{plain}_") } else { subject.clone() };
        let mut columns =
            vec![Column { name: name.clone(), value: Value::new(value.kind, format!("{plain}({})", value.sql)) }];
        for (position, argument) in rest.iter().enumerate() {
            if matches!(argument.kind, Shape::Star) {
                let others =
                    relation.columns.iter().filter(|it| it.name != name && !grouped.contains(&it.name.as_str()));
                columns.extend(
                    others.map(|it| Column { name: it.name.clone(), value: picked(it.value.kind, &it.value.sql) }),
                );
                continue;
            }
            let other = self.operand(argument, relation)?;
            let value = picked(other.kind, &other.sql);
            let name = implied_name(argument).unwrap_or_else(|| format!("{plain}_{subject}_arg{}", position + 1));
            columns.push(Column { name, value });
        }
        Ok(columns)
    }

    /// `take_any(x)`, `take_any(*)`: the value of some row, and one that is there if any is.
    fn any(
        &mut self,
        aggregate: &Aggregate,
        arguments: &[Expression],
        relation: &Relation,
        grouped: &[&str],
    ) -> Result<Vec<Column>, Fault> {
        if let [Expression { kind: Shape::Star, .. }] = arguments {
            let others = relation.columns.iter().filter(|it| !grouped.contains(&it.name.as_str()));
            return Ok(others.cloned().collect());
        }
        let mut columns = Vec::new();
        for (position, argument) in arguments.iter().enumerate() {
            let value = self.operand(argument, relation)?;
            let name = match implied_name(argument) {
                Some(subject) if aggregate.prefix.is_empty() => subject,
                Some(subject) => format!("{}_{subject}", aggregate.prefix),
                None => format!("any_arg{position}"),
            };
            // Bare columns are of one row; a lone value may as well be one that is there.
            let sql = if arguments.len() == 1 { format!("max({})", value.sql) } else { value.sql };
            columns.push(Column { name, value: Value::new(value.kind, sql) });
        }
        Ok(columns)
    }
}
