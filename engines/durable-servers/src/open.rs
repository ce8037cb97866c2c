//! Stores by a text such as `postgres://db/app?hub=orders`.

use std::sync::Arc;

use narrows_durable::store::{Location, SharedStore, StoreError};

use crate::calls::refused;
use crate::{NatsStore, NatsStoreOptions, PostgresStore, PostgresStoreOptions};

/// Opens the store that a connection text names: `postgres://…` ([`PostgresStore`]) or `nats://…` ([`NatsStore`]).
///
/// # Errors
/// [`StoreError::Io`] if it begins otherwise, and those of [`PostgresStore::open`] and [`NatsStore::open`]. None shows
/// the text, which may hold a password.
pub fn open_shared(url: &str) -> Result<Arc<dyn SharedStore>, StoreError> {
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => Ok(Arc::new(PostgresStore::open(url, PostgresStoreOptions::default())?)),
        Some("nats") => Ok(Arc::new(NatsStore::open(url, NatsStoreOptions::default())?)),
        _ => {
            let place =
                Location::Remote { server: "a shared store".to_owned(), what: "the connection text".to_owned() };
            let reason = "it names no known store, expected postgres://… or nats://…";
            Err(refused("open", place, reason.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_other_schemes_are_refused_without_showing_them() {
        for bad in ["", "/data/hub", "mysql://me:secret@db/app", "secret"] {
            let error = open_shared(bad).map(|_| ()).expect_err(bad).to_string();
            assert!(error.contains("expected postgres://") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn each_scheme_finds_its_store() {
        for (url, place) in [
            ("postgres://me:secret@127.0.0.1:1/app?hub=a", "PostgreSQL 127.0.0.1:1/app, hub a"),
            ("postgresql://me:secret@127.0.0.1:1/app", "PostgreSQL 127.0.0.1:1/app, hub main"),
            ("nats://me:secret@127.0.0.1:1/a", "NATS 127.0.0.1:1, hub a"),
        ] {
            let error = open_shared(url).map(|_| ()).expect_err(url).to_string();
            assert!(error.contains(place) && !error.contains("secret"), "{error}");
        }
    }
}
