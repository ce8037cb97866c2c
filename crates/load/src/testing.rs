//! Plans that unit tests begin with.

use std::time::Duration;

use narrows_model::load::{
    Connections, Cookies, DataSource, DataValues, Flow, LoadModel, LoadPlan, Pick, Protocol, RequestTemplate, Retry,
    Scenario, Template, ThinkTime,
};

/// One scenario that requests `/`, with nothing to connect to.
pub(crate) fn plan(model: LoadModel) -> LoadPlan {
    let request = RequestTemplate {
        method: "GET".into(),
        path: Template::text("/"),
        headers: Vec::new(),
        body: None,
        host: "test".into(),
    };
    LoadPlan {
        targets: vec![([127, 0, 0, 1], 9).into()],
        client_addresses: Vec::new(),
        protocol: Protocol::Http1,
        tls: None,
        scenarios: vec![Scenario {
            name: "a".into(),
            model,
            warmup: Duration::ZERO,
            flows: vec![Flow::single(request)],
            cookies: Cookies::Ignored,
            think_time: ThinkTime::default(),
            pace: None,
        }],
        data: Vec::new(),
        tracing: None,
        timeout: Duration::from_secs(5),
        drain: Duration::from_secs(5),
        retry: Retry::Idempotent,
        seed: 1,
        threads: 1,
        connections: Connections::KeepAlive,
    }
}

/// One user for one second.
pub(crate) fn constant_plan() -> LoadPlan {
    plan(LoadModel::ConstantVus { vus: 1, duration: Duration::from_secs(1) })
}

/// A data source named `owner`.
pub(crate) fn rows(rows: &[&[&str]], pick: Pick) -> DataSource {
    let rows = rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect();
    DataSource { name: "owner".into(), values: DataValues::Rows { columns: Vec::new(), rows, pick } }
}
