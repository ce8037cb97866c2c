//! What `few-clients` finds, and what it leaves alone.

use super::*;

fn shares(of: &[f64]) -> BTreeMap<&'static str, f64> {
    ["0", "1", "2", "3", "4", "5"].into_iter().zip(of.iter().copied()).collect()
}

#[test]
fn few_clients_make_shares_of_whole_clients() {
    let fits = |of: &[f64], clients| is_of_whole_clients(&shares(of), clients, 0.2);
    assert!(fits(&[0.51, 0.24, 0.25, 0.0, 0.0, 0.0], 4));
    assert!(!fits(&[0.6, 0.2, 0.2], 4), "weights");
    assert!(!fits(&[0.4, 0.3, 0.3], 2), "more replicas are busy than there are clients");
    assert!(fits(&[0.0, 1.0, 0.0], 1));
    assert!(!fits(&[0.0, 1.0], 1), "one of two may stand by");
}
