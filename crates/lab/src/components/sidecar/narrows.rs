//! The proxy that Narrows brings: its configuration is the hop list as JSON.

use serde_json::{Value, json};

use crate::components::sidecar::hops::{Direction, Hop};
use crate::components::sidecar::{Kind, LogBound, Plan};
use crate::experiment::Ready;

pub(super) static KIND: Kind = Kind {
    name: "narrows",
    program: None,
    ready: || Ready::Log { text: "inbound listens on".to_owned() },
    access_log: LogBound::Own,
    look: |_, _| Ok(()),
    command: |program, plan| Ok(command(program, plan.write("sidecar.json", &render(plan))?)),
};

pub(super) fn command(program: String, config: String) -> Vec<String> {
    vec![program, "engine".to_owned(), "sidecar".to_owned(), "--config".to_owned(), config]
}

pub(super) fn render(plan: &Plan) -> String {
    format!("{:#}\n", configuration(plan))
}

pub(super) fn configuration(plan: &Plan) -> Value {
    let tls = plan.tls.as_ref().map(|tls| json!({"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}));
    let hops: Vec<Value> = plan.hops.iter().map(hop).collect();
    json!({"service": plan.service, "tls": tls, "access_log": plan.access_log, "hops": hops})
}

fn hop(hop: &Hop) -> Value {
    json!({
        "name": hop.name,
        "direction": match hop.direction {
            Direction::Inbound => "inbound",
            Direction::Outbound => "outbound",
        },
        "listen": hop.listen,
        "protocol": if hop.is_tcp() { "tcp" } else { "http" },
        "accept_tls": hop.accept_tls,
        "upstream": hop.upstream,
        "upstream_tls": hop.upstream_tls.is_some(),
        "upstream_name": hop.upstream_tls,
    })
}

#[cfg(test)]
mod tests {
    use crate::components::sidecar::narrows::render;
    use crate::components::sidecar::tests::{is_bare, is_golden};

    #[test]
    fn what_is_written() {
        is_golden("sidecar/narrows.golden.json", render);
        is_bare(render, "_tls\"");
    }
}
