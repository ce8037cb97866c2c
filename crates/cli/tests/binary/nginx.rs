//! The real NGINX as a component: how it spreads requests, keeps clients where they are, and fails.
//!
//! They need NGINX (Debian package nginx-light) and Python; without them they are skipped.

use crate::proxy;

const NGINX: &str = "nginx";

#[test]
fn requests_are_spread_as_asked() {
    proxy::requests_are_spread_as_asked(NGINX);
}

#[test]
fn a_client_stays_at_its_instance_over_two_pods() {
    proxy::a_client_stays_at_its_instance_over_two_pods(NGINX);
}

/// NGINX tries an upstream that failed again after ten seconds.
#[test]
fn an_instance_that_dies_is_left_out_and_comes_back() {
    proxy::an_instance_that_dies_is_left_out_and_comes_back(NGINX, "", "16s");
}

#[test]
fn a_proxy_can_have_faults() {
    proxy::a_proxy_can_have_faults(NGINX);
}

#[test]
fn what_it_refuses_is_reported_in_its_words() {
    proxy::what_the_proxy_refuses_is_reported_in_its_words(NGINX, "invalid IPv6 address in upstream \"[zz]:80\"");
}

#[test]
fn a_port_that_is_taken_ends_the_run() {
    proxy::a_port_that_is_taken_ends_the_run(NGINX);
}
