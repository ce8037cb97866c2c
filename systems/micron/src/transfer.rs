//! `POST /transfers`: moves an amount from one item to another, in one transaction over two rows.
//!
//! The rows are locked in the order in which the client names them: first where it comes from, then where it goes. Two
//! transfers in opposite directions can so wait for each other, and the database ends one of them (1213). That is what
//! there is to find; sorting the rows would hide it. New quantities are computed here from those that were read, so
//! that any update that were lost would show in the ledger.

use opentelemetry::Context;
use serde::{Deserialize, Serialize};

use crate::database::{Lease, Pool, Statement};
use crate::ledger::{Entry, Ledger};
use crate::transaction::{NotDone, Writes, end};

/// The largest amount of one transfer.
pub(crate) const AMOUNT_MAX: u32 = 1_000;

const LOCK: Statement = Statement {
    text: "SELECT quantity FROM items WHERE id = ? FOR UPDATE",
    operation: "SELECT",
    collection: Some("items"),
};
const UPDATE: Statement =
    Statement { text: "UPDATE items SET quantity = ? WHERE id = ?", operation: "UPDATE", collection: Some("items") };
const RECORD: Statement = Statement {
    text: "INSERT INTO ledger (instance, seq, from_item, to_item, amount) VALUES (?, ?, ?, ?, ?)",
    operation: "INSERT",
    collection: Some("ledger"),
};

/// The request: `amount` of item `from` goes to item `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) amount: u32,
}

/// A completed transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TransferResult {
    /// The transfer's number in the ledger.
    transfer: String,
    /// Quantity that is left of the one item.
    from_quantity: i64,
    /// Quantity that there is of the other.
    to_quantity: i64,
    /// How often the transaction was begun again.
    retries: u32,
}

/// Transfers an amount, with as many retries as the setting allows.
pub(crate) async fn transfer(
    cx: &Context,
    pool: &Pool,
    writes: &Writes,
    ledger: &Ledger,
    transfer: Transfer,
) -> Result<TransferResult, NotDone> {
    let mut entry = ledger.enter();
    let mut attempts = writes.attempts();
    loop {
        match attempt(cx, pool, &mut entry, transfer).await {
            Ok((from_quantity, to_quantity)) => {
                let transfer_id = entry.id();
                entry.acknowledge(transfer.amount);
                let retries = attempts.retries;
                return Ok(TransferResult { transfer: transfer_id, from_quantity, to_quantity, retries });
            }
            Err(NotDone::Failed { failure, .. }) => attempts.pause(cx, failure).await?,
            Err(NotDone::Unknown(failure)) => {
                entry.forsake();
                return Err(NotDone::Unknown(failure));
            }
            Err(refused) => return Err(refused),
        }
    }
}

/// Runs one transaction, whole or not at all. Returns the new quantities.
async fn attempt(cx: &Context, pool: &Pool, entry: &mut Entry<'_>, transfer: Transfer) -> Result<(i64, i64), NotDone> {
    let mut database = pool.take().await?;
    database.begin(cx).await?;
    let changed = change(cx, &mut database, entry, transfer).await;
    if changed.is_ok() {
        entry.committing();
    }
    let ended = end(cx, database, changed).await;
    if !matches!(ended, Ok(_) | Err(NotDone::Unknown(_))) {
        entry.not_committing();
    }
    ended
}

async fn change(
    cx: &Context,
    database: &mut Lease<'_>,
    entry: &Entry<'_>,
    transfer: Transfer,
) -> Result<(i64, i64), NotDone> {
    let amount = i64::from(transfer.amount);
    let from = step(cx, database, transfer.from, -amount).await?;
    let to = step(cx, database, transfer.to, amount).await?;
    let (instance, seq) = entry.key();
    database.change(cx, RECORD, (instance, seq, transfer.from, transfer.to, amount)).await?;
    Ok((from, to))
}

/// Locks an item, reads its quantity and writes the new one.
async fn step(cx: &Context, database: &mut Lease<'_>, item: u32, by: i64) -> Result<i64, NotDone> {
    let found: Vec<i64> = database.rows(cx, LOCK, (item,)).await?;
    let quantity = *found.first().ok_or(NotDone::NoItem(item))?;
    let changed = quantity.saturating_add(by);
    if changed < 0 {
        return Err(NotDone::TooFew { item, quantity });
    }
    database.change(cx, UPDATE, (changed, item)).await?;
    Ok(changed)
}
