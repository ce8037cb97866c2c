//! The stage of a scenario: a hub in its own folder, and a client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_durable::store::{ClassicStore, FileStore, FileStoreOptions, Store};
use narrows_durable::{Client, Hub, HubOptions, InstanceId, InstanceView, Orchestration, Registry, Status, replay};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::nodes::Nodes;

/// How long a scenario waits before it fails; nothing is measured by it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// Store and processes of the hub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    /// The log in files.
    Files,
    /// The same, and every step replays the history before it.
    Replayed,
    /// Tables.
    Classic,
    /// Three nodes that share a hub on a server.
    Nodes,
}

/// The running hub of a scenario.
enum RunningHub {
    Hub(Hub),
    Nodes(Box<Nodes>),
}

impl RunningHub {
    fn client(&self) -> Client {
        match self {
            Self::Hub(hub) => hub.client(),
            Self::Nodes(nodes) => nodes.client(),
        }
    }
}

pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) setting: Setting,
    /// Executions that do not decide the same again, as that is what the scenario is about.
    pub(crate) mismatches: u64,
    running: Option<RunningHub>,
    code: fn() -> Registry,
    folder: tempfile::TempDir,
}

impl Stage {
    /// `None` if the setting needs a server that is not installed.
    fn new(setting: Setting, code: fn() -> Registry) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let running = match setting {
            Setting::Nodes => RunningHub::Nodes(Box::new(Nodes::start(code)?)),
            _ => RunningHub::Hub(open(setting, code, &folder)),
        };
        Some(Self { client: running.client(), setting, mismatches: 0, running: Some(running), code, folder })
    }

    /// Crashes the hub and opens it again, or all nodes but the one that the client is of.
    pub(crate) fn crash(&mut self) {
        self.restart(|hub| hub.halt(), Nodes::crash);
    }

    /// Closes the hub in order, twice over, and opens it again, or the nodes one after the other.
    pub(crate) fn close(&mut self) {
        let close = |hub: &Hub| {
            hub.close().unwrap();
            hub.close().unwrap();
        };
        self.restart(close, Nodes::close);
    }

    fn restart(&mut self, end: impl Fn(&Hub), replace: impl Fn(&mut Nodes)) {
        match &mut self.running {
            Some(RunningHub::Nodes(nodes)) => replace(nodes),
            running => {
                if let Some(RunningHub::Hub(hub)) = running.take() {
                    end(&hub);
                }
                *running = Some(RunningHub::Hub(open(self.setting, self.code, &self.folder)));
            }
        }
        self.client = self.running.as_ref().unwrap().client();
    }

    pub(crate) async fn start<I: Serialize, O>(&self, code: Orchestration<I, O>, id: &str, input: &I) -> InstanceId {
        self.client.start(code.start(input).unwrap().id(id).unwrap()).await.unwrap()
    }

    /// Runs an orchestration to its good end.
    pub(crate) async fn run<I: Serialize, O: DeserializeOwned>(&self, code: Orchestration<I, O>, input: &I) -> O {
        self.client.run(code, input, TIMEOUT).await.unwrap()
    }

    pub(crate) async fn ended(&self, id: &InstanceId) -> InstanceView {
        self.client.wait(id, TIMEOUT).await.unwrap()
    }

    pub(crate) async fn status(&self, id: &InstanceId) -> Status {
        self.client.get(id).await.unwrap().unwrap().status
    }

    /// Queries until there is no such instance.
    pub(crate) async fn gone(&self, id: &InstanceId) {
        let begun = Instant::now();
        while self.client.get(id).await.unwrap().is_some() {
            assert!(begun.elapsed() < TIMEOUT, "{id} is still there");
        }
    }
}

/// Whatever the scenario, its code decides the same again over what it left.
impl Drop for Stage {
    fn drop(&mut self) {
        let Some(running) = self.running.take().filter(|_| !std::thread::panicking()) else { return };
        let checked = match running {
            RunningHub::Hub(hub) => {
                hub.halt();
                drop(hub);
                replay::check_hub(store(self.setting, &self.folder), Arc::new((self.code)()))
            }
            RunningHub::Nodes(nodes) => nodes.check(),
        };
        let checked = checked.unwrap();
        assert_eq!(checked.mismatch_count, self.mismatches, "{:#?}", checked.mismatches);
    }
}

pub(crate) fn id(text: &str) -> InstanceId {
    InstanceId::new(text).unwrap()
}

fn store(setting: Setting, folder: &tempfile::TempDir) -> Arc<dyn Store> {
    match setting {
        Setting::Classic => Arc::new(ClassicStore::open(folder.path().join("hub.db")).unwrap()),
        _ => {
            let options = FileStoreOptions { segment_bytes: 256 << 10 };
            Arc::new(FileStore::open(folder.path(), options).unwrap())
        }
    }
}

fn open(setting: Setting, code: fn() -> Registry, folder: &tempfile::TempDir) -> Hub {
    let mut options = HubOptions::default();
    options.partitions = 3;
    if setting == Setting::Replayed {
        options.cursor_cache_bytes = 0;
    }
    Hub::open(store(setting, folder), code(), options).unwrap()
}

pub(crate) fn play<F: Future<Output = ()>>(setting: Setting, code: fn() -> Registry, scenario: fn(Stage) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Without it there is nothing to run; the harness has been told so.
    let Some(stage) = Stage::new(setting, code) else { return };
    runtime.block_on(scenario(stage));
}

/// Makes a test of each scenario for each setting.
macro_rules! scenarios {
    ($code:ident: $($name:ident),+ $(,)?) => {
        scenarios!(@ files Files $code $($name)+);
        scenarios!(@ replayed Replayed $code $($name)+);
        scenarios!(@ classic Classic $code $($name)+);
        scenarios!(@ nodes Nodes $code $($name)+);
    };
    (@ $module:ident $setting:ident $code:ident $($name:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    $crate::conformance::stage::play($crate::conformance::stage::Setting::$setting, super::$code, super::$name);
                }
            )+
        }
    };
}
