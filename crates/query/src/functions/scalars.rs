//! The table of scalar functions.

use super::call::Function;
use super::call::Gives::{self, First, Is, Own};
use super::call::Meaning::{self, Made, Sql};
use super::{conversions, made};
use crate::types::Type::{Bool, Datetime, Dynamic, Long, Real, Text, Timespan};

const fn row(name: &'static str, takes: &'static str, gives: Gives, meaning: Meaning) -> Function {
    Function { name, takes, gives, meaning }
}

pub(crate) const SCALARS: [Function; 78] = [
    // Conditions
    row("not", "b", Is(Bool), Sql("(NOT ifnull({0}, 0))")),
    row("iff", "baa", Own, Made(made::iff)),
    row("iif", "baa", Own, Made(made::iff)),
    row("case", "baa*", Own, Made(made::case)),
    row("coalesce", "aa*", Own, Made(made::coalesce)),
    row("isnull", "a", Is(Bool), Made(made::is_null)),
    row("isnotnull", "a", Is(Bool), Made(made::is_not_null)),
    row("notnull", "a", Is(Bool), Made(made::is_not_null)),
    row("isempty", "a", Is(Bool), Made(made::is_empty)),
    row("isnotempty", "a", Is(Bool), Made(made::is_not_empty)),
    row("notempty", "a", Is(Bool), Made(made::is_not_empty)),
    row("min_of", "aa*", Own, Made(made::min_of)),
    row("max_of", "aa*", Own, Made(made::max_of)),
    // Strings
    row("strcat", "aa*", Is(Text), Made(made::strcat)),
    row("strcat_delim", "saa*", Is(Text), Made(made::strcat_delim)),
    row("strlen", "s", Is(Long), Sql("ifnull(length({0}), 0)")),
    row("string_size", "s", Is(Long), Sql("ifnull(octet_length({0}), 0)")),
    row("substring", "sl?l", Is(Text), Made(made::substring)),
    row("tolower", "s", Is(Text), Sql("kql_lower({0})")),
    row("toupper", "s", Is(Text), Sql("kql_upper({0})")),
    row("indexof", "ss", Is(Long), Sql("(instr({0}, {1}) - 1)")),
    row("split", "ss?l", Is(Dynamic), Made(made::split)),
    row("extract", "sls?a", Own, Made(made::extract)),
    row("replace_string", "sss", Is(Text), Sql("replace({0}, {1}, {2})")),
    row("replace_regex", "sss", Is(Text), Sql("kql_replace_regex({0}, {1}, {2})")),
    row(
        "trim",
        "ss",
        Is(Text),
        Sql("kql_replace_regex(kql_replace_regex({1}, concat('^(?:', {0}, ')+'), ''), concat('(?:', {0}, ')+$'), '')"),
    ),
    row("trim_start", "ss", Is(Text), Sql("kql_replace_regex({1}, concat('^(?:', {0}, ')+'), '')")),
    row("trim_end", "ss", Is(Text), Sql("kql_replace_regex({1}, concat('(?:', {0}, ')+$'), '')")),
    // Conversions
    row("tostring", "a", Is(Text), Made(conversions::to_string)),
    row("tolong", "a", Is(Long), Made(conversions::to_long)),
    row("toint", "a", Is(Long), Made(conversions::to_long)),
    row("toreal", "a", Is(Real), Made(conversions::to_real)),
    row("todouble", "a", Is(Real), Made(conversions::to_real)),
    row("tobool", "a", Is(Bool), Made(conversions::to_bool)),
    row("toboolean", "a", Is(Bool), Made(conversions::to_bool)),
    row("todatetime", "a", Is(Datetime), Made(conversions::to_datetime)),
    row("totimespan", "a", Is(Timespan), Made(conversions::to_timespan)),
    row("parse_json", "a", Is(Dynamic), Made(conversions::to_dynamic)),
    row("parsejson", "a", Is(Dynamic), Made(conversions::to_dynamic)),
    row("todynamic", "a", Is(Dynamic), Made(conversions::to_dynamic)),
    row("toobject", "a", Is(Dynamic), Made(conversions::to_dynamic)),
    row("array_length", "y", Is(Long), Sql("CASE json_type({0}) WHEN 'array' THEN json_array_length({0}) END")),
    // Numbers
    row("abs", "a", First, Made(made::abs)),
    row("sign", "n", Is(Real), Sql("CAST(sign({0}) AS REAL)")),
    row("round", "n?l", Own, Made(made::round)),
    row("ceiling", "n", First, Made(made::ceiling)),
    row("sqrt", "n", Is(Real), Sql("kql_sqrt({0})")),
    row("exp", "n", Is(Real), Sql("kql_exp({0})")),
    row("log", "n", Is(Real), Sql("kql_ln({0})")),
    row("log10", "n", Is(Real), Sql("kql_log10({0})")),
    row("log2", "n", Is(Real), Sql("kql_log2({0})")),
    row("pow", "nn", Is(Real), Sql("kql_pow({0}, {1})")),
    row("pi", "", Is(Real), Sql("3.141592653589793")),
    row("bin", "aa", Own, Made(made::bin)),
    row("floor", "aa", Own, Made(made::bin)),
    // Time
    row("now", "?t", Is(Datetime), Made(made::now)),
    row("ago", "t", Is(Datetime), Made(made::ago)),
    row("startofday", "d?l", Is(Datetime), Made(made::start_of_day)),
    row("startofweek", "d", Is(Datetime), Sql("kql_startof('week', {0})")),
    row("startofmonth", "d", Is(Datetime), Sql("kql_startof('month', {0})")),
    row("startofyear", "d", Is(Datetime), Sql("kql_startof('year', {0})")),
    row("format_datetime", "ds", Is(Text), Sql("kql_format_datetime({0}, {1})")),
    row("format_timespan", "ts", Is(Text), Sql("kql_format_timespan({0}, {1})")),
    row("datetime_diff", "sdd", Is(Long), Made(made::datetime_diff)),
    row("datetime_add", "sld", Is(Datetime), Made(made::datetime_add)),
    row("datetime_part", "sd", Is(Long), Made(made::datetime_part)),
    row("hourofday", "d", Is(Long), Sql("kql_datepart('hour', {0})")),
    row("dayofmonth", "d", Is(Long), Sql("kql_datepart('day', {0})")),
    row("dayofyear", "d", Is(Long), Sql("kql_datepart('dayofyear', {0})")),
    row("dayofweek", "d", Is(Timespan), Sql("(kql_datepart('weekday', {0}) * 86400000000000)")),
    row("monthofyear", "d", Is(Long), Sql("kql_datepart('month', {0})")),
    row("getmonth", "d", Is(Long), Sql("kql_datepart('month', {0})")),
    row("getyear", "d", Is(Long), Sql("kql_datepart('year', {0})")),
    row("week_of_year", "d", Is(Long), Sql("kql_datepart('week_of_year', {0})")),
    row("unixtime_seconds_todatetime", "n", Is(Datetime), Sql("CAST({0} * 1000000000 AS INTEGER)")),
    row("unixtime_milliseconds_todatetime", "n", Is(Datetime), Sql("CAST({0} * 1000000 AS INTEGER)")),
    row("unixtime_microseconds_todatetime", "n", Is(Datetime), Sql("CAST({0} * 1000 AS INTEGER)")),
    row("unixtime_nanoseconds_todatetime", "n", Is(Datetime), Sql("CAST({0} AS INTEGER)")),
];
