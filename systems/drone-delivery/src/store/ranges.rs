//! The container's partition key ranges: read once, kept until a query finds that they have changed.

use std::sync::Arc;

use opentelemetry::Context;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::StoreError;
use super::wire::Wire;

/// Ids of ranges, in the order of the ranges.
pub(super) type RangeIds = Arc<[Arc<str>]>;

/// The ranges, once they are known. The first caller reads them while the others wait.
#[derive(Debug, Default)]
pub(super) struct Ranges(Mutex<Option<RangeIds>>);

#[derive(Deserialize)]
struct Listing {
    #[serde(rename = "PartitionKeyRanges")]
    ranges: Vec<Range>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    id: String,
    min_inclusive: String,
}

impl Ranges {
    pub(super) async fn get(&self, wire: &Wire, parent: &Context) -> Result<RangeIds, StoreError> {
        let mut known = self.0.lock().await;
        if let Some(ranges) = known.as_ref() {
            return Ok(Arc::clone(ranges));
        }
        let ranges = read(&wire.ranges(parent).await?)?;
        *known = Some(Arc::clone(&ranges));
        Ok(ranges)
    }

    pub(super) async fn forget(&self) {
        *self.0.lock().await = None;
    }
}

fn read(body: &[u8]) -> Result<RangeIds, StoreError> {
    let listing: Listing =
        serde_json::from_slice(body).map_err(|error| StoreError::Malformed(format!("its ranges: {error}")))?;
    let mut ranges = listing.ranges;
    if ranges.is_empty() {
        return Err(StoreError::Malformed("it has no ranges".to_owned()));
    }
    ranges.sort_by(|left, right| left.min_inclusive.cmp(&right.min_inclusive));
    Ok(ranges.into_iter().map(|range| range.id.into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_the_order_of_their_keys() {
        let listing = r#"{"PartitionKeyRanges":[{"id":"2","minInclusive":"0E"},{"id":"7","minInclusive":""}]}"#;
        assert_eq!(read(listing.as_bytes()).unwrap().join(" "), "7 2");
    }

    #[test]
    fn a_listing_that_is_none_is_refused() {
        for wrong in ["", "{}", "[]", r#"{"PartitionKeyRanges":[]}"#, r#"{"PartitionKeyRanges":[{"id":1}]}"#] {
            assert!(matches!(read(wrong.as_bytes()), Err(StoreError::Malformed(_))), "{wrong}");
        }
    }
}
