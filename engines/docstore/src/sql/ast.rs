//! Syntax tree of a query: made by the parser, read by the checks, printed by the printer and run by the evaluator.

use super::functions::Function;
use super::value::Value;

/// `SELECT … FROM … WHERE … GROUP BY … ORDER BY … OFFSET … LIMIT …`, also as a subquery.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) distinct: bool,
    pub(crate) top: Option<Bound>,
    pub(crate) projection: Projection,
    /// Empty for a query without FROM, which has one row.
    pub(crate) sources: Vec<Source>,
    pub(crate) filter: Option<Expression>,
    pub(crate) group_by: Vec<Expression>,
    pub(crate) order_by: Vec<OrderKey>,
    pub(crate) offset_limit: Option<(Bound, Bound)>,
    /// Whether rows are grouped: by `GROUP BY`, or all of them into one group by an aggregate.
    pub(crate) is_grouped: bool,
}

/// A number of rows: written out or a parameter.
#[derive(Debug, Clone)]
pub(crate) enum Bound {
    Number(u64),
    Parameter(String),
}

#[derive(Debug, Clone)]
pub(crate) enum Projection {
    /// `*`
    Star,
    /// `VALUE …`
    Value(Expression),
    Items(Vec<Item>),
}

impl Projection {
    /// The expressions of the projection, in order.
    pub(crate) fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::Star => Vec::new(),
            Self::Value(expression) => vec![expression],
            Self::Items(items) => items.iter().map(|item| &item.expression).collect(),
        }
    }
}

/// One column of a projection under the name it has in results.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) expression: Expression,
    pub(crate) name: String,
}

/// Source that FROM or JOIN adds to a row.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) alias: String,
    pub(crate) rows: Rows,
}

#[derive(Debug, Clone)]
pub(crate) enum Rows {
    /// `FROM c`, `FROM c.address`: one value. The name it begins with is an outer alias, else the document.
    Below(Expression),
    /// `x IN c.array`: each element.
    Each(Expression),
    /// `(SELECT …) AS x`: the rows of a subquery.
    Subquery(Box<Query>),
    /// `x IN (SELECT …)`: the elements of each row of a subquery.
    EachOf(Box<Query>),
}

#[derive(Debug, Clone)]
pub(crate) struct OrderKey {
    pub(crate) expression: Expression,
    pub(crate) descending: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Expression {
    Literal(Value),
    /// With its `@`.
    Parameter(String),
    /// An alias, with the byte of the query it is at.
    Name(String, usize),
    Member(Box<Expression>, String),
    Index(Box<Expression>, Box<Expression>),
    Unary(Unary, Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// Two or more operands of AND.
    And(Vec<Expression>),
    /// Two or more operands of OR.
    Or(Vec<Expression>),
    Ternary(Box<[Expression; 3]>),
    In(Box<Expression>, Vec<Expression>),
    Between(Box<[Expression; 3]>),
    Like(Box<Like>),
    Call(Function, Vec<Expression>),
    Aggregate(Box<AggregateCall>),
    Array(Vec<Expression>),
    Object(Vec<(String, Expression)>),
    Exists(Box<Query>),
    ArrayOf(Box<Query>),
    Subquery(Box<Query>),
}

#[derive(Debug, Clone)]
pub(crate) struct Like {
    pub(crate) text: Expression,
    pub(crate) pattern: Expression,
    pub(crate) escape: Option<char>,
}

#[derive(Debug, Clone)]
pub(crate) struct AggregateCall {
    pub(crate) function: Aggregate,
    pub(crate) argument: Expression,
    /// Its number among the aggregates of its query, from 0.
    pub(crate) slot: usize,
    /// The byte of the query it is at.
    pub(crate) at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Minus,
    Plus,
    BitNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Coalesce,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Concat,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl Binary {
    /// How an operator is written and how strongly it binds, from 1.
    pub(crate) const ALL: [(&'static str, Self, u8); 20] = [
        ("??", Self::Coalesce, 1),
        ("=", Self::Equal, 2),
        ("!=", Self::NotEqual, 2),
        ("<>", Self::NotEqual, 2),
        ("<=", Self::LessOrEqual, 2),
        (">=", Self::GreaterOrEqual, 2),
        ("<", Self::Less, 2),
        (">", Self::Greater, 2),
        ("|", Self::BitOr, 3),
        ("^", Self::BitXor, 4),
        ("&", Self::BitAnd, 5),
        ("<<", Self::ShiftLeft, 6),
        (">>>", Self::ShiftRightUnsigned, 6),
        (">>", Self::ShiftRight, 6),
        ("||", Self::Concat, 7),
        ("+", Self::Add, 7),
        ("-", Self::Subtract, 7),
        ("*", Self::Multiply, 8),
        ("/", Self::Divide, 8),
        ("%", Self::Modulo, 8),
    ];

    pub(crate) fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(_, operator, _)| *operator == self).map_or("", |(symbol, ..)| symbol)
    }
}

/// A function over the rows of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aggregate {
    Count,
    CountIf,
    Sum,
    Average,
    Min,
    Max,
}

impl Aggregate {
    /// The name in queries and the name in query plans.
    pub(crate) const ALL: [(&'static str, &'static str, Self); 6] = [
        ("COUNT", "Count", Self::Count),
        ("COUNTIF", "CountIf", Self::CountIf),
        ("SUM", "Sum", Self::Sum),
        ("AVG", "Average", Self::Average),
        ("MIN", "Min", Self::Min),
        ("MAX", "Max", Self::Max),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name)).map(|(.., aggregate)| *aggregate)
    }

    pub(crate) fn name(self) -> &'static str {
        self.names().0
    }

    pub(crate) fn name_in_plans(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = Self::ALL.iter().find(|(.., aggregate)| *aggregate == self);
        found.map_or(("", ""), |(name, in_plans, _)| (name, in_plans))
    }
}

impl Expression {
    /// The expressions directly within this one; those of subqueries are not.
    pub(crate) fn children(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_)
            | Self::Parameter(_)
            | Self::Name(..)
            | Self::Exists(_)
            | Self::ArrayOf(_)
            | Self::Subquery(_) => Vec::new(),
            Self::Member(inner, _) | Self::Unary(_, inner) => vec![inner],
            Self::Aggregate(call) => vec![&call.argument],
            Self::Index(one, other) | Self::Binary(_, one, other) => vec![one, other],
            Self::And(operands) | Self::Or(operands) | Self::Call(_, operands) | Self::Array(operands) => {
                operands.iter().collect()
            }
            Self::Ternary(parts) | Self::Between(parts) => parts.iter().collect(),
            Self::In(value, list) => std::iter::once(&**value).chain(list).collect(),
            Self::Like(like) => vec![&like.text, &like.pattern],
            Self::Object(properties) => properties.iter().map(|(_, value)| value).collect(),
        }
    }

    /// The subquery this expression is, if it is one.
    pub(crate) fn subquery(&self) -> Option<&Query> {
        match self {
            Self::Exists(query) | Self::ArrayOf(query) | Self::Subquery(query) => Some(query),
            _ => None,
        }
    }

    /// The aggregates within this expression, outside its subqueries.
    pub(crate) fn aggregates(&self) -> Vec<&AggregateCall> {
        match self {
            Self::Aggregate(call) => vec![call],
            _ => self.children().into_iter().flat_map(Self::aggregates).collect(),
        }
    }

    /// Whether an aggregate is within this expression, outside its subqueries.
    pub(crate) fn has_aggregate(&self) -> bool {
        matches!(self, Self::Aggregate(..)) || self.children().into_iter().any(Self::has_aggregate)
    }
}

impl Query {
    /// The aggregates of SELECT, in the order of their slots.
    pub(crate) fn aggregates(&self) -> Vec<&AggregateCall> {
        let mut aggregates: Vec<_> = self.projected().into_iter().flat_map(Expression::aggregates).collect();
        aggregates.sort_by_key(|call| call.slot);
        aggregates
    }

    /// The subqueries of FROM and JOIN.
    pub(crate) fn derived_tables(&self) -> impl Iterator<Item = &Self> {
        self.sources.iter().filter_map(|source| match &source.rows {
            Rows::Subquery(query) | Rows::EachOf(query) => Some(&**query),
            Rows::Below(_) | Rows::Each(_) => None,
        })
    }

    /// Every expression that stands in a clause of this query itself.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let paths = self.sources.iter().filter_map(|source| match &source.rows {
            Rows::Below(path) | Rows::Each(path) => Some(path),
            Rows::Subquery(_) | Rows::EachOf(_) => None,
        });
        let keys = self.order_by.iter().map(|key| &key.expression);
        self.projected().into_iter().chain(paths).chain(&self.filter).chain(&self.group_by).chain(keys)
    }

    /// The parameters named anywhere in this query.
    pub(crate) fn parameters(&self) -> Vec<&str> {
        let bounds = self.top.iter().chain(self.offset_limit.iter().flat_map(|(offset, limit)| [offset, limit]));
        let mut names: Vec<&str> = bounds
            .filter_map(|bound| match bound {
                Bound::Parameter(name) => Some(name.as_str()),
                Bound::Number(_) => None,
            })
            .collect();
        let mut open: Vec<&Expression> = self.expressions().collect();
        while let Some(expression) = open.pop() {
            match expression {
                Expression::Parameter(name) => names.push(name),
                _ => names.extend(expression.subquery().into_iter().flat_map(Self::parameters)),
            }
            open.extend(expression.children());
        }
        names.extend(self.derived_tables().flat_map(Self::parameters));
        names
    }

    /// The expressions of SELECT.
    pub(crate) fn projected(&self) -> Vec<&Expression> {
        self.projection.expressions()
    }
}
