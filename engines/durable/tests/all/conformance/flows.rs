//! Activities and sub-orchestrations, one after another and at once.

use narrows_durable::{Activity, ActivityContext, Ctx, Failure, Orchestration, Payload, Registry, Start};

use super::stage::Stage;

const HELLO: Activity<String, String> = Activity::new("Hello");
const MULTIPLY: Activity<(u64, u64), u64> = Activity::new("Multiply");
const NUMBER: Activity<u64, u64> = Activity::new("Number");

const INLINE: Orchestration<String, String> = Orchestration::new("SayHelloInline");
const BY_ACTIVITY: Orchestration<String, String> = Orchestration::new("SayHelloWithActivity");
const GREET_ALL: Orchestration<Vec<String>, Vec<String>> = Orchestration::new("GreetAll");
const FACTORIAL: Orchestration<u64, u64> = Orchestration::new("Factorial");
const PARENT: Orchestration<Vec<u64>, Vec<u64>> = Orchestration::new("ParentOfFactorial");
const FAN_OUT: Orchestration<u64, u64> = Orchestration::new("FanOut");
const DOUBLE: Orchestration<(u64, u64), u64> = Orchestration::new("DoubleFanOut");

const WIDE: u64 = 300;

fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(HELLO, |_: ActivityContext, name: String| async move { Ok::<_, Failure>(format!("Hello, {name}!")) });
    code.activity(MULTIPLY, |_: ActivityContext, (a, b): (u64, u64)| async move { Ok::<_, Failure>(a * b) });
    code.activity(NUMBER, |_: ActivityContext, number: u64| async move { Ok::<_, Failure>(number) });
    code.orchestration(INLINE, |_: Ctx, name: String| async move { Ok::<_, Failure>(format!("Hello, {name}!")) });
    code.orchestration(BY_ACTIVITY, |ctx: Ctx, name: String| async move { ctx.call(HELLO, &name).await });
    code.orchestration(GREET_ALL, |ctx: Ctx, names: Vec<String>| async move {
        let calls = names.iter().map(|name| ctx.sub(BY_ACTIVITY, name)).collect();
        ctx.join_all(calls).await.into_iter().collect::<Result<Vec<_>, _>>()
    });
    code.orchestration(FACTORIAL, |ctx: Ctx, n: u64| async move {
        let mut result = 1;
        for factor in 1..=n {
            result = ctx.call(MULTIPLY, &(result, factor)).await?;
        }
        Ok::<_, Failure>(result)
    });
    code.orchestration(PARENT, |ctx: Ctx, inputs: Vec<u64>| async move {
        let mut results = Vec::new();
        for input in &inputs {
            results.push(ctx.sub(FACTORIAL, input).await?);
        }
        Ok::<_, Failure>(results)
    });
    code.orchestration(FAN_OUT, |ctx: Ctx, width: u64| async move {
        let calls = (0..width).map(|number| ctx.call(NUMBER, &number)).collect();
        let numbers = ctx.join_all(calls).await.into_iter().collect::<Result<Vec<u64>, _>>()?;
        Ok::<_, Failure>(numbers.into_iter().sum())
    });
    code.orchestration(DOUBLE, |ctx: Ctx, (outer, inner): (u64, u64)| async move {
        let calls = (0..outer).map(|_| ctx.sub(FAN_OUT, &inner)).collect();
        let sums = ctx.join_all(calls).await.into_iter().collect::<Result<Vec<u64>, _>>()?;
        Ok::<_, Failure>(sums.into_iter().sum())
    });
    code
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("World {number}")).collect()
}

/// `HelloWorldOrchestration_Inline`
async fn hello_world_orchestration_inline(stage: Stage) {
    assert_eq!(stage.run(INLINE, &"World".to_owned()).await, "Hello, World!");
}

/// `HelloWorldOrchestration_Activity`
async fn hello_world_orchestration_activity(stage: Stage) {
    assert_eq!(stage.run(BY_ACTIVITY, &"World".to_owned()).await, "Hello, World!");
}

/// `HelloWorldSubOrchestration_FanOutFanIn`
async fn hello_world_sub_orchestration_fan_out_fan_in(stage: Stage) {
    let greetings = stage.run(GREET_ALL, &names(25)).await;
    assert_eq!(greetings, names(25).iter().map(|name| format!("Hello, {name}!")).collect::<Vec<_>>());
}

/// `SequentialOrchestration`
async fn sequential_orchestration(stage: Stage) {
    assert_eq!(stage.run(FACTORIAL, &10).await, 3_628_800);
}

/// `ParentOfSequentialOrchestration`
async fn parent_of_sequential_orchestration(stage: Stage) {
    assert_eq!(stage.run(PARENT, &vec![1, 5, 10]).await, [1, 120, 3_628_800]);
}

/// `ParallelOrchestration`
async fn parallel_orchestration(stage: Stage) {
    assert_eq!(stage.run(FAN_OUT, &20).await, 190);
}

/// `LargeFanOutOrchestration`
async fn large_fan_out_orchestration(stage: Stage) {
    assert_eq!(stage.run(FAN_OUT, &WIDE).await, WIDE * (WIDE - 1) / 2);
}

/// `DoubleFanOut`
async fn double_fan_out(stage: Stage) {
    assert_eq!(stage.run(DOUBLE, &(10, 10)).await, 450);
}

/// `OrchestrationConcurrency`
async fn orchestration_concurrency(stage: Stage) {
    let starts = (1..=20).map(|n| FACTORIAL.start(&n).unwrap()).collect();
    let started = stage.client.start_many(starts).await.unwrap();
    let mut expected = 1;
    for (n, id) in (1..=20).zip(started) {
        expected *= n;
        assert_eq!(stage.ended(&id.unwrap()).await.output_as::<u64>(), Some(Ok(expected)));
    }
}

/// `ScaleSmallScenarios`: many of each sort at once, through a crash.
async fn scale_small_scenarios(mut stage: Stage) {
    const EACH: usize = 10;
    let mut starts = Vec::new();
    for number in 0..EACH {
        let mut add = |sort: &str, start: Start| starts.push(start.id(format!("{sort}-{number}")).unwrap());
        add("hello", BY_ACTIVITY.start(&"World".to_owned()).unwrap());
        add("greet", GREET_ALL.start(&names(3)).unwrap());
        add("parent", PARENT.start(&vec![3, 4]).unwrap());
        add("double", DOUBLE.start(&(3, 4)).unwrap());
    }
    let started = stage.client.start_many(starts).await.unwrap();
    stage.crash();
    for id in started {
        let view = stage.ended(&id.unwrap()).await;
        let expected = match view.id.as_str().split('-').next() {
            Some("hello") => r#""Hello, World!""#,
            Some("greet") => r#"["Hello, World 0!","Hello, World 1!","Hello, World 2!"]"#,
            Some("parent") => "[6,24]",
            _ => "18",
        };
        assert_eq!(view.output, Some(Ok(Payload::from_bytes(expected))), "{}", view.id);
    }
}

/// `CreateThenRestore`: what ran before a crash, and what was under way, is there after it.
async fn create_then_restore(mut stage: Stage) {
    let before = stage.start(FACTORIAL, "before", &12).await;
    stage.ended(&before).await;
    let during = stage.start(DOUBLE, "during", &(5, 20)).await;
    stage.crash();
    assert_eq!(stage.ended(&before).await.output_as::<u64>(), Some(Ok(479_001_600)));
    assert_eq!(stage.ended(&during).await.output_as::<u64>(), Some(Ok(950)));
}

scenarios!(
    code: hello_world_orchestration_inline,
    hello_world_orchestration_activity,
    hello_world_sub_orchestration_fan_out_fan_in,
    sequential_orchestration,
    parent_of_sequential_orchestration,
    parallel_orchestration,
    large_fan_out_orchestration,
    double_fan_out,
    orchestration_concurrency,
    scale_small_scenarios,
    create_then_restore,
);
