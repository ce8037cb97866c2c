//! Names of remote calls: service and method, which the conventions joined, and gRPC's status, which became a
//! word.
//!
//! Source: "RPC semantic convention stability migration guide" of the OpenTelemetry specification; "Status codes and
//! their use in gRPC".

/// gRPC's status codes by their numbers.
const GRPC_STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The name of a gRPC status that came as a number; anything else as it came.
pub(super) fn grpc_status(code: String) -> String {
    let name = code.parse().ok().and_then(|number: usize| GRPC_STATUSES.get(number));
    name.map_or(code, |name| (*name).to_owned())
}

/// Service and method apart. The older conventions have an attribute for each, the newer ones a method with its service
/// before a slash; a service of its own goes before the one in the method.
pub(super) fn service_and_method(service: Option<String>, method: Option<String>) -> (Option<String>, Option<String>) {
    let Some((within, name)) = method.as_deref().and_then(|method| method.trim_start_matches('/').rsplit_once('/'))
    else {
        return (service, method);
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    (service.or_else(|| some(within)), some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_and_methods_of_both_generations_are_the_same() {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let cases = [
            ("shop.v1.Cart", "Add", "shop.v1.Cart", "Add"),
            ("", "shop.v1.Cart/Add", "shop.v1.Cart", "Add"),
            ("", "/shop.v1.Cart/Add", "shop.v1.Cart", "Add"),
            ("Cart", "shop.v1.Cart/Add", "Cart", "Add"),
            ("", "_OTHER", "", "_OTHER"),
            ("shop.v1.Cart", "", "shop.v1.Cart", ""),
            ("", "shop.v1.Cart/", "shop.v1.Cart", ""),
            ("shop.v1.Cart", "Cart/", "shop.v1.Cart", ""),
            ("", "/", "", "/"),
            ("", "", "", ""),
        ];
        for (service, method, expected_service, expected_method) in cases {
            let got = service_and_method(some(service), some(method));
            assert_eq!(got, (some(expected_service), some(expected_method)), "{service:?} {method:?}");
        }
    }

    #[test]
    fn numbers_of_grpc_become_words() {
        let cases = [("0", "OK"), ("4", "DEADLINE_EXCEEDED"), ("16", "UNAUTHENTICATED"), ("17", "17"), ("-1", "-1")];
        for (code, expected) in cases {
            assert_eq!(grpc_status(code.to_owned()), expected);
        }
        assert_eq!(grpc_status("NOT_FOUND".to_owned()), "NOT_FOUND");
    }
}
