//! Limits of what a trial and a comparison show, as data. Limits of a finding are [`crate::finding::Caveat`].

mod comparison;
mod detail;
mod instrumentation;
mod place;
mod trial;

pub use comparison::{ComparisonCaveat, Skew};
pub use detail::{EndpointFault, FaultAction, Law, RequestBasis, SocketGap, SpanSource};
pub use instrumentation::{
    DifferentClocks, DoubledSpans, EndlessCalls, MissingParents, NegativeDurations, NestedDoubles, OwnParents,
    PoolSpans, RepeatedIds, SampledTraces, SpanExample, TracesWithoutRequest, UnseenDatabaseCalls, ZeroDurations,
};
pub use trial::TrialCaveat;
