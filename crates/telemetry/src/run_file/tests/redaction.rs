//! Nothing secret gets in under any name, and no text takes longer than its length.

use super::super::redaction::Record;
use super::*;
use crate::secrets::KnownSecrets;
use narrows_model::caveat::TrialCaveat;

#[test]
fn a_destination_is_cleaned_under_each_of_its_names() {
    for key in ["messaging.destination.name", "messaging.destination", "messaging.source.name"] {
        let attributes = attributes(json!({ key: "amqp://user:pass@broker/orders?token=abc" }));
        let mut span = Span { facts: crate::normalise::facts(&attributes), attributes, ..trace(1, T0).spans.remove(0) };
        span.clean(&KnownSecrets::default());
        let expected = "amqp://REDACTED:REDACTED@broker/orders?token=REDACTED";
        assert_eq!(span.attributes[key], expected);
        assert_eq!(span.facts.messaging_destination.as_deref(), Some(expected), "{key}");
    }
}

#[test]
fn long_texts_of_many_marks_are_gone_through_once() {
    const BYTES: usize = 4 << 20;
    let mut line = LogLine {
        time_ns: 1,
        service: String::new(),
        replica: 0,
        stream: LogStream::Otlp,
        severity: String::new(),
        text: ":".repeat(BYTES),
        trace_id: None,
    };
    line.clean(&KnownSecrets::default());
    assert_eq!(line.text, ":".repeat(16 << 10));
    let many = "password 'a' ".repeat(BYTES / 13);
    let mut span = Span { attributes: attributes(json!({ "db.statement": many })), ..trace(1, T0).spans.remove(0) };
    span.facts.db_query = Some(many);
    span.clean(&KnownSecrets::default());
    let query = span.facts.db_query.as_deref().unwrap();
    assert!(query.len() <= 64 << 10 && query.starts_with("password 'REDACTED' password 'REDACTED' "));
    assert!(!query.contains("'a'"));
    assert_eq!(span.attributes["db.statement"], query);
}

#[test]
fn a_value_that_is_marked_as_a_secret_is_blanked_in_all_that_is_written() {
    const SECRET: &str = "Zk4711-qV-secret";
    let place = Place::new();
    let (file, recorder) = started(&place.path(), Limits::default());
    recorder.hide(KnownSecrets::new([SECRET.to_owned()]));
    let waiting = |key: &str, text: &str| {
        let attributes = attributes(json!({ key: text }));
        Span { facts: crate::normalise::facts(&attributes), attributes, ..trace(1, T0).spans.remove(0) }
    };
    let packed = super::packed_requests::packed(vec![waiting("app.note", &format!("it is {SECRET}"))]);
    assert_eq!(wait(recorder.packed(packed, vec![])), kept(1));
    let sql = format!("SELECT 1 WHERE a = '{SECRET}'");
    assert_eq!(
        wait(recorder.spans(vec![Span { span_id: 99_u64.to_be_bytes(), ..waiting("db.query.text", &sql) }])),
        kept(1)
    );
    let error = Some(format!("exited; it printed last:\n | {SECRET} password='x1'"));
    let parameters = [("plain", SECRET), ("api_token", "x1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    recorder
        .put_trial(&Trial {
            error,
            parameters,
            caveats: vec![TrialCaveat::FileUnreadable { error: format!("so {SECRET}") }],
            ..trial(1)
        })
        .unwrap();
    recorder.put_conclusion("sentence", &json!({ "a": [SECRET] })).unwrap();
    drop(recorder);
    file.finish(RunState::Interrupted).unwrap();
    let bytes = std::fs::read(place.path()).unwrap();
    for secret in [SECRET.as_bytes(), b"x1\""] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{}", String::from_utf8_lossy(secret));
    }
    assert_eq!(
        row(&place.path(), "SELECT error FROM trials"),
        "exited; it printed last:\n | REDACTED password='REDACTED'"
    );
}
