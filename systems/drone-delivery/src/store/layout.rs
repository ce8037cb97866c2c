//! Layout of the container: its partition key and the ranges of its keys. Each is read when a query first needs it
//! and kept.

use std::sync::Arc;

use opentelemetry::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::StoreError;
use super::wire::Wire;

/// Ids of ranges, in the order of the ranges.
pub(super) type RangeIds = Arc<[Arc<str>]>;
/// The properties that make up the partition key.
pub(super) type KeyProperties = Arc<[String]>;

/// Facts about the container. The first caller reads while the others wait.
#[derive(Debug, Default)]
pub(super) struct Layout {
    key: Mutex<Option<KeyProperties>>,
    ranges: Mutex<Option<RangeIds>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    partition_key: PartitionKey,
}

#[derive(Deserialize)]
struct PartitionKey {
    paths: Vec<String>,
}

#[derive(Deserialize)]
struct RangeList {
    #[serde(rename = "PartitionKeyRanges")]
    ranges: Vec<Range>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Range {
    id: String,
    min_inclusive: String,
}

impl Layout {
    pub(super) async fn key(&self, wire: &Wire, parent: &Context) -> Result<KeyProperties, StoreError> {
        let mut known = self.key.lock().await;
        if let Some(key) = known.as_ref() {
            return Ok(Arc::clone(key));
        }
        let key = key_of(&wire.container(parent).await?)?;
        *known = Some(Arc::clone(&key));
        Ok(key)
    }

    pub(super) async fn ranges(&self, wire: &Wire, parent: &Context) -> Result<RangeIds, StoreError> {
        let mut known = self.ranges.lock().await;
        if let Some(ranges) = known.as_ref() {
            return Ok(Arc::clone(ranges));
        }
        let ranges = ranges_of(&wire.ranges(parent).await?)?;
        *known = Some(Arc::clone(&ranges));
        Ok(ranges)
    }

    /// After a split, which leaves the partition key as it was.
    pub(super) async fn forget_ranges(&self) {
        *self.ranges.lock().await = None;
    }

    /// After the store was away: it may have come back with another container of the same name.
    pub(super) async fn forget(&self) {
        *self.key.lock().await = None;
        self.forget_ranges().await;
    }
}

fn key_of(body: &[u8]) -> Result<KeyProperties, StoreError> {
    let container: Container = read(body, "its container")?;
    let paths = container.partition_key.paths;
    let properties: Option<Vec<String>> =
        paths.iter().map(|path| path.strip_prefix('/').filter(|name| !name.is_empty()).map(str::to_owned)).collect();
    match properties {
        Some(properties) if !properties.is_empty() => Ok(properties.into()),
        _ => Err(StoreError::Malformed(format!("its container: the paths {paths:?} are no partition key"))),
    }
}

fn ranges_of(body: &[u8]) -> Result<RangeIds, StoreError> {
    let mut ranges = read::<RangeList>(body, "its ranges")?.ranges;
    if ranges.is_empty() {
        return Err(StoreError::Malformed("it has no ranges".to_owned()));
    }
    ranges.sort_by(|left, right| left.min_inclusive.cmp(&right.min_inclusive));
    Ok(ranges.into_iter().map(|range| range.id.into()).collect())
}

fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, StoreError> {
    serde_json::from_slice(body).map_err(|error| StoreError::Malformed(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_the_order_of_their_keys() {
        let listing = r#"{"PartitionKeyRanges":[{"id":"2","minInclusive":"0E"},{"id":"7","minInclusive":""}]}"#;
        assert_eq!(ranges_of(listing.as_bytes()).unwrap().join(" "), "7 2");
    }

    #[test]
    fn a_listing_that_is_none_is_refused() {
        for wrong in ["", "{}", "[]", r#"{"PartitionKeyRanges":[]}"#, r#"{"PartitionKeyRanges":[{"id":1}]}"#] {
            assert!(matches!(ranges_of(wrong.as_bytes()), Err(StoreError::Malformed(_))), "{wrong}");
        }
    }

    #[test]
    fn the_partition_key_is_read_from_the_description() {
        let key = |paths: &str| key_of(format!(r#"{{"id":"c","partitionKey":{{"paths":{paths}}}}}"#).as_bytes());
        assert_eq!(*key(r#"["/ownerId"]"#).unwrap(), ["ownerId".to_owned()]);
        assert_eq!(key(r#"["/tenant","/owner"]"#).unwrap().join(" "), "tenant owner");
        for wrong in ["[]", r#"[""]"#, r#"["/"]"#, r#"["ownerId"]"#, "[1]", "null"] {
            assert!(matches!(key(wrong), Err(StoreError::Malformed(_))), "{wrong}");
        }
        assert!(matches!(key_of(b"{}"), Err(StoreError::Malformed(_))));
    }
}
