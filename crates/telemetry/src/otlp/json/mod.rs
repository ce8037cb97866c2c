//! OTLP's JSON: protobuf's JSON mapping, but for ids, which are hexadecimal.
//!
//! A request is walked level by level over its text, borrowing from it, because the members of an object come in any
//! order: a scope's records may stand before the scope. One record at a time is made into the message that protobuf
//! would have given, so that everything after is one path. `serde_json` bounds how deeply values nest (128 levels).
//!
//! The generated types' own `serde` feature is not used: it decodes requests as a whole, refuses `null` and numbers
//! that the mapping allows as strings, and would build two more libraries.

mod fields;
mod messages;
mod values;

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::convert::Origin;
use super::request::{Levels, MalformedRequest, Names, Record, RecordPath};
use crate::unicode;

pub(super) use fields::FromJson;

/// The most objects of a record, resource or scope: empty ones take two bytes as written and many more in memory.
pub(super) const OBJECTS_MAX: usize = 100_000;

/// Counts those in strings too, which are few.
pub(super) fn has_too_many_objects(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'{').nth(OBJECTS_MAX).is_some()
}

/// Calls `visit` for each record with where it comes from; what `visit` complains of ends the walk.
pub(super) fn each_record(
    levels: Levels,
    request: &[u8],
    mut visit: impl FnMut(&Origin, Record<'_>) -> Result<(), String>,
) -> Result<(), MalformedRequest> {
    let [resources, scopes, records] = levels.json;
    let root = RecordPath::root();
    let text = unicode::text(request);
    let mut groups = 0;
    let all = Group::read(&root, &text, &[], resources)?;
    each(&root, all.members, &mut |r, of_resource| {
        let place = root.at(resources[0], r);
        let resource = Group::read(&place, of_resource, &["resource"], scopes)?;
        let mut origin = Origin::of_resource(resource.own::<Resource>(&place)?);
        groups = place.counted(groups)?;
        each(&place, resource.members, &mut |s, of_scope| {
            let place = place.at(scopes[0], s);
            let scope = Group::read(&place, of_scope, &["scope", "instrumentationLibrary"], records)?;
            groups = place.counted(groups)?;
            origin.set_scope(scope.own::<InstrumentationScope>(&place)?.name);
            each(&place, scope.members, &mut |i, record| {
                visit(&origin, Record::Json(record)).map_err(|what| place.at(records[0], i).malformed(what))
            })
        })
    })
}

/// One message.
pub(super) fn message<M: FromJson>(text: &str) -> Result<M, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    M::from_json(value).map_err(|mistake| mistake.to_string())
}

/// An object of the upper levels: what it is about, and the list of what belongs to it. Of two with one name the later
/// counts.
struct Group<'a> {
    own: Option<&'a RawValue>,
    members: Option<&'a RawValue>,
}

impl<'a> Group<'a> {
    /// Each member may have several names: older versions of OTLP used others.
    fn read(place: &RecordPath, text: &'a str, own: Names, members: Names) -> Result<Self, MalformedRequest> {
        let mut json = serde_json::Deserializer::from_str(text);
        let group = json.deserialize_any(GroupVisitor { own, members });
        let group = group.and_then(|group| json.end().map(|()| group));
        group.map_err(|error| place.malformed(error.to_string()))
    }

    fn own<M: FromJson + Default>(&self, place: &RecordPath) -> Result<M, MalformedRequest> {
        let Some(own) = self.own.filter(|own| own.get() != "null") else { return Ok(M::default()) };
        if let Some(excess) = Record::Json(own.get()).excess() {
            return Err(place.malformed(format!("its resource or scope is {excess}")));
        }
        message(own.get()).map_err(|what| place.malformed(what))
    }
}

struct GroupVisitor {
    own: Names,
    members: Names,
}

impl<'de> Visitor<'de> for GroupVisitor {
    type Value = Group<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object with {:?}", self.members[0])
    }

    /// Otherwise the message would hold the whole text, which may be anything: long, or a secret.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Group<'de>, E> {
        Err(E::invalid_type(Unexpected::Other("a string"), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Group<'de>, A::Error> {
        let mut group = Group { own: None, members: None };
        while let Some(name) = map.next_key::<String>()? {
            if self.members.contains(&name.as_str()) {
                group.members = Some(map.next_value()?);
            } else if self.own.contains(&name.as_str()) {
                group.own = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(group)
    }
}

/// Calls `visit` for each element of a list until the first mistake. No list, or `null`, has none.
fn each<'a>(
    place: &RecordPath,
    list: Option<&'a RawValue>,
    visit: &mut dyn FnMut(usize, &'a str) -> Result<(), MalformedRequest>,
) -> Result<(), MalformedRequest> {
    let Some(list) = list.filter(|list| list.get() != "null") else { return Ok(()) };
    let mut json = serde_json::Deserializer::from_str(list.get());
    json.deserialize_any(EachVisitor { visit }).map_err(|error| place.malformed(error.to_string()))?
}

struct EachVisitor<'v, 'a> {
    visit: &'v mut dyn FnMut(usize, &'a str) -> Result<(), MalformedRequest>,
}

impl<'de> Visitor<'de> for EachVisitor<'_, 'de> {
    type Value = Result<(), MalformedRequest>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(E::invalid_type(Unexpected::Other("a string"), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut result = Ok(());
        let mut index = 0;
        while result.is_ok() {
            let Some(element) = list.next_element::<&RawValue>()? else { return Ok(result) };
            result = (self.visit)(index, element.get());
            index += 1;
        }
        // A list has to be read to its end, also when the rest of it no longer matters.
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(result)
    }
}

#[cfg(test)]
mod tests;
