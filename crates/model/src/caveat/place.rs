//! Place that a caveat of a trial is about: two caveats of one kind differ by it.

use super::instrumentation::{
    DifferentClocks, DoubledSpans, EndlessCalls, NegativeDurations, NestedDoubles, PoolSpans, TracesWithoutRequest,
    UnseenDatabaseCalls, ZeroDurations,
};
use super::trial::TrialCaveat;
use crate::load::PartSummary;

impl TrialCaveat {
    /// True if both are of one kind and about one place, so that at most their numbers differ.
    pub fn is_alike(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.place() == other.place()
    }

    /// Service, replica, parameter or page that the caveat is about; empty if it is about the whole trial.
    fn place(&self) -> &str {
        use TrialCaveat as C;
        match self {
            C::ParameterByEarlierRates { parameter: place, .. }
            | C::ParameterByUsedCpu { parameter: place, .. }
            | C::WithoutCaps { service: place, .. }
            | C::ServiceElsewhere { service: place, .. }
            | C::KilledAtStop { replica: place, .. }
            | C::ReplicaEnded { replica: place, .. }
            | C::RecordsDropped { agent: place, .. }
            | C::SentByAgent { part: PartSummary { agent: place, .. } }
            | C::Fault { replica: place, .. }
            | C::FaultNotReached { service: place, .. }
            | C::MetricsNotReported { replica: place, .. }
            | C::FileUnreadable { error: place }
            | C::ProcessEnded { service: place, .. }
            | C::Endpoint { url: place, .. }
            | C::TraceTooLarge { service: place, .. }
            | C::ServiceSilent { service: place, .. }
            | C::CallsWithoutSpans { service: place, .. }
            | C::DatabaseNotCalled { database: place }
            | C::CpuBeyondLimit { service: place, .. }
            | C::CpuOffLine { service: place, .. }
            | C::CallsLost { service: place, .. }
            | C::TracesWithoutRequest(TracesWithoutRequest { service: place, .. })
            | C::UnseenDatabaseCalls(UnseenDatabaseCalls { service: place, .. })
            | C::DifferentClocks(DifferentClocks { callee: place, .. })
            | C::NegativeDurations(NegativeDurations { service: place, .. })
            | C::ZeroDurations(ZeroDurations { service: place, .. })
            | C::EndlessCalls(EndlessCalls { service: place, .. })
            | C::DoubledSpans(DoubledSpans { service: place, .. })
            | C::NestedDoubles(NestedDoubles { service: place, .. })
            | C::PoolSpans(PoolSpans { service: place, .. })
            | C::MorePlaces { check: place, .. } => place,
            _ => "",
        }
    }
}
