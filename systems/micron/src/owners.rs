//! `GET /owners`: a page of owners with their items, queried in one of two ways.
//!
//! As N+1 queries: one for the owners, and one more for each of them. Or joined: one query whose rows are sorted into
//! owners here. Both give the same page. A page that is in the cache needs no query.

use std::str::FromStr;

use axum::body::Bytes;
use opentelemetry::trace::{TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use serde::Serialize;

use crate::Error;
use crate::cache::Cache;
use crate::database::{Failure, Lease, Pool, Statement};
use crate::meters::Meters;

/// Rows on one page, at most.
pub(crate) const PAGE_MAX: u32 = 100;
const SIZE_DEFAULT: u32 = 10;

const OWNERS: Statement = Statement {
    text: "SELECT id, name, region FROM owners WHERE id BETWEEN ? AND ? ORDER BY id",
    operation: "SELECT",
    collection: Some("owners"),
};
const ITEMS: Statement = Statement {
    text: "SELECT id, name, quantity FROM items WHERE owner_id = ? ORDER BY id",
    operation: "SELECT",
    collection: Some("items"),
};
const JOINED: Statement = Statement {
    text: "SELECT o.id, o.name, o.region, i.id, i.name, i.quantity FROM owners o \
           LEFT JOIN items i ON i.owner_id = o.id WHERE o.id BETWEEN ? AND ? ORDER BY o.id, i.id",
    operation: "SELECT",
    collection: Some("owners"),
};

/// How owners come to their items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queries {
    /// One query for the owners, and one for each owner's items.
    NPlusOne,
    /// One query for all.
    Joined,
}

impl FromStr for Queries {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "n-plus-one" => Ok(Self::NPlusOne),
            "joined" => Ok(Self::Joined),
            _ => Err(Error::Setting { name: "queries", value: text.to_owned(), expected: "n-plus-one or joined" }),
        }
    }
}

/// A page of a list. Of owners, the first page holds those with the numbers 1 to `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    /// From 1.
    pub(crate) number: u32,
    /// From 1 to [`PAGE_MAX`].
    pub(crate) size: u32,
}

impl Page {
    /// The page, counted from 1, of ten rows unless it says otherwise; `None` for page 0 and for a size out of range.
    pub(crate) fn new(number: Option<u32>, size: Option<u32>) -> Option<Self> {
        let page = Self { number: number.unwrap_or(1), size: size.unwrap_or(SIZE_DEFAULT) };
        (page.number > 0 && (1..=PAGE_MAX).contains(&page.size)).then_some(page)
    }

    /// Number of rows before it.
    pub(crate) fn offset(self) -> u64 {
        (u64::from(self.number) - 1) * u64::from(self.size)
    }

    /// The numbers of its first and its last owner.
    fn bounds(self) -> (u64, u64) {
        (self.offset() + 1, self.offset() + u64::from(self.size))
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Owner {
    id: u32,
    name: String,
    region: String,
    items: Vec<Item>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Item {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) quantity: i64,
}

/// A page and its content.
#[derive(Debug, Serialize)]
struct OwnersPage {
    page: u32,
    owners: Vec<Owner>,
}

/// Reads pages, out of the cache where it can.
pub(crate) struct Owners {
    queries: Queries,
    cache: Cache<Page, Bytes, Failure>,
    meters: Meters,
    tracer: SdkTracer,
}

impl Owners {
    pub(crate) fn new(queries: Queries, cache: Cache<Page, Bytes, Failure>, meters: Meters, tracer: SdkTracer) -> Self {
        Self { queries, cache, meters, tracer }
    }

    /// The page as JSON. The wait for another request's load is a part of the span `page`.
    pub(crate) async fn page(&self, cx: &Context, pool: &Pool, page: Page) -> Result<Bytes, Failure> {
        let within = cx.with_span(self.tracer.build_with_context(self.tracer.span_builder("page"), cx));
        let (source, body) = self.cache.get(&page, self.load(&within, pool, page)).await;
        within.span().end();
        self.meters.cached(source);
        cx.span().set_attribute(KeyValue::new("micron.cache.result", source.name()));
        body
    }

    async fn load(&self, cx: &Context, pool: &Pool, page: Page) -> Result<Bytes, Failure> {
        let mut database = pool.take().await?;
        let owners = match self.queries {
            Queries::NPlusOne => n_plus_one(cx, &mut database, page).await?,
            Queries::Joined => joined(cx, &mut database, page).await?,
        };
        let body = serde_json::to_vec(&OwnersPage { page: page.number, owners });
        Ok(body.unwrap_or_default().into())
    }
}

async fn n_plus_one(cx: &Context, database: &mut Lease<'_>, page: Page) -> Result<Vec<Owner>, Failure> {
    let found: Vec<(u32, String, String)> = database.rows(cx, OWNERS, page.bounds()).await?;
    let mut owners = Vec::with_capacity(found.len());
    for (id, name, region) in found {
        owners.push(Owner { id, name, region, items: items_of(cx, database, id).await? });
    }
    Ok(owners)
}

/// All items of an owner, in one query.
pub(crate) async fn items_of(cx: &Context, database: &mut Lease<'_>, owner: u32) -> Result<Vec<Item>, Failure> {
    let rows: Vec<(u32, String, i64)> = database.rows(cx, ITEMS, (owner,)).await?;
    Ok(rows.into_iter().map(|(id, name, quantity)| Item { id, name, quantity }).collect())
}

async fn joined(cx: &Context, database: &mut Lease<'_>, page: Page) -> Result<Vec<Owner>, Failure> {
    let rows: Vec<JoinedRow> = database.rows(cx, JOINED, page.bounds()).await?;
    Ok(by_owner(rows))
}

/// An owner, and one of its items; an owner without items has one row.
type JoinedRow = (u32, String, String, Option<u32>, Option<String>, Option<i64>);

/// Sorts rows, which come in order of owners, into owners; one without items has a row without an item.
fn by_owner(rows: Vec<JoinedRow>) -> Vec<Owner> {
    let mut owners: Vec<Owner> = Vec::new();
    for (id, name, region, item, item_name, quantity) in rows {
        if owners.last().is_none_or(|last| last.id != id) {
            owners.push(Owner { id, name, region, items: Vec::new() });
        }
        if let (Some(last), Some(id), Some(name), Some(quantity)) = (owners.last_mut(), item, item_name, quantity) {
            last.items.push(Item { id, name, quantity });
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_rows_become_owners_with_and_without_items() {
        let row = |owner: u32, item: Option<u32>| {
            let text = |id: u32| id.to_string();
            (owner, text(owner), "north".to_owned(), item, item.map(text), item.map(i64::from))
        };
        let owners = by_owner(vec![row(1, Some(11)), row(1, Some(12)), row(2, None), row(3, Some(31))]);
        let counts: Vec<(u32, usize)> = owners.iter().map(|owner| (owner.id, owner.items.len())).collect();
        assert_eq!(counts, [(1, 2), (2, 0), (3, 1)]);
        assert_eq!(owners[0].items[1], Item { id: 12, name: "12".to_owned(), quantity: 12 });
        assert_eq!(by_owner(Vec::new()), []);
    }

    #[test]
    fn pages_are_beside_each_other() {
        for (number, size, bounds) in
            [(1, 10, (1, 10)), (2, 10, (11, 20)), (u32::MAX, 100, (429_496_729_401, 429_496_729_500))]
        {
            assert_eq!(Page { number, size }.bounds(), bounds);
        }
    }

    #[test]
    fn pages_count_from_one_and_have_a_largest_size() {
        let page = |number, size| Page::new(number, size).map(|page| (page.number, page.size));
        assert_eq!((page(None, None), page(Some(2), Some(100))), (Some((1, 10)), Some((2, 100))));
        assert_eq!([page(Some(0), None), page(None, Some(0)), page(None, Some(101))], [None; 3]);
    }

    #[test]
    fn queries_have_two_names() {
        assert_eq!("joined".parse::<Queries>().unwrap(), Queries::Joined);
        assert_eq!("n-plus-one".parse::<Queries>().unwrap(), Queries::NPlusOne);
        let error = "n+1".parse::<Queries>().unwrap_err().to_string();
        assert_eq!(error, "queries is \"n+1\", expected n-plus-one or joined");
    }
}
