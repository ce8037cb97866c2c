//! A client of the partitioned store, over Cosmos DB's REST interface.
//!
//! It is our own because the official clients for this language query the partitions one after the other
//! only, and the case study is about the difference. It keeps their rules: a throttled request waits exactly as long as
//! the store says, results come in the order of the ranges, the connections are bounded, and a query whose filter fixes
//! the partition key goes to its range alone. Deliberately absent: writes, authentication, query plans, and every other query than a filter whose results are joined by appending.

mod attempt_span;
mod error;
mod fan_out;
mod layout;
mod operation;
#[cfg(test)]
mod tests;
mod wire;

use std::str::FromStr;
use std::sync::Arc;

use narrows_serving::Token;
use opentelemetry::Context;
use opentelemetry_sdk::trace::SdkTracer;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::layout::Layout;
use self::operation::Operation;
use self::wire::{Target, Wire};
use crate::{BaseUrl, Error};

pub(crate) use self::error::StoreError;

/// How often a query starts again because the store's partitions have changed under it.
const RANGE_REFRESHES_MAX: u32 = 1;
const CONNECTIONS_MAX: usize = 10_000;
const PREFETCH_MAX: usize = 100_000;

/// How many partitions a query requests at a time, in the numbers of `MaxConcurrency` of Cosmos DB's client for .NET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallelism {
    /// `0`: one after the other.
    Serial,
    /// `1` and more: at most so many.
    AtMost(usize),
    /// `-1`: the client's choice. Since its version 3.0.0 that is all: it replaces negative numbers by the largest integer.
    All,
}

impl Parallelism {
    fn bounded(self, targets: usize) -> usize {
        match self {
            Self::Serial => 1,
            Self::AtMost(most) => most.min(targets),
            Self::All => targets,
        }
        .max(1)
    }
}

impl FromStr for Parallelism {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.parse::<i32>().ok().map(|number| (number, usize::try_from(number))) {
            Some((-1, _)) => Ok(Self::All),
            Some((_, Ok(0))) => Ok(Self::Serial),
            Some((_, Ok(most))) => Ok(Self::AtMost(most)),
            _ => Err(Error::Setting { name: "parallelism", value: text.to_owned(), expected: "-1, 0 or a number" }),
        }
    }
}

/// The store and how it is queried.
#[derive(Debug)]
pub(crate) struct StoreConfig {
    pub(crate) url: BaseUrl,
    /// The token that requests present.
    pub(crate) token: Option<Token>,
    pub(crate) database: String,
    pub(crate) container: String,
    pub(crate) parallelism: Parallelism,
    pub(crate) connections_max: usize,
    pub(crate) prefetch_max: usize,
    /// Of one request for a page, after responses with 429.
    pub(crate) retries_max: u32,
}

impl StoreConfig {
    fn validate(&self) -> Result<(), Error> {
        for (name, value, max, expected) in [
            ("max-connections", self.connections_max, CONNECTIONS_MAX, "1 to 10000"),
            ("prefetch", self.prefetch_max, PREFETCH_MAX, "1 to 100000"),
        ] {
            if !(1..=max).contains(&value) {
                return Err(Error::Setting { name, value: value.to_string(), expected });
            }
        }
        Ok(())
    }
}

/// A query for the documents whose properties have these values.
#[derive(Debug)]
pub(crate) struct Query {
    /// `SELECT * FROM c WHERE` each property equals the parameter of its name, joined by `AND`.
    pub(crate) text: &'static str,
    pub(crate) filter: Vec<(&'static str, Value)>,
}

impl Query {
    fn body(&self) -> String {
        let parameter = |(property, value): &(&str, Value)| json!({ "name": format!("@{property}"), "value": value });
        let parameters: Vec<Value> = self.filter.iter().map(parameter).collect();
        json!({ "query": self.text, "parameters": parameters }).to_string()
    }

    /// The partition key that all matches have, if the filter says each of its properties.
    fn partition_key(&self, properties: &[String]) -> Option<Value> {
        let value = |name: &String| self.filter.iter().find(|(property, _)| property == name);
        properties.iter().map(|name| value(name).map(|(_, value)| value.clone())).collect()
    }
}

/// An open client.
pub(crate) struct Store {
    wire: Arc<Wire>,
    layout: Layout,
    parallelism: Parallelism,
    prefetch_max: usize,
}

impl Store {
    /// Says nothing to the store yet.
    pub(crate) fn open(config: StoreConfig, tracer: SdkTracer) -> Result<Self, Error> {
        config.validate()?;
        Ok(Self {
            parallelism: config.parallelism,
            prefetch_max: config.prefetch_max,
            wire: Arc::new(Wire::new(&config, tracer)?),
            layout: Layout::default(),
        })
    }

    /// Runs `query` and folds its documents, in the order of the ranges, into what `A` is by default. Every attempt on
    /// the wire is a span under `parent`.
    pub(crate) async fn query<D, A>(
        &self,
        parent: &Context,
        query: &Query,
        fold: impl Fn(&mut A, D),
    ) -> Result<A, StoreError>
    where
        D: DeserializeOwned + Send + 'static,
        A: Default,
    {
        let operation = Arc::new(Operation { parent: parent.clone(), text: query.text, body: query.body() });
        let mut refreshes = 0;
        loop {
            match self.once(&operation, query, &fold).await {
                Err(StoreError::RangesGone) if refreshes < RANGE_REFRESHES_MAX => {
                    self.layout.forget_ranges().await;
                    refreshes += 1;
                }
                Err(error) => {
                    if matches!(error, StoreError::Unreachable(_) | StoreError::RangesGone) {
                        self.layout.forget().await;
                    }
                    return Err(error);
                }
                folded => return folded,
            }
        }
    }

    async fn once<D, A>(
        &self,
        operation: &Arc<Operation>,
        query: &Query,
        fold: &impl Fn(&mut A, D),
    ) -> Result<A, StoreError>
    where
        D: DeserializeOwned + Send + 'static,
        A: Default,
    {
        let targets = self.targets(operation, query).await?;
        let slots = self.parallelism.bounded(targets.len());
        let mut pages = fan_out::start::<D>(&self.wire, operation, targets, slots, self.prefetch_max);
        let mut folded = A::default();
        while let Some(documents) = pages.next().await? {
            documents.into_iter().for_each(|document| fold(&mut folded, document));
        }
        Ok(folded)
    }

    /// The filter decides: the range of the partition key if it fixes that, else every range.
    async fn targets(&self, operation: &Operation, query: &Query) -> Result<Vec<Target>, StoreError> {
        let key = self.layout.key(&self.wire, &operation.parent).await?;
        if let Some(key) = query.partition_key(&key) {
            return Ok(vec![Target::Key(key.to_string())]);
        }
        let ranges = self.layout.ranges(&self.wire, &operation.parent).await?;
        Ok(ranges.iter().cloned().map(Target::Range).collect())
    }
}
