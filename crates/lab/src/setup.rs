//! A service's setup commands: once per run, before its first trial, one after the other.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use narrows_telemetry::secrets::redact_arguments;

use crate::Error;
use crate::components::process::Spec;
use crate::components::workshop::Workshop;
use crate::experiment::BoundService;
use crate::progress::Event;

/// Which services have been set up in this run.
#[derive(Debug, Default)]
pub(crate) struct Setups {
    done: BTreeSet<String>,
}

impl Setups {
    /// Runs the service's setup commands unless this run already did.
    pub(crate) fn ensure(
        &mut self,
        service: &BoundService,
        env: &[(String, String)],
        workshop: &mut Workshop<'_>,
    ) -> Result<(), Error> {
        if self.done.contains(&service.name) {
            return Ok(());
        }
        let deadline = Instant::now() + service.setup_timeout;
        for command in &service.setup {
            let shown = shown(command, &service.cwd);
            workshop.progress.tell(&Event::SettingUp { service: &service.name, command: &shown });
            let spec = Spec {
                service: service.name.clone(),
                replica: 0,
                command: command.clone(),
                cwd: service.cwd.clone(),
                env: env.to_vec(),
                account: None,
                wanted_line: None,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if let Err(botched) = workshop.run(&spec, left)? {
                let how = botched.how(service.setup_timeout);
                let last_lines = botched.last_lines;
                return Err(Error::Setup { service: service.name.clone(), command: shown, how, last_lines });
            }
        }
        self.done.insert(service.name.clone());
        Ok(())
    }
}

/// The command as a person would type it in the service's folder, without secrets.
fn shown(command: &[String], cwd: &Path) -> String {
    let mut words = command.to_vec();
    if let Some(program) = words.first_mut()
        && let Ok(relative) = Path::new(program.as_str()).strip_prefix(cwd)
    {
        *program = relative.to_string_lossy().into_owned();
    }
    redact_arguments(&mut words);
    words.join(" ")
}
