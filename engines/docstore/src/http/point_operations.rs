//! Operations on one document: read, create, upsert, replace, patch and delete.

use std::sync::Arc;

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::headers;
use super::response::{Failure, Reply};
use crate::charge::Charge;
use crate::container::{Address, Container};
use crate::document::Document;
use crate::moment::Moment;
use crate::partition::{Command, MAX_DOCUMENT_BYTES, Operation, Outcome, Patch, etag_of};
use crate::partition_key::PartitionKey;

/// "The partition key of the header is not the document's."
pub(super) const SUB_STATUS_KEY_MISMATCH: u32 = 1001;

/// `GET …/docs/{id}`.
pub(super) fn read(moment: &Moment, container: &Container, headers: &HeaderMap, id: &str) -> Result<Reply, Failure> {
    by_id(moment, container, headers, id, Operation::Read)
}

/// `DELETE …/docs/{id}`.
pub(super) fn delete(moment: &Moment, container: &Container, headers: &HeaderMap, id: &str) -> Result<Reply, Failure> {
    by_id(moment, container, headers, id, Operation::Delete)
}

/// `PATCH …/docs/{id}`.
pub(super) fn patch(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    id: &str,
    body: &[u8],
) -> Result<Reply, Failure> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(&format!("the body is not JSON: {error}")))?;
    let patch = Patch::from_json(&body).map_err(|error| Failure::bad_request(&error))?;
    by_id(moment, container, headers, id, Operation::Patch(Box::new(patch)))
}

/// `PUT …/docs/{id}`: replaces the document of the path; the body's id must be the same.
pub(super) fn replace(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    id: &str,
    body: &[u8],
) -> Result<Reply, Failure> {
    let document = document(body)?;
    if document.fields().get("id").is_some_and(|given| given != id) {
        return Err(Failure::bad_request(&format!("the property \"id\" is not {id:?}, the id of the path")));
    }
    write(moment, container, headers, document, Operation::Replace)
}

/// The document in the body of a request.
pub(super) fn document(body: &[u8]) -> Result<Document, Failure> {
    Document::parse(body).map_err(|error| Failure::bad_request(&error))
}

/// Writes a document where it belongs, which must be where the header says.
pub(super) fn write(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    document: Document,
    operation: impl FnOnce(Document) -> Operation,
) -> Result<Reply, Failure> {
    let address = placed(container, &document, &key(container, headers)?)?;
    run(moment, container, headers, address, operation(document))
}

/// Where a document belongs, provided that its partition key is `key`.
pub(super) fn placed(container: &Container, document: &Document, key: &PartitionKey) -> Result<Address, Failure> {
    let fields = document.fields();
    let address = container.address_of(&fields).map_err(|error| Failure::bad_request(&error))?;
    if *key == address.partition_key {
        return Ok(address);
    }
    let message = "the partition key of the header is not the document's";
    Err(Failure::bad_request(message).with_sub_status(SUB_STATUS_KEY_MISMATCH))
}

/// The whole partition key of the header.
pub(super) fn key(container: &Container, headers: &HeaderMap) -> Result<PartitionKey, Failure> {
    let levels = container.definition().key.paths().len();
    let Some(key) = headers::partition_key(headers)? else {
        return Err(Failure::bad_request(
            "the header x-ms-documentdb-partitionkey is missing, expected a partition key",
        ));
    };
    if key.0.len() == levels {
        return Ok(key);
    }
    let found = key.0.len();
    let message = format!("the partition key of the header has {found} components, expected {levels}");
    Err(Failure::bad_request(&message).with_sub_status(SUB_STATUS_KEY_MISMATCH))
}

fn by_id(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    id: &str,
    operation: Operation,
) -> Result<Reply, Failure> {
    let address = container.address(key(container, headers)?, id);
    run(moment, container, headers, address, operation)
}

fn run(
    moment: &Moment,
    container: &Container,
    headers: &HeaderMap,
    address: Address,
    operation: Operation,
) -> Result<Reply, Failure> {
    let header = |name| headers::text(headers, name).map(|value| value.map(str::to_owned));
    let (if_match, if_none_match) = (header(IF_MATCH.as_str())?, header(IF_NONE_MATCH.as_str())?);
    let is_minimal = header("prefer")?.is_some_and(|prefer| prefer.contains("return=minimal"));
    let is_read = matches!(operation, Operation::Read);
    let Address { key, effective, .. } = address;
    let commands = [Command { key, effective, operation, if_match, if_none_match }];
    let (range, done) = container.transact(&commands[0].effective, moment, &commands)?;
    let outcome = done.outcome.into_iter().next().map(|step| step.outcome);
    let reply = reply(outcome.unwrap_or(Outcome::Missing), done.charge)?.with_session(range, done.lsn);
    Ok(if is_minimal && !is_read { reply.without_body() } else { reply })
}

/// The response to an operation, or the failure it was.
pub(super) fn reply(outcome: Outcome, charge: Charge) -> Result<Reply, Failure> {
    let document = |status, text: Arc<str>| {
        let etag = etag_of(&text).unwrap_or_default();
        Reply::new(status, charge, text.to_string()).with_etag(&etag)
    };
    match outcome {
        Outcome::Found(text) | Outcome::Replaced(text) => Ok(document(StatusCode::OK, text)),
        Outcome::Created(text) => Ok(document(StatusCode::CREATED, text)),
        Outcome::Deleted => Ok(Reply::new(StatusCode::NO_CONTENT, charge, String::new())),
        Outcome::NotModified(etag) => Ok(Reply::new(StatusCode::NOT_MODIFIED, charge, String::new()).with_etag(&etag)),
        failed => Err(failure(failed).with_charge(charge)),
    }
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Exists => Failure::conflict("a document with this id and partition key exists already".to_owned()),
        Outcome::NotUnique => {
            let message = "another document with this partition key has the same values of a unique key".to_owned();
            Failure::conflict(message)
        }
        Outcome::PreconditionFailed => {
            let message = "the document has another entity tag than if-match, or the patch's condition is not met";
            Failure::precondition_failed(message.to_owned())
        }
        Outcome::Full => Failure::full(),
        Outcome::TooLarge => Failure::too_large(MAX_DOCUMENT_BYTES),
        Outcome::Invalid(message) => Failure::bad_request(&message),
        _ => Failure::not_found("a document with this id and partition key"),
    }
}
