//! Words of KQL that this part of it does not have, so that they can be told from typing errors.

use crate::error::{Fault, TextRange};

const STRING_OPERATORS: [&str; 1] = ["like"];

const OPERATORS: [&str; 26] = [
    "as",
    "assert-schema",
    "cluster",
    "consume",
    "database",
    "evaluate",
    "execute-and-cache",
    "externaldata",
    "facet",
    "find",
    "fork",
    "graph-match",
    "graph-shortest-paths",
    "graph-to-table",
    "macro-expand",
    "make-graph",
    "mv-apply",
    "parse-kv",
    "partition",
    "project-by-names",
    "reduce",
    "sample",
    "sample-distinct",
    "scan",
    "search",
    "top-hitters",
];

#[rustfmt::skip]
const FUNCTIONS: [&str; 143] = [
    "acos", "array_concat", "array_iff", "array_index_of", "array_reverse", "array_rotate_left",
    "array_rotate_right", "array_shift_left", "array_shift_right", "array_slice", "array_sort_asc",
    "array_sort_desc", "array_split", "asin", "assert", "atan", "atan2", "avg_of", 
    "bag_merge", "bag_remove_keys", "bag_set_key", "bag_zip", "base64_decode_toarray",
    "base64_decode_tostring", "base64_encode_fromarray", "base64_encode_tostring", "beta_cdf", "bin_at",
    "binary_all_and", "binary_and", "binary_not", "binary_or", "binary_shift_left", "binary_shift_right",
    "binary_xor", "bitset_count_ones", "buildschema", "cluster", "convert_angle",
    "convert_length", "cos", "cosh", "cot", "countof", "current_cluster_endpoint", "current_principal",
    "cursor_after", "database", "dcount_hll", "dcount_intersect", "degrees", "endofday", "endofmonth", "endofweek",
    "endofyear", "erf", "estimate_data_size", "exp10", "exp2", "extract_all", 
    "format_bytes", "format_ipv4", "gamma", "geo_distance_2points", "gettype", "has_any_index", "has_ipv4", "hash",
    "hash_md5", "hash_sha1", "hash_sha256", "hll", "hll_if", "hll_merge", "indexof_regex", "ingestion_time",
    "ipv4_compare", "ipv4_is_match", "ipv4_is_private", "ipv6_is_match", "isascii", "isfinite", "isinf", "isnan",
    "isutf8", "jaccard_index", "loggamma", "make_bag", "make_bag_if", "make_datetime", "make_list_with_nulls",
    "make_string", "make_timespan", "merge_tdigest", "new_guid", 
    "parse_command_line", "parse_csv", "parse_ipv4", "parse_ipv6", "parse_path", 
    "parse_urlquery", "parse_user_agent", "parse_version", "parse_xml", "percentile_tdigest", "percentiles_array",
    "percentrank_tdigest", "punycode_from_string", "radians", "rand", "range", "rank_tdigest",
    "regex_quote", "repeat", "replace_strings", "reverse", "row_rank",
    "row_window_session", "series_decompose", "series_fit_line", "series_stats", "set_difference",
    "set_has_element", "set_intersect", "set_union", "sin", "strcmp", "strrep", "sum_of", "tan", "tdigest",
    "tdigest_merge", "todecimal", "toguid", "tohex", "toutf8", "translate", "treepath",
    "unicode_codepoints_from_string", "url_decode", "url_encode", "welch_test", "zip",
];

fn not_here(what: &str, place: TextRange) -> Fault {
    Fault::new(place, format!("{what} is not in the part of KQL that is known here"))
}

pub(super) fn word(what: &str, name: &str, place: TextRange) -> Fault {
    not_here(&format!("{what} `{name}`"), place)
}

pub(super) fn statement(name: &str, place: TextRange) -> Fault {
    word("the statement", name, place)
}

pub(super) fn is_string_operator(word: &str) -> bool {
    STRING_OPERATORS.contains(&word)
}

pub(super) fn is_operator(word: &str) -> bool {
    OPERATORS.contains(&word)
}

/// Whether KQL has a function of this name that is not in our part.
pub(crate) fn is_known_function(name: &str) -> bool {
    FUNCTIONS.contains(&name) || name.starts_with("series_") || name.starts_with("geo_")
}
