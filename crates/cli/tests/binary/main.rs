//! Tests of the real binary: what it prints, the files it writes, and what it leaves running.
//!
//! One test program, so that the binary is linked once; `.config/nextest.toml` lists the tests that need the
//! machine to themselves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod common;
mod proxy;
mod server;

mod agents;
mod attach;
mod baseline;
#[cfg(feature = "reference-systems")]
mod capacity;
mod commands;
mod compare;
mod completions;
mod compose_containers;
mod compose_system;
mod counts;
mod customer_360;
#[cfg(feature = "reference-systems")]
mod customer_360_failures;
#[cfg(feature = "reference-systems")]
mod demo;
mod diagnose;
#[cfg(feature = "reference-systems")]
mod docstore;
#[cfg(feature = "reference-systems")]
mod early_end;
#[cfg(feature = "reference-systems")]
mod elsewhere;
mod examples;
mod exchange;
#[cfg(feature = "reference-systems")]
mod faults;
mod guide;
mod haproxy;
#[cfg(feature = "reference-systems")]
mod hello_cities;
mod hostile_run_file;
mod import_metrics;
mod kubernetes;
mod labels;
#[cfg(feature = "reference-systems")]
mod listeners;
mod load;
#[cfg(feature = "reference-systems")]
mod load_command;
mod long_run;
mod mariadb;
mod micron;
mod nats;
mod nginx;
mod observe;
#[cfg(feature = "reference-systems")]
mod orchestrations;
#[cfg(feature = "reference-systems")]
mod packages;
mod partial_seconds;
mod postgres;
mod predict;
mod process_life;
mod query;
mod redis;
mod reproduction;
#[cfg(feature = "reference-systems")]
mod restart;
mod run;
mod same_variant_twice;
mod secrets;
mod sensitivity;
mod serve;
#[cfg(feature = "reference-systems")]
mod sidecars;
mod terminal;
mod trying;
mod which_service;
mod zoo;
