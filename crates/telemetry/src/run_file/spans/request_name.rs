//! Name of a request under the names of Application Insights, decided once for a shape.
//!
//! The name that the service gives the product itself; else the span's, as long as it begins with the method; else method
//! and route, or method and path. A path may be another one for each span: such a name is no part of the shape, the view
//! `spans` makes it.

use std::borrow::Cow;

use narrows_model::trace::{SpanFacts, SpanKind};
use serde_json::{Map, Value};

use super::layout::push_value;

/// The attribute by which a service names a request itself.
const OWN_NAME: &str = "microsoft.request.name";

/// Where the name of a request comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RequestName<'a> {
    /// The span is no request.
    Absent,
    /// The span's own.
    OfSpan(&'a str),
    Given(&'a Value),
    OfRoute(&'a str, &'a str),
    /// Method and path, which are no part of a shape.
    OfAddress,
}

impl<'a> RequestName<'a> {
    /// Decides.
    pub(super) fn new(kind: SpanKind, name: &'a str, facts: &'a SpanFacts, attributes: &'a Map<String, Value>) -> Self {
        if !matches!(kind, SpanKind::Server | SpanKind::Consumer) {
            return RequestName::Absent;
        }
        if let Some(given) = attributes.get(OWN_NAME) {
            return if given.is_null() { RequestName::OfSpan(name) } else { RequestName::Given(given) };
        }
        let Some(method) = facts.http_method.as_deref() else { return RequestName::OfSpan(name) };
        if name.strip_prefix(method).is_some_and(|rest| rest.starts_with(' ')) {
            return RequestName::OfSpan(name);
        }
        match (facts.http_route.as_deref(), facts.url.as_deref()) {
            (Some(route), _) => RequestName::OfRoute(method, route),
            (None, Some(url)) if url.starts_with('/') => RequestName::OfAddress,
            _ => RequestName::OfSpan(name),
        }
    }

    /// Adds what a shape's other parts do not say.
    pub(super) fn push(self, key: &mut Vec<u8>) {
        match self {
            RequestName::Absent | RequestName::OfSpan(_) | RequestName::OfRoute(..) => key.push(0),
            RequestName::OfAddress => key.push(1),
            RequestName::Given(given) => {
                key.push(2);
                push_value(key, given);
            }
        }
    }

    /// The name; `None` where there is none, and where each span has its own.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            RequestName::Absent | RequestName::OfAddress => None,
            RequestName::OfSpan(name) => Some(Cow::Borrowed(name)),
            RequestName::Given(Value::String(given)) => Some(Cow::Borrowed(given)),
            RequestName::Given(given) => Some(Cow::Owned(given.to_string())),
            RequestName::OfRoute(method, route) => Some(Cow::Owned(format!("{method} {route}"))),
        }
    }
}
