//! Messages between nodes, as bytes.

use super::input::Input;
use super::message::message;
use super::request::{put_request, request};
use super::response::{put_response, response};
use super::{CodecError, Inline, Skip, output, put_message};
use crate::error::Error;
use crate::ids::PartitionId;
use crate::message::Message;
use crate::partition::{RequestKind, Response};
use crate::program::ActivityCall;

/// The version of packets, their first byte.
const VERSION: u8 = 1;

/// Which packet follows.
mod tag {
    pub(super) const MESSAGES: u8 = 1;
    pub(super) const ACKNOWLEDGED: u8 = 2;
    pub(super) const NEWS: u8 = 3;
    pub(super) const REQUEST: u8 = 4;
    pub(super) const CANCEL: u8 = 5;
    pub(super) const RESPONSE: u8 = 6;
    pub(super) const FRAGMENT: u8 = 7;
    pub(super) const PROBE: u8 = 8;
    pub(super) const MISSING: u8 = 9;
    pub(super) const FAREWELL: u8 = 10;
    pub(super) const HEARD: u8 = 11;
}

/// Message from one node to another.
#[derive(Debug)]
pub(crate) enum Packet {
    /// Messages of one partition to another, numbered from `first` on.
    Messages { from: PartitionId, to: PartitionId, first: u64, messages: Vec<Message> },
    /// A partition has durably taken what another one sent.
    Acknowledged { by: PartitionId, to: PartitionId, up_to: u64 },
    /// How far a partition has sent messages to another one.
    Probe { from: PartitionId, to: PartitionId, up_to: u64 },
    /// Messages have not come to a partition, from `first` on and before `before`.
    Missing { by: PartitionId, to: PartitionId, first: u64, before: u64 },
    /// A partition has changed hands.
    News,
    /// A client's request.
    Request(RemoteRequest),
    /// The client of this request has gone away.
    Cancel { from: u64, number: u64 },
    /// Fate of a request.
    Response { to: u64, number: u64, outcome: Outcome },
    /// This run of a node has no partition any more and leaves; its address is for the response.
    Farewell { from: u64, address: String },
    /// A run of a node has no open request to one that leaves, and sends it no more.
    Heard { by: u64, to: u64 },
    /// A part of a packet that is too long for the bus.
    Fragment { of: u64, number: u64, at: u32, count: u32, bytes: Vec<u8> },
}

/// Something that another node is to do.
#[derive(Debug)]
pub(crate) struct RemoteRequest {
    /// The run of the node that it comes from.
    pub(crate) from: u64,
    /// Where the response goes.
    pub(crate) address: String,
    /// The run of the node that it is for; another run knows nothing of earlier copies of it.
    pub(crate) to: u64,
    /// Its number there; copies have the same.
    pub(crate) number: u64,
    /// Requests of lower numbers have been responded to, or given up.
    pub(crate) settled: u64,
    pub(crate) work: Work,
}

/// Request of a node to another one.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A request of a client to a partition.
    Request(PartitionId, RequestKind),
    /// An activity of a partition that is elsewhere.
    Activity(ActivityCall),
}

/// Fate of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The partition responded.
    Done(Result<Response, Error>),
    /// Nothing: the partition is not there.
    NotDone,
    /// The partition was lost before it responded.
    Lost,
}

impl Packet {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Self::Messages { from, to, first, messages } => {
                head(&mut out, tag::MESSAGES, [u64::from(from.0), u64::from(to.0), *first]);
                output::number(&mut out, messages.len() as u64);
                messages.iter().for_each(|message| put_message(&mut out, message, &mut Inline));
            }
            Self::Acknowledged { by, to, up_to } => {
                head(&mut out, tag::ACKNOWLEDGED, [u64::from(by.0), u64::from(to.0), *up_to]);
            }
            Self::Probe { from, to, up_to } => {
                head(&mut out, tag::PROBE, [u64::from(from.0), u64::from(to.0), *up_to]);
            }
            Self::Missing { by, to, first, before } => {
                head(&mut out, tag::MISSING, [u64::from(by.0), u64::from(to.0), *first, *before]);
            }
            Self::News => out.push(tag::NEWS),
            Self::Request(request) => {
                let RemoteRequest { from, address, to, number, settled, work } = request;
                head(&mut out, tag::REQUEST, [*from, *to, *number, *settled]);
                output::text(&mut out, address);
                put_work(&mut out, work);
            }
            Self::Cancel { from, number } => head(&mut out, tag::CANCEL, [*from, *number]),
            Self::Response { to, number, outcome } => {
                head(&mut out, tag::RESPONSE, [*to, *number]);
                match outcome {
                    Outcome::Done(response) => {
                        out.push(0);
                        put_response(&mut out, response);
                    }
                    Outcome::NotDone => out.push(1),
                    Outcome::Lost => out.push(2),
                }
            }
            Self::Farewell { from, address } => {
                head(&mut out, tag::FAREWELL, [*from]);
                output::text(&mut out, address);
            }
            Self::Heard { by, to } => head(&mut out, tag::HEARD, [*by, *to]),
            Self::Fragment { of, number, at, count, bytes } => {
                head(&mut out, tag::FRAGMENT, [*of, *number, u64::from(*at), u64::from(*count)]);
                output::bytes(&mut out, bytes);
            }
        }
        out
    }

    /// Reads a packet, which must take all of the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut input = Input::new(bytes);
        let version = input.byte()?;
        if version != VERSION {
            return Input::wrong(0, format!("version {version} of packets, expected {VERSION}"));
        }
        let packet = packet(&mut input)?;
        if input.is_at_end() { Ok(packet) } else { Input::wrong(input.at(), "bytes behind a packet, expected the end") }
    }
}

fn head<const N: usize>(out: &mut Vec<u8>, tag: u8, numbers: [u64; N]) {
    out.push(tag);
    numbers.into_iter().for_each(|number| output::number(out, number));
}

fn packet(input: &mut Input<'_>) -> Result<Packet, CodecError> {
    let began = input.at();
    Ok(match input.byte()? {
        tag::MESSAGES => Packet::Messages {
            from: PartitionId(input.small()?),
            to: PartitionId(input.small()?),
            first: input.number()?,
            messages: input.list(|input| message(input, &mut Skip))?,
        },
        tag::ACKNOWLEDGED => Packet::Acknowledged {
            by: PartitionId(input.small()?),
            to: PartitionId(input.small()?),
            up_to: input.number()?,
        },
        tag::PROBE => {
            Packet::Probe { from: PartitionId(input.small()?), to: PartitionId(input.small()?), up_to: input.number()? }
        }
        tag::MISSING => Packet::Missing {
            by: PartitionId(input.small()?),
            to: PartitionId(input.small()?),
            first: input.number()?,
            before: input.number()?,
        },
        tag::NEWS => Packet::News,
        tag::REQUEST => {
            let (from, to, number, settled) = (input.number()?, input.number()?, input.number()?, input.number()?);
            let address = input.string()?;
            Packet::Request(RemoteRequest { from, address, to, number, settled, work: work(input)? })
        }
        tag::CANCEL => Packet::Cancel { from: input.number()?, number: input.number()? },
        tag::RESPONSE => Packet::Response { to: input.number()?, number: input.number()?, outcome: outcome(input)? },
        tag::FAREWELL => Packet::Farewell { from: input.number()?, address: input.string()? },
        tag::HEARD => Packet::Heard { by: input.number()?, to: input.number()? },
        tag::FRAGMENT => Packet::Fragment {
            of: input.number()?,
            number: input.number()?,
            at: input.small()?,
            count: input.small()?,
            bytes: input.slice()?.to_vec(),
        },
        other => return Input::wrong(began, format!("{other}, expected the kind of a packet")),
    })
}

fn put_work(out: &mut Vec<u8>, work: &Work) {
    match work {
        Work::Request(partition, kind) => {
            head(out, 0, [u64::from(partition.0)]);
            put_request(out, kind);
        }
        Work::Activity(ActivityCall { name, input, instance, generation, id }) => {
            head(out, 1, [*generation, u64::from(*id)]);
            output::text(out, instance.as_str());
            output::text(out, name.as_str());
            output::payload(out, input, &mut Inline);
        }
    }
}

fn work(input: &mut Input<'_>) -> Result<Work, CodecError> {
    let began = input.at();
    match input.byte()? {
        0 => Ok(Work::Request(PartitionId(input.small()?), request(input)?)),
        1 => {
            let (generation, id) = (input.number()?, input.small()?);
            let (instance, name) = (input.instance()?, input.name()?);
            Ok(Work::Activity(ActivityCall { name, input: input.payload(&mut Skip)?, instance, generation, id }))
        }
        other => Input::wrong(began, format!("{other}, expected a request or an activity")),
    }
}

fn outcome(input: &mut Input<'_>) -> Result<Outcome, CodecError> {
    let began = input.at();
    match input.byte()? {
        0 => response(input).map(Outcome::Done),
        1 => Ok(Outcome::NotDone),
        2 => Ok(Outcome::Lost),
        other => Input::wrong(began, format!("{other}, expected an outcome")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Filter, InstanceView, Status, Summary};
    use crate::event::{Event, EventKind};
    use crate::failure::{Failure, FailureKind};
    use crate::ids::{EntityId, InstanceId, Time};
    use crate::message::{MessageKind, Reuse};
    use crate::partition::Values;
    use crate::payload::Payload;

    fn id() -> InstanceId {
        InstanceId::new("order-17").expect("an identifier")
    }

    fn message_of(text: &str) -> Message {
        let input = Payload::encode(&text).expect("a text");
        let start = MessageKind::Start {
            name: "tour".into(),
            version: Some(3),
            input,
            parent: None,
            at: Some(Time(5)),
            reuse: Reuse::Never,
        };
        Message { to: id(), kind: start }
    }

    fn view() -> InstanceView {
        InstanceView {
            id: id(),
            name: "tour".into(),
            version: 3,
            generation: 7,
            status: Status::Failed,
            created: Time(11),
            updated: Time(13),
            parent: Some(crate::event::Caller { instance: id(), generation: 1, id: 2 }),
            input: Payload::encode(&"in").expect("a text"),
            custom_status: Some(Payload::encode(&"half").expect("a text")),
            parked: Some("no code".into()),
            output: Some(Err(Failure::new(FailureKind::Timeout, "late"))),
        }
    }

    fn requests() -> Vec<RequestKind> {
        let filter = Filter {
            statuses: vec![Status::Running, Status::Parked],
            prefix: "o".into(),
            created_from: Some(Time(1)),
            created_to: None,
        };
        vec![
            RequestKind::Deliver(message_of("one")),
            RequestKind::DeliverEach(vec![message_of("a"), message_of("b")]),
            RequestKind::Wait(id()),
            RequestKind::Forget(id()),
            RequestKind::Get(id()),
            RequestKind::History(id()),
            RequestKind::State(EntityId::new("sum", "x").expect("an entity")),
            RequestKind::Query { filter: filter.clone(), limit: 9, values: Values::Without, from: 4 },
            RequestKind::Summary(filter.clone(), 8),
            RequestKind::Purge(id()),
            RequestKind::PurgeAll(filter, 3),
        ]
    }

    fn responses() -> Vec<Result<Response, Error>> {
        let event = |time, id| Event { time: Time(time), kind: EventKind::TimerFired { id } };
        let exists = || Error::Exists { instance: id(), state: "has ended" };
        vec![
            Ok(Response::Done),
            Ok(Response::Each(vec![Ok(()), Err(exists()), Err(Error::NotFound(id()))])),
            Ok(Response::View(Some(Box::new(view())))),
            Ok(Response::Events(Some(vec![event(5, 1), event(4, 2)]))),
            Ok(Response::State(Some(Payload::encode(&5).expect("a number")))),
            Ok(Response::Page(vec![view(), view()], Some(6))),
            Ok(Response::Count(5, None)),
            Ok(Response::Summary(Summary { count: 5, period: Some((Time(2), Time(3))) }, Some(6))),
            Ok(Response::Ran(Payload::encode(&"hello").expect("a text"))),
            Err(Error::bad_id("@x", "an identifier that does not begin with '@' (entities do)")),
            Err(Error::Failed(Failure::application("no"))),
            Err(Error::Conflict { instance: id(), state: "is parked", action: "resumed" }),
            Err(Error::Full { partition: PartitionId(3), bytes: 10, limit: 9 }),
            Err(Error::PayloadTooLarge { bytes: 10, limit: 9 }),
        ]
    }

    fn packets() -> Vec<Packet> {
        let (p, q) = (PartitionId(3), PartitionId(60));
        let request = |work| {
            let address = "127.0.0.1:80".to_owned();
            Packet::Request(RemoteRequest { from: 1, address, to: u64::MAX, number: 3, settled: 2, work })
        };
        let input = Payload::encode(&"Tokyo").expect("a text");
        let activity = ActivityCall { name: "hello".into(), input, instance: id(), generation: 300, id: 7 };
        let mut all = vec![
            Packet::Messages { from: p, to: q, first: 300, messages: vec![message_of("x"), message_of("y")] },
            Packet::Acknowledged { by: p, to: q, up_to: 12 },
            Packet::Probe { from: p, to: q, up_to: 300 },
            Packet::Missing { by: p, to: q, first: 13, before: 300 },
            Packet::News,
            Packet::Cancel { from: 4, number: 5 },
            Packet::Response { to: 4, number: 5, outcome: Outcome::NotDone },
            Packet::Response { to: 4, number: 5, outcome: Outcome::Lost },
            Packet::Farewell { from: u64::MAX, address: "127.0.0.1:80".to_owned() },
            Packet::Heard { by: 300, to: 2 },
            Packet::Fragment { of: 1, number: 2, at: 0, count: 3, bytes: vec![1, 2, 3] },
        ];
        all.push(request(Work::Activity(activity)));
        all.extend(requests().into_iter().map(|kind| request(Work::Request(p, kind))));
        let respond = |response| Packet::Response { to: 1, number: 2, outcome: Outcome::Done(response) };
        all.extend(responses().into_iter().map(respond));
        all
    }

    #[test]
    fn packets_come_back_as_they_were() {
        for packet in packets() {
            let back = Packet::decode(&packet.encode()).expect("a packet");
            assert_eq!(format!("{back:?}"), format!("{packet:?}"));
        }
    }

    #[test]
    fn cut_or_foreign_packets_are_refused() {
        for packet in packets() {
            let bytes = packet.encode();
            for end in 0..bytes.len() {
                assert!(Packet::decode(&bytes[..end]).is_err(), "{packet:?} cut at {end}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert!(Packet::decode(&longer).is_err(), "{packet:?}");
        }
        let mut chance = narrows_testing::Chance::new(7);
        for packet in packets() {
            for _ in 0..200 {
                let mut bytes = packet.encode();
                let at = chance.below(bytes.len());
                bytes[at] = chance.below(256) as u8;
                // It may still be a packet; it must not panic.
                drop(Packet::decode(&bytes));
            }
        }
    }
}
