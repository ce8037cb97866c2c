//! `redis:`: a private Redis server.
//!
//! It keeps its data in the replica's folder and listens on 127.0.0.1 without a password. Its memory is bounded, so a
//! load that fills it reaches Redis's limit before the machine's. Every other setting is Redis's own unless the
//! experiment sets it. Root starts it under the account that its package made.

mod client;
mod gauges;
mod settings;

use std::path::PathBuf;

use rustix::process::Signal;

use crate::Error;
use crate::components::gauges::{Gauges, TIMEOUT};
use crate::components::workshop::Workshop;
use crate::components::{Component, Entry, Launch, Place};
use crate::experiment::system::service::READY_TIMEOUT;
use crate::experiment::{Declaration, Protocol, Ready, ServerKind, ServerUrl, Url};
use crate::programs::Program;
use client::Client;
use settings::Redis;

pub(super) use gauges::Info;

pub(super) static ENTRY: Entry = Entry {
    declaration: Declaration {
        key: "redis",
        doc: "A Redis server of the service's own, instead of `run`.",
        shape: &settings::SHAPE,
        protocol: Protocol::Tcp,
        stop_signal: Signal::TERM,
        ready_timeout: READY_TIMEOUT,
        further_ports: 0,
        replicas: |_| None,
        url: |_| Url { before: "redis://".to_owned(), after: String::new() },
        check_files: |_, _, _| {},
        read: |at, _, report| Some(ENTRY.settings(settings::from_file(at, report)?)),
    },
    programs: &[&PROGRAM],
    sidecar: None,
};

static PROGRAM: Program = Program {
    name: "Redis",
    used_for: "`redis:`",
    binary: "redis-server",
    tools: &[],
    folders: &["/usr/bin"],
    install: "apt-get install redis-server",
};

/// The account that Debian's package makes.
const ACCOUNT: &str = "redis";

impl Component for Redis {
    fn prepare(&self, place: &Place<'_>, _: &mut Workshop<'_>) -> Result<Launch, Error> {
        let program = place.find(&PROGRAM)?.path;
        let account = place.account(ACCOUNT)?;
        place.make_folder(account)?;
        place.make_folder_at(&data(place), account)?;
        let file = place.folder.join("redis.conf");
        place.write(&file, &self.configuration(place.service.port), account)?;
        let command = vec![program.display().to_string(), file.display().to_string()];
        Ok(Launch { command, cwd: data(place), env: Vec::new(), account, ready: Ready::Tcp })
    }

    /// It accepts connections before it has read its data, and refuses commands until then.
    fn is_usable(&self, place: &Place<'_>) -> Result<(), String> {
        let response = Client::new(local(place.service.port))
            .text(&["PING"], TIMEOUT)
            .map_err(|error| format!("PING: {error}"))?;
        if response == "PONG" { Ok(()) } else { Err(format!("PING: expected `PONG`, found `{response}`")) }
    }

    fn gauges(&self, place: &Place<'_>) -> Option<Box<dyn Gauges>> {
        Some(Box::new(Info::new(local(place.service.port))))
    }
}

impl Redis {
    /// The whole of `redis.conf`. The experiment's settings last: where one is given twice, Redis takes the last.
    fn configuration(&self, port: u16) -> String {
        let ours = [
            ("bind", "127.0.0.1".to_owned()),
            ("port", port.to_string()),
            // It works there: so no path of the folder has to be quoted.
            ("dir", "./".to_owned()),
            ("daemonize", "no".to_owned()),
            ("logfile", "\"\"".to_owned()),
            ("maxmemory", self.max_memory_bytes.to_string()),
            ("maxmemory-policy", self.eviction.to_owned()),
        ];
        let ours = ours.iter().map(|(name, value)| format!("{name} {value}\n"));
        let theirs = self.settings.iter().map(|(name, value)| {
            let value = if value.trim().is_empty() { "\"\"" } else { value };
            format!("{name} {value}\n")
        });
        ours.chain(theirs).collect()
    }
}

/// A server on this machine that Narrows started.
fn local(port: u16) -> ServerUrl {
    ServerUrl::local(ServerKind::Redis, port, "", "")
}

/// Where a server keeps its data, and where it works.
fn data(place: &Place<'_>) -> PathBuf {
    place.folder.join("data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_private_and_bounded_and_the_experiments_settings_come_last() {
        let settings = [("save", ""), ("appendonly", "yes"), ("client-output-buffer-limit", "normal 0 0 0")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let redis = Redis { max_memory_bytes: 64 << 20, eviction: "allkeys-lru", settings };
        let expected = "bind 127.0.0.1\nport 7000\ndir ./\ndaemonize no\nlogfile \"\"\nmaxmemory 67108864\n\
                        maxmemory-policy allkeys-lru\nsave \"\"\nappendonly yes\n\
                        client-output-buffer-limit normal 0 0 0\n";
        assert_eq!(redis.configuration(7000), expected);
    }
}
