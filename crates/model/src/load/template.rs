//! Requests with places to fill in.
//!
//! Which value fills a place is drawn by the load engine; here is only what the places are.

use serde::{Deserialize, Serialize};

/// An HTTP request with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTemplate {
    /// The method, upper case.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Header names and values; `Host` is added from `host` unless it is here.
    pub headers: Vec<(String, Template)>,
    /// The body, if any.
    pub body: Option<Template>,
    /// The `Host` header's value.
    pub host: String,
}

/// Text with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Template {
    /// In order.
    pub segments: Vec<Segment>,
}

impl Template {
    /// A template without places.
    pub fn text(text: impl Into<String>) -> Self {
        Self { segments: vec![Segment::Text(text.into())] }
    }
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segment {
    /// Sent as it is.
    Text(String),
    /// The value drawn from a data source for this request.
    Field {
        /// Index into [`LoadPlan::data`](super::LoadPlan::data).
        source: usize,
        /// Column of that source, 0 when it has one only.
        column: usize,
    },
    /// Value that an earlier step of the iteration extracted; empty before.
    Variable(usize),
}
