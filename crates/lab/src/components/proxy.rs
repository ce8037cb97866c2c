//! What `nginx:` and `haproxy:` have in common: a configuration that is generated, tested by the proxy itself before the
//! start, so that what it refuses is one clear error, and kept with everything else of the proxy in the replica's folder.
//!
//! Both mean the same by the same keys. A client without the cookie is given a new one, and its first request is sent
//! where that one leads, which is where the later ones go. Proxies behind this one are told the cookie and the client's
//! address in headers; they hash the same and give no cookie of their own.

use std::time::Duration;

use super::workshop::Workshop;
use super::{Launch, Place};
use crate::Error;
use crate::experiment::Ready;
use crate::programs::Program;

const TEST_PATIENCE: Duration = Duration::from_secs(20);
/// Connections of clients and to upstreams, together.
pub(super) const CONNECTIONS_MAX: u32 = 16_384;
/// Connections that wait to be accepted.
pub(super) const BACKLOG: u32 = 4_096;
/// How a cookie is given: it is kept for an hour.
pub(super) const COOKIE_ATTRIBUTES: &str = "Path=/; HttpOnly; SameSite=Lax; Max-Age=3600";

/// How a program is made a proxy.
pub(super) struct Kind {
    pub(super) program: &'static Program,
    /// The account that its Debian package makes for it.
    pub(super) account: &'static str,
    /// The configuration's file.
    pub(super) file: &'static str,
    /// The arguments that start it, with the paths of its folder and its configuration.
    pub(super) arguments: fn(folder: &str, file: &str) -> Vec<String>,
    /// The argument beside these that makes it test the configuration and end.
    pub(super) test: &'static str,
    /// What tells that it listens.
    pub(super) ready: Ready,
}

/// Writes and tests the configuration of a replica and says how it is started.
pub(super) fn prepare(
    kind: Kind,
    configuration: &str,
    place: &Place<'_>,
    workshop: &mut Workshop<'_>,
) -> Result<Launch, Error> {
    let program = place.find(kind.program)?.path;
    let account = place.account(kind.account)?;
    place.make_folder(account)?;
    let path = place.folder.join(kind.file);
    place.write(&path, configuration, account)?;
    let mut command = vec![program.display().to_string()];
    command.extend((kind.arguments)(&place.folder.display().to_string(), &path.display().to_string()));
    let test = command.iter().cloned().chain([kind.test.to_owned()]).collect();
    place.run(workshop, test, account, TEST_PATIENCE, "its configuration is refused")?;
    Ok(Launch { command, cwd: place.folder.clone(), env: Vec::new(), account, ready: kind.ready })
}
