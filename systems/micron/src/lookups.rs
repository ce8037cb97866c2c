//! Reads that go to the database each time: one owner, the items of a kind in a region, and a search for owners by name.

use opentelemetry::Context;
use serde::Serialize;

use crate::database::{Failure, Pool, Statement};
use crate::owners::{Item, Page, items_of};

/// Owners in the result of a search, at most.
const FOUND_MAX: u32 = 20;

const OWNER: Statement = Statement {
    text: "SELECT name, region, revision FROM owners WHERE id = ?",
    operation: "SELECT",
    collection: Some("owners"),
};
const ITEMS: Statement = Statement {
    text: "SELECT i.id, i.name, i.quantity, o.id, o.name FROM items i JOIN owners o ON o.id = i.owner_id \
           WHERE i.kind = ? AND o.region = ? ORDER BY i.id LIMIT ? OFFSET ?",
    operation: "SELECT",
    collection: Some("items"),
};
const SEARCH: Statement = Statement {
    text: "SELECT id, name, region FROM owners WHERE name LIKE ? ORDER BY name LIMIT ?",
    operation: "SELECT",
    collection: Some("owners"),
};

/// One owner with all its items.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerDetail {
    id: u32,
    name: String,
    region: String,
    /// Number of renames of its items.
    revision: u32,
    items: Vec<Item>,
}

/// Items of a kind whose owners are in a region.
#[derive(Debug, Serialize)]
pub(crate) struct ItemsPage {
    page: u32,
    items: Vec<OwnedItem>,
}

/// An item with its owner's name.
#[derive(Debug, Serialize)]
struct OwnedItem {
    #[serde(flatten)]
    item: Item,
    owner: OwnerName,
}

#[derive(Debug, Serialize)]
struct OwnerName {
    id: u32,
    name: String,
}

/// Owners whose names begin with a text, in order of their names.
#[derive(Debug, Serialize)]
pub(crate) struct SearchResult {
    owners: Vec<FoundOwner>,
}

#[derive(Debug, Serialize)]
struct FoundOwner {
    id: u32,
    name: String,
    region: String,
}

/// An owner in two queries; `None` if there is no such owner.
pub(crate) async fn owner(cx: &Context, pool: &Pool, id: u32) -> Result<Option<OwnerDetail>, Failure> {
    let mut database = pool.take().await?;
    let found: Vec<(String, String, u32)> = database.rows(cx, OWNER, (id,)).await?;
    let Some((name, region, revision)) = found.into_iter().next() else { return Ok(None) };
    let items = items_of(cx, &mut database, id).await?;
    Ok(Some(OwnerDetail { id, name, region, revision, items }))
}

/// A page of the items of a kind in a region, in one query.
pub(crate) async fn items(
    cx: &Context,
    pool: &Pool,
    kind: &str,
    region: &str,
    page: Page,
) -> Result<ItemsPage, Failure> {
    let mut database = pool.take().await?;
    let values = (kind, region, page.size, page.offset());
    let rows: Vec<(u32, String, i64, u32, String)> = database.rows(cx, ITEMS, values).await?;
    let items = rows.into_iter().map(|(id, name, quantity, owner, owner_name)| OwnedItem {
        item: Item { id, name, quantity },
        owner: OwnerName { id: owner, name: owner_name },
    });
    Ok(ItemsPage { page: page.number, items: items.collect() })
}

/// The first owners whose names begin with a text.
pub(crate) async fn search(cx: &Context, pool: &Pool, beginning: &str) -> Result<SearchResult, Failure> {
    let mut database = pool.take().await?;
    let rows: Vec<(u32, String, String)> = database.rows(cx, SEARCH, (prefix_pattern(beginning), FOUND_MAX)).await?;
    let owners = rows.into_iter().map(|(id, name, region)| FoundOwner { id, name, region });
    Ok(SearchResult { owners: owners.collect() })
}

/// The `LIKE` pattern of texts that begin with `text`, whose own wildcards stand for themselves.
fn prefix_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_of_a_search_stand_for_themselves() {
        for (text, pattern) in [("", "%"), ("owner-01", "owner-01%"), ("a%b_c\\", "a\\%b\\_c\\\\%")] {
            assert_eq!(prefix_pattern(text), pattern);
        }
    }
}
