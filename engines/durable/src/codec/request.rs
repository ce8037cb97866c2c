//! Requests of clients, on their way from one node to another.

use super::input::Input;
use super::message::message;
use super::{CodecError, Inline, Skip, output, put_message};
use crate::client::{Filter, Status};
use crate::partition::{RequestKind, Values};

/// Which request follows.
mod tag {
    pub(super) const DELIVER: u8 = 1;
    pub(super) const DELIVER_EACH: u8 = 2;
    pub(super) const WAIT: u8 = 3;
    pub(super) const FORGET: u8 = 4;
    pub(super) const GET: u8 = 5;
    pub(super) const HISTORY: u8 = 6;
    pub(super) const STATE: u8 = 7;
    pub(super) const QUERY: u8 = 8;
    pub(super) const SUMMARY: u8 = 9;
    pub(super) const PURGE: u8 = 10;
    pub(super) const PURGE_ALL: u8 = 11;
}

/// Writes a request behind `out`.
pub(super) fn put_request(out: &mut Vec<u8>, request: &RequestKind) {
    match request {
        RequestKind::Deliver(message) => {
            out.push(tag::DELIVER);
            put_message(out, message, &mut Inline);
        }
        RequestKind::DeliverEach(messages) => {
            out.push(tag::DELIVER_EACH);
            output::number(out, messages.len() as u64);
            messages.iter().for_each(|message| put_message(out, message, &mut Inline));
        }
        RequestKind::Wait(id) => named(out, tag::WAIT, id.as_str()),
        RequestKind::Forget(id) => named(out, tag::FORGET, id.as_str()),
        RequestKind::Get(id) => named(out, tag::GET, id.as_str()),
        RequestKind::History(id) => named(out, tag::HISTORY, id.as_str()),
        RequestKind::State(id) => named(out, tag::STATE, id.instance().as_str()),
        RequestKind::Purge(id) => named(out, tag::PURGE, id.as_str()),
        RequestKind::Query { filter, limit, values, from } => {
            out.push(tag::QUERY);
            put_filter(out, filter);
            output::number(out, *limit as u64);
            out.push(u8::from(*values == Values::With));
            output::number(out, *from);
        }
        RequestKind::Summary(filter, from) => {
            out.push(tag::SUMMARY);
            put_filter(out, filter);
            output::number(out, *from);
        }
        RequestKind::PurgeAll(filter, from) => {
            out.push(tag::PURGE_ALL);
            put_filter(out, filter);
            output::number(out, *from);
        }
    }
}

fn named(out: &mut Vec<u8>, tag: u8, id: &str) {
    out.push(tag);
    output::text(out, id);
}

fn put_filter(out: &mut Vec<u8>, filter: &Filter) {
    output::number(out, filter.statuses.len() as u64);
    filter.statuses.iter().for_each(|status| out.push(*status as u8));
    output::text(out, &filter.prefix);
    output::optional(out, filter.created_from.as_ref(), output::time);
    output::optional(out, filter.created_to.as_ref(), output::time);
}

pub(super) fn request(input: &mut Input<'_>) -> Result<RequestKind, CodecError> {
    let began = input.at();
    Ok(match input.byte()? {
        tag::DELIVER => RequestKind::Deliver(message(input, &mut Skip)?),
        tag::DELIVER_EACH => RequestKind::DeliverEach(input.list(|input| message(input, &mut Skip))?),
        tag::WAIT => RequestKind::Wait(input.instance()?),
        tag::FORGET => RequestKind::Forget(input.instance()?),
        tag::GET => RequestKind::Get(input.instance()?),
        tag::HISTORY => RequestKind::History(input.instance()?),
        tag::STATE => RequestKind::State(input.entity()?),
        tag::PURGE => RequestKind::Purge(input.instance()?),
        tag::QUERY => RequestKind::Query {
            filter: filter(input)?,
            limit: input.small::<u32>()? as usize,
            values: if input.flag()? { Values::With } else { Values::Without },
            from: input.number()?,
        },
        tag::SUMMARY => RequestKind::Summary(filter(input)?, input.number()?),
        tag::PURGE_ALL => RequestKind::PurgeAll(filter(input)?, input.number()?),
        other => return Input::wrong(began, format!("{other}, expected the kind of a request")),
    })
}

fn filter(input: &mut Input<'_>) -> Result<Filter, CodecError> {
    Ok(Filter {
        statuses: input.list(status)?,
        prefix: input.string()?,
        created_from: input.optional(Input::time)?,
        created_to: input.optional(Input::time)?,
    })
}

pub(super) fn status(input: &mut Input<'_>) -> Result<Status, CodecError> {
    let began = input.at();
    let number = input.byte()?;
    let known = Status::ALL.get(usize::from(number)).copied();
    known.map_or_else(|| Input::wrong(began, format!("{number}, expected a status")), Ok)
}
