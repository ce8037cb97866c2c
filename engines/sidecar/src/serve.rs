//! A sidecar from its first listener to the end of its last request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::Error;
use crate::access_log::AccessLog;
use crate::config::{Config, HopConfig};
use crate::hop::Hop;
use crate::listen;
use crate::stop::channel;
use crate::telemetry::Telemetry;
use crate::tls::Mutual;

/// How often kept connections are looked over and the access log is written.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// A sidecar whose hops all listen.
pub struct Sidecar {
    hops: Vec<(Arc<Hop>, TcpListener)>,
    log: Option<Arc<AccessLog>>,
    telemetry: Option<Telemetry>,
}

impl Sidecar {
    /// Reads the certificates, opens the access log, sets up telemetry as the environment says, and listens at every
    /// hop. Port 0 is any free one. Must be called within a tokio runtime that has its drivers enabled.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from starting; then nothing is left listening.
    pub fn bind(config: &Config) -> Result<Self, Error> {
        Self::with_telemetry(config, Telemetry::from_env(&config.service, config.hops.len())?)
    }

    pub(crate) fn with_telemetry(config: &Config, telemetry: Option<Telemetry>) -> Result<Self, Error> {
        config.check()?;
        raise_open_files();
        let mutual = config.tls.as_ref().map(Mutual::read).transpose()?;
        let log = config.access_log.as_deref().map(AccessLog::create).transpose()?.map(Arc::new);
        let mut hops = Vec::with_capacity(config.hops.len());
        for hop in &config.hops {
            let (listener, address) = bind(hop)?;
            let mut hop = Hop::new(hop, address, config.limits, mutual.as_ref(), log.clone())?;
            hop.telemetry = telemetry.as_ref().map(|telemetry| telemetry.of_hop(&hop));
            hops.push((Arc::new(hop), listener));
        }
        if let Some(telemetry) = &telemetry {
            let shared: Vec<Arc<Hop>> = hops.iter().map(|(hop, _)| Arc::clone(hop)).collect();
            telemetry.observe(&shared, log.clone());
        }
        Ok(Self { hops, log, telemetry })
    }

    /// Where each hop listens, by its name.
    pub fn listeners(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.hops.iter().map(|(hop, _)| (hop.name.as_str(), hop.listen))
    }

    /// Serves until `stop` is done, then takes no more connections, lets requests under way finish for as long as the
    /// configuration's drain may take, cuts the rest, and sends the last telemetry.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let (sender, events) = channel();
        let mut listeners = JoinSet::new();
        let mut hops = Vec::with_capacity(self.hops.len());
        for (hop, listener) in self.hops {
            hops.push(Arc::clone(&hop));
            listeners.spawn(listen::serve(hop, listener, events.clone()));
        }
        let tidying = tidy(&hops, self.log.as_deref());
        tokio::select! {
            () = stop => {}
            () = tidying => {}
        }
        sender.tell();
        while listeners.join_next().await.is_some() {}
        if let Some(log) = &self.log {
            log.flush();
        }
        if let Some(telemetry) = self.telemetry {
            telemetry.finish().await;
        }
    }
}

/// Does not end.
async fn tidy(hops: &[Arc<Hop>], log: Option<&AccessLog>) {
    let mut ticks = interval(TIDY_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        hops.iter().for_each(|hop| hop.pool.purge());
        if let Some(log) = log {
            log.flush();
        }
    }
}

fn bind(hop: &HopConfig) -> Result<(TcpListener, SocketAddr), Error> {
    let wrong = |source| Error::Bind { hop: hop.name.clone(), address: hop.listen, source };
    let listener = listen::bind(hop.listen).map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    Ok((listener, address))
}

/// Each request takes two file descriptors; as many as the system allows are requested. Fewer is no error: accepting
/// waits for them.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, maximum: limits.maximum });
}
