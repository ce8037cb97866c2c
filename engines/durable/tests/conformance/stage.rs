//! What a scenario plays on: a hub in a folder of its own, and a client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use narrows_durable::store::{ClassicStore, FileStore, FileStoreOptions, Store};
use narrows_durable::{Client, Hub, HubOptions, InstanceId, InstanceView, Orchestration, Registry, Status, replay};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long a scenario waits before it fails; nothing is measured by it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// What the hub runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setting {
    /// The log in files.
    Files,
    /// The same, and every step replays the history before it.
    Replayed,
    /// Tables.
    Classic,
}

pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) setting: Setting,
    /// Executions that do not decide the same again, as that is what the scenario is about.
    pub(crate) partings: u64,
    hub: Option<Hub>,
    code: fn() -> Registry,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new(setting: Setting, code: fn() -> Registry) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = open(setting, code, &folder);
        Self { client: hub.client(), setting, partings: 0, hub: Some(hub), code, folder }
    }

    /// Crashes the hub and opens it again.
    pub(crate) fn crash(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.halt();
        }
        let hub = open(self.setting, self.code, &self.folder);
        self.client = hub.client();
        self.hub = Some(hub);
    }

    /// Closes the hub in order, twice over, and opens it again.
    pub(crate) fn close(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.close().unwrap();
            hub.close().unwrap();
        }
        let hub = open(self.setting, self.code, &self.folder);
        self.client = hub.client();
        self.hub = Some(hub);
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
        let Some(hub) = self.hub.take().filter(|_| !std::thread::panicking()) else { return };
        hub.halt();
        drop(hub);
        let checked = replay::check_hub(store(self.setting, &self.folder), Arc::new((self.code)())).unwrap();
        assert_eq!(checked.parted, self.partings, "{:#?}", checked.partings);
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
    runtime.block_on(scenario(Stage::new(setting, code)));
}

/// Makes a test of each scenario for each setting.
macro_rules! scenarios {
    ($code:ident: $($name:ident),+ $(,)?) => {
        scenarios!(@ files Files $code $($name)+);
        scenarios!(@ replayed Replayed $code $($name)+);
        scenarios!(@ classic Classic $code $($name)+);
    };
    (@ $module:ident $setting:ident $code:ident $($name:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    $crate::stage::play($crate::stage::Setting::$setting, super::$code, super::$name);
                }
            )+
        }
    };
}
