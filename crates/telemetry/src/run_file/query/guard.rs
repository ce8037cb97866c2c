//! Lets only reading through: an authorizer that SQLite calls for every action while it compiles a statement.
//!
//! The file is opened read-only besides, so this is about a clear error, and about what read-only mode does not cover:
//! other files (`ATTACH`), settings (`PRAGMA`), code (`load_extension`).

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// PRAGMAs that only report something, whatever their argument.
const TELLING: [&str; 14] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "database_list",
    "function_list",
    "pragma_list",
    "module_list",
    "collation_list",
    "compile_options",
    "integrity_check",
];
/// PRAGMAs that only report something as long as they have no argument.
const TELLING_WHEN_ASKED: [&str; 7] =
    ["application_id", "user_version", "schema_version", "page_count", "page_size", "encoding", "journal_mode"];

/// The first action that was refused, in words.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstRefusal(Arc<Mutex<Option<String>>>);

impl FirstRefusal {
    /// Forgets and returns it.
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The decision on one action.
    pub(super) fn decide(&self, context: &AuthContext<'_>) -> Authorization {
        let Some(action) = forbidden(&context.action) else { return Authorization::Allow };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(action);
        Authorization::Deny
    }
}

/// Effect of an action, unless it only reads.
fn forbidden(action: &AuthAction<'_>) -> Option<String> {
    Some(match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => return None,
        AuthAction::Function { function_name } => {
            (function_name.eq_ignore_ascii_case("load_extension")).then(|| "call load_extension".to_owned())?
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is_among = |list: &[&str]| list.iter().any(|name| pragma_name.eq_ignore_ascii_case(name));
            let tells = is_among(&TELLING) || pragma_value.is_none() && is_among(&TELLING_WHEN_ASKED);
            (!tells).then(|| format!("run PRAGMA {pragma_name}"))?
        }
        AuthAction::Insert { table_name } => table("insert into", table_name),
        AuthAction::Update { table_name, .. } => table("update", table_name),
        AuthAction::Delete { table_name } => table("delete from", table_name),
        AuthAction::Attach { .. } => "attach another file".to_owned(),
        AuthAction::Detach { .. } => "detach a file".to_owned(),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => "begin or end a transaction".to_owned(),
        AuthAction::Analyze { .. } | AuthAction::Reindex { .. } => "write statistics or indexes".to_owned(),
        _ => "change the tables".to_owned(),
    })
}

/// SQLite first requests a write to its own table when tables are made, changed or dropped.
fn table(verb: &str, name: &str) -> String {
    if name.starts_with("sqlite_") { "change the tables".to_owned() } else { format!("{verb} {name}") }
}
