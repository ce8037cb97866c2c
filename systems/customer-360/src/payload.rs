//! Payloads between the services: names, people and customers, field by field as in the original.
//!
//! Texts are borrowed from the JSON they came in where they hold no escapes, so that wrapping a response copies them
//! once. One thing looks like a mistake and is kept: the original's customers read a name's number from a field `id`,
//! which nobody sends, so it is always 0.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};

/// A text that is copied only where it must be.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A name, as `name` has it in its table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Name<'a> {
    pub(crate) person_id: Option<i32>,
    #[serde(borrow)]
    pub(crate) first: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) middle: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) last: Option<Text<'a>>,
}

impl Text<'_> {
    fn into_owned(self) -> Text<'static> {
        Text(Cow::Owned(self.0.into_owned()))
    }
}

impl Name<'_> {
    /// The same without borrowed parts.
    pub(crate) fn into_owned(self) -> Name<'static> {
        let Self { person_id, first, middle, last } = self;
        let [first, middle, last] = [first, middle, last].map(|text| text.map(Text::into_owned));
        Name { person_id, first, middle, last }
    }
}

/// A name as `person` reads and writes it: a missing number is 0.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NumberedName<'a> {
    #[serde(default, deserialize_with = "zero_if_null")]
    person_id: i32,
    #[serde(borrow)]
    first: Option<Text<'a>>,
    #[serde(borrow)]
    middle: Option<Text<'a>>,
    #[serde(borrow)]
    last: Option<Text<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Person<'a> {
    person_id: i32,
    name: NumberedName<'a>,
}

/// A name as `customer` reads and writes it.
#[derive(Debug, Serialize, Deserialize)]
struct CustomerName<'a> {
    #[serde(default, deserialize_with = "zero_if_null")]
    id: i32,
    #[serde(borrow)]
    first: Option<Text<'a>>,
    #[serde(borrow)]
    middle: Option<Text<'a>>,
    #[serde(borrow)]
    last: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CustomerPerson<'a> {
    #[serde(default, deserialize_with = "zero_if_null")]
    person_id: i32,
    #[serde(borrow)]
    name: Option<CustomerName<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Customer<'a> {
    #[serde(serialize_with = "as_text")]
    customer_id: CustomerId,
    person: CustomerPerson<'a>,
}

/// A customer's number: the person's, and the first of that person's accounts.
#[derive(Debug)]
struct CustomerId(i32);

impl Display for CustomerId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-1", self.0)
    }
}

fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn zero_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// People out of names, as JSON.
pub(crate) fn people(names: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let names: Vec<NumberedName<'_>> = serde_json::from_slice(names)?;
    let people = names.into_iter().map(|name| Person { person_id: name.person_id, name });
    written(people)
}

/// Customers out of people, as JSON.
pub(crate) fn customers(people: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let people: Vec<CustomerPerson<'_>> = serde_json::from_slice(people)?;
    written(people.into_iter().map(|person| Customer { customer_id: CustomerId(person.person_id), person }))
}

/// How much room a response gets at first: the five rows fit, wrapped or not.
const RESPONSE_BYTES_USUAL: usize = 1_024;

/// A list as JSON, written item by item.
pub(crate) fn written(items: impl Iterator<Item = impl Serialize>) -> Result<Vec<u8>, serde_json::Error> {
    let mut body = Vec::with_capacity(RESPONSE_BYTES_USUAL);
    let mut before = b'[';
    for item in items {
        body.push(before);
        serde_json::to_writer(&mut body, &item)?;
        before = b',';
    }
    if before == b'[' {
        body.push(before);
    }
    body.push(b']');
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: Result<Vec<u8>, serde_json::Error>) -> String {
        String::from_utf8(body.unwrap()).unwrap()
    }

    #[test]
    fn each_service_wraps_what_it_got() {
        let names = r#"[{"personId":1,"first":"Eric","middle":"Donald","last":"Murphy"},{"personId":2,"first":"Zo\u00eb \"Z\"","middle":null,"last":""}]"#;
        let people = text(people(names.as_bytes()));
        assert_eq!(
            people,
            r#"[{"personId":1,"name":{"personId":1,"first":"Eric","middle":"Donald","last":"Murphy"}},{"personId":2,"name":{"personId":2,"first":"Zoë \"Z\"","middle":null,"last":""}}]"#
        );
        assert_eq!(
            text(customers(people.as_bytes())),
            r#"[{"customerId":"1-1","person":{"personId":1,"name":{"id":0,"first":"Eric","middle":"Donald","last":"Murphy"}}},{"customerId":"2-1","person":{"personId":2,"name":{"id":0,"first":"Zoë \"Z\"","middle":null,"last":""}}}]"#
        );
    }

    #[test]
    fn nobody_is_an_empty_list_and_a_missing_number_is_nought() {
        assert_eq!(text(people(b"[]")), "[]");
        assert_eq!(text(customers(b" [ ] ")), "[]");
        let names = br#"[{"personId":null,"first":"A","extra":[1]}]"#;
        let expected = r#"[{"personId":0,"name":{"personId":0,"first":"A","middle":null,"last":null}}]"#;
        assert_eq!(text(people(names)), expected);
        assert_eq!(
            text(customers(br#"[{"name":null}]"#)),
            r#"[{"customerId":"0-1","person":{"personId":0,"name":null}}]"#
        );
    }

    #[test]
    fn what_is_no_list_of_people_is_refused() {
        for bad in ["", "{}", "[", "[1]", r#"[{"personId":"1"}]"#, r#"[{"personId":99999999999}]"#, "[]x", "\u{0}"] {
            assert!(people(bad.as_bytes()).is_err(), "{bad}");
            assert!(customers(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(people(b"[{\"first\":\"\xff\"}]").is_err(), "not UTF-8");
    }
}
