//! A query ready to run: the body `{"query", "parameters"}` read, and where among the documents it applies.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value as Json};

use crate::effective_key::EffectiveKey;
use crate::partition_key::{KeyDefinition, PartitionKey};
use crate::scalar::Scalar;
use crate::sql::ast::{Bound, Query};
use crate::sql::{self, Allowance, Batch, Equality, Features, Parameters, Plan, Progress, Run, TooMuchWork, Value};

/// Partition keys that are worth routing a query by.
const KEYS_MAX: usize = 1_000;

/// A query with its parameters and the documents it is restricted to.
#[derive(Debug)]
pub(crate) struct Selection {
    query: Query,
    parameters: Parameters,
    restrictions: Vec<Restriction>,
    equalities: Vec<Equality>,
    now_ticks: i64,
}

/// Options of a request about documents besides its query.
#[derive(Debug)]
enum Restriction {
    /// The partition key, or the upper levels of a hierarchy.
    Key { definition: KeyDefinition, key: PartitionKey },
    /// Hashes of the partition key, as their digits on the wire, from the first up to before the second.
    Hashes { definition: KeyDefinition, begin: String, end: String },
}

impl Restriction {
    fn admits(&self, document: &Value) -> bool {
        let at = |path: &Vec<String>| path.iter().fold(document, |value, step| value.property(step)).scalar();
        match self {
            Self::Key { definition, key } => {
                definition.paths().iter().zip(&key.0).all(|(path, value)| at(path).as_ref() == Some(value))
            }
            Self::Hashes { definition, begin, end } => {
                let Some(values) = definition.paths().iter().map(at).collect() else { return false };
                let digits = EffectiveKey::new(&PartitionKey(values), definition.is_hierarchical()).digits();
                *begin <= digits && digits < *end
            }
        }
    }
}

impl Selection {
    /// Reads the body of a query request; the error names the fault and its place.
    pub(crate) fn from_body(body: &[u8]) -> Result<Self, String> {
        let body = object(body)?;
        let query = match body.get("query") {
            Some(Json::String(query)) => sql::parse(query).map_err(|error| error.to_string())?,
            _ => return Err("the body has no \"query\", expected a string".to_owned()),
        };
        let parameters = parameters(&body)?;
        if let Some(name) = query.parameters().into_iter().find(|name| !parameters.contains_key(*name)) {
            return Err(format!("the query names {name}, which is not among its parameters"));
        }
        check_bounds(&query, &parameters)?;
        let equalities = sql::equalities(&query, &parameters);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ticks = i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX);
        Ok(Self { query, parameters, restrictions: Vec::new(), equalities, now_ticks })
    }

    /// Narrows the selection to one logical partition.
    pub(crate) fn within(mut self, definition: &KeyDefinition, partition_key: PartitionKey) -> Self {
        let values = definition.paths().iter().zip(&partition_key.0);
        // An absent property has no entry in an index.
        let indexed = values.filter(|(_, value)| **value != Scalar::Undefined);
        self.equalities
            .extend(indexed.map(|(path, value)| Equality { path: path.clone(), values: vec![value.clone()] }));
        self.restrictions.push(Restriction::Key { definition: definition.clone(), key: partition_key });
        self
    }

    /// Narrows the selection to partition keys with a hash from `begin` up to before `end`.
    pub(crate) fn within_hashes(mut self, definition: &KeyDefinition, begin: &str, end: &str) -> Self {
        let (begin, end) = (begin.to_ascii_uppercase(), end.to_ascii_uppercase());
        self.restrictions.push(Restriction::Hashes { definition: definition.clone(), begin, end });
        self
    }

    /// The partition keys the filter leaves possible; `None` for all, or for more than [`KEYS_MAX`].
    pub(crate) fn keys(&self, definition: &KeyDefinition) -> Option<Vec<PartitionKey>> {
        let mut keys = vec![PartitionKey(Vec::new())];
        for path in definition.paths() {
            let fixed = self.equalities.iter().filter(|equality| equality.path == *path);
            let values = &fixed.min_by_key(|equality| equality.values.len())?.values;
            if keys.len() * values.len() > KEYS_MAX {
                return None;
            }
            let longer =
                |key: &PartitionKey, value: &Scalar| PartitionKey([&key.0[..], std::slice::from_ref(value)].concat());
            keys = keys.iter().flat_map(|key| values.iter().map(move |value| longer(key, value))).collect();
        }
        Some(keys)
    }

    /// The conditions an index can resolve.
    pub(crate) fn indexed(&self) -> &[Equality] {
        &self.equalities
    }

    /// The number of the first document a page needs.
    pub(crate) fn first(&self, progress: &Progress) -> u64 {
        Run::first(&self.query, progress)
    }

    /// One page from documents, ascending by number.
    pub(crate) fn page<'d>(
        &self,
        documents: impl Iterator<Item = (u64, &'d str)>,
        progress: &Progress,
        limit: usize,
        allowance: Allowance,
    ) -> Result<Batch, TooMuchWork> {
        let admits = |document: &Value| self.restrictions.iter().all(|restriction| restriction.admits(document));
        let admits: Option<&dyn Fn(&Value) -> bool> = if self.restrictions.is_empty() { None } else { Some(&admits) };
        self.run(allowance).page(documents, admits, progress, limit)
    }

    /// Merges the pages that two partitions returned after `progress`.
    pub(crate) fn merged(&self, pages: [Batch; 2], progress: &Progress, limit: usize) -> Batch {
        self.run(Allowance::brief()).merged(pages, progress, limit)
    }

    fn run(&self, allowance: Allowance) -> Run<'_> {
        Run::new(&self.query, &self.parameters, self.now_ticks, allowance)
    }

    /// Whether the query has a result on this JSON object alone. Other requests wait for it.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, TooMuchWork> {
        let allowance = Allowance::brief_beyond(text.len());
        Ok(!self.page(std::iter::once((0, text)), &Progress::default(), 1, allowance)?.items.is_empty())
    }

    /// Whether results of several partitions have to be merged rather than put one after another.
    pub(crate) fn is_merged(&self) -> bool {
        sql::is_merged(&self.query)
    }

    /// Whether a page may say how far it came by the number of results alone, which only counts over the same documents.
    pub(crate) fn is_gathered(&self) -> bool {
        sql::is_gathered(&self.query)
    }

    /// Whether this can be a progress of its pages.
    pub(crate) fn has(&self, progress: &Progress) -> bool {
        let is_sorted = sql::is_sorted(&self.query);
        progress.after.as_ref().is_none_or(|after| is_sorted && after.keys() == self.query.order_by.len())
    }

    /// How clients merge the query over partitions.
    pub(crate) fn plan(&self, features: &Features) -> Result<Plan, String> {
        Plan::new(&self.query, &self.parameters, features)
    }
}

/// Reads a body that must be a JSON object; the error names line and column.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Json>, String> {
    match serde_json::from_slice(body) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err("the body is not an object at line 1 column 1, expected {".to_owned()),
        Err(error) => Err(format!("the body is not JSON: {error}")),
    }
}

fn parameters(body: &Map<String, Json>) -> Result<Parameters, String> {
    let list = match body.get("parameters") {
        None | Some(Json::Null) => return Ok(Parameters::new()),
        Some(Json::Array(list)) => list,
        Some(_) => return Err("\"parameters\" is no array, expected [{\"name\", \"value\"}]".to_owned()),
    };
    let mut parameters = Parameters::new();
    for (index, parameter) in list.iter().enumerate() {
        let Some(name) = parameter.get("name").and_then(Json::as_str) else {
            return Err(format!("parameters[{index}] has no \"name\", expected a string"));
        };
        let Some(value) = parameter.get("value") else {
            return Err(format!("parameters[{index}] ({name}) has no \"value\""));
        };
        parameters.insert(name.to_owned(), Value::from(value));
    }
    Ok(parameters)
}

fn check_bounds(query: &Query, parameters: &Parameters) -> Result<(), String> {
    let bounds = query.top.iter().chain(query.offset_limit.iter().flat_map(|(offset, limit)| [offset, limit]));
    for bound in bounds {
        let Bound::Parameter(name) = bound else { continue };
        match parameters.get(name) {
            Some(Value::Number(number)) if *number >= 0.0 && number.fract() == 0.0 => {}
            value => {
                let value = value.unwrap_or(&Value::Undefined);
                return Err(format!("{name} counts rows and is {value}, expected a whole number from 0 on"));
            }
        }
    }
    query.derived_tables().try_for_each(|inner| check_bounds(inner, parameters))
}

#[cfg(test)]
mod tests;
