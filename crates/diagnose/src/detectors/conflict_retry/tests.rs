//! What `conflict-retry` finds, and what it leaves alone.

use super::*;

#[test]
fn counters_are_known_by_their_own_names() {
    for name in ["wsrep_local_bf_aborts", "mysql.wsrep_local_cert_failures", "postgresql.deadlocks", "db.deadlocks"] {
        assert!(is_counter(name), "{name}");
    }
    for name in ["wsrep_local_commits", "process.cpu.cores", "deadlocks_checked"] {
        assert!(!is_counter(name), "{name}");
    }
}
