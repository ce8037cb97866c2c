//! Load to send (a plan) and its results (per-second rows and samples).
//!
//! The plan is what the lab hands to the load engine after it has bound `${…}`; `{{…}}` is still open in it, as
//! [`Segment::Field`], and is bound once per request.

mod counts;
mod data;
mod failures;
mod model;
mod part;
mod plan;
mod program;
mod recovery;
mod scenario;
mod spread;
mod template;

pub(crate) use counts::add_counts;
pub use counts::{LoadBatch, LoadSecond, Sample};
pub use data::{DataSource, DataValues, Pick};
pub use failures::{ErrorCause, ErrorCounts, ErrorKind};
pub use model::{Arrivals, Iterations, LoadLimits, LoadModel, RateStage, Stage, StageShape};
pub use part::{ClockOffset, LostShare, PartSummary};
pub use plan::{Connections, LoadPlan, Protocol, Retry, Tls, Tracing, Trust};
pub use program::{LatencyFigures, LoadProgram, ReportedLoad, Threshold};
pub use recovery::{Recovery, RecoveryEnd, recovery};
pub use scenario::{Check, Cookies, Extract, Flow, Place, Scenario, Step, ThinkTime};
pub use spread::Spread;
pub use template::{RequestTemplate, Segment, Template};
