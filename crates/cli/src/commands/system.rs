//! `narrows system NAME SERVICE`: one service of a reference system, as a process of its own.
//!
//! Every service handles requests on one thread, so that load can reach the limit of its processor time. The exporter of
//! OpenTelemetry has another thread, and some systems start more for other work.

use narrows_system::CommandOutcome;

use crate::exit::{Exit, Failure};
use crate::systems::System;
use crate::{Outcome, stderr};

pub(crate) fn execute(system: System) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    runtime.block_on(async {
        match system.run().await? {
            CommandOutcome::Service(service) => {
                stderr::say(&service.to_string());
                service.run().await;
                Ok(Exit::Fine)
            }
            CommandOutcome::Text(text) => super::print(&text),
        }
    })
}
