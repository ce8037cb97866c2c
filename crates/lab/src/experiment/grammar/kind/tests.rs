//! Messages of the kinds.

use super::*;
use crate::experiment::document::tree::parse;
use crate::experiment::error::Report;
use crate::experiment::load::checks::STATUS_TEXT;
use crate::experiment::load::target::TARGET_TEXT;
use crate::experiment::system::service::PROBE_TEXT;

fn outcome(kind: &dyn AnyKind, yaml: &str) -> String {
    let node = parse(yaml, &mut Report::new("e.yaml")).unwrap();
    let Form::Scalar(scalar) = &node.form else { panic!("{yaml} is no scalar") };
    match kind.check(scalar, &node.described()) {
        Ok(()) => "fine".to_owned(),
        Err(Problem { message, hint: None }) => message,
        Err(Problem { message, hint: Some(hint) }) => format!("{message} ({hint})"),
    }
}

#[test]
fn each_kind_says_what_it_expected_and_what_it_found() {
    let words = &OneOf(&["keep-alive", "per-request"]);
    let vus = &Whole::<u32>::new(1, 100);
    let cases: &[(&dyn AnyKind, &str, &str)] = &[
        (&TEXT, "1.50", "fine"),
        (&TEXT, "~", "expected a text, found nothing"),
        (&EXPERIMENT_NAME, "my-test", "fine"),
        (&EXPERIMENT_NAME, "My test", "expected a name of lower-case letters, digits and hyphens, found \"My test\""),
        (
            &EXPERIMENT_NAME,
            "7",
            "expected a name of lower-case letters, digits and hyphens, found 7 (put it in quotes: `\"7\"`)",
        ),
        (&NAME, "a.b", "expected a name of letters, digits, `_` and `-`, found \"a.b\""),
        (&VARIANT_NAME, "3-nodes+retry", "fine"),
        (
            words,
            "keepalive",
            "expected one of `keep-alive`, `per-request`, found \"keepalive\" (did you mean `keep-alive`?)",
        ),
        (&BOOLEAN, "yes", "expected `true` or `false`, found \"yes\""),
        (vus, "many", "expected a whole number from 1 to 100, found \"many\""),
        (vus, "0", "expected a whole number from 1 to 100, found 0"),
        (vus, "1.5", "expected a whole number from 1 to 100, found 1.5"),
        (vus, "\"8\"", "expected a whole number from 1 to 100, found \"8\" (write it without quotes)"),
        (&Whole::<u64>::new(1, u64::MAX), "-1", "expected a whole number of 1 or more, found -1"),
        (&CORES, "0.25", "fine"),
        (&CORES, "0", "expected a number of cores above 0, found 0"),
        (&SHARE, "10", "expected a number from 0 to 1, found 10"),
        (&DURATION, "0", "fine"),
        (&DURATION, "10", "expected a length of time such as `30s` or `1m30s`, found 10 (add a unit: `10s`, `10ms`)"),
        (
            &DURATION,
            "31d",
            "expected a length of time such as `30s` or `1m30s`, found \"31d\" (`d` is not a unit; use `h`, `m`, `s`, `ms` or `us`)",
        ),
        (&super::THINK_TIME, "1s to 1m30s", "fine"),
        (&super::THINK_TIME, "2s", "fine"),
        (
            &super::THINK_TIME,
            "3s to 1s",
            "expected a length of time such as `2s`, or the shortest and the longest, as `1s to 3s`, found \"3s to 1s\"",
        ),
        (
            &super::THINK_TIME,
            "10",
            "expected a length of time such as `2s`, or the shortest and the longest, as `1s to 3s`, found 10 (add a unit: `10s`, `10ms`)",
        ),
        (
            &POSITIVE_DURATION,
            "800h",
            "expected a length of time above 0 such as `30s` or `1m30s`, found \"800h\" (the longest is 30 days, `720h`)",
        ),
        (&POSITIVE_DURATION, "0s", "expected a length of time above 0 such as `30s` or `1m30s`, found \"0s\""),
        (&MEMORY, "256MiB", "fine"),
        (&MEMORY, "256M", "expected an amount of memory such as `256MiB`, found \"256M\""),
        (&PROBE_TEXT, "tcp", "fine"),
        (&PROBE_TEXT, "udp", "expected `tcp` or a request such as `GET /health`, found \"udp\""),
        (&TARGET_TEXT, "orders", "fine"),
        (&TARGET_TEXT, "http://10.0.0.1:8080", "fine"),
    ];
    for &(kind, yaml, expected) in cases {
        assert_eq!(outcome(kind, yaml), expected, "{kind:?} {yaml}");
    }
}

#[test]
fn a_text_that_is_accepted_reads_as_the_value_it_stands_for() {
    use std::time::Duration;
    assert_eq!(DURATION.read("1m30s"), Ok(Duration::from_secs(90)));
    assert_eq!((POSITIVE_DURATION.read("0s"), MEMORY.read("256MiB")), (Err(None), Ok(256 << 20)));
    assert_eq!((RATE.read("30/min"), RATE.read("0"), RATE_OR_NONE.read("0")), (Ok(0.5), Err(None), Ok(0.0)));
    assert_eq!((BOOLEAN.read("True"), STATUS_TEXT.read("2xx")), (Ok(true), Ok((200, 299))));
    let words = Words(&[("never", 0), ("always", 5)]);
    assert_eq!((words.read("always"), words.read("often")), (Ok(5), Err(None)));
    let port = Whole::<u16>::new(1, 65_535);
    assert_eq!((port.read("65535"), port.read("65536"), port.read("0")), (Ok(65_535), Err(None), Err(None)));
    assert_eq!(port.name(), "1 to 65,535");
}
