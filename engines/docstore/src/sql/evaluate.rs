//! The value of an expression for one row, with Cosmos DB's rules for undefined.
//!
//! An operator on values it does not apply to gives undefined; AND and OR decide where one operand suffices; a filter
//! keeps only rows for which it is true. `=` and `!=` compare any two defined values, `<` and its kin only two of one
//! type.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::ast::{Binary, Expression, Like, Unary};
use super::functions::Arguments;
use super::pattern::Patterns;
use super::value::Value;
use super::work::{Allowance, Work};
use super::{TooMuchWork, functions, like, subquery};

/// The values of parameters by their names with `@`.
pub(crate) type Parameters = BTreeMap<String, Value>;

/// State that the rows of a page share.
#[derive(Debug)]
pub(crate) struct Context<'q> {
    parameters: &'q Parameters,
    /// 100-nanosecond intervals since 1970.
    pub(super) now_ticks: i64,
    work: Work,
    random: Cell<u64>,
    patterns: RefCell<Patterns>,
}

impl<'q> Context<'q> {
    pub(crate) fn new(parameters: &'q Parameters, now_ticks: i64, allowance: Allowance) -> Self {
        let random = Cell::new(now_ticks.unsigned_abs() | 1);
        Self { parameters, now_ticks, work: Work::new(allowance), random, patterns: RefCell::default() }
    }

    pub(super) fn parameter(&self, name: &str) -> &'q Value {
        self.parameters.get(name).unwrap_or(&Value::Undefined)
    }

    /// Counts `steps` before they are taken; an error if the page may not take them.
    pub(super) fn work(&self, steps: usize) -> Result<(), TooMuchWork> {
        self.work.add(steps)
    }

    pub(super) fn steps(&self) -> u64 {
        self.work.steps()
    }

    /// A number from 0 up to 1, for RAND.
    pub(super) fn random(&self) -> f64 {
        // Marsaglia's xorshift64; the state is never 0.
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Whether `text` has a match of `pattern`; `None` if the pattern is invalid or too large.
    pub(super) fn matches(&self, pattern: &str, text: &str) -> Result<Option<bool>, TooMuchWork> {
        self.patterns.borrow_mut().matches(&self.work, pattern, text)
    }
}

/// A name and its value in the row at hand, before those of the sources to its left.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
    pub(super) outer: Option<&'a Scope<'a>>,
}

/// Where an expression is evaluated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) context: &'a Context<'a>,
    /// The document of FROM, which a name means that is no source's.
    pub(super) document: &'a Value,
    pub(super) scope: Option<&'a Scope<'a>>,
    /// The results of the aggregates of the query at hand, by slot.
    pub(super) aggregates: &'a [Value],
}

pub(super) type EvaluationResult<'a> = Result<Cow<'a, Value>, TooMuchWork>;

impl<'a> Frame<'a> {
    fn lookup(&self, name: &str) -> &'a Value {
        let mut scope = self.scope;
        while let Some(inner) = scope {
            if inner.name == name {
                return inner.value;
            }
            scope = inner.outer;
        }
        self.document
    }

    pub(super) fn evaluate(&self, expression: &'a Expression) -> EvaluationResult<'a> {
        self.context.work(1)?;
        Ok(match expression {
            Expression::Literal(value) => Cow::Borrowed(value),
            Expression::Parameter(name) => Cow::Borrowed(self.context.parameter(name)),
            Expression::Name(name, _) => Cow::Borrowed(self.lookup(name)),
            Expression::Member(inner, name) => {
                let value = self.evaluate(inner)?;
                self.context.work(value.properties() / 16)?;
                step(value, |value| value.property(name))
            }
            Expression::Index(inner, index) => {
                let (index, value) = (self.evaluate(index)?, self.evaluate(inner)?);
                self.context.work(value.properties() / 16)?;
                step(value, |value| match &*index {
                    Value::Text(name) => value.property(name),
                    Value::Number(number) => value.element(*number),
                    _ => &Value::Undefined,
                })
            }
            Expression::Aggregate(call) => Cow::Borrowed(self.aggregates.get(call.slot).unwrap_or(&Value::Undefined)),
            Expression::Ternary(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if self.evaluate(condition)?.is_true() { yes } else { no };
                self.evaluate(chosen)?
            }
            Expression::Binary(Binary::Coalesce, left, right) => {
                let left = self.evaluate(left)?;
                if left.is_undefined() { self.evaluate(right)? } else { left }
            }
            _ => Cow::Owned(self.compute(expression)?),
        })
    }

    /// The expressions that make a new value.
    fn compute(&self, expression: &'a Expression) -> Result<Value, TooMuchWork> {
        Ok(match expression {
            Expression::Unary(operator, inner) => unary(*operator, &*self.evaluate(inner)?),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (self.evaluate(left)?, self.evaluate(right)?);
                let bytes = match operator {
                    Binary::Concat => heavy(&left).saturating_add(heavy(&right)),
                    _ => compared(&left, &right),
                };
                self.context.work(bytes / 8)?;
                binary(*operator, &left, &right)
            }
            Expression::And(operands) => self.decide(operands, false)?,
            Expression::Or(operands) => self.decide(operands, true)?,
            Expression::In(value, list) => self.is_in(value, list)?,
            Expression::Between(parts) => {
                let [value, low, high] = &**parts;
                let (value, low, high) = (self.evaluate(value)?, self.evaluate(low)?, self.evaluate(high)?);
                self.context.work((compared(&value, &low) + compared(&value, &high)) / 8)?;
                let bounds = [binary(Binary::GreaterOrEqual, &value, &low), binary(Binary::LessOrEqual, &value, &high)];
                connect(&bounds, false)
            }
            Expression::Like(like) => self.like(like)?,
            Expression::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let value = self.evaluate(argument)?;
                    self.context.work(heavy(&value) / 8)?;
                    values.push(value);
                }
                function.run(&Arguments { values: &values, context: self.context })?
            }
            Expression::Array(elements) => {
                let mut array = Vec::with_capacity(elements.len());
                for element in elements {
                    let value = self.owned(element)?;
                    if !value.is_undefined() {
                        array.push(value);
                    }
                }
                Value::Array(array)
            }
            Expression::Object(properties) => {
                let pairs = properties.iter().map(|(name, value)| (name, value));
                self.object(pairs)?
            }
            Expression::Exists(query) => Value::Bool(subquery::has_rows(query, self)?),
            Expression::ArrayOf(query) => Value::Array(subquery::subquery(query, self)?),
            // A scalar subquery has the value of its only row; of several rows it is undefined.
            Expression::Subquery(query) => match <[Value; 1]>::try_from(subquery::subquery(query, self)?) {
                Ok([value]) => value,
                Err(_) => Value::Undefined,
            },
            _ => Value::Undefined,
        })
    }

    /// The value as one's own; copying counts as work.
    pub(super) fn owned(&self, expression: &'a Expression) -> Result<Value, TooMuchWork> {
        let value = self.evaluate(expression)?;
        self.context.work(heavy(&value) / 4)?;
        Ok(value.into_owned())
    }

    /// An object without the properties that are undefined.
    pub(super) fn object(
        &self,
        properties: impl Iterator<Item = (&'a String, &'a Expression)>,
    ) -> Result<Value, TooMuchWork> {
        let mut object = Vec::new();
        for (name, expression) in properties {
            let value = self.owned(expression)?;
            if !value.is_undefined() {
                self.context.work(name.len() / 8)?;
                object.push((name.clone(), value));
            }
        }
        Ok(Value::Object(object))
    }

    /// AND (decided by false) or OR (decided by true) of operands up to the deciding one.
    fn decide(&self, operands: &'a [Expression], decisive: bool) -> Result<Value, TooMuchWork> {
        let mut all_known = true;
        for operand in operands {
            match &*self.evaluate(operand)? {
                Value::Bool(flag) if *flag == decisive => return Ok(Value::Bool(decisive)),
                Value::Bool(_) => {}
                _ => all_known = false,
            }
        }
        Ok(if all_known { Value::Bool(!decisive) } else { Value::Undefined })
    }

    fn is_in(&self, value: &'a Expression, list: &'a [Expression]) -> Result<Value, TooMuchWork> {
        let value = self.evaluate(value)?;
        let mut all_known = true;
        for candidate in list {
            let candidate = self.evaluate(candidate)?;
            self.context.work(compared(&value, &candidate) / 8)?;
            match binary(Binary::Equal, &value, &candidate) {
                Value::Bool(true) => return Ok(Value::Bool(true)),
                Value::Bool(_) => {}
                _ => all_known = false,
            }
        }
        Ok(if all_known { Value::Bool(false) } else { Value::Undefined })
    }

    fn like(&self, like: &'a Like) -> Result<Value, TooMuchWork> {
        let (text, pattern) = (self.evaluate(&like.text)?, self.evaluate(&like.pattern)?);
        let (Value::Text(text), Value::Text(pattern)) = (&*text, &*pattern) else { return Ok(Value::Undefined) };
        let product = text.len().saturating_mul(pattern.len()) / 16;
        // For a short text, reading the pattern dominates.
        self.context.work(product.saturating_add(text.len() / 8).saturating_add(pattern.len()))?;
        Ok(Value::Bool(like::matches(text, pattern, like.escape)))
    }
}

/// The weight of a text, an array or an object; the others weigh nothing.
fn heavy(value: &Value) -> usize {
    match value {
        Value::Text(_) | Value::Array(_) | Value::Object(_) => value.weight(),
        _ => 0,
    }
}

/// Maximum number of bytes that a comparison of two values reads.
fn compared(left: &Value, right: &Value) -> usize {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => left.len().min(right.len()),
        // Properties are sorted first.
        (Value::Object(_) | Value::Array(_), _) if left.rank() == right.rank() => {
            heavy(left).saturating_add(heavy(right))
        }
        _ => 0,
    }
}

fn step<'a>(value: Cow<'a, Value>, below: impl Fn(&Value) -> &Value) -> Cow<'a, Value> {
    match value {
        Cow::Borrowed(value) => Cow::Borrowed(below(value)),
        Cow::Owned(value) => Cow::Owned(below(&value).clone()),
    }
}

fn unary(operator: Unary, value: &Value) -> Value {
    match (operator, value) {
        (Unary::Not, Value::Bool(flag)) => Value::Bool(!flag),
        (Unary::Plus, Value::Long(number)) => Value::Long(*number),
        (operator, value) => value.double().map_or(Value::Undefined, |number| signed(operator, number)),
    }
}

fn signed(operator: Unary, number: f64) -> Value {
    match operator {
        Unary::Minus => Value::Number(-number),
        Unary::Plus => Value::Number(number),
        Unary::BitNot => whole(number).map_or(Value::Undefined, |bits| Value::Number(!bits as f64)),
        Unary::Not => Value::Undefined,
    }
}

fn connect(values: &[Value], decisive: bool) -> Value {
    if values.iter().any(|value| matches!(value, Value::Bool(flag) if *flag == decisive)) {
        return Value::Bool(decisive);
    }
    let all_known = values.iter().all(|value| matches!(value, Value::Bool(_)));
    if all_known { Value::Bool(!decisive) } else { Value::Undefined }
}

fn binary(operator: Binary, left: &Value, right: &Value) -> Value {
    match (operator, left, right) {
        (Binary::Equal | Binary::NotEqual, left, right) => {
            if left.is_undefined() || right.is_undefined() {
                return Value::Undefined;
            }
            Value::Bool(left.equals(right) == (operator == Binary::Equal))
        }
        (Binary::Less, ..) => compare(left, right, Ordering::is_lt),
        (Binary::LessOrEqual, ..) => compare(left, right, Ordering::is_le),
        (Binary::Greater, ..) => compare(left, right, Ordering::is_gt),
        (Binary::GreaterOrEqual, ..) => compare(left, right, Ordering::is_ge),
        (Binary::Concat, Value::Text(left), Value::Text(right)) => functions::text_of([left.as_str(), right].concat()),
        (_, left, right) => match (left.double(), right.double()) {
            (Some(left), Some(right)) => arithmetic(operator, left, right),
            _ => Value::Undefined,
        },
    }
}

/// The order of two values of one type; arrays and objects have none.
fn compare(left: &Value, right: &Value, holds: fn(Ordering) -> bool) -> Value {
    if left.is_undefined() || left.rank() != right.rank() || !left.is_scalar() {
        return Value::Undefined;
    }
    Value::Bool(holds(left.order(right)))
}

fn arithmetic(operator: Binary, left: f64, right: f64) -> Value {
    let number = match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        Binary::Modulo => left % right,
        _ => {
            return whole(left).zip(whole(right)).map_or(Value::Undefined, |(left, right)| bits(operator, left, right));
        }
    };
    Value::number(number)
}

fn bits(operator: Binary, left: i64, right: i64) -> Value {
    // Counts of bits wrap around at 64, as in the languages of the clients.
    let count = (right & 63) as u32;
    let result = match operator {
        Binary::BitOr => left | right,
        Binary::BitXor => left ^ right,
        Binary::BitAnd => left & right,
        Binary::ShiftLeft => left.wrapping_shl(count),
        Binary::ShiftRight => left.wrapping_shr(count),
        Binary::ShiftRightUnsigned => (left as u64).wrapping_shr(count) as i64,
        _ => return Value::Undefined,
    };
    Value::Number(result as f64)
}

/// The number as a whole number; None with a fraction or beyond 64 bits.
pub(super) fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && (-9.3e18..9.2e18).contains(&number);
    fits.then_some(number as i64)
}
