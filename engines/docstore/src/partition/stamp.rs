//! The system properties of documents: `_rid`, `_self`, `_etag`, `_attachments` and `_ts`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::resource_id::ContainerId;

/// Before the digits of the entity tag, which is a quoted text in a text.
const ETAG_BEGINS: &str = "\"_etag\":\"\\\"";
/// After them, up to the comma before the time.
const ETAG_ENDS: &str = "\\\"\",\"_attachments\":\"attachments/\"";
const ETAG_DIGITS: usize = 8 + 1 + 16;

/// Writer of the system properties of a partition's documents.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub(crate) container: ContainerId,
    pub(crate) range: u32,
    /// The number of the container's next document.
    pub(crate) next_number: Arc<AtomicU64>,
}

impl Stamp {
    /// A number that no other document of the container has or had.
    pub(super) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// The properties as JSON without braces.
    pub(super) fn text(&self, number: u64, lsn: u64, unix_s: u64) -> String {
        let rid = self.container.document(number);
        let path = self.container.path();
        let range = self.range;
        format!(
            "\"_rid\":\"{rid}\",\"_self\":\"{path}docs/{rid}/\",{ETAG_BEGINS}{range:08x}-{lsn:016x}{ETAG_ENDS},\"_ts\":{unix_s}"
        )
    }
}

/// The entity tag in a document's text, quotes included; the store writes its own properties after every property of the
/// client.
pub(crate) fn etag_of(text: &str) -> Option<String> {
    let (before_time, _) = text.rsplit_once(',')?;
    let before_end = before_time.strip_suffix(ETAG_ENDS)?;
    let digits = before_end.get(before_end.len().checked_sub(ETAG_DIGITS)?..)?;
    Some(["\"", digits, "\""].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    #[test]
    fn the_tag_is_found_behind_a_clients_own() {
        let stamp =
            Stamp { container: ContainerId { database: 0, container: 0 }, range: 3, next_number: Arc::default() };
        let body = br#"{"a":"\"_etag\":\"\\\"0","b":{"_etag":"\"11111111-1111111111111111\""}}"#;
        let text = Document::parse(body).unwrap().text_with(&stamp.text(0, 255, 0));
        let tag = etag_of(&text).unwrap();
        assert_eq!(tag, "\"00000003-00000000000000ff\"");
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parsed["_etag"], tag);
        assert_eq!(etag_of("{}"), None);
    }
}
