//! Sort position of a result: where the next page resumes, even after a split of the partition.

use std::cmp::Ordering;

use super::ast::OrderKey;
use super::value::Value;

/// The place of a result in the order of a query: its values of ORDER BY, then its document, then its row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortPosition {
    pub(super) keys: Vec<Value>,
    /// The number of the document, which it keeps for as long as it is there.
    pub(crate) number: u64,
    pub(crate) row: u32,
}

impl SortPosition {
    pub(super) fn order(&self, other: &Self, order_by: &[OrderKey]) -> Ordering {
        let orders = self.keys.iter().zip(&other.keys).zip(order_by).map(|((one, other), key)| {
            let order = one.order(other);
            if key.descending { order.reverse() } else { order }
        });
        let by_keys = orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        by_keys.then_with(|| (self.number, self.row).cmp(&(other.number, other.row)))
    }

    /// Memory of its values, in bytes.
    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + self.keys.iter().map(Value::weight).sum::<usize>()
    }

    /// How many values of ORDER BY it has.
    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// Its values as JSON for [`SortPosition::from_keys`]: an array of arrays, where an empty one is undefined.
    pub(crate) fn keys_text(&self) -> String {
        let text = |key: &Value| if key.is_undefined() { "[]".to_owned() } else { format!("[{key}]") };
        format!("[{}]", self.keys.iter().map(text).collect::<Vec<_>>().join(","))
    }

    /// None unless `keys` is such a text.
    pub(crate) fn from_keys(keys: &[u8], number: u64, row: u32) -> Option<Self> {
        let read = |mut key: Vec<Value>| match (key.len(), key.pop()) {
            (0, _) => Some(Value::Undefined),
            (1, value) => value,
            _ => None,
        };
        let keys: Vec<Vec<Value>> = serde_json::from_slice(keys).ok()?;
        Some(Self { keys: keys.into_iter().map(read).collect::<Option<_>>()?, number, row })
    }
}
