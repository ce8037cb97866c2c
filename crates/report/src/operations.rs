//! The operations of a run, each once with all its variants, slowest first; and the calls of one operation added up.
//!
//! Where an operation calls a database, only those calls are reported: they are what a query plan predicts.

use narrows_model::comparison::Comparison;
use narrows_model::operation::{CallSummary, OperationSummary};

use crate::figures::number;

/// One operation over the variants.
pub(crate) struct ComparedOperation<'a> {
    pub(crate) service: &'a str,
    pub(crate) name: &'a str,
    /// Variant and numbers, in the order of the variants; variants without it are left out.
    pub(crate) variants: Vec<(&'a str, &'a OperationSummary)>,
}

/// The calls of one operation together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Calls {
    pub(crate) succeeded_per_operation: f64,
    pub(crate) attempts_per_operation: f64,
    pub(crate) throttled: f64,
    /// Request units; `None` if no call records a charge.
    pub(crate) charge_per_operation: Option<f64>,
}

/// Columns that there are to report for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CallColumns {
    /// Calls are made.
    pub(crate) calls: bool,
    /// Some attempts did not succeed, so there are more attempts than calls.
    pub(crate) attempts: bool,
    /// The called store refuses calls: it did so, or it charges for them.
    pub(crate) refusals: bool,
    /// The called store charges for calls.
    pub(crate) charges: bool,
}

impl CallColumns {
    fn of(calls: &Calls) -> Self {
        let charges = calls.charge_per_operation.is_some();
        let refusals = charges || calls.throttled > 0.0;
        let [succeeded, attempts] = [calls.succeeded_per_operation, calls.attempts_per_operation].map(number);
        Self { calls: true, attempts: refusals || succeeded != attempts, refusals, charges }
    }

    /// The union of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls || other.calls,
            attempts: self.attempts || other.attempts,
            refusals: self.refusals || other.refusals,
            charges: self.charges || other.charges,
        }
    }
}

/// All operations, those with the largest mean in any variant first.
pub(crate) fn compared(comparison: &Comparison) -> Vec<ComparedOperation<'_>> {
    let mut all: Vec<ComparedOperation<'_>> = Vec::new();
    for variant in &comparison.variants {
        for operation in &variant.operations {
            let known = all.iter().position(|o| o.service == operation.service && o.name == operation.name);
            let position = known.unwrap_or_else(|| {
                all.push(ComparedOperation {
                    service: &operation.service,
                    name: &operation.name,
                    variants: Vec::new(),
                });
                all.len() - 1
            });
            all[position].variants.push((&variant.variant, operation));
        }
    }
    let slowest =
        |compared: &ComparedOperation<'_>| compared.variants.iter().map(|(_, o)| o.mean_ns).fold(0.0, f64::max);
    all.sort_by(|a, b| slowest(b).total_cmp(&slowest(a)));
    all
}

impl ComparedOperation<'_> {
    /// True if a database is called in any variant.
    pub(crate) fn calls_database(&self) -> bool {
        self.variants.iter().any(|(_, operation)| operation.calls.iter().any(|call| call.is_database))
    }

    /// The columns known for its calls in any variant: a table leaves out those that the called stores lack.
    pub(crate) fn known(&self) -> CallColumns {
        let each = self.variants.iter().filter_map(|(_, operation)| calls(operation));
        each.fold(CallColumns::default(), |known, calls| known.and(CallColumns::of(&calls)))
    }

    /// Targets of the reported calls, each once.
    pub(crate) fn targets(&self) -> Vec<&str> {
        let mut targets: Vec<&str> = Vec::new();
        for call in self.variants.iter().flat_map(|(_, operation)| main_calls(operation)) {
            if !call.target.is_empty() && !targets.contains(&call.target.as_str()) {
                targets.push(&call.target);
            }
        }
        targets
    }
}

/// The calls of an operation together; `None` if it makes none.
pub(crate) fn calls(operation: &OperationSummary) -> Option<Calls> {
    main_calls(operation).fold(None, |sum: Option<Calls>, call| {
        let sum = sum.unwrap_or_default();
        let charge = match (sum.charge_per_operation, call.charge_per_operation) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        Some(Calls {
            succeeded_per_operation: sum.succeeded_per_operation + call.succeeded_per_operation,
            attempts_per_operation: sum.attempts_per_operation + call.attempts_per_operation,
            throttled: sum.throttled + call.throttled,
            charge_per_operation: charge,
        })
    })
}

fn main_calls(operation: &OperationSummary) -> impl Iterator<Item = &CallSummary> {
    let calls_database = operation.calls.iter().any(|call| call.is_database);
    operation.calls.iter().filter(move |call| call.is_database || !calls_database)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::drones;

    #[test]
    fn operations_are_reported_once_with_all_their_variants() {
        let comparison = drones::outcome().comparison;
        let all = compared(&comparison);
        let services: Vec<_> = all.iter().map(|o| (o.service, o.variants.len(), o.calls_database())).collect();
        let expected =
            [("gateway", 4, false), ("drone-scheduler", 4, true), ("delivery", 4, false), ("package", 4, false)];
        assert_eq!(services, expected);
        assert_eq!((all[1].targets(), all[2].targets()), (vec!["azure.cosmosdb"], vec![]));
    }

    #[test]
    fn calls_of_databases_are_distinguished_from_others() {
        let call = |is_database, succeeded, charge| CallSummary {
            is_database,
            succeeded_per_operation: succeeded,
            attempts_per_operation: succeeded + 1.0,
            throttled: 5.0,
            charge_per_operation: charge,
            ..CallSummary::default()
        };
        let of = |calls: Vec<CallSummary>| calls_of(calls);
        assert_eq!(of(Vec::new()), None);
        let mixed = of(vec![call(false, 3.0, None), call(true, 9.0, Some(29.0)), call(true, 1.0, None)]).unwrap();
        assert_eq!((mixed.succeeded_per_operation, mixed.attempts_per_operation, mixed.throttled), (10.0, 12.0, 10.0));
        assert_eq!(mixed.charge_per_operation, Some(29.0));
        assert_eq!(of(vec![call(false, 3.0, None)]).unwrap().succeeded_per_operation, 3.0);
    }

    #[test]
    fn attempts_refusals_and_charges_are_known_only_of_stores_that_have_them() {
        let of = |attempts_per_operation, throttled, charge_per_operation| {
            CallColumns::of(&Calls {
                succeeded_per_operation: 9.0,
                attempts_per_operation,
                throttled,
                charge_per_operation,
            })
        };
        let plain = CallColumns { calls: true, ..CallColumns::default() };
        assert_eq!(of(9.001, 0.0, None), plain, "what is written alike is alike");
        assert_eq!(of(9.5, 0.0, None), CallColumns { attempts: true, ..plain });
        assert_eq!(of(9.5, 2.0, None), CallColumns { attempts: true, refusals: true, ..plain });
        assert_eq!(of(9.0, 0.0, Some(29.0)), CallColumns { attempts: true, refusals: true, charges: true, ..plain });
        assert_eq!(CallColumns::default().and(plain), plain);
        let mut comparison = drones::outcome().comparison;
        assert!(compared(&comparison)[1].known().charges);
        comparison.variants.iter_mut().flat_map(|variant| &mut variant.operations).for_each(|one| one.calls.clear());
        assert_eq!(compared(&comparison)[1].known(), CallColumns::default());
    }

    fn calls_of(calls: Vec<CallSummary>) -> Option<Calls> {
        super::calls(&OperationSummary { calls, ..OperationSummary::default() })
    }
}
