//! NGINX, from 1.22 on.
//!
//! A master and one worker. HTTP hops need nothing but the program; TCP hops need the `stream` module, which Debian has
//! in a package of its own. Websockets are not carried. An access log has no bound of its own: see [`crate::components::sidecar`].

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::components::nginx::PROGRAM;
use crate::components::sidecar::certificates::Files;
use crate::components::sidecar::hops::Hop;
use crate::components::sidecar::{Kind, LogBound, Plan};
use crate::experiment::Ready;

pub(super) static KIND: Kind = Kind {
    name: "nginx",
    program: Some(&PROGRAM),
    ready: || Ready::Tcp,
    access_log: LogBound::Ours,
    look: |service, hops| stream_module_for(service, hops).map(drop),
    command: |program, plan| {
        let module = stream_module_for(&plan.service, &plan.hops)?;
        let config = plan.write("nginx.conf", &render(plan, module.as_deref(), Rights::own()))?;
        Ok(command(program, config, plan))
    },
};

/// Connections of all hops together, to both sides.
const CONNECTIONS_MAX: u32 = 16_384;
/// Connections that are kept to each upstream.
const KEPT_MAX: u32 = 1_024;
const STREAM_MODULE: &str = "ngx_stream_module.so";
const STREAM_INSTALL: &str = "apt-get install libnginx-mod-stream";
/// Where packages put modules: Debian's folder, then nginx.org's.
const MODULE_FOLDERS: [&str; 3] = ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/etc/nginx/modules"];

/// Rights of the process that starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// Workers would give up root's rights, and could not read the certificates then.
    Root,
    /// Workers are as their master.
    Other,
}

impl Rights {
    pub(super) fn own() -> Self {
        if rustix::process::geteuid().is_root() { Self::Root } else { Self::Other }
    }
}

pub(super) fn command(program: String, config: String, plan: &Plan) -> Vec<String> {
    let folder = plan.folder.to_string_lossy().into_owned();
    [program, "-c".to_owned(), config, "-p".to_owned(), folder, "-e".to_owned(), "stderr".to_owned()].to_vec()
}

/// The module for TCP hops where there are any.
fn stream_module_for(service: &str, hops: &[Hop]) -> Result<Option<PathBuf>, Error> {
    if hops.iter().any(Hop::is_tcp) { stream_module(service).map(Some) } else { Ok(None) }
}

/// Where the module for TCP hops lies. Errors, with the package that has it, where it does not.
pub(super) fn stream_module(service: &str) -> Result<PathBuf, Error> {
    let candidates = MODULE_FOLDERS.iter().map(|folder| Path::new(folder).join(STREAM_MODULE));
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| Error::NoProgram {
        service: service.to_owned(),
        program: STREAM_MODULE.to_owned(),
        places: MODULE_FOLDERS.join(", "),
        install: STREAM_INSTALL,
    })
}

/// `stream` is the path of the module for TCP hops, where there are any.
pub(super) fn render(plan: &Plan, stream: Option<&Path>, rights: Rights) -> String {
    let mut text = String::new();
    if let Some(module) = stream {
        line(&mut text, 0, &format!("load_module {};", quoted(module)));
    }
    if rights == Rights::Root {
        line(&mut text, 0, "user root;");
    }
    for word in ["daemon off", "worker_processes 1", "error_log stderr warn"] {
        line(&mut text, 0, &format!("{word};"));
    }
    line(&mut text, 0, &format!("pid {};", quoted(&plan.folder.join("nginx.pid"))));
    line(&mut text, 0, &format!("worker_rlimit_nofile {CONNECTIONS_MAX};"));
    line(&mut text, 0, &format!("events {{ worker_connections {CONNECTIONS_MAX}; }}"));
    let (tcp, http): (Vec<_>, Vec<_>) = plan.hops.iter().enumerate().partition(|(_, hop)| hop.is_tcp());
    if !http.is_empty() {
        section(&mut text, "http", |text| http_section(text, plan, &http));
    }
    if !tcp.is_empty() {
        section(&mut text, "stream", |text| stream_section(text, plan, &tcp));
    }
    text
}

fn http_section(text: &mut String, plan: &Plan, hops: &[(usize, &Hop)]) {
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        line(text, 1, &format!("{kind}_temp_path {};", quoted(&plan.folder.join(format!("{kind}_temp")))));
    }
    for word in [
        "server_tokens off",
        "client_max_body_size 0",
        "keepalive_timeout 24h",
        "keepalive_requests 1000000000",
        "proxy_http_version 1.1",
        "proxy_set_header Host $http_host",
        "proxy_set_header Connection ''",
        "proxy_request_buffering off",
        "proxy_max_temp_file_size 0",
        "proxy_connect_timeout 5s",
        "ssl_protocols TLSv1.2 TLSv1.3",
        "proxy_ssl_protocols TLSv1.2 TLSv1.3",
    ] {
        line(text, 1, &format!("{word};"));
    }
    log(
        text,
        plan,
        r#"'{"time_unix_s":$msec,"hop":"$server_name","method":"$request_method","path":"$request_uri","status":$status,"sent_bytes":$body_bytes_sent,"duration_s":$request_time}'"#,
    );
    for (number, hop) in hops {
        line(text, 1, &format!("# {}", hop.name));
        section_at(text, 1, &format!("upstream hop-{number}"), |text| {
            line(text, 2, &format!("server {};", hop.upstream));
            line(text, 2, &format!("keepalive {KEPT_MAX};"));
            line(text, 2, "keepalive_requests 1000000000;");
            line(text, 2, "keepalive_time 24h;");
            line(text, 2, "keepalive_timeout 4s;");
        });
        section_at(text, 1, "server", |text| {
            line(text, 2, &format!("server_name hop-{number};"));
            ends(text, plan, hop);
            let scheme = if hop.upstream_tls.is_some() { "https" } else { "http" };
            line(text, 2, &format!("location / {{ proxy_pass {scheme}://hop-{number}; }}"));
        });
    }
}

fn stream_section(text: &mut String, plan: &Plan, hops: &[(usize, &Hop)]) {
    log(
        text,
        plan,
        r#"'{"time_unix_s":$msec,"hop":"$server_addr:$server_port","received_bytes":$bytes_received,"sent_bytes":$bytes_sent,"duration_s":$session_time}'"#,
    );
    for word in ["proxy_connect_timeout 5s", "proxy_timeout 24h", "tcp_nodelay on", "ssl_protocols TLSv1.2 TLSv1.3"] {
        line(text, 1, &format!("{word};"));
    }
    for (_, hop) in hops {
        line(text, 1, &format!("# {}", hop.name));
        section_at(text, 1, "server", |text| {
            ends(text, plan, hop);
            if hop.upstream_tls.is_some() {
                line(text, 2, "proxy_ssl on;");
            }
            line(text, 2, &format!("proxy_pass {};", hop.upstream));
        });
    }
}

/// The listener, and TLS at either end.
fn ends(text: &mut String, plan: &Plan, hop: &Hop) {
    let tls = if hop.accept_tls { " ssl" } else { "" };
    line(text, 2, &format!("listen {}{tls} backlog=1024;", hop.listen));
    let Some(Files { ca, certificate, key }) = &plan.tls else { return };
    let (ca, certificate, key) = (quoted(ca), quoted(certificate), quoted(key));
    if hop.accept_tls {
        line(text, 2, &format!("ssl_certificate {certificate};"));
        line(text, 2, &format!("ssl_certificate_key {key};"));
        line(text, 2, &format!("ssl_client_certificate {ca};"));
        line(text, 2, "ssl_verify_client on;");
    }
    if let Some(name) = &hop.upstream_tls {
        line(text, 2, &format!("proxy_ssl_certificate {certificate};"));
        line(text, 2, &format!("proxy_ssl_certificate_key {key};"));
        line(text, 2, &format!("proxy_ssl_trusted_certificate {ca};"));
        line(text, 2, "proxy_ssl_verify on;");
        line(text, 2, &format!("proxy_ssl_name {name};"));
        line(text, 2, "proxy_ssl_server_name on;");
    }
}

fn log(text: &mut String, plan: &Plan, format: &str) {
    match &plan.access_log {
        Some(path) => {
            line(text, 1, &format!("log_format access escape=json {format};"));
            line(text, 1, &format!("access_log {} access buffer=64k flush=1s;", quoted(path)));
        }
        None => line(text, 1, "access_log off;"),
    }
}

fn section(text: &mut String, name: &str, inside: impl FnOnce(&mut String)) {
    section_at(text, 0, name, inside);
}

fn section_at(text: &mut String, depth: usize, name: &str, inside: impl FnOnce(&mut String)) {
    line(text, depth, &format!("{name} {{"));
    inside(text);
    line(text, depth, "}");
}

fn line(text: &mut String, depth: usize, words: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{}{words}", "    ".repeat(depth));
}

/// A path as one word of the configuration.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::components::sidecar::tests::{carries, is_bare, is_golden, written};
    use crate::experiment::Protocol;

    #[test]
    fn what_is_written() {
        let module = Path::new("/usr/lib/nginx/modules/ngx_stream_module.so");
        is_golden("nginx/sidecar.golden.conf", |plan| render(plan, Some(module), Rights::Other));
        is_bare(|plan| render(plan, None, Rights::Root).replace("access_log off", ""), "ssl_protocols");
    }

    #[test]
    fn it_carries_requests() {
        let Ok(found) = PROGRAM.find() else {
            return narrows_testing::skip("nginx is missing (Debian package nginx-light)");
        };
        let program = found.path.to_string_lossy().into_owned();
        let module = stream_module("a").ok();
        let protocols = if module.is_some() { &[Protocol::Http, Protocol::Tcp][..] } else { &[Protocol::Http] };
        for protocol in protocols {
            carries(*protocol, |plan| {
                let module = module.as_deref().filter(|_| *protocol == Protocol::Tcp);
                let config = written(plan, "nginx.conf", &render(plan, module, Rights::own()));
                let command = command(program.clone(), config, plan);
                let checked = Command::new(&program).args(&command[1..]).arg("-t").output().unwrap();
                let said = String::from_utf8_lossy(&checked.stderr);
                assert!(checked.status.success() && !said.contains("[warn]"), "{said}");
                command
            });
        }
    }

    #[test]
    fn a_missing_module_is_told_with_its_package() {
        if let Err(error) = stream_module("name.sidecar") {
            let told = (error.to_string(), error.hint().unwrap_or_default());
            assert!(told.0.starts_with("name.sidecar: `ngx_stream_module.so` is not on this machine"), "{told:?}");
            assert!(told.1.contains("apt-get install libnginx-mod-stream"), "{told:?}");
        }
    }
}
