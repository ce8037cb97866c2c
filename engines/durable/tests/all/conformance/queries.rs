//! Querying many instances, and forgetting many.

use narrows_durable::{
    Ctx, ExternalEvent, Failure, Filter, InstanceView, Orchestration, Registry, Status, Time, Values,
};

use super::stage::Stage;

const GO: ExternalEvent<()> = ExternalEvent::new("Go");
const ECHO: Orchestration<u64, u64> = Orchestration::new("Echo");
const WAIT: Orchestration<u64, ()> = Orchestration::new("Wait");
const LIMIT: usize = 100;

fn code() -> Registry {
    let mut code = Registry::new();
    code.orchestration(ECHO, |_: Ctx, number: u64| async move {
        if number == 13 { Err(Failure::application("13")) } else { Ok(number) }
    });
    code.orchestration(WAIT, |ctx: Ctx, _: u64| async move { ctx.event(GO).await });
    code
}

async fn found(stage: &Stage, filter: Filter) -> Vec<InstanceView> {
    let page = stage.client.query(filter.clone(), LIMIT, Values::With, None).await.unwrap();
    assert!(page.next.is_none());
    let summary = stage.client.summary(filter).await.unwrap();
    assert_eq!(summary.count, page.instances.len() as u64);
    let created = page.instances.iter().map(|instance| instance.created).min();
    let updated = page.instances.iter().map(|instance| instance.updated).max();
    assert_eq!(summary.period.map(|(first, _)| first), created);
    // Those that run may have gone on since.
    assert!(summary.period.map(|(_, last)| last) >= updated, "{summary:?}");
    page.instances
}

async fn ids(stage: &Stage, filter: Filter) -> Vec<String> {
    let mut ids: Vec<_> = found(stage, filter).await.into_iter().map(|view| view.id.to_string()).collect();
    ids.sort();
    ids
}

/// Starts three, one after the other has ended, and gives when each was accepted.
async fn three(stage: &Stage) -> Vec<Time> {
    let mut created = Vec::new();
    for name in ["one", "two", "three"] {
        let id = stage.start(ECHO, name, &1).await;
        created.push(stage.ended(&id).await.created);
    }
    assert!(created.is_sorted_by(|a, b| a < b), "{created:?}");
    created
}

/// `NoInstancesCreated`
async fn no_instances_created(stage: Stage) {
    assert_eq!(found(&stage, Filter::default()).await, []);
    assert_eq!(stage.client.purge_all(Filter::default()).await.unwrap(), 0);
}

/// `QueryOrchestrationInstancesByDateRange`
async fn query_orchestration_instances_by_date_range(stage: Stage) {
    let created = three(&stage).await;
    let from = |created_from| Filter { created_from, ..Filter::default() };
    assert_eq!(ids(&stage, from(Some(created[1]))).await, ["three", "two"]);
    assert_eq!(ids(&stage, Filter { created_to: Some(created[2]), ..from(Some(created[1])) }).await, ["two"]);
    assert_eq!(ids(&stage, Filter { created_to: Some(created[0]), ..Filter::default() }).await, [""; 0]);
}

/// `QueryOrchestrationInstancesByRuntimeStatus`
async fn query_orchestration_instances_by_runtime_status(stage: Stage) {
    let well = stage.start(ECHO, "well", &1).await;
    let badly = stage.start(ECHO, "badly", &13).await;
    let ended = stage.start(WAIT, "ended", &1).await;
    stage.start(WAIT, "waits", &1).await;
    stage.client.terminate(&ended, "").await.unwrap();
    for id in [&well, &badly, &ended] {
        stage.ended(id).await;
    }
    let of = |statuses: &[Status]| Filter { statuses: statuses.to_vec(), ..Filter::default() };
    assert_eq!(ids(&stage, of(&[Status::Completed])).await, ["well"]);
    assert_eq!(ids(&stage, of(&[Status::Failed])).await, ["badly"]);
    assert_eq!(ids(&stage, of(&[Status::Terminated])).await, ["ended"]);
    assert_eq!(ids(&stage, of(&[Status::Running])).await, ["waits"]);
    assert_eq!(ids(&stage, of(&[Status::Running, Status::Completed])).await, ["waits", "well"]);
    assert_eq!(ids(&stage, of(&[])).await, ["badly", "ended", "waits", "well"]);
}

/// `SingleServiceQuery`: by the beginning of the identifier, with and without values.
async fn query_by_prefix(mut stage: Stage) {
    for name in ["a-1", "a-2", "b-1"] {
        let id = stage.start(ECHO, name, &5).await;
        stage.ended(&id).await;
    }
    stage.crash();
    let filter = Filter { prefix: "a-".to_owned(), ..Filter::default() };
    assert_eq!(ids(&stage, filter.clone()).await, ["a-1", "a-2"]);
    for view in found(&stage, filter.clone()).await {
        assert_eq!((view.input_as::<u64>(), view.output_as::<u64>()), (Ok(5), Some(Ok(5))));
    }
    let page = stage.client.query(filter, LIMIT, Values::Without, None).await.unwrap();
    assert!(page.instances.iter().all(|view| view.input.is_empty() && view.output.is_none()));
}

/// `PurgeInstanceHistoryForTimePeriodDeletePartially`
async fn purge_instance_history_for_time_period_delete_partially(mut stage: Stage) {
    let created = three(&stage).await;
    stage.start(WAIT, "waits", &1).await;
    let before_last = Filter { created_to: Some(created[2]), ..Filter::default() };
    assert_eq!(stage.client.purge_all(before_last).await.unwrap(), 2);
    stage.crash();
    assert_eq!(ids(&stage, Filter::default()).await, ["three", "waits"]);
    assert_eq!(stage.client.purge_all(Filter::default()).await.unwrap(), 1, "what runs stays");
    assert_eq!(ids(&stage, Filter::default()).await, ["waits"]);
}

scenarios!(
    code: no_instances_created,
    query_orchestration_instances_by_date_range,
    query_orchestration_instances_by_runtime_status,
    query_by_prefix,
    purge_instance_history_for_time_period_delete_partially,
);
