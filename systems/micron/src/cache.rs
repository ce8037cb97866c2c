//! A cache in the process that loads what it does not have: bounded, each value good for the same time, and each key
//! loaded once at a time.
//!
//! Requests that come while a value is being loaded wait for that one load and share what it comes to, as the loading
//! caches of the Java world do: so the slower the database, the more requests share a load, and a crowd that requests
//! the same is one query. What is cached may be older than what was written since: that is what the time is for.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Values by key, or why there is none.
pub(crate) struct Cache<K, V, E> {
    ttl: Duration,
    entries_max: usize,
    entries: Mutex<Entries<K, V, E>>,
}

struct Entries<K, V, E> {
    slots: HashMap<K, Slot<V, E>>,
    /// Each key once, the oldest first.
    order: VecDeque<K>,
}

/// Result of the last load; locked while one is under way.
type Slot<V, E> = Arc<tokio::sync::Mutex<Option<LoadResult<V, E>>>>;

struct LoadResult<V, E> {
    /// When the load ended.
    at: Instant,
    result: Result<V, E>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// It was there and good.
    Kept,
    /// This request loaded it.
    Loaded,
    /// Another request was loading it already.
    Shared,
}

impl Source {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kept => "hit",
            Self::Loaded => "miss",
            Self::Shared => "shared",
        }
    }
}

impl<K: Eq + Hash + Clone, V: Clone, E: Clone> Cache<K, V, E> {
    /// Keeps at most `entries_max` values for `ttl`. With a time of zero only loads that overlap are shared; with no
    /// entries, nothing is.
    pub(crate) fn new(ttl: Duration, entries_max: usize) -> Self {
        let entries = Entries { slots: HashMap::new(), order: VecDeque::new() };
        Self { ttl, entries_max, entries: Mutex::new(entries) }
    }

    /// The value, loaded if need be. A failure goes to all who waited for the load, and is not kept.
    pub(crate) async fn get(&self, key: &K, load: impl Future<Output = Result<V, E>>) -> (Source, Result<V, E>) {
        if self.entries_max == 0 {
            return (Source::Loaded, load.await);
        }
        let came = Instant::now();
        let slot = self.slot(key);
        let mut kept = slot.lock().await;
        if let Some(loaded) = &*kept {
            if loaded.at >= came {
                return (Source::Shared, loaded.result.clone());
            }
            if loaded.result.is_ok() && loaded.at.elapsed() < self.ttl {
                return (Source::Kept, loaded.result.clone());
            }
        }
        let result = load.await;
        *kept = Some(LoadResult { at: Instant::now(), result: result.clone() });
        (Source::Loaded, result)
    }

    /// The key's slot; a new one takes the place of the oldest when there is no room.
    fn slot(&self, key: &K) -> Slot<V, E> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = entries.slots.get(key) {
            return Arc::clone(slot);
        }
        if entries.order.len() >= self.entries_max
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.slots.remove(&oldest);
        }
        let slot = Slot::default();
        entries.order.push_back(key.clone());
        entries.slots.insert(key.clone(), Arc::clone(&slot));
        slot
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    type Numbers = Cache<u32, u32, &'static str>;
    const LONG: Duration = Duration::from_secs(3_600);

    async fn get(cache: &Numbers, key: u32, loads: u32) -> (Source, Result<u32, &'static str>) {
        cache.get(&key, async { Ok(loads) }).await
    }

    #[tokio::test]
    async fn a_value_is_kept_for_its_time() {
        for (ttl, second) in [(LONG, (Source::Kept, Ok(1))), (Duration::ZERO, (Source::Loaded, Ok(2)))] {
            let cache = Numbers::new(ttl, 10);
            assert_eq!(get(&cache, 7, 1).await, (Source::Loaded, Ok(1)));
            assert_eq!(get(&cache, 7, 2).await, second);
        }
    }

    #[tokio::test]
    async fn the_oldest_goes_when_there_is_no_room() {
        let cache = Numbers::new(LONG, 2);
        for key in [1, 2, 3] {
            assert_eq!(get(&cache, key, key).await, (Source::Loaded, Ok(key)));
        }
        assert_eq!(get(&cache, 3, 9).await, (Source::Kept, Ok(3)));
        assert_eq!(get(&cache, 1, 9).await, (Source::Loaded, Ok(9)));
        let entries = cache.entries.lock().unwrap();
        assert_eq!((entries.slots.len(), entries.order.len()), (2, 2));
    }

    #[tokio::test]
    async fn without_room_nothing_is_kept() {
        let cache = Numbers::new(LONG, 0);
        for load in 1..3 {
            assert_eq!(get(&cache, 1, load).await, (Source::Loaded, Ok(load)));
        }
    }

    /// Begins a load, lets another request come meanwhile, and ends the load with `result`.
    async fn overlapping(result: Result<u32, &'static str>) -> [(Source, Result<u32, &'static str>); 2] {
        let cache = Numbers::new(Duration::ZERO, 10);
        let (begun, end) = (Notify::new(), Notify::new());
        let first = cache.get(&1, async {
            begun.notify_one();
            end.notified().await;
            result
        });
        let second = async {
            begun.notified().await;
            let mut waiting = std::pin::pin!(get(&cache, 1, 99));
            // Polled once, it stands in the queue of the load that is under way.
            tokio::select! { biased; _ = &mut waiting => panic!("nothing is loaded yet"), () = std::future::ready(()) => {} }
            end.notify_one();
            waiting.await
        };
        let (first, second) = tokio::join!(first, second);
        [first, second]
    }

    #[tokio::test]
    async fn who_comes_during_a_load_shares_what_it_comes_to() {
        for result in [Ok(5), Err("gone")] {
            assert_eq!(overlapping(result).await, [(Source::Loaded, result), (Source::Shared, result)]);
        }
    }

    #[tokio::test]
    async fn a_failure_is_not_kept() {
        let cache = Numbers::new(LONG, 10);
        assert_eq!(cache.get(&1, async { Err("gone") }).await, (Source::Loaded, Err("gone")));
        assert_eq!(get(&cache, 1, 2).await, (Source::Loaded, Ok(2)));
    }
}
