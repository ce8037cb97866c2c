//! The tables that a query can name: views of the run file, with the types that KQL gives their columns.
//!
//! A flat list. Application Insights' tables bear its names and hold their `timestamp` twice: as text for people who
//! write SQL, and in nanoseconds, which is what a query here reads.

use narrows_model::trace::SpanFacts;

use crate::types::Type;

/// A table of the run file.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Its columns in their order, as `name:type`.
    shape: &'static [&'static str],
}

impl Table {
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&'static str, Type)> {
        let read = |column: &'static str| {
            let (name, kind) = column.split_once(':')?;
            Some((name, Type::named(kind)?))
        };
        self.shape.iter().flat_map(|part| part.split_whitespace()).filter_map(read)
    }
}

/// What the tables are called where Application Insights is part of a workspace, and what they are called here.
pub(crate) const OTHER_NAMES: [(&str, &str); 6] = [
    ("AppRequests", "requests"),
    ("AppDependencies", "dependencies"),
    ("AppExceptions", "exceptions"),
    ("AppTraces", "traces"),
    ("AppMetrics", "customMetrics"),
    ("AppPerformanceCounters", "performanceCounters"),
];

/// The column of a view that holds a column of a query.
pub(crate) fn stored_as(column: &'static str) -> &'static str {
    if column == "timestamp" { "timestamp_ns" } else { column }
}

pub(crate) fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// Every table, the ones queried most first.
pub(crate) const TABLES: [Table; 17] = [
    Table {
        name: "requests",
        shape: &["timestamp:datetime id:string source:string name:string url:string type:string target:string \
            data:string success:bool resultCode:string duration:real performanceBucket:string charge:real \
            itemType:string itemCount:long operation_Id:string operation_Name:string operation_ParentId:string \
            cloud_RoleName:string cloud_RoleInstance:string customDimensions:dynamic kind:string trial:long \
            variant:string"],
    },
    Table {
        name: "dependencies",
        shape: &["timestamp:datetime id:string source:string name:string url:string type:string target:string \
            data:string success:bool resultCode:string duration:real performanceBucket:string charge:real \
            itemType:string itemCount:long operation_Id:string operation_Name:string operation_ParentId:string \
            cloud_RoleName:string cloud_RoleInstance:string customDimensions:dynamic kind:string trial:long \
            variant:string"],
    },
    Table {
        name: "exceptions",
        shape: &["timestamp:datetime id:string problemId:string type:string message:string outerType:string \
            outerMessage:string innermostType:string innermostMessage:string details:string severityLevel:long \
            itemType:string itemCount:long operation_Id:string operation_Name:string operation_ParentId:string \
            cloud_RoleName:string cloud_RoleInstance:string customDimensions:dynamic trial:long variant:string"],
    },
    Table {
        name: "traces",
        shape: &["timestamp:datetime message:string severityLevel:long itemType:string itemCount:long \
            operation_Id:string operation_Name:string operation_ParentId:string cloud_RoleName:string \
            cloud_RoleInstance:string customDimensions:dynamic trial:long variant:string"],
    },
    Table {
        name: "customMetrics",
        shape: &[
            "timestamp:datetime name:string value:real valueCount:long valueSum:real valueMin:real valueMax:real \
            unit:string itemType:string itemCount:long operation_Id:string operation_Name:string \
            operation_ParentId:string cloud_RoleName:string cloud_RoleInstance:string customDimensions:dynamic \
            trial:long variant:string",
        ],
    },
    Table {
        name: "performanceCounters",
        shape: &[
            "timestamp:datetime name:string category:string counter:string instance:string value:real unit:string \
            itemType:string itemCount:long operation_Id:string operation_Name:string operation_ParentId:string \
            cloud_RoleName:string cloud_RoleInstance:string customDimensions:dynamic trial:long variant:string",
        ],
    },
    Table {
        name: "spans",
        shape: &[
            "trial:long trace_id:string span_id:string parent_span_id:string service:string scope:string name:string \
                kind:string start_ns:long end_ns:long duration_ms:real status:string status_message:string",
            SpanFacts::COLUMNS,
            "attributes:dynamic weight:real request_name:string",
        ],
    },
    Table {
        name: "metrics",
        shape: &["trial:long name:string unit:string service:string replica:long labels:dynamic time_ns:long \
            value:real"],
    },
    Table {
        name: "logs",
        shape: &["trial:long time_ns:long service:string replica:long stream:string severity:string text:string \
            trace_id:string"],
    },
    Table {
        name: "samples",
        shape: &["trial:long scenario:string request:string vu:long intended_ns:long sent_ns:long done_ns:long \
            latency_ms:real service_ms:real status:long error:string bytes:long trace_id:string weight:real"],
    },
    Table {
        name: "load_seconds",
        shape: &[
            "trial:long scenario:string request:string start_ns:long length_ns:long vus:long due:long late:long dropped:long \
            sent:long repeated:long cut:long succeeded:long errors_connect:long errors_reset:long errors_timeout:long \
            errors_protocol:long errors_status:long errors_check:long bytes:long latency_sum_ns:long \
            latency_min_ns:long latency_max_ns:long service_sum_ns:long service_min_ns:long service_max_ns:long \
            lateness_sum_ns:long lateness_min_ns:long lateness_max_ns:long",
        ],
    },
    Table {
        name: "load_latency",
        shape: &["trial:long scenario:string request:string start_ns:long measure:string lower_ns:long upper_ns:long \
            count:long"],
    },
    Table {
        name: "trials",
        shape: &[
            "id:long variant:string repetition:long state:string started_ns:long ended_ns:long parameters:dynamic \
            validity:string validity_reasons:dynamic error:string caveats:dynamic load_program:dynamic spans_stored:long \
            spans_refused:long points_stored:long points_refused:long logs_stored:long logs_refused:long \
            samples_stored:long samples_refused:long spans_thinned:long spans_one_in:long \
            spans_thinned_one_in:long spans_thinned_before_ns:long",
        ],
    },
    Table {
        name: "windows",
        shape: &["trial:long position:long kind:string label:string start_ns:long end_ns:long drained_ns:long \
            vus:long rate:real"],
    },
    Table {
        name: "services",
        shape: &["id:long trial:long service:string replica:long pid:long port:long command:dynamic \
            cpu_limit_cores:real memory_limit_bytes:long stand_in_ports:dynamic"],
    },
    Table {
        name: "findings",
        shape: &["trial:long rank:long detector:string version:long title:string resource:string operation:string \
            cost_share:real confidence:string body:dynamic"],
    },
    Table {
        name: "run",
        shape: &[
            "id:string schema_version:long experiment:string narrows_version:string started_ns:long ended_ns:long \
            state:string seed:string time_scale:real repetitions:long experiment_source:string \
            environment:dynamic writer_pid:long writer_start_ticks:long writer_boot_id:string",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_name_of_its_own_and_a_type() {
        for table in &TABLES {
            let mut names: Vec<_> = table.columns().map(|(name, _)| name).collect();
            assert_eq!(
                names.len(),
                table.shape.iter().flat_map(|part| part.split_whitespace()).count(),
                "{}",
                table.name
            );
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.columns().count(), "{}", table.name);
        }
        assert!(OTHER_NAMES.iter().all(|(_, here)| table(here).is_some()));
    }
}
