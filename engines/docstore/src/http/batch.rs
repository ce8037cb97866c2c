//! Batches: up to 100 operations in one request, as one transaction or separately.

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::response::{Failure, Reply};
use super::{headers, point_operations};
use crate::charge::Charge;
use crate::container::{Address, Container};
use crate::document::{Document, Node};
use crate::moment::Moment;
use crate::partition::{Command, Operation, Outcome, Patch, Refusal, Step, etag_of};
use crate::partition_key::PartitionKey;

/// Cosmos DB's limit of a batch.
const MAX_OPERATIONS: usize = 100;
/// The status of operations that were not done because another one failed.
const FAILED_DEPENDENCY: u16 = 424;

/// `POST …/docs` with `x-ms-cosmos-is-batch-request`. Operations of a transaction share the partition key of the header;
/// others name their own.
pub(super) fn run(moment: &Moment, container: &Container, headers: &HeaderMap, body: &[u8]) -> Result<Reply, Failure> {
    let operations: Vec<Node> = serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(&format!("the body is no JSON array of operations: {error}")))?;
    if operations.is_empty() || operations.len() > MAX_OPERATIONS {
        let message = format!("the batch has {} operations, expected 1 to {MAX_OPERATIONS}", operations.len());
        return Err(Failure::bad_request(&message));
    }
    if headers::text(headers, "x-ms-cosmos-batch-atomic")?.is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        return Ok(each(moment, container, &operations));
    }
    let key = point_operations::key(container, headers)?;
    let commands = operations.iter().map(|operation| command(container, operation, &key));
    let commands: Vec<Command> = commands.collect::<Result<_, _>>()?;
    let (range, done) = container.transact(&commands[0].effective, moment, &commands)?;
    let has_failed = done.outcome.iter().any(|step| !step.outcome.is_done());
    let (count, steps) = (operations.len(), done.outcome);
    let results = if has_failed { failed_results(steps, count) } else { steps.into_iter().map(result).collect() };
    let status = if has_failed { StatusCode::MULTI_STATUS } else { StatusCode::OK };
    Ok(reply(status, done.charge, &results).with_session(range, done.lsn))
}

/// Runs every operation separately, with its own charge and its own failure.
fn each(moment: &Moment, container: &Container, operations: &[Node]) -> Reply {
    let mut charge = Charge::ZERO;
    let results: Vec<String> = operations
        .iter()
        .map(|operation| match alone(moment, container, operation) {
            Ok(step) => {
                charge = charge + step.charge;
                result(step)
            }
            Err(failure) => failure.result().to_string(),
        })
        .collect();
    reply(StatusCode::OK, charge, &results)
}

fn alone(moment: &Moment, container: &Container, operation: &Node) -> Result<Step, Failure> {
    let missing = || Failure::bad_request("an operation has no \"partitionKey\", expected a JSON array as text");
    let key = property(operation, "partitionKey").map(Node::to_value);
    let key = key.as_ref().and_then(Value::as_str).ok_or_else(missing)?;
    let mut header = HeaderMap::new();
    header.insert("x-ms-documentdb-partitionkey", key.parse().map_err(|_| missing())?);
    let commands = [command(container, operation, &point_operations::key(container, &header)?)?];
    let (_, done) = container.transact(&commands[0].effective, moment, &commands)?;
    done.outcome.into_iter().next().ok_or(Refusal::Moved).map_err(Failure::from)
}

/// The results of operations, each as JSON text: documents keep the order of their properties and their digits.
fn reply(status: StatusCode, charge: Charge, results: &[String]) -> Reply {
    Reply::new(status, charge, format!("[{}]", results.join(","))).with("x-ms-item-count", results.len())
}

fn command(container: &Container, operation: &Node, key: &PartitionKey) -> Result<Command, Failure> {
    let text = |name| property(operation, name).map(Node::to_value).and_then(|value| value.as_str().map(str::to_owned));
    let body = property(operation, "resourceBody");
    let id = || text("id").ok_or_else(|| Failure::bad_request("an operation has no \"id\", expected a string"));
    let document = || match body {
        Some(Node::Object(properties)) => Ok(Document::new(properties.clone())),
        _ => Err(Failure::bad_request("an operation has no \"resourceBody\", expected an object")),
    };
    let kind = text("operationType");
    let written = match kind.as_deref() {
        Some("Create") => Some(Operation::Create as fn(Document) -> Operation),
        Some("Upsert") => Some(Operation::Upsert as fn(Document) -> Operation),
        Some("Replace") => Some(Operation::Replace as fn(Document) -> Operation),
        _ => None,
    };
    let (address, operation) = match (kind.as_deref(), written) {
        (_, Some(write)) => {
            let document = document()?;
            (point_operations::placed(container, &document, key)?, write(document))
        }
        (Some("Read"), None) => (container.address(key.clone(), &id()?), Operation::Read),
        (Some("Delete"), None) => (container.address(key.clone(), &id()?), Operation::Delete),
        (Some("Patch"), None) => {
            let body = body.map_or(Value::Null, Node::to_value);
            let patch = Patch::from_json(&body).map_err(|error| Failure::bad_request(&error))?;
            (container.address(key.clone(), &id()?), Operation::Patch(Box::new(patch)))
        }
        (other, None) => {
            let message =
                format!("operationType is {other:?}, expected Create, Upsert, Replace, Read, Delete or Patch");
            return Err(Failure::bad_request(&message));
        }
    };
    let Address { key, effective, .. } = address;
    Ok(Command { key, effective, operation, if_match: text("ifMatch"), if_none_match: text("ifNoneMatch") })
}

fn property<'a>(operation: &'a Node, name: &str) -> Option<&'a Node> {
    let Node::Object(properties) = operation else { return None };
    properties.iter().find(|(existing, _)| existing == name).map(|(_, node)| node)
}

/// The results of a transaction that failed: the operation that did, and the others because of it.
fn failed_results(mut steps: Vec<Step>, count: usize) -> Vec<String> {
    let dependent = json!({ "statusCode": FAILED_DEPENDENCY, "requestCharge": 0 }).to_string();
    let failed = steps.pop();
    let before = steps.len();
    let mut results = vec![dependent; count];
    if let (Some(failed), Some(place)) = (failed, results.get_mut(before)) {
        *place = result(failed);
    }
    results
}

fn result(step: Step) -> String {
    let charge = step.charge.request_units();
    let document = |status: u16, text: &str| {
        let etag = Value::from(etag_of(text));
        format!("{{\"statusCode\":{status},\"requestCharge\":{charge},\"eTag\":{etag},\"resourceBody\":{text}}}")
    };
    match step.outcome {
        Outcome::Created(text) => document(201, &text),
        Outcome::Found(text) | Outcome::Replaced(text) => document(200, &text),
        Outcome::Deleted => json!({ "statusCode": 204, "requestCharge": charge }).to_string(),
        Outcome::NotModified(etag) => json!({ "statusCode": 304, "requestCharge": charge, "eTag": etag }).to_string(),
        failed => match point_operations::reply(failed, step.charge) {
            Err(failure) => failure.result().to_string(),
            Ok(_) => json!({ "statusCode": 200, "requestCharge": charge }).to_string(),
        },
    }
}
