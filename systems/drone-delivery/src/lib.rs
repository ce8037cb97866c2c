//! Drone delivery: a gateway that aggregates invoices from three services, one of them over a partitioned document store.
