//! Flows of a scenario: steps, and for each response its checks and captures.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{LoadModel, RequestTemplate};

/// A population of virtual users that draw from the same flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The scenario's name in the experiment file.
    pub name: String,
    /// How many users, when.
    pub model: LoadModel,
    /// How long the first load level is held before anything counts.
    pub warmup: Duration,
    /// Flows of the iterations, one or more; each iteration draws one by weight.
    pub flows: Vec<Flow>,
    /// Treatment of the cookies that responses set.
    pub cookies: Cookies,
    /// The pause between a response and the user's next request. Of no effect between the iterations of an arrival-rate
    /// model.
    pub think_time: ThinkTime,
    /// The least time between the beginnings of two iterations of one user; `None` for no limit.
    pub pace: Option<Duration>,
}

/// The length of a user's pauses, each drawn evenly from a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThinkTime {
    /// The shortest.
    pub from: Duration,
    /// The longest, at least as long.
    pub to: Duration,
}

impl ThinkTime {
    /// The mean length.
    pub fn mean(&self) -> Duration {
        (self.from + self.to) / 2
    }
}

/// Pauses of one length.
impl From<Duration> for ThinkTime {
    fn from(length: Duration) -> Self {
        Self { from: length, to: length }
    }
}

/// The requests of an iteration, one after the other on one user's connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name; empty when the scenario has one flow only.
    pub name: String,
    /// How often it is drawn, against the weights of the scenario's other flows; above 0.
    pub weight: f64,
    /// Its steps in order, one or more. An iteration ends early with a step that fails.
    pub steps: Vec<Step>,
}

impl Flow {
    /// The only flow of a scenario that sends one request again and again.
    pub fn single(request: RequestTemplate) -> Self {
        Self { name: String::new(), weight: 1.0, steps: vec![Step::new(request)] }
    }
}

/// A request with what is expected of its response and taken from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name, unlike any other of the scenario's; empty when the scenario has one step only.
    pub name: String,
    /// Request.
    pub request: RequestTemplate,
    /// Checks that the response must pass to count as a success. Without any check, its status must be below 400.
    pub checks: Vec<Check>,
    /// Values kept of the response for later steps of the iteration. One that cannot be found fails the step.
    pub extract: Vec<Extract>,
    /// The pause after it, in place of the scenario's.
    pub think_time: Option<ThinkTime>,
    /// How many redirects are followed at most, within the same target; 0 follows none. The whole chain is one
    /// request.
    pub redirects_max: u8,
}

impl Step {
    /// A step that only sends a request.
    pub fn new(request: RequestTemplate) -> Self {
        Self {
            name: String::new(),
            request,
            checks: Vec::new(),
            extract: Vec::new(),
            think_time: None,
            redirects_max: 0,
        }
    }
}

/// Treatment of the cookies that responses set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cookies {
    /// They are ignored.
    #[default]
    Ignored,
    /// They are sent back by later steps of the iteration.
    PerIteration,
    /// They are sent back as long as the user lives.
    PerUser,
}

/// Condition that a response must meet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Check {
    /// Its status is one of these ranges, both ends included.
    Status(Vec<(u16, u16)>),
    /// Its body holds this text.
    BodyContains(String),
    /// It has this header, with this value unless there is none to compare; names without regard to case.
    Header {
        /// The header's name.
        name: String,
        /// The whole value.
        value: Option<String>,
    },
    /// Its body is JSON and holds this value at this place.
    Json {
        /// An RFC 6901 JSON pointer.
        pointer: String,
        /// The value; `None` for any.
        value: Option<serde_json::Value>,
    },
}

/// Value that is kept of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extract {
    /// The variable it becomes: an index that [`Segment::Variable`](super::Segment::Variable) names.
    pub variable: usize,
    /// The variable's name, for people.
    pub name: String,
    /// Where it is found.
    pub from: Place,
}

/// Where in a response a value is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In a JSON body, by an RFC 6901 JSON pointer. Texts as they are, numbers and the rest as JSON.
    Json(String),
    /// In the first header of this name.
    Header(String),
    /// In the body, by a regular expression's first group, or all of its match when it has none.
    Regex(String),
}
