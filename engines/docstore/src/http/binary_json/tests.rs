//! Every form that is read, by its bytes; and buffers that were encoded, damaged or are random.

use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

use super::*;

const LIMIT: usize = 1 << 20;

/// The text of the value of these bytes, which stand after the preamble.
fn read(value: &[u8]) -> Result<String, Fault> {
    text(&[&[PREAMBLE], value].concat(), LIMIT).map(|text| String::from_utf8(text).unwrap())
}

fn nested(open: &[u8], levels: usize) -> Vec<u8> {
    [open.repeat(levels), vec![0xD0]].concat()
}

#[test]
fn every_kind_of_number_is_read() {
    let cases: [(&[u8], &str); 17] = [
        (&[0x1F], "31"),
        (&[0xC7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "18446744073709551615"),
        (&[0xC8, 0xFF], "255"),
        (&[0xC9, 0xFE, 0xFF], "-2"),
        (&[0xCA, 0xFE, 0xFF, 0xFF, 0xFF], "-2"),
        (&[0xCB, 0, 0, 0, 0, 0, 0, 0, 0x80], "-9223372036854775808"),
        (&[0xCC, 0, 0, 0, 0, 0, 0, 0xF8, 0x3F], "1.5"),
        (&[0xCC, 0, 0, 0, 0, 0, 0, 0x08, 0x40], "3"),
        (&[0xCC, 0, 0, 0, 0, 0, 0, 0, 0x80], "0"),
        (&[0xCD, 0, 0, 0xC0, 0x3F], "1.5"),
        (&[0xCE, 0, 0, 0, 0, 0, 0, 0xF8, 0xBF], "-1.5"),
        (&[0xD7, 0x80], "128"),
        (&[0xD8, 0x80], "-128"),
        (&[0xD9, 0x00, 0x80], "-32768"),
        (&[0xDA, 0, 0, 0, 0x80], "-2147483648"),
        (&[0xDB, 1, 0, 0, 0, 0, 0, 0, 0], "1"),
        (&[0xDC, 0xFF, 0xFF, 0xFF, 0xFF], "4294967295"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(bytes).as_deref(), Ok(expected), "{bytes:x?}");
    }
    let infinite = read(&[0xCC, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F]);
    assert_eq!(infinite, Err(Fault::Damaged { at: 1, expected: "a finite number" }));
}

#[test]
fn every_form_of_a_string_is_read() {
    let hex = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE, 0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE];
    let after = |marker: u8| [&[marker], &hex[..]].concat();
    let cases: [(Vec<u8>, &str); 21] = [
        (vec![0x2C], "id"),
        (vec![0x3F], "_id"),
        (b"\x82\xC3\xA9".to_vec(), "é"),
        (b"\xC0\x02ab".to_vec(), "ab"),
        (b"\xC1\x02\x00ab".to_vec(), "ab"),
        (b"\xC2\x02\x00\x00\x00ab".to_vec(), "ab"),
        (after(0x75), "01234567-89ab-cdef-0123-456789abcdef"),
        (after(0x76), "01234567-89AB-CDEF-0123-456789ABCDEF"),
        (after(0x77), "\"01234567-89ab-cdef-0123-456789abcdef\""),
        (after(0xD3), "76543210-ba98-fedc-1032-547698badcfe"),
        (b"\x78\x03\x10\x02".to_vec(), "012"),
        (b"\x79\x02\xFA".to_vec(), "AF"),
        (b"\x7A\x05\x13\x1B\x0D".to_vec(), "20:0."),
        (b"\x7B\x03a\x10\x02".to_vec(), "abc"),
        (b"\x7C\x02a\x20\x00".to_vec(), "ab"),
        (b"\x7D\x02a\x40\x00".to_vec(), "ab"),
        (b"\x7E\x02\x61\x31".to_vec(), "ab"),
        (b"\x7F\x02\x00\x61\x31".to_vec(), "ab"),
        (b"\x71\x01\x01ab".to_vec(), "YWI="),
        (b"\x73\x01\xFE\xFF\xFF".to_vec(), "__8"),
        (b"\xDD\x02ab".to_vec(), "YWI="),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(&bytes), Ok(json!(expected).to_string()), "{bytes:x?}");
    }
}

#[test]
fn a_reference_is_the_string_at_its_place_and_never_another_reference() {
    // The array starts at byte 1, its first string at byte 3.
    assert_eq!(read(b"\xE2\x05\x82ab\xC3\x03").as_deref(), Ok(r#"["ab","ab"]"#));
    assert_eq!(read(b"\xE2\x06\x82ab\xC4\x03\x00").as_deref(), Ok(r#"["ab","ab"]"#));
    for damaged in [&b"\xC3\x01"[..], b"\xC3\x00\x00", b"\xC3\x09", b"\xE2\x03\x05\xC3\x03"] {
        assert!(matches!(read(damaged), Err(Fault::Damaged { .. })), "{damaged:x?}");
    }
}

#[test]
fn every_form_of_a_container_is_read() {
    let cases: [(&[u8], &str); 16] = [
        (b"\xE0", "[]"),
        (b"\xE1\x05", "[5]"),
        (b"\xE2\x02\x05\x06", "[5,6]"),
        (b"\xE3\x02\x00\x05\x06", "[5,6]"),
        (b"\xE4\x02\x00\x00\x00\x05\x06", "[5,6]"),
        (b"\xE5\x02\x02\x05\x06", "[5,6]"),
        (b"\xE6\x02\x00\x02\x00\x05\x06", "[5,6]"),
        (b"\xE7\x02\x00\x00\x00\x02\x00\x00\x00\x05\x06", "[5,6]"),
        (b"\xE8", "{}"),
        (b"\xE9\x2C\x05", r#"{"id":5}"#),
        (b"\xEA\x04\x2C\x05\x27\xD2", r#"{"id":5,"_ts":true}"#),
        (b"\xED\x02\x01\x2C\xE0", r#"{"id":[]}"#),
        (b"\xF0\xD8\x02\x01\xFF", "[1,-1]"),
        (b"\xF1\xD9\x01\x00\x01\x00", "[1]"),
        (b"\xF2\xF0\xD7\x02\x02\x01\x02\x03\x04", "[[1,2],[3,4]]"),
        (b"\xF3\xF1\xD7\x01\x00\x02\x00\x01\x02", "[[1],[2]]"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(bytes).as_deref(), Ok(expected), "{bytes:x?}");
    }
}

#[test]
fn what_is_damaged_is_refused_where_it_is() {
    let cases: [(&[u8], usize, &str); 13] = [
        (b"", 1, "more bytes"),
        (b"\xD0\xD0", 2, "the end"),
        (b"\xFF", 1, "a value"),
        (b"\xCF\x00\x00", 1, "a value"),
        (b"\x40", 2, "a string in the body: it names one of a dictionary"),
        (b"\x82\xFF\xFF", 2, "UTF-8"),
        (b"\xC2\xFF\xFF\xFF\xFFab", 6, "more bytes"),
        (b"\xE2\x01\xC8\x05", 5, "an array or object of the length and count it says"),
        (b"\xE5\x01\x02\x05", 5, "an array or object of the length and count it says"),
        (b"\xE9\x05\x05", 2, "a name"),
        (b"\x7B\x01\x7F\x0F", 4, "packed ASCII"),
        (b"\x71\x01\x05a", 2, "base64 of this length"),
        (b"\xF0\x05\x01\x05", 2, "a kind of numbers"),
    ];
    for (bytes, at, expected) in cases {
        assert_eq!(read(bytes), Err(Fault::Damaged { at, expected }), "{bytes:x?}");
    }
}

#[test]
fn depth_and_length_have_limits() {
    assert!(read(&nested(&[0xE1], 128)).is_ok());
    assert_eq!(read(&nested(&[0xE1], 200_000)), Err(Fault::Damaged { at: 130, expected: "at most 128 levels" }));
    assert!(matches!(read(&nested(&[0xE9, 0x2C], 200_000)), Err(Fault::Damaged { .. })));

    // Few bytes that would be a long text: references to a long string, and 65,535 arrays of nothing in each array.
    let long = [&[0xE4, 0xFF, 0xFF, 0, 0, 0xC1, 0x00, 0x40][..], &[b'a'; 0x4000], &[0xC3, 6].repeat(0x5FFE)].concat();
    assert_eq!(read(&long), Err(Fault::TooLarge));
    let empty = [0xF3, 0xF1, 0xD7, 0, 0, 0xFF, 0xFF];
    let empty = [&[0xE4][..], &700_u32.to_le_bytes(), &empty.repeat(100)].concat();
    assert_eq!(read(&empty), Err(Fault::TooLarge));
}

/// JSON whose doubles are no integers, which the text would show as such.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-40_i64..40).prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) + 0.5)),
        any::<f64>()
            .prop_filter("a number", |number| number.is_normal() && number.fract() != 0.0)
            .prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
        "[a-z]{250,300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 120, 40, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            proptest::collection::vec((".{0,20}", inner), 0..12)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_read_as_the_same(value in any_json()) {
        let bytes = encoded(value.to_string().as_bytes()).unwrap();
        prop_assert!(is_binary(&bytes));
        let text = text(&bytes, 64 * LIMIT).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn damaged_bytes_are_refused_or_are_other_json(
        value in any_json(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..6),
    ) {
        let mut bytes = encoded(value.to_string().as_bytes()).unwrap();
        for (place, byte, how) in damage {
            match (how, bytes.len()) {
                (_, 0..2) => break,
                (0, length) => bytes.truncate(1 + place.index(length - 1)),
                (1, length) => bytes.insert(1 + place.index(length - 1), byte),
                (_, length) => bytes[1 + place.index(length - 1)] = byte,
            }
        }
        check(&bytes)?;
    }

    #[test]
    fn random_bytes_are_refused_or_are_json(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&[&[PREAMBLE], bytes.as_slice()].concat())?;
    }
}

/// That a buffer is refused, or read as JSON within the limit.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(text) = text(bytes, LIMIT) {
        prop_assert!(text.len() <= LIMIT);
        prop_assert!(serde_json::from_slice::<Value>(&text).is_ok(), "{}", String::from_utf8_lossy(&text));
    }
    Ok(())
}

#[test]
fn documents_keep_the_order_of_their_properties() {
    let text_before = br#"{"z":1,"a":{"c":[],"b":-0.5},"id":"1"}"#;
    assert_eq!(text(&encoded(text_before).unwrap(), LIMIT).unwrap(), text_before);
    assert!(encoded(b"{").is_err());
    assert_eq!(Number::from_f64(0.5).map(|number| encoded(number.to_string().as_bytes()).unwrap()[1]), Some(0xCC));
}
