//! Addresses that read on where an earlier call stopped: pages of one list, which depend on each other.

/// Words in an address that say that it reads on where an earlier call stopped, each with the values of a first page.
const PAGE_WORDS: [(&str, &[&str]); 9] = [
    ("page=", &["0", "1"]),
    ("/page/", &["0", "1"]),
    ("cursor=", &[]),
    ("offset=", &["0"]),
    ("skip=", &["0"]),
    ("after=", &[]),
    ("token=", &[]),
    ("continuation=", &[]),
    ("marker=", &[]),
];

/// True if an address reads on where an earlier call stopped. A first page follows nothing, and `per_page` is a length.
pub(crate) fn is_page(request: &str) -> bool {
    let lower = request.to_ascii_lowercase();
    PAGE_WORDS.iter().any(|(word, first)| {
        let mut places = lower.match_indices(*word).filter(|(at, _)| !lower[..*at].ends_with("per_"));
        places.any(|(at, word)| {
            let value = lower[at + word.len()..].split(['&', '/', '#', '?']).next().unwrap_or("");
            !first.contains(&value)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_follows_nothing() {
        for address in ["http://a/b?page=2", "http://a/b/page/3", "http://a/b?limit=5&offset=10", "http://a/b?cursor=0"]
        {
            assert!(is_page(address), "{address}");
        }
        let others =
            ["http://a/b?page=1", "http://a/b/page/1", "http://a/b?limit=5&offset=0", "http://a/b?per_page=50"];
        for address in others {
            assert!(!is_page(address), "{address}");
        }
    }
}
