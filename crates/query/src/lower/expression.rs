//! Expressions: literals, names, arithmetic. Comparisons, JSON and calls are in files of their own.

use super::window::is_window;
use super::{Binding, EXPRESSION_BYTES_MAX, Lowering, Scope};
use crate::catalog;
use crate::error::{Fault, TextRange};
use crate::functions;
use crate::functions::call::{Call, Meaning};
use crate::sql::{Constant, Value, quoted};
use crate::syntax::{Binary, Expression, Literal, Logic, Name, Shape};
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn value(&mut self, expression: &Expression, scope: Scope<'_>) -> Result<Value, Fault> {
        let value = self.value_of(expression, scope)?;
        match value.sql.len() <= EXPRESSION_BYTES_MAX {
            true => Ok(value),
            false => Err(Fault::new(expression.place, format!("this grows over {EXPRESSION_BYTES_MAX} bytes of SQL"))
                .hint("names and functions in it stand for more than they look")),
        }
    }

    fn value_of(&mut self, expression: &Expression, scope: Scope<'_>) -> Result<Value, Fault> {
        let place = expression.place;
        match &expression.kind {
            Shape::Literal(literal) => Ok(literal_value(literal)),
            Shape::Name(name) => self.named_value(name, place, scope),
            Shape::Star => Err(Fault::new(place, "`*` stands for all columns and is no value here")),
            Shape::Member(value, key) => self.member(value, &key.text, place, scope),
            Shape::Index(value, index) => self.index(value, index, scope),
            Shape::Call(name, arguments) => self.call(name, arguments, scope),
            Shape::Negative(value) => self.negative(value, scope),
            Shape::Binary(binary, left, right) => match binary {
                Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Modulo => {
                    let (left, right) = (self.value(left, scope)?, self.value(right, scope)?);
                    arithmetic(*binary, &left, &right, place)
                }
                _ => self.compared(*binary, left, right, scope),
            },
            Shape::All(logic, terms) => self.all(*logic, terms, scope),
            Shape::Matches(operator, left, right, is_negated) => {
                self.matches(*operator, left, right, *is_negated, scope)
            }
            Shape::OneOf(members, value, list, is_negated) => self.one_of(*members, value, list, *is_negated, scope),
            Shape::Between(value, low, high, is_negated) => self.between([value, low, high], *is_negated, scope),
            Shape::Pipeline(_) => Err(Fault::new(place, "this is a table, where a value was expected")
                .hint("`toscalar(…)` takes the first value of a table")),
            Shape::Function(_) => Err(Fault::new(place, "this is a function, where a value was expected")),
        }
    }

    fn named_value(&mut self, name: &str, place: TextRange, scope: Scope<'_>) -> Result<Value, Fault> {
        if let Some(column) = scope.relation().and_then(|relation| relation.column(name)) {
            if matches!(scope, Scope::Rows(_)) {
                return Ok(column.value.clone());
            }
            return Err(Fault::new(place, format!("the column `{name}` stands outside an aggregate"))
                .hint(format!("put it behind `by`, or into an aggregate such as `max({name})`")));
        }
        match self.binding(name) {
            Some(Binding::Value(value)) => return Ok(value.clone()),
            Some(Binding::Table(_)) => return Err(table_for_value(name, place)),
            Some(Binding::Function(_)) => {
                return Err(Fault::new(place, format!("`{name}` is a function, where a value was expected"))
                    .hint(format!("call it: `{name}(…)`")));
            }
            None if catalog::table(name).is_some() => return Err(table_for_value(name, place)),
            None => {}
        }
        Err(self.unknown_name(name, place, scope))
    }

    fn unknown_name(&self, name: &str, place: TextRange, scope: Scope<'_>) -> Fault {
        let lets = self.lets.iter().map(|(name, _)| name.as_str());
        let Some(relation) = scope.relation() else {
            return Fault::new(place, format!("nothing is called `{name}`")).near(name, lets);
        };
        let fault = Fault::new(place, format!("there is no column `{name}`")).near(name, relation.names().chain(lets));
        match fault.hint {
            Some(_) => fault,
            None => fault.hint(format!("columns are {}", listed(relation.names()))),
        }
    }

    /// The value of a condition.
    pub(super) fn condition(&mut self, expression: &Expression, scope: Scope<'_>) -> Result<Value, Fault> {
        is_condition(self.value(expression, scope)?, expression.place)
    }

    fn all(&mut self, logic: Logic, terms: &[Expression], scope: Scope<'_>) -> Result<Value, Fault> {
        let word = if logic == Logic::And { " AND " } else { " OR " };
        let mut texts = Vec::new();
        for term in terms {
            let value = self.value(term, scope)?;
            texts.push(match value.kind {
                Type::Dynamic => format!("kql_tobool({})", value.scalar()),
                _ => is_condition(value, term.place)?.sql,
            });
        }
        Ok(Value::new(Type::Bool, format!("({})", texts.join(word))))
    }

    fn negative(&mut self, expression: &Expression, scope: Scope<'_>) -> Result<Value, Fault> {
        let value = self.value(expression, scope)?;
        match (value.kind, &value.constant) {
            (Type::Long | Type::Timespan, Some(Constant::Whole(whole))) => {
                Ok(Value::whole(value.kind, whole.saturating_neg()))
            }
            (Type::Real, Some(Constant::Real(real))) => Ok(Value::real(-real)),
            (Type::Long | Type::Real | Type::Timespan, _) => Ok(Value::new(value.kind, format!("(-{})", value.sql))),
            (kind, _) => Err(Fault::new(expression.place, format!("a {} has no negative", kind.word()))),
        }
    }

    fn call(&mut self, name: &Name, arguments: &[Expression], scope: Scope<'_>) -> Result<Value, Fault> {
        match name.text.as_str() {
            "toscalar" => {
                let [table] = arguments else { return Err(Fault::new(name.place, "`toscalar` takes one table")) };
                return if self.is_table(table) { self.first_of(table) } else { self.value(table, Scope::Nothing) };
            }
            "typeof" => return type_value(name, arguments),
            "column_ifexists" => return self.column_if_exists(name, arguments, scope),
            "pack_all" => return pack_all(name, arguments, scope),
            window if is_window(window) => return self.window(name, arguments, scope),
            _ => {}
        }
        if let Some(Binding::Function(function)) = self.binding(&name.text) {
            let function = function.clone();
            return self.call_of_value(&function, name, arguments, scope);
        }
        if functions::aggregate(&name.text).is_some() {
            return self.aggregate_call(name, arguments, scope);
        }
        let Some(function) = functions::scalar(&name.text) else { return Err(self.no_function(name)) };
        let mut call = Call { name, values: Vec::new(), places: Vec::new() };
        for argument in arguments {
            call.values.push(self.value(argument, scope)?);
            call.places.push(argument.place);
        }
        match function.meaning {
            Meaning::Sql(template) => call.filled(function, template),
            Meaning::Made(make) => {
                call.check_count(function)?;
                make(&call)
            }
        }
    }

    /// `column_ifexists("name", default)`.
    fn column_if_exists(&mut self, name: &Name, arguments: &[Expression], scope: Scope<'_>) -> Result<Value, Fault> {
        let [wanted, default] = arguments else {
            return Err(Fault::new(name.place, format!("`{}` takes the name of a column and a default", name.text)));
        };
        let text = self.value(wanted, Scope::Nothing)?;
        let Some(text) = text.as_text() else {
            return Err(Fault::new(wanted.place, "the name of a column is a constant string here"));
        };
        match scope.relation().and_then(|relation| relation.column(text)) {
            Some(_) => self.named_value(text, wanted.place, scope),
            None => self.value(default, scope),
        }
    }

    fn aggregate_call(&mut self, name: &Name, arguments: &[Expression], scope: Scope<'_>) -> Result<Value, Fault> {
        let Scope::Summary(relation) = scope else {
            return Err(Fault::new(name.place, format!("the aggregate `{}` stands outside `summarize`", name.text))
                .hint(format!("write `| summarize {}(…)`", name.text)));
        };
        let mut values = self.aggregate(name, arguments, relation)?;
        match (values.pop(), values.is_empty()) {
            (Some(only), true) => Ok(only.value),
            _ => Err(Fault::new(
                name.place,
                format!("`{}` gives several columns and is no part of an expression", name.text),
            )),
        }
    }
}

/// The first few names, for a hint.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN_MAX: usize = 30;
    let names: Vec<_> = names.collect();
    let more = if names.len() > SHOWN_MAX { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN_MAX)].join(", "))
}

fn is_condition(value: Value, place: TextRange) -> Result<Value, Fault> {
    match value.kind {
        Type::Bool => Ok(value),
        kind => Err(Fault::new(place, format!("this is a {}, where a bool was expected", kind.word()))),
    }
}

/// `typeof(long)`, which is an argument of only some functions.
fn type_value(name: &Name, arguments: &[Expression]) -> Result<Value, Fault> {
    let kind = match arguments {
        [Expression { kind: Shape::Name(word), .. }] => Type::named(word),
        _ => None,
    };
    let kind = kind.ok_or_else(|| Fault::new(name.place, "`typeof` takes the name of a type"))?;
    Ok(Value { constant: Some(Constant::Type(kind)), ..Value::new(Type::Text, quoted(kind.word())) })
}

/// All columns as one bag.
fn pack_all(name: &Name, arguments: &[Expression], scope: Scope<'_>) -> Result<Value, Fault> {
    let (Scope::Rows(relation), []) = (scope, arguments) else {
        return Err(Fault::new(name.place, "`pack_all` takes no values here, and needs the rows of a table"));
    };
    let pairs = relation.columns.iter().map(|column| (quoted(&column.name), &column.value));
    Ok(functions::bag(pairs))
}

fn table_for_value(name: &str, place: TextRange) -> Fault {
    Fault::new(place, format!("`{name}` is a table, where a value was expected"))
        .hint("`toscalar(…)` takes the first value of a table")
}

fn literal_value(literal: &Literal) -> Value {
    match literal {
        Literal::Null(kind) => Value::null(*kind),
        Literal::Bool(value) => Value::whole(Type::Bool, i64::from(*value)),
        Literal::Long(value) => Value::whole(Type::Long, *value),
        Literal::Real(value) => Value::real(*value),
        Literal::Text(text) => Value::text(text),
        Literal::Datetime(ns) => Value::whole(Type::Datetime, *ns),
        Literal::Timespan(ns) => Value::whole(Type::Timespan, *ns),
        Literal::Dynamic(json) => Value::json(json.clone()),
    }
}

/// The type that an operation gives.
fn result_type(binary: Binary, left: Type, right: Type) -> Option<Type> {
    use Type::{Datetime, Long, Real, Timespan};
    Some(match (binary, left, right) {
        (_, Long, Long) => Long,
        (_, Long | Real, Long | Real) => Real,
        (Binary::Add, Datetime, Timespan)
        | (Binary::Add, Timespan, Datetime)
        | (Binary::Subtract, Datetime, Timespan) => Datetime,
        (Binary::Subtract, Datetime, Datetime) => Timespan,
        (Binary::Add | Binary::Subtract | Binary::Modulo, Timespan, Timespan) => Timespan,
        (Binary::Multiply, Timespan, Long | Real) | (Binary::Multiply, Long | Real, Timespan) => Timespan,
        (Binary::Divide, Timespan, Long | Real) => Timespan,
        (Binary::Divide, Timespan, Timespan) => Real,
        _ => return None,
    })
}

/// A sum, product or their like.
fn arithmetic(binary: Binary, left: &Value, right: &Value, place: TextRange) -> Result<Value, Fault> {
    let Some(kind) = result_type(binary, left.kind, right.kind) else {
        let (a, b) = (left.kind.word(), right.kind.word());
        let fault = Fault::new(place, format!("`{}` is not defined between {a} and {b}", binary.symbol()));
        return Err(match (left.kind, right.kind) {
            (Type::Text, _) | (_, Type::Text) if binary == Binary::Add => fault.hint("`strcat(…)` joins strings"),
            (Type::Dynamic, _) | (_, Type::Dynamic) => {
                fault.hint("convert the dynamic value first, such as by `toreal(…)`")
            }
            _ => fault,
        });
    };
    if let (Some(a), Some(b), true) = (left.as_whole(), right.as_whole(), kind.is_whole())
        && left.kind.is_whole()
        && right.kind.is_whole()
        && let Some(folded) = folded(binary, a, b)
    {
        return Ok(Value::whole(kind, folded));
    }
    Ok(Value::new(kind, arithmetic_sql(binary, left, right, kind)))
}

fn folded(binary: Binary, a: i64, b: i64) -> Option<i64> {
    match binary {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        _ => None,
    }
}

fn arithmetic_sql(binary: Binary, left: &Value, right: &Value, kind: Type) -> String {
    let (a, b) = (&left.sql, &right.sql);
    let sql = match binary {
        // The remainder is never negative, whatever the signs.
        Binary::Modulo if left.kind == Type::Real || right.kind == Type::Real => {
            format!("({a} - kql_bin({a}, abs({b})))")
        }
        Binary::Modulo => format!("((({a}) % ({b}) + abs({b})) % ({b}))"),
        // Whole numbers divide to whole numbers, towards zero, and by zero to NULL: here and in SQLite alike.
        Binary::Divide if kind == Type::Real && left.kind != Type::Real => format!("(CAST({a} AS REAL) / {b})"),
        _ => format!("({a} {} {b})", binary.symbol()),
    };
    // A length of time times a fraction is a whole number of nanoseconds again.
    let has_fraction = left.kind == Type::Real || right.kind == Type::Real;
    if kind == Type::Timespan && has_fraction { format!("CAST(round({sql}) AS INTEGER)") } else { sql }
}
