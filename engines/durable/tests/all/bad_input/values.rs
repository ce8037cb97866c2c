//! Values of no and of very many bytes, and code that panics or never ends.

use narrows_durable::{Error, FailureKind, InstanceId, PAYLOAD_BYTES_MAX, Payload, Start, Status};

use super::code::{ECHO, ENDLESS, GO, PANIC, WAIT};
use super::{TIMEOUT, block, open};

fn id(text: &str) -> InstanceId {
    InstanceId::new(text).unwrap()
}

#[test]
fn values_of_no_bytes_and_of_100_mb_come_back_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path()).unwrap();
    let large = "y".repeat(100_000_000);
    block(async {
        let client = hub.client();
        client.start(WAIT.start(&large).unwrap().id("large").unwrap()).await.unwrap();
        // No bytes at all are no JSON text, which the code would have to be.
        client.start(Start::new(WAIT.name().into()).id("empty").unwrap()).await.unwrap();
        client.raise(&id("large"), GO.name(), Payload::EMPTY).await.unwrap();
    });
    hub.halt();
    drop(hub);
    let hub = open(folder.path()).unwrap();
    block(async {
        let client = hub.client();
        let view = client.wait(&id("large"), TIMEOUT).await.unwrap();
        assert_eq!(view.output_as::<usize>(), Some(Ok(large.len())));
        assert!(view.input_as::<String>().is_ok_and(|input| input == large), "another input came back");
        let view = client.wait(&id("empty"), TIMEOUT).await.unwrap();
        let failure = view.output.unwrap().unwrap_err();
        assert_eq!((view.input, failure.kind), (Payload::EMPTY, FailureKind::Payload));
        let over = Payload::from_bytes(vec![0; PAYLOAD_BYTES_MAX + 1]);
        let refused = client.start(Start::new(WAIT.name().into()).input(over)).await.unwrap_err();
        assert!(matches!(refused, Error::PayloadTooLarge { .. }), "{refused}");
        assert_eq!(client.run(ECHO, &String::new(), TIMEOUT).await.unwrap(), "");
    });
    hub.close().unwrap();
}

#[test]
fn code_that_panics_or_never_ends_is_reported_and_harms_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let hub = open(folder.path()).unwrap();
    block(async {
        let client = hub.client();
        for (at, start) in [PANIC.start(&()), ENDLESS.start(&())].into_iter().enumerate() {
            client.start(start.unwrap().id(format!("bad-{at}")).unwrap()).await.unwrap();
        }
        let view = client.wait(&id("bad-0"), TIMEOUT).await.unwrap();
        let failure = view.output.unwrap().unwrap_err();
        assert_eq!(failure.to_string(), "panic: orchestration Panic panicked: on purpose");
        for number in 0..20 {
            let text = number.to_string();
            assert_eq!(client.run(ECHO, &text, TIMEOUT).await.unwrap(), text);
        }
    });
    hub.close().unwrap();
    drop(hub);
    let hub = open(folder.path()).unwrap();
    block(async {
        let client = hub.client();
        let view = client.get(&id("bad-1")).await.unwrap().unwrap();
        assert_eq!(view.status, Status::Running);
        client.terminate(&id("bad-1"), "it never ends").await.unwrap();
        let view = client.wait(&id("bad-1"), TIMEOUT).await.unwrap();
        assert_eq!(view.status, Status::Terminated);
        assert_eq!(client.run(ECHO, &"on".to_owned(), TIMEOUT).await.unwrap(), "on");
    });
    hub.close().unwrap();
}
