//! Tests of `few-clients`: evidence that must make it fire, and evidence that must not.

use narrows_model::finding::Evidence;
use narrows_testkit::spans::{client, server};
use narrows_testkit::trial::{FIRST_PORT, Load, TrialBuilder};

use super::*;
use crate::thresholds::Thresholds;
use crate::words::InWords;

/// Four users of three replicas: three users at the first, one at the second.
#[test]
fn few_users_that_a_balancer_keeps_at_their_replica_are_named() {
    let request = |n: u32| {
        let call = client("GET").to_port(FIRST_PORT + 1 + u16::from(n.is_multiple_of(4))).at(2.0, 9.0);
        server("shop", "GET /").at(0.0, 20.0).child(call).trace(n * 10)
    };
    let trial = (0..3).fold(TrialBuilder::new("a").service("shop", None), |trial, _| trial.service("stock", None));
    let trial = trial.steady(20, Load { vus: 4, rate: 10.0, latency_ms: 20.0 }).traces((0..200).map(request));
    let findings = crate::detect(&FewClients, &trial.build(), &Thresholds::default());
    let [finding] = &findings[..] else { panic!("one finding, not {findings:?}") };
    assert_eq!(finding.title(), "the load has 4 users for 3 replicas of stock, so replica 0 gets 75 % of its requests");
    assert_eq!(
        finding.reasons(),
        [
            "Requests by replica: 0: 75 %, 1: 25 %, 2: 0 %; an even share is 33 %.",
            "The load has 4 users, and the shares are those of whole clients; a hash of that few gives the fullest about \
             1.50 times the mean."
        ]
    );
    assert_eq!((finding.confidence, &finding.caveats[..]), (Confidence::Medium, &[Caveat::ClientsNotNamed][..]));
    let Evidence::FewClients(evidence) = &finding.evidence else { panic!("{finding:?}") };
    assert_eq!((evidence.clients, evidence.idle_replicas(), evidence.requests), (Clients::Users(4), 1, 200));
}

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
