//! What a method and a path request.

use axum::http::Method;

use super::response::Failure;

/// A path the store knows; names are decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    Account,
    Database { database: String },
    Container { database: String, container: String },
    Ranges { database: String, container: String },
    Documents { database: String, container: String },
    Document { database: String, container: String, id: String },
    Replacement { database: String, container: String, id: String },
}

impl Route {
    /// Reads `path`; documents are posted to, one document is got or put, everything else is got.
    pub(super) fn parse(method: &Method, path: &str) -> Result<Self, Failure> {
        let names = path.split('/').filter(|name| !name.is_empty()).map(decoded).collect::<Option<Vec<String>>>();
        let Some(names) = names else {
            return Err(Failure::bad_request(&format!("the path {path:?} is not valid percent-encoded UTF-8")));
        };
        let route = match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => Self::Account,
            ["dbs", database] => Self::Database { database: (*database).to_owned() },
            ["dbs", database, "colls", container, rest @ ..] => {
                let (database, container) = ((*database).to_owned(), (*container).to_owned());
                match rest {
                    [] => Self::Container { database, container },
                    ["pkranges"] => Self::Ranges { database, container },
                    ["docs"] => Self::Documents { database, container },
                    ["docs", id] if *method == Method::PUT => {
                        Self::Replacement { database, container, id: (*id).to_owned() }
                    }
                    ["docs", id] => Self::Document { database, container, id: (*id).to_owned() },
                    _ => return Err(Failure::not_found(&format!("resource {path:?}"))),
                }
            }
            _ => return Err(Failure::not_found(&format!("resource {path:?}"))),
        };
        let expected = match route {
            Self::Documents { .. } => Method::POST,
            Self::Replacement { .. } => Method::PUT,
            _ => Method::GET,
        };
        if *method == expected { Ok(route) } else { Err(Failure::method(method, &expected)) }
    }

    pub(super) fn database(&self) -> Option<&str> {
        match self {
            Self::Account => None,
            Self::Database { database }
            | Self::Container { database, .. }
            | Self::Ranges { database, .. }
            | Self::Documents { database, .. }
            | Self::Document { database, .. }
            | Self::Replacement { database, .. } => Some(database),
        }
    }

    pub(super) fn container(&self) -> Option<&str> {
        match self {
            Self::Account | Self::Database { .. } => None,
            Self::Container { container, .. }
            | Self::Ranges { container, .. }
            | Self::Documents { container, .. }
            | Self::Document { container, .. }
            | Self::Replacement { container, .. } => Some(container),
        }
    }
}

fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_at_the_end_and_escapes_do_not_matter() {
        let database = "d b".to_owned();
        let expected = Route::Document { database, container: "c".to_owned(), id: "a%".to_owned() };
        assert_eq!(Route::parse(&Method::GET, "/dbs/d%20b/colls/c/docs/a%25/").unwrap(), expected);
        assert_eq!(Route::parse(&Method::GET, "").unwrap(), Route::Account);
    }

    #[test]
    fn what_is_not_served_is_refused() {
        let status = |method: &Method, path: &str| Route::parse(method, path).unwrap_err().status().as_u16();
        assert_eq!(status(&Method::GET, "/dbs"), 404);
        assert_eq!(status(&Method::GET, "/dbs/d/colls/c/sprocs"), 404);
        assert_eq!(status(&Method::GET, "/dbs/d/colls/c/docs"), 405);
        assert_eq!(status(&Method::DELETE, "/dbs/d"), 405);
        assert_eq!(status(&Method::PUT, "/dbs/d/colls/c/docs"), 405);
        assert_eq!(status(&Method::DELETE, "/dbs/d/colls/c/docs/1"), 405);
        assert_eq!(status(&Method::GET, "/dbs/%zz"), 400);
        assert_eq!(status(&Method::GET, "/dbs/%+1"), 400);
        assert_eq!(status(&Method::GET, "/dbs/%ff"), 400);
    }
}
