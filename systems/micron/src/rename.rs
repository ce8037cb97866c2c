//! `PUT /items/{id}`: renames an item and counts the change at its owner, in one transaction.
//!
//! Every rename locks the item first and then its owner, so renames never deadlock on one node. On different nodes, two
//! renames at one owner conflict, and the later one is retried.

use opentelemetry::Context;
use serde::{Deserialize, Serialize};

use crate::database::{Lease, Pool, Statement};
use crate::transaction::{NotDone, Writes, end};

/// Characters of an item's name, at most.
pub(crate) const NAME_MAX: usize = 64;

const OWNER: Statement = Statement {
    text: "SELECT owner_id FROM items WHERE id = ? FOR UPDATE",
    operation: "SELECT",
    collection: Some("items"),
};
const RENAME: Statement =
    Statement { text: "UPDATE items SET name = ? WHERE id = ?", operation: "UPDATE", collection: Some("items") };
const REVISE: Statement = Statement {
    text: "UPDATE owners SET revision = revision + 1 WHERE id = ?",
    operation: "UPDATE",
    collection: Some("owners"),
};

/// The body of the request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewName {
    /// 1 to [`NAME_MAX`] characters.
    name: String,
}

impl NewName {
    /// Whether the name fits its column.
    pub(crate) fn is_valid(&self) -> bool {
        (1..=NAME_MAX).contains(&self.name.chars().count())
    }
}

/// A completed rename.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RenameResult {
    id: u32,
    owner: u32,
    /// Number of retries of the transaction.
    retries: u32,
}

/// Renames an item, with as many retries as the setting allows.
pub(crate) async fn rename(
    cx: &Context,
    pool: &Pool,
    writes: &Writes,
    item: u32,
    name: &NewName,
) -> Result<RenameResult, NotDone> {
    let mut attempts = writes.attempts();
    loop {
        match attempt(cx, pool, item, name).await {
            Ok(owner) => return Ok(RenameResult { id: item, owner, retries: attempts.retries }),
            Err(NotDone::Failed { failure, .. }) => attempts.pause(cx, failure).await?,
            Err(not_done) => return Err(not_done),
        }
    }
}

/// Runs one transaction and returns the item's owner.
async fn attempt(cx: &Context, pool: &Pool, item: u32, name: &NewName) -> Result<u32, NotDone> {
    let mut database = pool.take().await?;
    database.begin(cx).await?;
    let changed = change(cx, &mut database, item, name).await;
    end(cx, database, changed).await
}

async fn change(cx: &Context, database: &mut Lease<'_>, item: u32, name: &NewName) -> Result<u32, NotDone> {
    let owners: Vec<u32> = database.rows(cx, OWNER, (item,)).await?;
    let owner = *owners.first().ok_or(NotDone::NoItem(item))?;
    database.change(cx, RENAME, (name.name.as_str(), item)).await?;
    database.change(cx, REVISE, (owner,)).await?;
    Ok(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_at_least_one_character_and_fits_its_column() {
        for (name, is_valid) in [("", false), ("a", true), (&"ä".repeat(64), true), (&"a".repeat(65), false)] {
            assert_eq!(NewName { name: name.to_owned() }.is_valid(), is_valid, "{name}");
        }
    }
}
