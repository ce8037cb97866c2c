//! Functions on arrays, and objects as arrays.

use std::collections::HashSet;

use super::{Arguments, Entry, defined, weight};
use crate::sql::value::Value;

pub(super) const ALL: &[Entry] = &[
    Entry::new("ARRAY_CONCAT", 2, 64, |given| {
        let arrays: Option<Vec<&[Value]>> = (0..given.values.len()).map(|index| given.array(index)).collect();
        defined(arrays.map(|arrays| Value::Array(arrays.concat())))
    })
    .making(weight),
    Entry::new("ARRAY_CONTAINS", 2, 3, |given| defined(contains(given))).reading(bytes_to_compare),
    Entry::new("ARRAY_CONTAINS_ALL", 2, 64, |given| {
        defined(contains_each(given).map(|mut found| Value::Bool(found.all(|is| is))))
    })
    .making(weight),
    Entry::new("ARRAY_CONTAINS_ANY", 2, 64, |given| {
        defined(contains_each(given).map(|mut found| Value::Bool(found.any(|is| is))))
    })
    .making(weight),
    Entry::new("ARRAY_LENGTH", 1, 1, |given| {
        defined(given.array(0).map(|elements| Value::Number(elements.len() as f64)))
    }),
    Entry::new("ARRAY_SLICE", 2, 3, |given| defined(slice(given))),
    Entry::new("CHOOSE", 2, 64, |given| match given.whole(0).and_then(|place| usize::try_from(place).ok()) {
        Some(place) if place > 0 => given.value(place).clone(),
        _ => Value::Undefined,
    }),
    Entry::new("OBJECTTOARRAY", 1, 3, |given| defined(object_to_array(given))).making(bytes_of_pairs),
    Entry::new("SETDIFFERENCE", 2, 2, |given| {
        defined(
            given.array(0).zip(given.array(1)).map(|(left, right)| distinct(left, &|known| !known, &members(right))),
        )
    })
    .making(weight),
    Entry::new("SETINTERSECT", 2, 2, |given| {
        defined(given.array(0).zip(given.array(1)).map(|(left, right)| distinct(left, &|known| known, &members(right))))
    })
    .making(weight),
    Entry::new("SETUNION", 2, 2, |given| {
        let both = given.array(0).zip(given.array(1));
        defined(both.map(|(left, right)| distinct(&[left, right].concat(), &|_| true, &HashSet::new())))
    })
    .making(|given| weight(given).saturating_mul(2)),
];

/// With true as third argument, an object is contained where one has at least its properties.
fn contains(given: &Arguments<'_>) -> Option<Value> {
    let (elements, wanted, partial) = (given.array(0)?, given.value(1), given.flag(2)?);
    if wanted.is_undefined() {
        return None;
    }
    let found = elements.iter().any(|element| match (element, wanted) {
        (Value::Object(_), Value::Object(properties)) if partial => {
            properties.iter().all(|(name, value)| element.property(name).equals(value))
        }
        _ => element.equals(wanted),
    });
    Some(Value::Bool(found))
}

/// Bytes that [`contains`] reads in addition to one pass over the array: an array or object is compared with each
/// element of its type.
fn bytes_to_compare(given: &Arguments<'_>) -> usize {
    let (Some(elements), wanted) = (given.array(0), given.value(1)) else { return 0 };
    if wanted.is_scalar() {
        return 0;
    }
    let alike = elements.iter().filter(|element| element.rank() == wanted.rank());
    if given.flag(2) == Some(true) {
        let pairs = |element: &Value| element.properties().saturating_mul(wanted.properties());
        return alike.fold(0_usize, |sum, element| sum.saturating_add(pairs(element))).saturating_mul(8);
    }
    alike.count().saturating_mul(wanted.weight())
}

/// Bytes of the pairs that [`object_to_array`] makes.
fn bytes_of_pairs(given: &Arguments<'_>) -> usize {
    let names = [1, 2].iter().fold(0, |sum, &index| sum + given.text(index).map_or(1, str::len));
    let pair = names + 2 * (size_of::<String>() + size_of::<Value>());
    given.value(0).properties().saturating_mul(pair).saturating_add(given.value(0).weight())
}

/// For each value after the array whether it is an element.
fn contains_each<'a>(given: &'a Arguments<'_>) -> Option<impl Iterator<Item = bool> + 'a> {
    let known = members(given.array(0)?);
    Some((1..given.values.len()).map(move |index| known.contains(&given.value(index).canonical())))
}

/// The part from an index on, which counts from the end if it is below zero, up to a length.
fn slice(given: &Arguments<'_>) -> Option<Value> {
    let (elements, begin) = (given.array(0)?, given.whole(1)?);
    let length = elements.len() as i64;
    let begin = if begin < 0 { begin.saturating_add(length).max(0) } else { begin.min(length) };
    let most = if given.values.len() > 2 { given.whole(2)?.clamp(0, length) } else { length };
    let end = begin.saturating_add(most).min(length);
    Some(Value::Array(elements[begin as usize..end as usize].to_vec()))
}

/// `[{"k": …, "v": …}]`, with other names if given.
fn object_to_array(given: &Arguments<'_>) -> Option<Value> {
    let Value::Object(properties) = given.value(0) else { return None };
    let name = |index, default: &str| {
        if given.values.len() > index { given.text(index).map(str::to_owned) } else { Some(default.to_owned()) }
    };
    let (key, value) = (name(1, "k")?, name(2, "v")?);
    let pair = |(own, inner): &(String, Value)| {
        Value::Object(vec![(key.clone(), Value::text(own)), (value.clone(), inner.clone())])
    };
    Some(Value::Array(properties.iter().map(pair).collect()))
}

fn members(elements: &[Value]) -> HashSet<String> {
    elements.iter().map(Value::canonical).collect()
}

/// The different elements for which `keep` holds of whether they are among `known`, in their order.
fn distinct(elements: &[Value], keep: &dyn Fn(bool) -> bool, known: &HashSet<String>) -> Value {
    let mut seen = HashSet::new();
    let kept = elements.iter().filter(|element| {
        let canonical = element.canonical();
        keep(known.contains(&canonical)) && seen.insert(canonical)
    });
    Value::Array(kept.cloned().collect())
}

#[cfg(test)]
mod tests {
    use crate::sql::functions::tests::check;

    #[test]
    fn arrays() {
        check(&[
            ("ARRAY_CONCAT([1], [2, 3], [])", "[1,2,3]"),
            ("ARRAY_CONTAINS(['a', 'b'], 'b')", "true"),
            ("ARRAY_CONTAINS([{'a': 1, 'b': 2}], {'a': 1})", "false"),
            ("ARRAY_CONTAINS([{'a': 1, 'b': 2}], {'a': 1}, true)", "true"),
            ("ARRAY_CONTAINS(1, 1)", "undefined"),
            ("ARRAY_CONTAINS_ANY([1, 2], 3, 2)", "true"),
            ("ARRAY_CONTAINS_ALL([1, 2], 3, 2)", "false"),
            ("ARRAY_LENGTH([1, [2, 3]])", "2"),
            ("ARRAY_SLICE([1, 2, 3], 1)", "[2,3]"),
            ("ARRAY_SLICE([1, 2, 3], -2, 1)", "[2]"),
            ("ARRAY_SLICE([1, 2, 3], 9, -1)", "[]"),
            ("CHOOSE(2, 'a', 'b')", "\"b\""),
            ("CHOOSE(3, 'a', 'b')", "undefined"),
            ("OBJECTTOARRAY({'a': 1})", "[{\"k\":\"a\",\"v\":1}]"),
            ("OBJECTTOARRAY({'a': 1}, 'n', 'x')", "[{\"n\":\"a\",\"x\":1}]"),
            ("SETINTERSECT([1, 2, 2, 3], [2, 3])", "[2,3]"),
            ("SETUNION([1, 2], [2, 3])", "[1,2,3]"),
            ("SETDIFFERENCE([1, 2], [2])", "[1]"),
        ]);
    }
}
