//! A service's setup commands: once per run, before its first trial, one after the other.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use narrows_telemetry::Store;
use rustix::process::Signal;

use crate::Error;
use crate::components::process::{Process, Spec};
use crate::experiment::BoundService;
use crate::guard::Guard;
use crate::progress::{Event, Progress};

const POLL: Duration = Duration::from_millis(20);
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// Which services have been set up in this run.
#[derive(Debug, Default)]
pub(crate) struct Setups {
    done: BTreeSet<String>,
}

/// What a setup needs from its run.
pub(crate) struct Surroundings<'a> {
    pub(crate) mark: &'a str,
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) guard: &'a mut Guard,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) progress: &'a mut dyn Progress,
}

impl Setups {
    /// Runs the service's setup commands unless this run already did.
    pub(crate) fn ensure(
        &mut self,
        service: &BoundService,
        env: &[(String, String)],
        around: &mut Surroundings<'_>,
    ) -> Result<(), Error> {
        if self.done.contains(&service.name) {
            return Ok(());
        }
        let deadline = Instant::now() + service.setup_timeout;
        for command in &service.setup {
            around.progress.tell(&Event::SettingUp { service: &service.name, command: &shown(command, &service.cwd) });
            run_one(service, command, env, deadline, around)?;
        }
        self.done.insert(service.name.clone());
        Ok(())
    }
}

/// The command as a person would type it in the service's folder.
fn shown(command: &[String], cwd: &Path) -> String {
    let mut words = command.to_vec();
    if let Some(program) = words.first_mut()
        && let Ok(relative) = Path::new(program.as_str()).strip_prefix(cwd)
    {
        *program = relative.to_string_lossy().into_owned();
    }
    words.join(" ")
}

fn run_one(
    service: &BoundService,
    command: &[String],
    env: &[(String, String)],
    deadline: Instant,
    around: &mut Surroundings<'_>,
) -> Result<(), Error> {
    let spec = Spec {
        service: service.name.clone(),
        replica: 0,
        command: command.to_vec(),
        cwd: service.cwd.clone(),
        env: env.to_vec(),
        wanted_line: None,
    };
    let mut process = Process::start(&spec, None, around.mark, around.store, around.guard)?;
    let how = loop {
        if let Some(how) = process.ended() {
            break how;
        }
        if around.stop.load(Ordering::Relaxed) {
            process.stop(Signal::TERM, STOP_PATIENCE, around.guard);
            return Err(Error::Interrupted);
        }
        if Instant::now() > deadline {
            break format!(
                "took longer than {}",
                narrows_model::units::duration(service.setup_timeout.as_nanos() as f64)
            );
        }
        std::thread::sleep(POLL);
    };
    let succeeded = process.succeeded();
    let last_lines = process.last_lines().last_words();
    process.stop(Signal::TERM, STOP_PATIENCE, around.guard);
    if succeeded {
        return Ok(());
    }
    Err(Error::Setup { service: service.name.clone(), command: shown(command, &service.cwd), how, last_lines })
}
