//! Limits of what a trial and a comparison show, as data. Limits of a finding are [`crate::finding::Caveat`].

mod comparison;
mod instrumentation;
mod trial;

pub use comparison::{ComparisonCaveat, Skew};
pub use instrumentation::{
    DifferentClocks, DoubledSpans, EndlessCalls, MissingParents, NegativeDurations, NestedDoubles, OwnParents,
    PoolSpans, RepeatedIds, SampledTraces, SpanExample, TracesWithoutRequest, UnseenDatabaseCalls, ZeroDurations,
};
pub use trial::{EndpointFault, FaultAction, Law, RequestBasis, SocketGap, SpanSource, TrialCaveat};
