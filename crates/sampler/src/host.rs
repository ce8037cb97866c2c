//! Figures of the host and of networks besides CPU.

use super::cgroups::RESOURCES;
use super::files::{Files, KeptFile};
use super::limits::{Absence, Budget};
use super::sockets;
use super::text::{self, Interface, Pressure};

/// Of the host.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Figures {
    pub(super) interfaces: Vec<Interface>,
    /// In the order of [`RESOURCES`].
    pub(super) pressure: [Option<Pressure>; 3],
    pub(super) available_bytes: Option<u64>,
    pub(super) load: Option<f64>,
    /// Closed connections that still hold a port, and how many ports there are for connections to one peer.
    pub(super) time_wait: Option<u64>,
    pub(super) ephemeral_ports: Option<u64>,
    /// `ListenOverflows` of the sampler's own network namespace.
    pub(super) overflows: Option<u64>,
}

/// The interfaces of a network namespace, and which it is: figures of another cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) namespace: String,
    pub(super) interfaces: Vec<Interface>,
    /// Closed connections that still hold a port.
    pub(super) time_wait: Option<u64>,
}

/// The host's files.
#[derive(Debug, Default)]
pub(super) struct Host {
    pressure: [KeptFile; 3],
    memory: KeptFile,
    load: KeptFile,
}

impl Host {
    pub(super) fn read(&mut self, files: &mut Files) -> Figures {
        let mut pressure = [None; 3];
        for ((slot, file), resource) in pressure.iter_mut().zip(&mut self.pressure).zip(RESOURCES) {
            *slot = files.record(file, format_args!("pressure/{resource}")).ok().and_then(text::pressure);
        }
        let memory = files.record(&mut self.memory, format_args!("meminfo")).ok();
        let available = memory.and_then(|text| text::number(text, "MemAvailable"));
        Figures {
            pressure,
            available_bytes: available.map(|kibibytes| kibibytes.saturating_mul(1024)),
            load: files.record(&mut self.load, format_args!("loadavg")).ok().and_then(text::load),
            time_wait: files.once(format_args!("self/net/sockstat")).ok().and_then(sockets::time_wait),
            ephemeral_ports: files.once(format_args!("{}", sockets::PORT_RANGE)).ok().and_then(sockets::port_range),
            overflows: files.whole(format_args!("self/net/netstat")).ok().and_then(sockets::overflows),
            interfaces: files.whole(format_args!("self/net/dev")).map(text::interfaces).unwrap_or_default(),
        }
    }
}

/// The network of a process, if it has another than the sampler. Its files are not kept open: an open one keeps the
/// namespace alive.
pub(super) fn network(files: &mut Files, pid: u32, budget: &mut Budget) -> Option<Network> {
    let own = files.link(format_args!("self/ns/net")).ok()?;
    let namespace = files.link(format_args!("{pid}/ns/net"));
    let namespace = namespace.map_err(|error| Absence::from(&error, &mut budget.denied.network)).ok()?;
    if namespace == own {
        return None;
    }
    let interfaces = text::interfaces(files.whole(format_args!("{pid}/net/dev")).ok()?);
    let time_wait = files.once(format_args!("{pid}/net/sockstat")).ok().and_then(sockets::time_wait);
    Some(Network { namespace, interfaces, time_wait })
}
