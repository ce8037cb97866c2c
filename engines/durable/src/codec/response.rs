//! Responses to clients, on their way from one node to another.

use super::input::Input;
use super::request::status;
use super::{CodecError, Events, Inline, Skip, output, put_event};
use crate::client::{InstanceView, Summary};
use crate::error::Error;
use crate::event::Event;
use crate::failure::{Failure, FailureKind};
use crate::ids::{PartitionId, Time};
use crate::partition::Response;

/// Which response or error follows.
mod tag {
    pub(super) const DONE: u8 = 1;
    pub(super) const EACH: u8 = 2;
    pub(super) const VIEW: u8 = 3;
    pub(super) const EVENTS: u8 = 4;
    pub(super) const STATE: u8 = 5;
    pub(super) const PAGE: u8 = 6;
    pub(super) const COUNT: u8 = 7;
    pub(super) const RAN: u8 = 8;
    pub(super) const SUMMARY: u8 = 9;
    pub(super) const BAD_ID: u8 = 20;
    pub(super) const FAILED: u8 = 21;
    pub(super) const NOT_FOUND: u8 = 22;
    pub(super) const EXISTS: u8 = 23;
    pub(super) const CONFLICT: u8 = 24;
    pub(super) const FULL: u8 = 25;
    pub(super) const PAYLOAD_TOO_LARGE: u8 = 26;
    pub(super) const OTHER: u8 = 27;
}

/// The fixed parts of errors. One that is not here arrives as the last.
const WORDS: [&str; 15] = [
    "an identifier that does not begin with '@' (entities do)",
    "has not started",
    "is running",
    "is suspended",
    "has completed",
    "has failed",
    "was terminated",
    "is an entity",
    "is parked",
    "has ended",
    "terminated",
    "suspended",
    "resumed",
    "purged",
    "something else",
];

/// Writes a response behind `out`.
pub(super) fn put_response(out: &mut Vec<u8>, response: &Result<Response, Error>) {
    match response {
        Err(error) => put_error(out, error),
        Ok(Response::Done) => out.push(tag::DONE),
        Ok(Response::Each(each)) => {
            out.push(tag::EACH);
            output::number(out, each.len() as u64);
            for result in each {
                output::optional(out, result.as_ref().err(), put_error);
            }
        }
        Ok(Response::View(view)) => {
            out.push(tag::VIEW);
            output::optional(out, view.as_deref(), put_view);
        }
        Ok(Response::Events(events)) => {
            out.push(tag::EVENTS);
            output::optional(out, events.as_ref(), |out, events| {
                let (mut bytes, mut previous) = (Vec::new(), Time(0));
                for Event { time, kind } in events {
                    put_event(&mut bytes, previous, *time, kind, &mut Inline);
                    previous = *time;
                }
                output::bytes(out, &bytes);
            });
        }
        Ok(Response::State(state)) => {
            out.push(tag::STATE);
            output::optional(out, state.as_ref(), |out, state| output::payload(out, state, &mut Inline));
        }
        Ok(Response::Page(views, next)) => {
            out.push(tag::PAGE);
            output::number(out, views.len() as u64);
            views.iter().for_each(|view| put_view(out, view));
            output::optional(out, *next, output::number);
        }
        Ok(Response::Count(count, next)) => {
            out.push(tag::COUNT);
            output::number(out, *count);
            output::optional(out, *next, output::number);
        }
        Ok(Response::Summary(summary, next)) => {
            out.push(tag::SUMMARY);
            output::number(out, summary.count);
            output::optional(out, summary.period, |out, (first, last)| {
                output::time(out, &first);
                output::time(out, &last);
            });
            output::optional(out, *next, output::number);
        }
        Ok(Response::Ran(result)) => {
            out.push(tag::RAN);
            output::payload(out, result, &mut Inline);
        }
    }
}

fn put_view(out: &mut Vec<u8>, view: &InstanceView) {
    output::text(out, view.id.as_str());
    output::text(out, view.name.as_str());
    output::number(out, u64::from(view.version));
    output::number(out, view.generation);
    out.push(view.status as u8);
    output::time(out, &view.created);
    output::time(out, &view.updated);
    output::optional(out, view.parent.as_ref(), output::caller);
    output::payload(out, &view.input, &mut Inline);
    output::optional(out, view.custom_status.as_ref(), |out, status| output::payload(out, status, &mut Inline));
    output::optional(out, view.parked.as_ref(), |out, reason| output::text(out, reason));
    output::optional(out, view.output.as_ref(), |out, result| output::result(out, result, &mut Inline));
}

fn put_error(out: &mut Vec<u8>, error: &Error) {
    match error {
        Error::BadId { value, expected } => {
            out.push(tag::BAD_ID);
            output::text(out, value);
            output::text(out, expected);
        }
        Error::Failed(failure) => {
            out.push(tag::FAILED);
            output::failure(out, failure, &mut Inline);
        }
        Error::NotFound(id) => {
            out.push(tag::NOT_FOUND);
            output::text(out, id.as_str());
        }
        Error::Exists { instance, state } => {
            out.push(tag::EXISTS);
            output::text(out, instance.as_str());
            output::text(out, state);
        }
        Error::Conflict { instance, state, action } => {
            out.push(tag::CONFLICT);
            output::text(out, instance.as_str());
            output::text(out, state);
            output::text(out, action);
        }
        Error::Full { partition, bytes, limit } => {
            out.push(tag::FULL);
            output::number(out, u64::from(partition.0));
            output::number(out, *bytes);
            output::number(out, *limit);
        }
        Error::PayloadTooLarge { bytes, limit } => {
            out.push(tag::PAYLOAD_TOO_LARGE);
            output::number(out, *bytes);
            output::number(out, *limit);
        }
        other => {
            out.push(tag::OTHER);
            output::text(out, &other.to_string());
        }
    }
}

pub(super) fn response(input: &mut Input<'_>) -> Result<Result<Response, Error>, CodecError> {
    let began = input.at();
    let tag = input.byte()?;
    if tag >= tag::BAD_ID {
        return error_of(input, began, tag).map(Err);
    }
    Ok(Ok(match tag {
        tag::DONE => Response::Done,
        tag::EACH => Response::Each(input.list(|input| Ok(input.optional(error)?.map_or(Ok(()), Err)))?),
        tag::VIEW => Response::View(input.optional(view)?.map(Box::new)),
        tag::EVENTS => Response::Events(input.optional(events)?),
        tag::STATE => Response::State(input.optional(|input| input.payload(&mut Skip))?),
        tag::PAGE => Response::Page(input.list(view)?, input.optional(Input::number)?),
        tag::COUNT => Response::Count(input.number()?, input.optional(Input::number)?),
        tag::SUMMARY => {
            let count = input.number()?;
            let period = input.optional(|input| Ok((input.time()?, input.time()?)))?;
            Response::Summary(Summary { count, period }, input.optional(Input::number)?)
        }
        tag::RAN => Response::Ran(input.payload(&mut Skip)?),
        other => return Input::wrong(began, format!("{other}, expected the kind of a response")),
    }))
}

fn events(input: &mut Input<'_>) -> Result<Vec<Event>, CodecError> {
    let bytes = input.slice()?;
    Events::new(bytes, Time(0), &mut Skip).collect()
}

fn view(input: &mut Input<'_>) -> Result<InstanceView, CodecError> {
    Ok(InstanceView {
        id: input.instance()?,
        name: input.name()?,
        version: input.small()?,
        generation: input.number()?,
        status: status(input)?,
        created: input.time()?,
        updated: input.time()?,
        parent: input.optional(Input::caller)?,
        input: input.payload(&mut Skip)?,
        custom_status: input.optional(|input| input.payload(&mut Skip))?,
        parked: input.optional(Input::string)?,
        output: input.optional(|input| input.result(&mut Skip))?,
    })
}

fn error(input: &mut Input<'_>) -> Result<Error, CodecError> {
    let began = input.at();
    let tag = input.byte()?;
    error_of(input, began, tag)
}

fn error_of(input: &mut Input<'_>, began: usize, tag: u8) -> Result<Error, CodecError> {
    Ok(match tag {
        tag::BAD_ID => Error::BadId { value: input.string()?, expected: word(input)? },
        tag::FAILED => Error::Failed(input.failure(&mut Skip)?),
        tag::NOT_FOUND => Error::NotFound(input.instance()?),
        tag::EXISTS => Error::Exists { instance: input.instance()?, state: word(input)? },
        tag::CONFLICT => Error::Conflict { instance: input.instance()?, state: word(input)?, action: word(input)? },
        tag::FULL => {
            Error::Full { partition: PartitionId(input.small()?), bytes: input.number()?, limit: input.number()? }
        }
        tag::PAYLOAD_TOO_LARGE => Error::PayloadTooLarge { bytes: input.number()?, limit: input.number()? },
        tag::OTHER => Error::Failed(Failure::new(FailureKind::Application, input.string()?)),
        other => return Input::wrong(began, format!("{other}, expected the kind of an error")),
    })
}

fn word(input: &mut Input<'_>) -> Result<&'static str, CodecError> {
    let text = input.string()?;
    Ok(WORDS.into_iter().find(|word| *word == text).unwrap_or(WORDS[WORDS.len() - 1]))
}
