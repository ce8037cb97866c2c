//! A query as the parser leaves it: what was written, with its places, before any name is looked up.

use narrows_model::table::Chart;

use crate::error::TextRange;
use crate::types::Type;

/// A name and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) place: TextRange,
}

/// `let name = value;`
#[derive(Debug, Clone)]
pub(crate) struct Let {
    pub(crate) name: Name,
    pub(crate) value: Expression,
}

#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) lets: Vec<Let>,
    pub(crate) body: Expression,
}

#[derive(Debug, Clone)]
pub(crate) struct Expression {
    pub(crate) kind: Shape,
    pub(crate) place: TextRange,
    /// How many levels deep it is.
    pub(crate) height: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Literal(Literal),
    Name(String),
    /// `*`, as an argument.
    Star,
    /// `value.key`
    Member(Box<Expression>, Name),
    /// `value[index]`
    Index(Box<Expression>, Box<Expression>),
    Call(Name, Vec<Expression>),
    Negative(Box<Expression>),
    Binary(Binary, Box<Expression>, Box<Expression>),
    /// `and` or `or` over two or more.
    All(Logic, Vec<Expression>),
    /// An operator over strings, such as `has`, with whether a `!` stands before it.
    Matches(Match, Box<Expression>, Box<Expression>, bool),
    /// `in`, `in~`, `has_any`, `has_all`, with whether a `!` stands before it.
    OneOf(Members, Box<Expression>, Vec<Expression>, bool),
    /// `between (low .. high)`, with whether a `!` stands before it.
    Between(Box<Expression>, Box<Expression>, Box<Expression>, bool),
    /// A table: a source and what follows it.
    Pipeline(Box<Pipeline>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null(Type),
    Bool(bool),
    Long(i64),
    Real(f64),
    Text(String),
    Datetime(i64),
    Timespan(i64),
    /// JSON.
    Dynamic(serde_json::Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Binary {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Modulo => "%",
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessOrEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterOrEqual => ">=",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    EqualAnyCase,
    Contains,
    ContainsCase,
    Has,
    HasCase,
    StartsWith,
    StartsWithCase,
    EndsWith,
    EndsWithCase,
    Regex,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Members {
    In,
    InAnyCase,
    HasAny,
    HasAll,
}

/// A table and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    pub(crate) source: Source,
    pub(crate) operators: Vec<Operator>,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A name, a call of `materialize`, or a pipeline in parentheses.
    Expression(Expression),
    Union(Union),
    Print(Vec<Item>),
    Datatable(Vec<(Name, Type)>, Vec<Expression>, TextRange),
    Range(Name, Box<[Expression; 3]>),
}

#[derive(Debug, Clone)]
pub(crate) struct Union {
    pub(crate) is_inner: bool,
    pub(crate) with_source: Option<Name>,
    pub(crate) tables: Vec<Expression>,
}

/// A value in a list, with the names that it gets: `a = x`, or `(a, b) = x`.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) names: Vec<Name>,
    pub(crate) value: Expression,
}

/// A name in which `*` stands for anything.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) place: TextRange,
    /// It was written in brackets, so that its stars are stars.
    pub(crate) is_quoted: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(crate) kind: Step,
    pub(crate) place: TextRange,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Where(Expression),
    Extend(Vec<Item>),
    Serialize(Vec<Item>),
    Project(Vec<Item>),
    ProjectAway(Vec<Pattern>),
    ProjectKeep(Vec<Pattern>),
    ProjectReorder(Vec<Pattern>),
    /// New name, old name.
    ProjectRename(Vec<(Name, Name)>),
    Summarize(Vec<Item>, Vec<Item>),
    Distinct(Vec<Expression>),
    Join(JoinKind, Expression, Vec<Expression>),
    Union(Union),
    Sort(Vec<SortKey>),
    Take(Expression),
    Top(Expression, Vec<SortKey>),
    Count,
    Render(Chart),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    InnerUnique,
    Inner,
    LeftOuter,
    LeftSemi,
    LeftAnti,
}

#[derive(Debug, Clone)]
pub(crate) struct SortKey {
    pub(crate) value: Expression,
    pub(crate) is_ascending: bool,
    pub(crate) nulls_first: Option<bool>,
}
