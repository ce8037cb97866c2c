//! Provisioned throughput as clients set it: manual, or autoscale up to a maximum.
//!
//! Autoscale provides its maximum at all times: what differs in Cosmos DB is the bill, not the budget.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Cosmos DB's own ceiling of one physical partition, in RU/s.
pub(crate) const MAX_RU_PER_SECOND_OF_PARTITION: u32 = 10_000;
const MANUAL_MIN: u32 = 400;
const MANUAL_STEP: u32 = 100;
const AUTOSCALE_MIN: u32 = 1_000;
const AUTOSCALE_STEP: u32 = 1_000;
const MAX: u32 = 1_000_000;

/// Provisioned throughput of a container, in RU/s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Throughput {
    Manual(u32),
    Autoscale { max: u32 },
}

impl Throughput {
    /// Throughput of a container whose creator names none.
    pub(crate) const DEFAULT: Self = Self::Manual(MANUAL_MIN);

    /// Manual throughput as a client may set it.
    pub(crate) fn manual(text: &str) -> Result<Self, String> {
        within(text, MANUAL_MIN, MANUAL_STEP).map(Self::Manual)
    }

    /// Autoscale as `{"maxThroughput": 4000}`.
    pub(crate) fn autoscale(settings: &Value) -> Result<Self, String> {
        within(&settings["maxThroughput"].to_string(), AUTOSCALE_MIN, AUTOSCALE_STEP).map(|max| Self::Autoscale { max })
    }

    /// The content of a changed offer.
    pub(crate) fn from_content(content: &Value) -> Result<Self, String> {
        match &content["offerAutopilotSettings"] {
            Value::Null => Self::manual(&content["offerThroughput"].to_string()),
            settings => Self::autoscale(settings),
        }
    }

    /// The content of an offer.
    pub(crate) fn content(self) -> Value {
        let mut content = json!({
            "offerThroughput": self.ru_per_second(),
            "offerIsRUPerMinuteThroughputEnabled": false,
            "offerMinimumThroughputParameters": { "maxThroughputEverProvisioned": self.ru_per_second() },
        });
        if let Self::Autoscale { max } = self {
            content["offerAutopilotSettings"] =
                json!({ "tier": 0, "maximumTierThroughput": max, "maxThroughput": max });
        }
        content
    }

    /// The same throughput under the other rule, or its least amount.
    pub(crate) fn migrated_to_autoscale(self) -> Self {
        let max = self.ru_per_second().next_multiple_of(AUTOSCALE_STEP).max(AUTOSCALE_MIN);
        Self::Autoscale { max }
    }

    pub(crate) fn migrated_to_manual(self) -> Self {
        Self::Manual(self.ru_per_second())
    }

    /// Units that each second provides.
    pub(crate) fn ru_per_second(self) -> u32 {
        match self {
            Self::Manual(amount) | Self::Autoscale { max: amount } => amount,
        }
    }

    /// The physical partitions it takes to provide it.
    pub(crate) fn partitions(self) -> u32 {
        self.ru_per_second().div_ceil(MAX_RU_PER_SECOND_OF_PARTITION).max(1)
    }
}

fn within(text: &str, min: u32, step: u32) -> Result<u32, String> {
    match text.parse() {
        Ok(amount) if (min..=MAX).contains(&amount) && amount % step == 0 => Ok(amount),
        _ => Err(format!("the throughput is {text}, expected {min} to {MAX} in steps of {step}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_that_is_not_offered_is_refused() {
        assert_eq!(Throughput::manual("400"), Ok(Throughput::Manual(400)));
        let autoscale = |max: u32| Throughput::autoscale(&json!({ "maxThroughput": max }));
        assert_eq!(autoscale(4_000), Ok(Throughput::Autoscale { max: 4_000 }));
        for text in ["399", "450", "1000100", "-400", "", "null"] {
            let expected = format!("the throughput is {text}, expected 400 to 1000000 in steps of 100");
            assert_eq!(Throughput::manual(text), Err(expected));
        }
        assert_eq!(autoscale(1_500).unwrap_err(), "the throughput is 1500, expected 1000 to 1000000 in steps of 1000");
    }

    #[test]
    fn content_is_read_back() {
        for throughput in [Throughput::Manual(500), Throughput::Autoscale { max: 7_000 }] {
            assert_eq!(Throughput::from_content(&throughput.content()), Ok(throughput));
        }
    }

    #[test]
    fn migration_keeps_what_it_may() {
        assert_eq!(Throughput::Manual(400).migrated_to_autoscale(), Throughput::Autoscale { max: 1_000 });
        assert_eq!(Throughput::Manual(4_100).migrated_to_autoscale(), Throughput::Autoscale { max: 5_000 });
        assert_eq!(Throughput::Autoscale { max: 5_000 }.migrated_to_manual(), Throughput::Manual(5_000));
    }

    #[test]
    fn ten_thousand_fit_in_a_partition() {
        let partitions = |amount| Throughput::Manual(amount).partitions();
        assert_eq!([partitions(0), partitions(10_000), partitions(10_100), partitions(90_000)], [1, 1, 2, 9]);
    }
}
