//! `narrows orchestrations` on hubs that are made here, in files and in SQLite: what it shows, what it changes, what it
//! leaves alone, and its errors.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, text};
use narrows_durable::store::{ClassicStore, FileStore, FileStoreOptions, Store};
use narrows_durable::{
    Activity, Ctx, EntityOp, EntityType, ExternalEvent, Failure, Hub, HubOptions, InstanceId, Orchestration, Registry,
};
use serde_json::{Value, json};

const HELLO: Activity<String, String> = Activity::new("hello");
const TOUR: Orchestration<Vec<String>, Vec<String>> = Orchestration::new("tour");
const ASK: Orchestration<(), String> = Orchestration::new("ask");
const WRAP: Orchestration<(), String> = Orchestration::new("wrap");
const REPLY: ExternalEvent<String> = ExternalEvent::new("reply");
const COUNTER: EntityType<u64> = EntityType::new("counter");
const ADD: EntityOp<u64, u64, ()> = EntityOp::new("add");
const TIMEOUT: Duration = Duration::from_secs(60);

fn code() -> Registry {
    let mut code = Registry::new();
    code.activity(HELLO, |_, city: String| async move {
        if city.is_empty() { Err(Failure::application("no city")) } else { Ok(format!("Hello {city}!")) }
    });
    code.orchestration(TOUR, |ctx: Ctx, cities: Vec<String>| async move {
        let mut said = Vec::new();
        for city in &cities {
            said.push(ctx.call(HELLO, city).await?);
        }
        Ok(said)
    });
    code.orchestration(ASK, |ctx: Ctx, ()| async move { ctx.event(REPLY).await });
    code.orchestration(
        WRAP,
        |ctx: Ctx, ()| async move { ctx.sub(ASK, &()).id(&InstanceId::new("wrapped").unwrap()).await },
    );
    code.entity(COUNTER).operation(ADD, |count, by, _| {
        *count += by;
        Ok(())
    });
    code
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A hub with a tour that went well, one that failed, two that ask and one that waits for another.
fn open(store: Arc<dyn Store>) -> Hub {
    let mut options = HubOptions::default();
    options.partitions = 3;
    let hub = Hub::open(store, code(), options).unwrap();
    let client = hub.client();
    block(async {
        for (id, cities) in [("tour-1", vec!["Tokyo".to_owned(), "x".repeat(500)]), ("tour-2", vec![String::new()])] {
            let tour = client.start(TOUR.start(&cities).unwrap().id(id).unwrap()).await.unwrap();
            client.wait(&tour, TIMEOUT).await.unwrap();
        }
        for id in ["ask-1", "ask-2"] {
            client.start(ASK.start(&()).unwrap().id(id).unwrap()).await.unwrap();
        }
        client.start(WRAP.start(&()).unwrap().id("wrap").unwrap()).await.unwrap();
        client.signal_entity(&COUNTER.id("visits").unwrap(), ADD, &3).await.unwrap();
        while client.get(&InstanceId::new("wrapped").unwrap()).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    });
    hub
}

fn files(folder: &Path) -> Arc<dyn Store> {
    Arc::new(FileStore::open(folder, FileStoreOptions::default()).unwrap())
}

/// A folder with a hub that was closed.
fn closed(bench: &Bench) -> std::path::PathBuf {
    let folder = bench.path("hub");
    open(files(&folder)).close().unwrap();
    folder
}

fn ask(bench: &Bench, arguments: &[&str]) -> Output {
    bench.run(&[&["orchestrations"], arguments].concat())
}

fn reported(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn failed(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stdout));
    text(&output.stderr)
}

fn listed(bench: &Bench, arguments: &[&str]) -> Value {
    serde_json::from_str(&reported(&ask(bench, &[&["list", "hub", "--json"], arguments].concat()))).unwrap()
}

fn ids(listing: &Value) -> Vec<&str> {
    listing["instances"].as_array().unwrap().iter().map(|instance| instance["id"].as_str().unwrap()).collect()
}

fn status(bench: &Bench, id: &str) -> Value {
    let listing = listed(bench, &["--prefix", id]);
    let found = listing["instances"].as_array().unwrap().iter().find(|instance| instance["id"] == id);
    found.map_or(Value::Null, |instance| instance["status"].clone())
}

#[test]
fn a_hub_is_listed_while_its_process_runs() {
    let bench = Bench::new("");
    let hub = open(files(&bench.path("hub")));
    let output = ask(&bench, &["list", "hub"]);
    let told = reported(&output);
    let first: Vec<&str> = told.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(first, ["id", "name", "status", "created", "updated"]);
    assert!(told.contains("in all: 4 running, 1 completed, 1 failed\n"), "{told}");
    let note = format!("note: process {} has the hub open", std::process::id());
    assert!(text(&output.stderr).starts_with(&note), "{}", text(&output.stderr));
    hub.close().unwrap();
}

#[test]
fn lists_are_filtered_and_paged_newest_first() {
    let bench = Bench::new("");
    closed(&bench);
    let all = listed(&bench, &[]);
    assert_eq!(all["counts"], json!({ "running": 4, "completed": 1, "failed": 1 }));
    let mut pages: Vec<String> = Vec::new();
    loop {
        let after: Vec<&str> = pages.last().map(|last| ["--after", last.as_str()]).into_iter().flatten().collect();
        let page = listed(&bench, &[&["--limit", "4"], after.as_slice()].concat());
        pages.extend(ids(&page).into_iter().map(ToOwned::to_owned));
        if page["next"].is_null() {
            break;
        }
        assert_eq!(page["next"], json!(pages.last()));
    }
    assert_eq!(pages, ids(&all));
    assert_eq!(pages[4..], ["tour-2", "tour-1"]);
    assert_eq!(ids(&listed(&bench, &["--name", "tour", "--status", "failed,running"])), ["tour-2"]);
    assert_eq!(ids(&listed(&bench, &["--status", "entity"])), ["@counter@visits"]);
    assert_eq!(ids(&listed(&bench, &["--created-before", "2h"])), Vec::<&str>::new());
    assert_eq!(ids(&listed(&bench, &["--created-after", "2h"])).len(), 6);
}

#[test]
fn a_history_says_what_happened_with_a_preview_of_values() {
    let bench = Bench::new("");
    closed(&bench);
    let history: Value =
        serde_json::from_str(&reported(&ask(&bench, &["history", "hub", "tour-1", "--json", "--preview", "12"])))
            .unwrap();
    let events: Vec<Value> = history["events"].as_array().unwrap().iter().map(|event| event["event"].clone()).collect();
    let expected = ["Started", "TaskScheduled", "TaskCompleted", "TaskScheduled", "TaskCompleted", "Completed"]
        .map(|name| json!(name));
    assert_eq!(events, expected);
    assert_eq!(history["events"][2]["value"], r#""Hello Tokyo… (14 bytes)"#);
    assert_eq!(history["events"][3]["bytes"], 502);
    let shown = reported(&ask(&bench, &["history", "hub", "tour-2"]));
    assert!(shown.starts_with("tour-2 (tour): failed\n"), "{shown}");
    assert!(shown.contains("application: no city"), "{shown}");
    let entity = failed(&ask(&bench, &["history", "hub", "@counter@visits"]), 2);
    assert_eq!(entity, "error: @counter@visits is an entity, and entities keep no history\n");
}

#[test]
fn changes_are_refused_while_a_process_has_the_hub() {
    let bench = Bench::new("");
    let hub = open(files(&bench.path("hub")));
    for arguments in [&["terminate", "hub", "ask-1"][..], &["suspend", "hub", "ask-1"], &["purge", "hub", "tour-1"]] {
        let said = failed(&ask(&bench, arguments), 2);
        let process = format!("process {}", std::process::id());
        assert!(said.contains(&format!("error: hub is in use by {process}\nhint: {process} can do it")), "{said}");
    }
    let asked = block(hub.client().get(&InstanceId::new("ask-1").unwrap())).unwrap().unwrap();
    assert_eq!(asked.status.as_str(), "running");
}

#[test]
fn an_orchestration_is_terminated_and_the_others_go_on() {
    let bench = Bench::new("");
    let folder = closed(&bench);
    let said = reported(&ask(&bench, &["terminate", "hub", "ask-1", "wrap", "--reason", "a trial"]));
    assert_eq!(said, "terminated 2 orchestrations and 1 sub-orchestration below\n");
    assert_eq!(status(&bench, "wrapped"), "terminated");
    let history = reported(&ask(&bench, &["history", "hub", "ask-1"]));
    assert!(history.contains("Terminated") && history.contains("a trial"), "{history}");
    let again = failed(&ask(&bench, &["terminate", "hub", "ask-1"]), 1);
    assert_eq!(again, "error: instance ask-1 was terminated, so it cannot be terminated\n");
    let hub = Hub::open(files(&folder), code(), HubOptions::default()).unwrap();
    let ask_2 = InstanceId::new("ask-2").unwrap();
    block(async {
        hub.client().raise_event(&ask_2, REPLY, &"yes".to_owned()).await.unwrap();
        let ended = hub.client().wait(&ask_2, TIMEOUT).await.unwrap();
        assert_eq!(ended.output_as::<String>(), Some(Ok("yes".to_owned())));
    });
}

#[test]
fn one_is_suspended_at_once_and_resumed_when_its_program_runs() {
    let bench = Bench::new("");
    let folder = closed(&bench);
    assert_eq!(reported(&ask(&bench, &["suspend", "hub", "ask-1"])), "suspended 1 orchestration\n");
    assert_eq!(status(&bench, "ask-1"), "suspended");
    let said = reported(&ask(&bench, &["resume", "hub", "ask-1"]));
    assert_eq!(said, "1 orchestration goes on when the program next opens the hub\n");
    let hub = Hub::open(files(&folder), code(), HubOptions::default()).unwrap();
    let ask_1 = InstanceId::new("ask-1").unwrap();
    block(async {
        hub.client().raise_event(&ask_1, REPLY, &"yes".to_owned()).await.unwrap();
        hub.client().wait(&ask_1, TIMEOUT).await.unwrap();
    });
}

#[test]
fn purging_by_a_filter_wants_to_be_sure() {
    let bench = Bench::new("");
    closed(&bench);
    let nothing = failed(&ask(&bench, &["purge", "hub"]), 2);
    assert!(nothing.starts_with("error: no orchestrations selected\nhint: "), "{nothing}");
    let running = failed(&ask(&bench, &["purge", "hub", "--status", "running"]), 2);
    assert!(running.starts_with("error: --status running cannot be purged: it has not ended\n"), "{running}");
    let unsure = failed(&ask(&bench, &["purge", "hub", "--name", "tour"]), 2);
    assert_eq!(
        unsure,
        "error: 2 orchestrations would be deleted permanently\nhint: `--dry-run` shows them, `--yes` purges them\n"
    );
    let dry = reported(&ask(&bench, &["purge", "hub", "--name", "tour", "--dry-run"]));
    assert!(
        dry.contains("tour-1") && dry.ends_with("2 orchestrations would be purged, with their sub-orchestrations\n"),
        "{dry}"
    );
    assert_eq!(listed(&bench, &["--name", "tour"])["counts"], json!({ "completed": 1, "failed": 1 }));
    let old = reported(&ask(&bench, &["purge", "hub", "--older-than", "7d", "--yes"]));
    assert_eq!(old, "purged nothing: no orchestration matches\n");
    let said = reported(&ask(&bench, &["purge", "hub", "--status", "failed", "--older-than", "0s", "--yes"]));
    assert_eq!(said, "purged 1 instance\n");
    let output = ask(&bench, &["purge", "hub", "tour-1", "ask-1"]);
    assert_eq!(failed(&output, 1), "error: instance ask-1 is running, so it cannot be purged\n");
    assert_eq!(text(&output.stdout), "purged 1 instance\n");
    assert_eq!(listed(&bench, &[])["counts"], json!({ "running": 4 }));
}

#[test]
fn what_is_no_hub_and_who_is_not_there_are_named() {
    let bench = Bench::new("");
    let none = failed(&ask(&bench, &["list", "none"]), 2);
    assert!(none.starts_with("error: folder none does not exist\nhint: "), "{none}");
    let other = failed(&ask(&bench, &["list", "tmp"]), 2);
    assert!(
        other.starts_with("error: tmp is not a hub: it has neither a file `hub` nor a database `hub.db`\n"),
        "{other}"
    );
    std::fs::write(bench.path("other.db"), "no database at all, but longer than a page's head".repeat(20)).unwrap();
    let database = failed(&ask(&bench, &["list", "other.db"]), 2);
    assert!(database.contains("other.db") && database.contains("is not a hub"), "{database}");
    closed(&bench);
    let unknown = failed(&ask(&bench, &["history", "hub", "tour-11"]), 2);
    assert!(unknown.starts_with("error: there is no instance tour-11\nhint: did you mean `"), "{unknown}");
    let prefix = failed(&ask(&bench, &["terminate", "hub", "ask-1", "tour"]), 2);
    assert_eq!(prefix, "error: there is no instance tour\nhint: did you mean `tour-1` or `tour-2`?\n");
    assert_eq!(status(&bench, "ask-1"), "running", "a mistaken name changes nothing");
}

#[test]
fn damage_is_named_by_file_and_offset() {
    let bench = Bench::new("");
    let folder = closed(&bench);
    let log = |partition: &str| folder.join(partition).join("log-00000000000000000000");
    let partition = ["p0", "p1", "p2"].into_iter().find(|partition| log(partition).is_file()).unwrap();
    let mut bytes = std::fs::read(log(partition)).unwrap();
    bytes[40] ^= 1;
    std::fs::write(log(partition), bytes).unwrap();
    for arguments in [&["list", "hub"][..], &["purge", "hub", "--status", "failed", "--yes"]] {
        let said = failed(&ask(&bench, arguments), 2);
        let expected = format!("error: hub/{partition}/log-00000000000000000000 at byte ");
        assert!(said.starts_with(&expected) && said.contains("is damaged"), "{said}");
        assert!(said.contains("hint: ") && said.contains("`narrows orchestrations repair HUB`"), "{said}");
    }
}

/// Every file below a folder with its bytes.
fn all_files(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_damaged_hub_is_reported_and_opens_again_once_the_loss_is_accepted() {
    let bench = Bench::new("");
    let folder = closed(&bench);
    let sound = reported(&ask(&bench, &["repair", "hub"]));
    assert_eq!(sound, "hub is sound: 3 partitions, nothing is damaged\n");
    let lost = InstanceId::new("ask-1").unwrap();
    let partition = lost.partition(3);
    std::fs::remove_dir_all(folder.join(format!("p{partition}"))).unwrap();
    let before = all_files(&folder);
    let output = ask(&bench, &["repair", "hub"]);
    assert_eq!(failed(&output, 1), "");
    let report = text(&output.stdout);
    let first = format!("partition {partition} is damaged\n  hub/p{partition}/epoch is damaged: it is missing");
    assert!(report.starts_with(&first) && report.contains("  lost: "), "{report}");
    assert!(report.ends_with("open it without the lost data with `--accept-loss`\n"), "{report}");
    assert!(all_files(&folder) == before, "a report changes nothing");
    let said = reported(&ask(&bench, &["repair", "hub", "--accept-loss"]));
    let last = "repaired: the hub opens without the lost data; copies of what was damaged are in hub/damaged-1\n";
    assert!(said.ends_with(last) && said.starts_with(&first), "{said}");
    assert_eq!(reported(&ask(&bench, &["repair", "hub"])), sound);
    assert_eq!(status(&bench, "ask-1"), Value::Null);
    let hub = Hub::open(files(&folder), code(), HubOptions::default()).unwrap();
    block(async {
        let client = hub.client();
        for id in ["ask-1", "ask-2"].map(|id| InstanceId::new(id).unwrap()) {
            if id.partition(3) == partition {
                client.start(ASK.start(&()).unwrap().id(id.as_str()).unwrap()).await.unwrap();
            }
            client.raise_event(&id, REPLY, &"yes".to_owned()).await.unwrap();
            assert_eq!(client.wait(&id, TIMEOUT).await.unwrap().output_as::<String>(), Some(Ok("yes".to_owned())));
        }
    });
    hub.close().unwrap();
}

#[test]
fn a_hub_without_its_first_file_is_sent_to_repair_and_no_other_folder_is() {
    let bench = Bench::new("");
    let folder = closed(&bench);
    std::fs::remove_file(folder.join("hub")).unwrap();
    let said = failed(&ask(&bench, &["list", "hub"]), 2);
    assert!(said.contains("hint: `narrows orchestrations repair hub` recovers a hub that lost this file"), "{said}");
    let said = reported(&ask(&bench, &["repair", "hub", "--accept-loss"]));
    assert!(said.contains("no data is lost with it: the other files show a hub with 3 partitions"), "{said}");
    assert_eq!(listed(&bench, &[])["counts"], json!({ "running": 4, "completed": 1, "failed": 1 }));
    let none = failed(&ask(&bench, &["repair", "none"]), 2);
    assert_eq!(none, "error: folder none does not exist\n");
    let other = failed(&ask(&bench, &["repair", "tmp"]), 2);
    assert!(other.starts_with("error: tmp is not a hub: "), "{other}");
    let hub = open(files(&bench.path("held")));
    let held = failed(&ask(&bench, &["repair", "held"]), 2);
    assert!(held.starts_with("error: held is in use by process "), "{held}");
    hub.close().unwrap();
    std::fs::write(bench.path("hub.db"), "").unwrap();
    let sqlite = failed(&ask(&bench, &["repair", "hub.db"]), 2);
    assert!(
        sqlite.starts_with("error: hub.db is a hub in SQLite, and only hubs in files can be repaired\n"),
        "{sqlite}"
    );
}

#[test]
fn a_partition_that_stopped_is_listed_with_its_reason_until_the_hub_is_opened_again() {
    let bench = Bench::new("");
    let folder = bench.path("hub");
    let hub = open(files(&folder));
    let ask_1 = InstanceId::new("ask-1").unwrap();
    let partition = ask_1.partition(3);
    // The file that says whose the partition is: it cannot be written any more without it.
    let epoch = folder.join(format!("p{partition}/epoch"));
    std::fs::rename(&epoch, bench.path("aside")).unwrap();
    block(hub.client().raise_event(&ask_1, REPLY, &"yes".to_owned())).unwrap_err();
    hub.close().unwrap_err();
    drop(hub);
    std::fs::rename(bench.path("aside"), &epoch).unwrap();
    let stopped = listed(&bench, &[])["stopped"].clone();
    assert_eq!(stopped[0]["partition"], json!(partition.0));
    let reason = stopped[0]["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("p{partition}/epoch")), "{reason}");
    let shown = reported(&ask(&bench, &["list", "hub"]));
    let line = shown.lines().last().unwrap();
    assert!(line.starts_with(&format!("partition {partition} stopped at 2")) && line.ends_with(reason), "{shown}");
    Hub::open(files(&folder), code(), HubOptions::default()).unwrap().close().unwrap();
    assert_eq!(listed(&bench, &[])["stopped"], json!([]));
}

#[test]
fn a_hub_in_sqlite_is_read_and_changed_when_nobody_has_it() {
    let bench = Bench::new("");
    std::fs::create_dir(bench.path("hub")).unwrap();
    let hub = open(Arc::new(ClassicStore::open(bench.path("hub/hub.db")).unwrap()));
    let held = failed(&ask(&bench, &["list", "hub"]), 2);
    let process = format!("process {}", std::process::id());
    assert!(held.starts_with(&format!("error: hub/hub.db is in use by {process}\nhint: ")), "{held}");
    hub.close().unwrap();
    drop(hub);
    assert_eq!(listed(&bench, &[])["counts"], json!({ "running": 4, "completed": 1, "failed": 1 }));
    assert_eq!(reported(&ask(&bench, &["terminate", "hub/hub.db", "ask-2"])), "terminated 1 orchestration\n");
    assert_eq!(status(&bench, "ask-2"), "terminated");
}
