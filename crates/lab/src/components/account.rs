//! Under whose rights a server runs that refuses to run as root.
//!
//! As any other user, servers run under that user's own rights. As root they get those of an account without any: the
//! one that the server's package made, else `nobody`.

use std::path::Path;

use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::Error;

const ACCOUNTS: &str = "/etc/passwd";
/// The account without rights that every system has.
const NOBODY: &str = "nobody";

/// An account without rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// The account to run under: none unless this is root. `preferred` is the one that the server's package makes.
    pub(crate) fn unprivileged(preferred: &str) -> Result<Option<Self>, String> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let accounts = std::fs::read_to_string(ACCOUNTS).unwrap_or_default();
        let found = [preferred, NOBODY].iter().find_map(|name| Self::named(name, &accounts));
        found.map(Some).ok_or_else(|| {
            format!(
                "it does not run as root, and there is neither an account `{preferred}` nor `{NOBODY}` to run it under"
            )
        })
    }

    fn named(name: &str, accounts: &str) -> Option<Self> {
        let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let line = accounts.lines().map(fields).find(|fields| fields[0] == name)?;
        let (uid, gid): (u32, u32) = (line.get(2)?.parse().ok()?, line.get(3)?.parse().ok()?);
        (uid != 0).then(|| Self { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid) })
    }

    /// Gives a folder or file to it.
    pub(crate) fn give(self, path: &Path) -> Result<(), Error> {
        rustix::fs::chown(path, Some(self.uid), Some(self.gid)).map_err(|source| Error::File {
            what: "change the owner of",
            path: path.to_owned(),
            source: source.into(),
        })
    }

    /// Gives up the rights of the calling thread for those of the account. Between fork and exec: makes system calls only.
    pub(super) fn take_on(self) -> std::io::Result<()> {
        set_thread_groups(&[])?;
        set_thread_gid(self.gid)?;
        set_thread_uid(self.uid)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name_and_root_is_none() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nbroken\npostgres:x:101:104:,,,:/var:/bin/sh\nbad:x:a:b::\n";
        let found = Account::named("postgres", accounts).unwrap();
        assert_eq!((found.uid.as_raw(), found.gid.as_raw()), (101, 104));
        for name in ["root", "bad", "broken", "nobody"] {
            assert_eq!(Account::named(name, accounts), None, "{name}");
        }
    }

    #[test]
    fn only_root_needs_another_account() {
        let account = Account::unprivileged("no-such-account");
        assert_eq!(account.unwrap().is_some(), geteuid().is_root());
    }
}
