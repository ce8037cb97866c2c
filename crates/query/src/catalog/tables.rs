//! The list of tables, each with its columns.
//!
//! A column is `name:type`, `name:type=column` if the view has another name for it, and `name:type=` if Application
//! Insights has a column that a run never fills.

use narrows_model::trace::SpanFacts;

/// A table in its listed form.
pub(super) struct TableListing {
    pub(super) name: &'static str,
    /// Whether a view of the same name holds its rows. A run never fills other tables.
    pub(super) has_rows: bool,
    /// Its columns, in order.
    pub(super) shape: &'static [&'static str],
}

/// Columns that every table of Application Insights has and that a run fills.
const COMMON: &str = "itemType:string itemCount:long operation_Id:string operation_Name:string \
    operation_ParentId:string cloud_RoleName:string cloud_RoleInstance:string customDimensions:dynamic";

/// Columns for the part of the run that a row comes from.
const TRIAL: &str = "trial:long variant:string";

/// Columns that every table of Application Insights has and that a run leaves empty.
const CONTEXT: &str = "operation_SyntheticSource:string= session_Id:string= user_Id:string= \
    user_AuthenticatedId:string= user_AccountId:string= application_Version:string= client_Type:string= \
    client_Model:string= client_OS:string= client_IP:string= client_City:string= client_StateOrProvince:string= \
    client_CountryOrRegion:string= client_Browser:string= appId:string= appName:string= iKey:string= \
    sdkVersion:string= itemId:string= _ResourceId:string=";

const MEASUREMENTS: &str = "customMeasurements:dynamic=";

/// The `details` of an exception as Application Insights has them: a list with one entry per exception in the chain,
/// here always one.
pub(super) const DETAILS: &str = "json_array(json_object('id', '0', 'outerId', '0', 'type', {}.type, \
    'message', {}.message, 'rawStack', {}.details))";

const SPAN: &str = "timestamp:datetime=timestamp_ns id:string source:string name:string url:string type:string \
    target:string data:string success:bool resultCode:string duration:real performanceBucket:string charge:real";

/// Every table except those of workspaces, the most queried ones first.
pub(super) const TABLES: [TableListing; 22] = [
    TableListing {
        name: "requests",
        has_rows: true,
        shape: &[SPAN, COMMON, "kind:string", TRIAL, MEASUREMENTS, CONTEXT],
    },
    TableListing {
        name: "dependencies",
        has_rows: true,
        shape: &[SPAN, COMMON, "kind:string", TRIAL, MEASUREMENTS, CONTEXT],
    },
    TableListing {
        name: "exceptions",
        has_rows: true,
        shape: &[
            "timestamp:datetime=timestamp_ns id:string problemId:string type:string message:string outerType:string \
                outerMessage:string innermostType:string innermostMessage:string details:dynamic=@details severityLevel:long",
            COMMON,
            TRIAL,
            "handledAt:string= assembly:string= method:string= outerAssembly:string= outerMethod:string= \
                innermostAssembly:string= innermostMethod:string=",
            MEASUREMENTS,
            CONTEXT,
        ],
    },
    TableListing {
        name: "traces",
        has_rows: true,
        shape: &[
            "timestamp:datetime=timestamp_ns message:string severityLevel:long",
            COMMON,
            TRIAL,
            MEASUREMENTS,
            CONTEXT,
        ],
    },
    TableListing {
        name: "customMetrics",
        has_rows: true,
        shape: &[
            "timestamp:datetime=timestamp_ns name:string value:real valueCount:long valueSum:real valueMin:real \
                valueMax:real unit:string",
            COMMON,
            TRIAL,
            "valueStdDev:real=",
            CONTEXT,
        ],
    },
    TableListing {
        name: "performanceCounters",
        has_rows: true,
        shape: &[
            "timestamp:datetime=timestamp_ns name:string category:string counter:string instance:string value:real \
                unit:string",
            COMMON,
            TRIAL,
            CONTEXT,
        ],
    },
    TableListing {
        name: "customEvents",
        has_rows: false,
        shape: &["timestamp:datetime name:string", COMMON, TRIAL, MEASUREMENTS, CONTEXT],
    },
    TableListing {
        name: "pageViews",
        has_rows: false,
        shape: &[
            "timestamp:datetime id:string name:string url:string duration:real performanceBucket:string",
            COMMON,
            TRIAL,
            MEASUREMENTS,
            CONTEXT,
        ],
    },
    TableListing {
        name: "browserTimings",
        has_rows: false,
        shape: &[
            "timestamp:datetime name:string url:string networkDuration:real sendDuration:real receiveDuration:real \
                processingDuration:real totalDuration:real performanceBucket:string",
            COMMON,
            TRIAL,
            MEASUREMENTS,
            CONTEXT,
        ],
    },
    TableListing {
        name: "availabilityResults",
        has_rows: false,
        shape: &[
            "timestamp:datetime id:string name:string location:string success:bool message:string duration:real \
                performanceBucket:string size:real",
            COMMON,
            TRIAL,
            MEASUREMENTS,
            CONTEXT,
        ],
    },
    TableListing {
        name: "spans",
        has_rows: true,
        shape: &[
            "trial:long trace_id:string span_id:string parent_span_id:string service:string scope:string name:string \
                kind:string start_ns:long end_ns:long duration_ms:real status:string status_message:string",
            SpanFacts::COLUMNS,
            "attributes:dynamic weight:real request_name:string",
        ],
    },
    TableListing {
        name: "metrics",
        has_rows: true,
        shape: &["trial:long name:string unit:string service:string replica:long labels:dynamic time_ns:long \
            value:real"],
    },
    TableListing {
        name: "logs",
        has_rows: true,
        shape: &["trial:long time_ns:long service:string replica:long stream:string severity:string text:string \
            trace_id:string"],
    },
    TableListing {
        name: "samples",
        has_rows: true,
        shape: &[
            "trial:long scenario:string request:string vu:long agent:string intended_ns:long sent_ns:long done_ns:long \
            latency_ms:real service_ms:real status:long error:string bytes:long trace_id:string weight:real",
        ],
    },
    TableListing {
        name: "load_seconds",
        has_rows: true,
        shape: &["trial:long scenario:string request:string start_ns:long length_ns:long vus:long due:long late:long \
            dropped:long sent:long repeated:long cut:long succeeded:long errors_connect:long errors_reset:long errors_timeout:long \
            errors_protocol:long errors_status:long errors_check:long bytes:long latency_sum_ns:long \
            latency_min_ns:long latency_max_ns:long service_sum_ns:long service_min_ns:long service_max_ns:long \
            lateness_sum_ns:long lateness_min_ns:long lateness_max_ns:long"],
    },
    TableListing {
        name: "load_latency",
        has_rows: true,
        shape: &["trial:long scenario:string request:string start_ns:long measure:string lower_ns:long upper_ns:long \
            count:long"],
    },
    TableListing {
        name: "trials",
        has_rows: true,
        shape: &[
            "id:long variant:string repetition:long state:string started_ns:long ended_ns:long parameters:dynamic \
            validity:string validity_reasons:dynamic error:string caveats:dynamic load_program:dynamic spans_stored:long \
            spans_refused:long points_stored:long points_refused:long logs_stored:long logs_refused:long \
            samples_stored:long samples_refused:long spans_thinned:long spans_one_in:long \
            spans_thinned_one_in:long spans_thinned_before_ns:long",
        ],
    },
    TableListing {
        name: "windows",
        has_rows: true,
        shape: &["trial:long position:long kind:string label:string start_ns:long end_ns:long drained_ns:long \
            vus:long rate:real"],
    },
    TableListing {
        name: "services",
        has_rows: true,
        shape: &["id:long trial:long service:string replica:long pid:long port:long command:dynamic \
            cpu_limit_cores:real memory_limit_bytes:long stand_in_ports:dynamic"],
    },
    TableListing {
        name: "findings",
        has_rows: true,
        shape: &["trial:long rank:long detector:string version:long title:string resource:string operation:string \
            cost_share:real confidence:string body:dynamic"],
    },
    TableListing {
        name: "call_graph",
        has_rows: true,
        shape: &[
            "trial:long level:long label:string caller:string callee:string callee_kind:string is_background:bool rate:real \
            waiting_low:real waiting_high:real wait_low_ms:real wait_high_ms:real unread:real connections:real one_way:real \
            opened:real sent_bytes:real received_bytes:real",
        ],
    },
    TableListing {
        name: "run",
        has_rows: true,
        shape: &[
            "id:string schema_version:long experiment:string narrows_version:string started_ns:long ended_ns:long \
            state:string seed:string time_scale:real repetitions:long experiment_source:string \
            environment:dynamic writer_pid:long writer_start_ticks:long writer_boot_id:string",
        ],
    },
];
