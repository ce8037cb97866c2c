//! State of COUNT, SUM, AVG, MIN and MAX over the rows of a group. Undefined values are left out.

use std::cmp::Ordering;

use super::ast::Aggregate;
use super::value::Value;

/// One aggregate of one group while rows come in.
#[derive(Debug)]
pub(super) struct Accumulator {
    function: Aggregate,
    count: u64,
    sum: f64,
    /// Whether a value was met that is no number.
    mixed: bool,
    extreme: Value,
}

impl Accumulator {
    pub(super) fn new(function: Aggregate) -> Self {
        Self { function, count: 0, sum: 0.0, mixed: false, extreme: Value::Undefined }
    }

    /// Adds a value. Returns the additional memory, in bytes.
    pub(super) fn add(&mut self, value: &Value) -> usize {
        if value.is_undefined() || (self.function == Aggregate::CountIf && !value.is_true()) {
            return 0;
        }
        self.count += 1;
        let before = self.extreme.weight();
        match self.function {
            Aggregate::Count | Aggregate::CountIf => {}
            Aggregate::Sum | Aggregate::Average => match value.double() {
                Some(number) => self.sum += number,
                None => self.mixed = true,
            },
            Aggregate::Min => self.keep(value, Ordering::Less),
            Aggregate::Max => self.keep(value, Ordering::Greater),
        }
        self.extreme.weight().saturating_sub(before)
    }

    /// Keeps `value` if it is the first or on the `wanted` side of the one kept; only scalars have a least and a greatest.
    fn keep(&mut self, value: &Value, wanted: Ordering) {
        self.mixed |= !value.is_scalar();
        // Without an extreme value, the result is undefined.
        if self.mixed {
            self.extreme = Value::Undefined;
        } else if self.extreme.is_undefined() || value.order(&self.extreme) == wanted {
            self.extreme = value.clone();
        }
    }

    /// The sum of nothing is 0; the others of nothing are undefined, and so is arithmetic with other values than numbers.
    pub(super) fn result(&self) -> Value {
        match self.function {
            Aggregate::Count | Aggregate::CountIf => Value::Number(self.count as f64),
            _ if self.mixed => Value::Undefined,
            Aggregate::Sum => Value::number(self.sum),
            Aggregate::Average => Value::number(self.sum / self.count as f64),
            Aggregate::Min | Aggregate::Max => self.extreme.clone(),
        }
    }
}
