//! Several servers behind one queue, Poisson arrivals, exponential service: M/M/m, by Erlang's C formula.
//!
//! L. Kleinrock, *Queueing Systems*, volume 1, 1975, section 3.5. The formula is computed from Erlang B's recursion,
//! which neither overflows nor cancels.

/// The share of arrivals that find all servers busy, 0 to 1; `None` if arrivals exceed what the servers can do.
pub fn waiting_share(rate: f64, demand_s: f64, servers: u32) -> Option<f64> {
    let offered = rate * demand_s;
    let utilisation = offered / f64::from(servers.max(1));
    if utilisation >= 1.0 {
        return None;
    }
    let blocked = (1..=servers.max(1)).fold(1.0, |blocked, n| offered * blocked / (f64::from(n) + offered * blocked));
    Some(blocked / (1.0 - utilisation * (1.0 - blocked)))
}

/// Mean wait for a server; `None` if arrivals exceed what the servers can do.
pub fn wait_s(rate: f64, demand_s: f64, servers: u32) -> Option<f64> {
    let free = f64::from(servers.max(1)) - rate * demand_s;
    waiting_share(rate, demand_s, servers).map(|share| share * demand_s / free)
}

#[cfg(test)]
mod tests {
    use super::super::mm1;
    use super::*;

    #[test]
    fn one_server_is_mm1() {
        for utilisation in [0.0, 0.1, 0.5, 0.9, 0.99] {
            let wait = wait_s(utilisation / 0.01, 0.01, 1).expect("it keeps up");
            let expected = mm1::response_s(utilisation / 0.01, 0.01).expect("it keeps up") - 0.01;
            assert!((wait - expected).abs() < 1e-9, "{utilisation}: {wait} {expected}");
        }
    }

    #[test]
    fn erlangs_own_table_is_met() {
        // Two servers, one Erlang: C = 1/3. Ten servers, eight Erlang: C = 0.4092 (Kleinrock, figure 3.12).
        assert!((waiting_share(1.0, 1.0, 2).expect("it keeps up") - 1.0 / 3.0).abs() < 1e-12);
        assert!((waiting_share(8.0, 1.0, 10).expect("it keeps up") - 0.4092).abs() < 5e-5);
        assert_eq!(wait_s(10.0, 1.0, 10), None);
        assert!(wait_s(900.0, 1.0, 1000).is_some_and(|wait| wait < 1e-4), "many servers do not overflow");
    }
}
