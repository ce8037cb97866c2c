//! Proof that every node of the database holds all acknowledged transfers.
//!
//! A node is queried in one transaction, so that all its results are about one state, and after it has caught up
//! with its cluster. Nothing is locked: transfers go on meanwhile.

use opentelemetry::Context;
use serde::Serialize;

use crate::database::{Failure, Lease, Pool, Statement};
use crate::ledger::{Claim, Sum};

const CATCH_UP: Statement = Statement { text: "SET SESSION wsrep_sync_wait = 1", operation: "SET", collection: None };
const COUNT: Statement = Statement {
    text: "SELECT COUNT(*), CAST(COALESCE(SUM(amount), 0) AS SIGNED) FROM ledger WHERE instance = ? AND seq < ?",
    operation: "SELECT",
    collection: Some("ledger"),
};
const ONE: Statement = Statement {
    text: "SELECT amount FROM ledger WHERE instance = ? AND seq = ?",
    operation: "SELECT",
    collection: Some("ledger"),
};
/// Items whose quantity differs from the ledger.
const ITEMS_OFF: Statement = Statement {
    text: "SELECT COUNT(*) FROM items LEFT JOIN (SELECT item, SUM(change_by) AS change_by FROM \
           (SELECT from_item AS item, -amount AS change_by FROM ledger \
           UNION ALL SELECT to_item, amount FROM ledger) AS moves GROUP BY item) AS sums ON sums.item = items.id \
           WHERE items.quantity <> items.initial + COALESCE(sums.change_by, 0)",
    operation: "SELECT",
    collection: Some("items"),
};

/// Content of a node.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NodeProof {
    /// `HOST:PORT`.
    node: String,
    /// Sum over this instance's acknowledged transfers in it.
    found: Option<Sum>,
    /// Items whose quantity differs from the ledger of all instances.
    items_off: Option<u64>,
    /// Whether all is as it must be; `None` if the node could not be queried.
    pub(crate) matches: Option<bool>,
    /// Why it could not be queried.
    error: Option<String>,
}

/// Queries a node.
pub(crate) async fn of_node(cx: &Context, pool: &Pool, claim: &Claim) -> NodeProof {
    let node = pool.node().address();
    match read_node(cx, pool, claim).await {
        Ok((found, items_off)) => {
            let matches = claim.is_met_by(found) && items_off == 0;
            NodeProof { node, found: Some(found), items_off: Some(items_off), matches: Some(matches), error: None }
        }
        Err(failure) => {
            NodeProof { node, found: None, items_off: None, matches: None, error: Some(failure.to_string()) }
        }
    }
}

async fn read_node(cx: &Context, pool: &Pool, claim: &Claim) -> Result<(Sum, u64), Failure> {
    let mut database = pool.take().await?;
    database.change(cx, CATCH_UP, ()).await?;
    database.begin(cx).await?;
    let found = counted(cx, &mut database, claim).await?;
    let off: Vec<u64> = database.rows(cx, ITEMS_OFF, ()).await?;
    database.commit(cx).await?;
    Ok((found, off.first().copied().unwrap_or(0)))
}

async fn counted(cx: &Context, database: &mut Lease<'_>, claim: &Claim) -> Result<Sum, Failure> {
    let all: Vec<(u64, i64)> = database.rows(cx, COUNT, (claim.instance, claim.below)).await?;
    let (mut writes, mut amount) = all.first().copied().unwrap_or_default();
    for seq in &claim.excepted {
        let one: Vec<i64> = database.rows(cx, ONE, (claim.instance, *seq)).await?;
        writes -= one.len() as u64;
        amount -= one.iter().sum::<i64>();
    }
    Ok(Sum { writes, amount })
}
