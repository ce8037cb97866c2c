//! Values that a filter leaves possible at a path of the document, for the index and the routing of a query.

use std::collections::HashSet;

use super::Parameters;
use super::ast::{Binary, Expression, Query, Rows, Source, Unary};
use super::value::Value;
use crate::scalar::Scalar;

/// A condition every result's document meets: the value at `path` is one of `values`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Equality {
    pub(crate) path: Vec<String>,
    pub(crate) values: Vec<Scalar>,
}

/// The equalities of the filter of `query`: `=`, IN and OR of these on one path, joined by AND.
pub(crate) fn equalities(query: &Query, parameters: &Parameters) -> Vec<Equality> {
    let reader = Reader { sources: &query.sources, parameters };
    let mut found = Vec::new();
    let mut open: Vec<&Expression> = query.filter.iter().collect();
    while let Some(expression) = open.pop() {
        match expression {
            Expression::And(operands) => open.extend(operands.iter().rev()),
            _ => found.extend(reader.equality(expression)),
        }
    }
    found
}

struct Reader<'q> {
    sources: &'q [Source],
    parameters: &'q Parameters,
}

impl Reader<'_> {
    fn equality(&self, expression: &Expression) -> Option<Equality> {
        match expression {
            Expression::Binary(Binary::Equal, left, right) => {
                let one_way = self.path(left).zip(self.constant(right));
                let (path, value) = one_way.or_else(|| self.path(right).zip(self.constant(left)))?;
                Some(Equality { path, values: scalars(vec![value])? })
            }
            Expression::In(value, list) => {
                let values: Option<Vec<Value>> = list.iter().map(|value| self.constant(value)).collect();
                Some(Equality { path: self.path(value)?, values: scalars(values?)? })
            }
            Expression::Or(operands) => {
                let mut operands = operands.iter().map(|operand| self.equality(operand));
                let mut joined = operands.next()??;
                for operand in operands {
                    let operand = operand?;
                    if operand.path != joined.path {
                        return None;
                    }
                    joined.values.extend(operand.values);
                }
                joined.values = distinct(joined.values);
                Some(joined)
            }
            _ => None,
        }
    }

    /// The path from the document, if that is where the expression leads through every alias.
    fn path(&self, expression: &Expression) -> Option<Vec<String>> {
        match expression {
            Expression::Member(inner, name) => {
                let mut path = self.path(inner)?;
                path.push(name.clone());
                Some(path)
            }
            Expression::Name(name, _) => self.path_of_source(name),
            _ => None,
        }
    }

    fn path_of_source(&self, name: &str) -> Option<Vec<String>> {
        let place = self.sources.iter().rposition(|source| source.alias == name)?;
        let Rows::Below(path) = &self.sources[place].rows else { return None };
        // The first source begins with the container's name, the others with an alias before them.
        match path {
            Expression::Name(..) if place == 0 => Some(Vec::new()),
            _ if place == 0 => below_document(path),
            _ => Reader { sources: &self.sources[..place], parameters: self.parameters }.path(path),
        }
    }

    fn constant(&self, expression: &Expression) -> Option<Value> {
        match expression {
            Expression::Literal(value) => Some(value.clone()),
            Expression::Parameter(name) => self.parameters.get(name).cloned(),
            Expression::Unary(Unary::Minus, inner) => match self.constant(inner)? {
                Value::Number(number) => Some(Value::Number(-number)),
                _ => None,
            },
            _ => None,
        }
    }
}

fn below_document(path: &Expression) -> Option<Vec<String>> {
    match path {
        Expression::Name(..) => Some(Vec::new()),
        Expression::Member(inner, name) => {
            let mut path = below_document(inner)?;
            path.push(name.clone());
            Some(path)
        }
        _ => None,
    }
}

/// The distinct values of `values`. Only scalars are indexed; nothing equals undefined.
fn scalars(values: Vec<Value>) -> Option<Vec<Scalar>> {
    let defined = values.iter().filter(|value| !value.is_undefined());
    defined.map(Value::scalar).collect::<Option<_>>().map(distinct)
}

fn distinct(mut scalars: Vec<Scalar>) -> Vec<Scalar> {
    let mut seen = HashSet::new();
    scalars.retain(|scalar| {
        let mut bytes = Vec::new();
        scalar.encode(&mut bytes);
        seen.insert(bytes)
    });
    scalars
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn found(filter: &str) -> String {
        let query = parse(&format!("SELECT * FROM c WHERE {filter}")).unwrap();
        let parameters = Parameters::from([("@p".to_owned(), Value::text("x"))]);
        let one = |equality: Equality| format!("{}:{}", equality.path.join("."), equality.values.len());
        equalities(&query, &parameters).into_iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_conjunction_gives_its_equalities() {
        assert_eq!(found("c.a = 1 AND (c.b.d = @p AND c.e > 3)"), "a:1 b.d:1");
        assert_eq!(found("1 = c.a AND c.b IN (1, -2, null)"), "a:1 b:3");
        assert_eq!(found("c.a = 1 OR c.a = 2 OR c.a IN (3, 4)"), "a:4");
        assert_eq!(found("c.a = undefined"), "a:0");
        assert_eq!(found("c.a IN (1, 1.0, 1) OR c.a = 1 OR c.a IN (-0, 0, 'a')"), "a:3", "each value once");
        for none in ["c.a = 1 OR c.b = 2", "NOT (c.a = 1)", "c.a = c.b", "c.a = [1]", "c.a[0] = 1", "c.a != 1"] {
            assert_eq!(found(none), "", "{none}");
        }
    }

    #[test]
    fn aliases_lead_to_the_document() {
        let paths = |sql| {
            let query = parse(sql).unwrap();
            equalities(&query, &Parameters::new())
                .into_iter()
                .map(|equality| equality.path.join("."))
                .collect::<Vec<_>>()
        };
        assert_eq!(paths("SELECT VALUE x FROM anything AS x WHERE x.a = 1"), ["a"]);
        assert_eq!(paths("SELECT VALUE x FROM c.inner AS x WHERE x.a = 1"), ["inner.a"]);
        assert_eq!(paths("SELECT VALUE t FROM c JOIN t IN c.tags WHERE t.a = 1 AND c.b = 2"), ["b"]);
    }
}
