//! Small and large values.

use narrows_durable::{Activity, ActivityContext, Ctx, Failure, Orchestration, Registry};

use super::stage::Stage;

const ECHO: Activity<String, String> = Activity::new("Echo");
const BLOCK: Activity<u8, String> = Activity::new("Block");
const BLOCKS: Orchestration<u8, usize> = Orchestration::new("FanOutOfBlocks");
const ECHO_ALL: Orchestration<String, String> = Orchestration::new("EchoThroughActivity");

fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(ECHO, |_: ActivityContext, text: String| async move { Ok::<_, Failure>(text) });
    code.orchestration(ECHO_ALL, |ctx: Ctx, text: String| async move { ctx.call(ECHO, &text).await });
    code.activity(BLOCK, |_: ActivityContext, number: u8| async move { Ok::<_, Failure>(block(number)) });
    code.orchestration(BLOCKS, |ctx: Ctx, count: u8| async move {
        let calls = (0..count).map(|number| ctx.call(BLOCK, &number)).collect();
        let blocks = ctx.join_all(calls).await.into_iter().collect::<Result<Vec<String>, _>>()?;
        let right = (0..count).zip(blocks).filter(|(number, found)| *found == block(*number));
        Ok::<_, Failure>(right.count())
    });
    code
}

fn block(number: u8) -> String {
    char::from(b' ' + number % 64).to_string().repeat(30_000)
}

/// `SmallTextMessagePayloads`
async fn small_text_message_payloads(stage: Stage) {
    for text in ["", "a", "\u{1F980} \"quoted\" \\ \u{0}"] {
        assert_eq!(stage.run(ECHO_ALL, &text.to_owned()).await, text);
    }
}

/// `LargeInputAndOutput`
async fn large_input_and_output(mut stage: Stage) {
    let text: String = (0..1 << 20).map(|at: u32| char::from(b'a' + (at % 23) as u8)).collect();
    let id = stage.start(ECHO_ALL, "large", &text).await;
    assert_eq!(stage.ended(&id).await.output_as::<String>(), Some(Ok(text.clone())));
    stage.crash();
    let view = stage.ended(&id).await;
    assert_eq!((view.input_as::<String>(), view.output_as::<String>()), (Ok(text.clone()), Some(Ok(text))));
}

/// `FanOutOrchestration_LargeHistoryBatches`
async fn fan_out_orchestration_large_history_batches(mut stage: Stage) {
    let id = stage.start(BLOCKS, "blocks", &50).await;
    assert_eq!(stage.ended(&id).await.output_as::<usize>(), Some(Ok(50)));
    stage.crash();
    let history = stage.client.history(&id).await.unwrap().unwrap();
    assert_eq!(history.len(), 102, "started, scheduled and completed 50 times each, completed");
}

scenarios!(
    code: small_text_message_payloads,
    large_input_and_output,
    fan_out_orchestration_large_history_batches,
);
