//! Why nothing can be predicted.

use std::fmt;

use narrows_model::prediction::ChangeKind;

/// Why a trial allows no prediction, or no prediction of a change. It reads as a clause without a full stop.
#[derive(Debug, Clone, PartialEq)]
pub enum Cannot {
    /// Narrows recorded no load, as in imported runs.
    NoLoad,
    /// No window had a constant load.
    NotSteady,
    /// Users and arrivals together.
    MixedLoad,
    /// No request succeeded.
    NothingCompleted,
    /// The CPU of no service was sampled.
    NoCpu,
    /// The generator's own figures are invalid.
    InvalidTrial {
        /// Why, the first reason.
        reason: Option<String>,
    },
    /// A change is read from traces, and there are none.
    NoTraces {
        /// The change.
        change: ChangeKind,
    },
    /// The run has nothing that the change names.
    Unknown {
        /// The change.
        change: ChangeKind,
        /// Its name.
        target: String,
        /// Names that it could have.
        known: Vec<String>,
    },
    /// The requests of the operation make no calls of one kind one after another.
    NotSeveralCalls {
        /// The change.
        change: ChangeKind,
        /// The operation.
        operation: String,
    },
    /// A service has no limit of CPU that could be raised.
    NoLimit {
        /// The service.
        service: String,
    },
    /// No call to the store is refused, and it reports no limit.
    NothingRefused {
        /// The store.
        store: String,
    },
    /// Nothing shows a limit on how many requests at a time are at work.
    NoSection {
        /// The service or store.
        place: String,
        /// Services and stores of which such a limit is known.
        known: Vec<String>,
    },
    /// Nothing shows calls that are made while something is held.
    NothingHeld {
        /// The service or store.
        place: String,
    },
    /// Nothing shows the wait that a change takes away.
    NoWait {
        /// The service.
        place: String,
        /// For what requests would wait.
        reason: String,
    },
    /// A change needs to say how much.
    NoAmount {
        /// The change.
        change: ChangeKind,
    },
    /// One level of load does not show how a system responds to another.
    OneLevel {
        /// The change.
        change: ChangeKind,
    },
    /// The requests of one user have nothing to share with others.
    OneUser {
        /// The change.
        change: ChangeKind,
    },
    /// A trial to compare with had another load.
    OtherLoad {
        /// The trial.
        trial: String,
    },
    /// More users than can be computed.
    TooManyUsers {
        /// How many.
        users: f64,
    },
}

impl fmt::Display for Cannot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cannot::NoLoad => f.write_str("it has no load that Narrows sent"),
            Cannot::NotSteady => f.write_str("no window of it has a constant load"),
            Cannot::MixedLoad => f.write_str("its load has users and arrivals at the same time"),
            Cannot::NothingCompleted => f.write_str("no request of it succeeded under a constant load"),
            Cannot::NoCpu => f.write_str("the CPU of its services was not sampled"),
            Cannot::InvalidTrial { reason: None } => f.write_str("its figures are invalid"),
            Cannot::InvalidTrial { reason: Some(reason) } => {
                write!(f, "its figures are invalid: {}", reason.trim_end_matches('.'))
            }
            Cannot::NoTraces { change } => write!(f, "it has no traces, which `{}` is read from", change.name()),
            Cannot::Unknown { change, target, .. } => write!(f, "it has no `{target}` for `{}`", change.name()),
            Cannot::NotSeveralCalls { change, operation } => {
                write!(f, "`{operation}` makes no calls one after another for `{}`", change.name())
            }
            Cannot::NoLimit { service } => {
                write!(f, "`{service}` has no CPU limit of its own, only the machine's")
            }
            Cannot::NothingRefused { store } => write!(f, "`{store}` refuses no call"),
            Cannot::NoSection { place, .. } => {
                write!(f, "nothing shows how many requests at a time `{place}` works on")
            }
            Cannot::NothingHeld { place } => write!(f, "nothing shows calls made while `{place}` holds something"),
            Cannot::NoWait { place, reason } => write!(f, "no wait of `{place}` for {reason} is measured"),
            Cannot::NoAmount { change } => write!(f, "`{}` needs an amount", change.name()),
            Cannot::OneLevel { change } => {
                write!(f, "it has one level of load, and `{}` needs two", change.name())
            }
            Cannot::OneUser { change } => {
                write!(
                    f,
                    "its requests come from one user, and `{}` needs several that are under way together",
                    change.name()
                )
            }
            Cannot::OtherLoad { trial } => write!(f, "{trial} had another load than the prediction is for"),
            Cannot::TooManyUsers { users } => {
                write!(f, "{users} users are too many, expected {} at most", crate::queueing::mva::USERS_MAX)
            }
        }
    }
}

impl Cannot {
    /// Advice; `None` if nothing helps.
    pub fn hint(&self) -> Option<String> {
        match self {
            Cannot::Unknown { known, .. } | Cannot::NoSection { known, .. } if !known.is_empty() => {
                Some(format!("there are {}", known.join(", ")))
            }
            Cannot::NoLimit { .. } => Some("`add-cpu=machine` gives the machine more cores".into()),
            Cannot::NotSteady => Some("use a load with constant levels, such as `ramping-vus` with `steps`".into()),
            Cannot::NoTraces { .. } => Some("let the services send OpenTelemetry traces".into()),
            Cannot::NoAmount { change } => Some(format!("write `{}={}`", change.name(), crate::usage(*change))),
            _ => None,
        }
    }
}

impl std::error::Error for Cannot {}
