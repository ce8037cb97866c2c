//! The loop that accepts connections until it is stopped, then lets the requests in progress finish.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::connection::Connection;
use crate::places::{Admission, Place, Places};

/// The wait before the next attempt when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The longest tick: how precisely waiting is timed.
const TICK_MAX: Duration = Duration::from_secs(1);
/// Ticks in the shortest timeout.
const TICKS_OF_TIMEOUT: u32 = 8;

/// Limits of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at a time, at least 1.
    pub connections_max: usize,
    /// Of those, connections of one address, at least 1. Addresses of loopback have no such limit.
    pub peer_connections_max: usize,
    /// From accepting a connection to the complete head of its first request; timed to an eighth of it or a second,
    /// whichever is less.
    pub first_request_timeout: Duration,
    /// From the end of a request to the complete head of the next; without it, a connection may wait until a newcomer
    /// needs its place.
    pub idle_timeout: Option<Duration>,
    /// How long requests in progress may take once the listener has stopped; the rest is cut off.
    pub drain: Duration,
}

impl Limits {
    pub(crate) fn tick(&self) -> Duration {
        (self.first_request_timeout / TICKS_OF_TIMEOUT).clamp(Duration::from_millis(1), TICK_MAX)
    }
}

/// Accepts connections until `stop` is ready, each with `TCP_NODELAY`. `serve_one` makes the future that serves a
/// connection; dropping that future must close it. Returns when all have ended, at most [`Limits::drain`] after `stop`.
///
/// Must be called within a tokio runtime that has its drivers enabled.
pub async fn serve<F>(
    listener: TcpListener,
    places: &Places,
    stop: impl Future<Output = ()>,
    mut serve_one: impl FnMut(TcpStream, Arc<Connection>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut stop = pin!(stop);
    let mut tasks = JoinSet::new();
    let mut newcomer: Option<(TcpStream, SocketAddr)> = None;
    let mut ticks = interval(places.limits().tick());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if let Some((stream, peer)) = newcomer.take() {
            let spawn = |stream, connection, place| tasks.spawn(keep(place, serve_one(stream, connection)));
            match places.admit(peer.ip(), stream, spawn) {
                Admission::Later(stream) => newcomer = Some((stream, peer)),
                Admission::Admitted | Admission::Refused => {}
            }
        }
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = tasks.join_next() => {}
            _ = ticks.tick(), if !tasks.is_empty() || newcomer.is_some() => places.close_overdue(),
            accepted = accept(&listener, places), if newcomer.is_none() => newcomer = Some(accepted),
        }
    }
    drop((listener, newcomer));
    places.end();
    let ended = async { while tasks.join_next().await.is_some() {} };
    // Connections that take longer are cut off.
    let _ = timeout(places.limits().drain, ended).await;
    tasks.shutdown().await;
}

async fn keep(place: Place, served: impl Future<Output = ()>) {
    let _place = place;
    served.await;
}

async fn accept(listener: &TcpListener, places: &Places) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // A peer that is gone already cannot take the option; reading reports it.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(_) => {
                places.evict();
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether the peer gave up before it was accepted; the next one may be waiting already.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests;
