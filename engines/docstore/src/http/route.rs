//! Routes: the resources that paths name. Clients put slashes at the ends of paths or not, and address databases and
//! containers by name or by resource id.

use std::borrow::Cow;

use super::response::Failure;

/// A path the store knows; names are decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Account,
    Offers,
    Offer { id: Cow<'a, str> },
    Databases,
    Database { database: Cow<'a, str> },
    Containers { database: Cow<'a, str> },
    InContainer { database: Cow<'a, str>, container: Cow<'a, str>, part: Part<'a> },
}

/// A container or its content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Container,
    Ranges,
    Documents,
    Document { id: Cow<'a, str> },
}

impl<'a> Route<'a> {
    /// Reads `path`.
    pub(super) fn parse(path: &'a str) -> Result<Self, Failure> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let name = |name: &&'a str| {
            decoded(name)
                .ok_or_else(|| Failure::bad_request(&format!("the path {path:?} is not valid percent-encoded UTF-8")))
        };
        Ok(match names.as_slice() {
            [] => Self::Account,
            ["offers"] => Self::Offers,
            ["offers", id] => Self::Offer { id: name(id)? },
            ["dbs"] => Self::Databases,
            ["dbs", database] => Self::Database { database: name(database)? },
            ["dbs", database, "colls"] => Self::Containers { database: name(database)? },
            ["dbs", database, "colls", container, rest @ ..] => {
                let part = match rest {
                    [] => Part::Container,
                    ["pkranges"] => Part::Ranges,
                    ["docs"] => Part::Documents,
                    ["docs", id] => Part::Document { id: name(id)? },
                    _ => return Err(Failure::not_found(&format!("resource {path:?}"))),
                };
                let (database, container) = (name(database)?, name(container)?);
                Self::InContainer { database, container, part }
            }
            _ => return Err(Failure::not_found(&format!("resource {path:?}"))),
        })
    }
}

/// Undoes percent-encoding; None unless it is valid and gives UTF-8.
pub(super) fn decoded(name: &str) -> Option<Cow<'_, str>> {
    if !name.contains('%') {
        return Some(Cow::Borrowed(name));
    }
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
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_at_the_end_and_escapes_do_not_matter() {
        let part = Part::Document { id: "a/%".into() };
        let expected = Route::InContainer { database: "d b".into(), container: "c".into(), part };
        assert_eq!(Route::parse("/dbs/d%20b/colls/c/docs/a%2F%25/").unwrap(), expected);
        assert_eq!(Route::parse("").unwrap(), Route::Account);
        assert_eq!(Route::parse("/dbs/").unwrap(), Route::Databases);
    }

    #[test]
    fn what_is_not_served_is_refused() {
        let status = |path: &str| Route::parse(path).unwrap_err().status().as_u16();
        assert_eq!(status("/nothing"), 404);
        assert_eq!(status("/dbs/d/colls/c/sprocs"), 404);
        assert_eq!(status("/dbs/d/colls/c/docs/1/attachments"), 404);
        assert_eq!(status("/dbs/%zz"), 400);
        assert_eq!(status("/dbs/%+1"), 400);
        assert_eq!(status("/dbs/%ff"), 400);
    }
}
