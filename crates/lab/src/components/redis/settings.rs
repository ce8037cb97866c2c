//! `redis:`: the settings of a Redis server.

use crate::components::server_settings;
use crate::experiment::document::at::At;
use crate::experiment::error::{Problem, Report};
use crate::experiment::grammar::key::{Key, parameter};
use crate::experiment::grammar::kind::{self, OneOf};
use crate::experiment::grammar::shape::{Field, Map, Shape};

/// A Redis server's settings in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redis {
    /// The most memory that its data may take.
    pub(super) max_memory_bytes: u64,
    /// Eviction when that is used up: a value of `maxmemory-policy`.
    pub(super) eviction: &'static str,
    /// Settings of `redis.conf` beside those that Narrows gives.
    pub(super) settings: Vec<(String, String)>,
}

/// Eviction of Redis when its memory is used up: the values of `maxmemory-policy`.
const POLICIES: &[&str] = &[
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// Settings that Narrows gives, and those that would hide the server from it or open it to others.
const NOT_FREE: [&str; 20] = [
    "aclfile",
    "bind",
    "cluster-enabled",
    "daemonize",
    "dir",
    "include",
    "logfile",
    "pidfile",
    "port",
    "protected-mode",
    "rename-command",
    "replicaof",
    "requirepass",
    "slaveof",
    "supervised",
    "syslog-enabled",
    "tls-port",
    "unixsocket",
    "unixsocketperm",
    "user",
];

/// Settings that have keys of their own.
const OWN_KEYS: [(&str, &str); 2] = [("maxmemory", MAX_MEMORY.name()), ("maxmemory-policy", EVICTION.name())];

const MAX_MEMORY: Key<u64> = Key::default(
    "max_memory",
    parameter(&kind::MEMORY),
    "256MiB",
    "The most memory that its data may use (`maxmemory`).",
);

const EVICTION: Key<&str> = Key::default(
    "eviction",
    parameter(&OneOf(POLICIES)),
    "noeviction",
    "Which keys it removes when that is used up (`maxmemory-policy`). With `noeviction` it refuses to write.",
);

const SETTINGS: Field = server_settings::settings("Settings of `redis.conf`, such as `appendonly: yes`.");

pub(super) static SHAPE: Shape = Shape::Map(Map::new(&[MAX_MEMORY.field, EVICTION.field, SETTINGS]));

/// A server's settings; `None` if an error was reported.
pub(super) fn from_file(at: At<'_>, report: &mut Report) -> Option<Redis> {
    check_own_keys(at, report);
    let settings = server_settings::read(at, &SETTINGS, |name| !NOT_FREE.contains(&name), report)?;
    Some(Redis { max_memory_bytes: at.read(&MAX_MEMORY)?, eviction: at.read(&EVICTION)?, settings })
}

/// Settings with keys of their own are not written twice.
fn check_own_keys(at: At<'_>, report: &mut Report) {
    let Some(map) = at.get(&SETTINGS) else { return };
    for (name, value) in map.entries() {
        if let Some((_, key)) = OWN_KEYS.iter().find(|(setting, _)| name.eq_ignore_ascii_case(setting)) {
            let problem =
                Problem::new(format!("`{name}` has a key of its own")).hint(format!("write `{key}` beside `settings`"));
            report.add(value.key_place(), map.path(), problem);
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::experiment::tests::components::{component, errors, service};

    #[test]
    fn defaults_are_rediss_own_with_a_bound_on_memory() {
        let bound = component("redis: {}");
        let expected = Redis { max_memory_bytes: 256 << 20, eviction: "noeviction", settings: Vec::new() };
        assert_eq!(bound.settings_as::<Redis>(), &expected);
        assert_eq!(service("redis: {}").ready_timeout.as_secs(), 30);
    }

    #[test]
    fn settings_are_read_in_order() {
        let bound =
            component("redis: { max_memory: 64MiB, eviction: allkeys-lru, settings: { appendonly: yes, save: \"\" } }");
        let redis: &Redis = bound.settings_as();
        assert_eq!((redis.max_memory_bytes, redis.eviction), (64 << 20, "allkeys-lru"));
        let settings = [("appendonly", "yes"), ("save", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(redis.settings, settings);
    }

    #[test]
    fn errors_are_reported_at_their_places() {
        let cases = [
            "redis: { max_memory: 0, eviction: lru }",
            "redis: { settings: { Port: 1, maxmemory: 1mb, MaxMemory-Policy: allkeys-lru } }",
            "redis: { settings: { save: \"60 1\\nbind 0.0.0.0\" } }",
            "redis: {}\n      ready: GET /",
        ];
        let shown: Vec<String> = cases.iter().map(|case| format!("--- {case}\n{}", errors(case))).collect();
        assert_snapshot!(shown.concat(), @r#"
        --- redis: { max_memory: 0, eviction: lru }
        e.yaml:6:28: system.services.web.redis.max_memory: expected an amount of memory such as `256MiB`, found 0
        e.yaml:6:41: system.services.web.redis.eviction: expected one of `noeviction`, `allkeys-lru`, `allkeys-lfu`, `allkeys-random`, `volatile-lru`, `volatile-lfu`, `volatile-random`, `volatile-ttl`, found "lru"
        --- redis: { settings: { Port: 1, maxmemory: 1mb, MaxMemory-Policy: allkeys-lru } }
        e.yaml:6:28: system.services.web.redis.settings: `Port` is set by Narrows, so that the server is private to the trial
        e.yaml:6:37: system.services.web.redis.settings: `maxmemory` has a key of its own
          hint: write `max_memory` beside `settings`
        e.yaml:6:53: system.services.web.redis.settings: `MaxMemory-Policy` has a key of its own
          hint: write `eviction` beside `settings`
        --- redis: { settings: { save: "60 1\nbind 0.0.0.0" } }
        e.yaml:6:34: system.services.web.redis.settings.save: expected one line, found a line break or another control character
        --- redis: {}
              ready: GET /
        e.yaml:7:14: system.services.web.ready: `redis` allows no readiness check
          hint: set only `timeout`: `{ timeout: 2m }`
        "#);
    }
}
