//! A query as the parser leaves it: what was written, with its places, before any name is looked up.

use std::rc::Rc;

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
    /// A function, as the value of a `let`.
    Function(Rc<Function>),
}

/// `(a: long, T: (*)) { body }`
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Query,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Name,
    pub(crate) kind: ParameterKind,
    pub(crate) default: Option<Expression>,
}

#[derive(Debug)]
pub(crate) enum ParameterKind {
    Value(Type),
    /// A table that has these columns, and perhaps others.
    Table(Vec<(Name, Type)>),
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
    HasPrefix,
    HasPrefixCase,
    HasSuffix,
    HasSuffixCase,
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
    /// Whether tables that do not exist are ignored.
    pub(crate) is_fuzzy: bool,
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
    Join(Join),
    Union(Union),
    Sort(Vec<SortKey>),
    Take(Expression),
    Top(Expression, Vec<SortKey>),
    Count,
    GetSchema,
    Invoke(Name, Vec<Expression>),
    MakeSeries(Box<MakeSeries>),
    MvExpand(MvExpand),
    Parse(Parse),
    TopNested(Vec<NestedLevel>),
    Render(Chart),
}

/// `join`, or `lookup`, which omits the right table's key columns.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) kind: JoinKind,
    pub(crate) is_lookup: bool,
    pub(crate) right: Expression,
    pub(crate) conditions: Vec<Expression>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinKind {
    InnerUnique,
    Inner,
    LeftOuter,
    RightOuter,
    FullOuter,
    LeftSemi,
    LeftAnti,
    RightSemi,
    RightAnti,
}

/// `make-series a = f(x) default = 0, … on axis from … to … step … by …`
#[derive(Debug, Clone)]
pub(crate) struct MakeSeries {
    /// Whether an empty table still gives one row.
    pub(crate) is_nonempty: bool,
    pub(crate) values: Vec<(Item, Option<Expression>)>,
    pub(crate) axis: Item,
    pub(crate) from: Option<Expression>,
    pub(crate) to: Option<Expression>,
    /// Whether it is written as `in range(from, to, step)`: bins count from zero, and `to` is the start of the last.
    pub(crate) is_range: bool,
    pub(crate) step: Expression,
    pub(crate) by: Vec<Item>,
}

/// `mv-expand a, b to typeof(long) limit 5`
#[derive(Debug, Clone)]
pub(crate) struct MvExpand {
    /// Whether a bag is expanded to pairs of key and value, not to single-key bags.
    pub(crate) is_pairs: bool,
    pub(crate) index: Option<Name>,
    pub(crate) values: Vec<(Item, Option<Type>)>,
    pub(crate) limit: Option<Expression>,
}

/// `parse x with * "a=" a: long …`
#[derive(Debug, Clone)]
pub(crate) struct Parse {
    pub(crate) kind: ParseKind,
    /// Flags of the regular expression.
    pub(crate) flags: String,
    pub(crate) value: Expression,
    pub(crate) pattern: Vec<ParsePart>,
    /// Whether it is `parse-where`, which drops rows that do not match.
    pub(crate) is_filter: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParseKind {
    Simple,
    Regex,
    Relaxed,
}

#[derive(Debug, Clone)]
pub(crate) enum ParsePart {
    /// `*`
    Any,
    Text(String),
    Column(Name, Type),
}

/// One level: `top-nested 3 of a by sum(b)`.
#[derive(Debug, Clone)]
pub(crate) struct NestedLevel {
    pub(crate) count: Option<Expression>,
    pub(crate) value: Item,
    pub(crate) by: Item,
    pub(crate) is_ascending: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct SortKey {
    pub(crate) value: Expression,
    pub(crate) is_ascending: bool,
    pub(crate) nulls_first: Option<bool>,
}
