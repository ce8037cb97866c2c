//! HAProxy, from 2.6 on.
//!
//! One section for each hop, one thread. The access log is a ring of a bounded size in a file, which `haring` and
//! `strings` read: HAProxy writes no ordinary files. Websockets pass, as is HAProxy's way.

use std::fmt::Write;
use std::path::Path;

use crate::components::haproxy::PROGRAM;
use crate::components::sidecar::certificates::Files;
use crate::components::sidecar::hops::Hop;
use crate::components::sidecar::{Kind, LogBound, Plan};
use crate::experiment::Ready;

pub(super) static KIND: Kind = Kind {
    name: "haproxy",
    program: Some(&PROGRAM),
    ready: || Ready::Tcp,
    access_log: LogBound::Own,
    look: |_, _| Ok(()),
    command: |program, plan| Ok(command(program, plan.write("haproxy.cfg", &render(plan))?)),
};

/// Connections of all hops together.
const CONNECTIONS_MAX: u32 = 16_384;
/// Connections of a hop to its upstream.
const UPSTREAM_CONNECTIONS_MAX: u32 = 1_024;
/// The access log.
const RING_BYTES: u32 = 64 << 20;
/// Lines are JSON; `%Ta` is in milliseconds, HAProxy's finest.
const LINE: &str = r#"'{"time_unix_s":%Ts,"hop":"%ft","method":"%HM","path":"%[capture.req.uri,json(utf8s)]","status":%ST,"sent_bytes":%B,"duration_ms":%Ta}'"#;
const LINE_TCP: &str = r#"'{"time_unix_s":%Ts,"hop":"%ft","received_bytes":%U,"sent_bytes":%B,"duration_ms":%Tt}'"#;

pub(super) fn command(program: String, config: String) -> Vec<String> {
    vec![program, "-db".to_owned(), "-q".to_owned(), "-f".to_owned(), config]
}

pub(super) fn render(plan: &Plan) -> String {
    let mut text = format!(
        "global\n    nbthread 1\n    maxconn {CONNECTIONS_MAX}\n    no strict-limits\n    \
         ssl-default-bind-options ssl-min-ver TLSv1.2\n    ssl-default-server-options ssl-min-ver TLSv1.2\n"
    );
    if let Some(log) = &plan.access_log {
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "\nring access\n    format raw\n    maxlen 2048\n    size {RING_BYTES}\n    backing-file {}\n",
            quoted(log)
        );
    }
    text.push_str(
        "\ndefaults\n    timeout connect 5s\n    timeout queue 5s\n    timeout client 24h\n    timeout server 60s\n    \
         timeout http-keep-alive 24h\n    timeout http-request 60s\n",
    );
    for (number, hop) in plan.hops.iter().enumerate() {
        section(&mut text, number, hop, plan);
    }
    text
}

fn section(text: &mut String, number: usize, hop: &Hop, plan: &Plan) {
    let mode = if hop.is_tcp() { "tcp" } else { "http" };
    let files = plan.tls.as_ref();
    let accept = files.filter(|_| hop.accept_tls).map(accept).unwrap_or_default();
    let reach = files.zip(hop.upstream_tls.as_deref()).map(|(files, name)| reach(files, name, hop)).unwrap_or_default();
    let _ = write!(text, "\n# {}\nlisten hop-{number}\n    mode {mode}\n", hop.name);
    if hop.is_tcp() {
        // A database's connection may be silent for as long as its pool keeps it.
        text.push_str("    timeout server 24h\n");
    } else {
        // Idempotent requests are repeated if an upstream closes a kept connection just then.
        text.push_str("    retry-on conn-failure empty-response\n    http-request disable-l7-retry unless METH_GET\n");
    }
    if plan.access_log.is_some() {
        let line = if hop.is_tcp() { LINE_TCP } else { LINE };
        let _ = write!(text, "    log ring@access local0\n    log-format {line}\n");
    }
    let _ = write!(
        text,
        "    bind {}{accept} backlog 1024\n    server upstream {}{reach} maxconn {UPSTREAM_CONNECTIONS_MAX} pool-purge-delay 4s\n",
        hop.listen, hop.upstream
    );
}

fn accept(files: &Files) -> String {
    format!(" ssl crt {} ca-file {} verify required", quoted(&files.certificate), quoted(&files.ca))
}

fn reach(files: &Files, name: &str, hop: &Hop) -> String {
    let sni = if hop.is_tcp() { String::new() } else { format!(" sni str({name})") };
    let (certificate, ca) = (quoted(&files.certificate), quoted(&files.ca));
    format!(" ssl crt {certificate} ca-file {ca} verify required verifyhost {name}{sni}")
}

/// A path as one word of the configuration.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::components::sidecar::tests::{carries, is_bare, is_golden, written};
    use crate::experiment::Protocol;

    #[test]
    fn what_is_written() {
        is_golden("haproxy/sidecar.golden.cfg", render);
        is_bare(render, "ssl-");
    }

    #[test]
    fn it_carries_requests() {
        let Ok(found) = PROGRAM.find() else {
            return narrows_testing::skip("haproxy is missing (Debian package haproxy)");
        };
        let program = found.path.to_string_lossy().into_owned();
        for protocol in [Protocol::Http, Protocol::Tcp] {
            carries(protocol, |plan| {
                let config = written(plan, "haproxy.cfg", &render(plan));
                let checked = Command::new(&program).args(["-c", "-f", &config]).output().unwrap();
                let said = String::from_utf8_lossy(&checked.stderr);
                assert!(checked.status.success() && !said.contains("WARNING"), "{said}");
                command(program.clone(), config)
            });
        }
    }
}
