//! Application Insights' names for data in a workspace: `AppRequests` with `TimeGenerated` for `requests` with
//! `timestamp`.

/// Workspace tables, and the classic table that each of them shows.
pub(super) const TABLES: [(&str, &str); 10] = [
    ("AppRequests", "requests"),
    ("AppDependencies", "dependencies"),
    ("AppExceptions", "exceptions"),
    ("AppTraces", "traces"),
    ("AppMetrics", "customMetrics"),
    ("AppPerformanceCounters", "performanceCounters"),
    ("AppEvents", "customEvents"),
    ("AppPageViews", "pageViews"),
    ("AppBrowserTimings", "browserTimings"),
    ("AppAvailabilityResults", "availabilityResults"),
];

/// Columns whose workspace name is not just the name with a capital letter. If the name is empty, the workspace has no
/// such column.
const COLUMNS: [(&str, &str); 34] = [
    ("timestamp", "TimeGenerated"),
    ("operation_Id", "OperationId"),
    ("operation_Name", "OperationName"),
    ("operation_ParentId", "ParentId"),
    ("operation_SyntheticSource", "SyntheticSource"),
    ("session_Id", "SessionId"),
    ("user_Id", "UserId"),
    ("user_AuthenticatedId", "UserAuthenticatedId"),
    ("user_AccountId", "UserAccountId"),
    ("application_Version", "AppVersion"),
    ("client_Type", "ClientType"),
    ("client_Model", "ClientModel"),
    ("client_OS", "ClientOS"),
    ("client_IP", "ClientIP"),
    ("client_City", "ClientCity"),
    ("client_StateOrProvince", "ClientStateOrProvince"),
    ("client_CountryOrRegion", "ClientCountryOrRegion"),
    ("client_Browser", "ClientBrowser"),
    ("cloud_RoleName", "AppRoleName"),
    ("cloud_RoleInstance", "AppRoleInstance"),
    ("customDimensions", "Properties"),
    ("customMeasurements", "Measurements"),
    ("duration", "DurationMs"),
    ("networkDuration", "NetworkDurationMs"),
    ("sendDuration", "SendDurationMs"),
    ("receiveDuration", "ReceiveDurationMs"),
    ("processingDuration", "ProcessingDurationMs"),
    ("totalDuration", "TotalDurationMs"),
    ("appId", "ResourceGUID"),
    ("sdkVersion", "SDKVersion"),
    ("itemId", "_ItemId"),
    ("itemType", "Type"),
    ("appName", ""),
    ("_ResourceId", "_ResourceId"),
];

/// The same for single tables; these entries take precedence.
const COLUMNS_OF_TABLES: [(&str, &str, &str); 9] = [
    ("requests", "type", ""),
    ("requests", "target", ""),
    ("requests", "data", ""),
    ("dependencies", "type", "DependencyType"),
    ("exceptions", "type", "ExceptionType"),
    ("customMetrics", "value", ""),
    ("customMetrics", "valueCount", ""),
    ("customMetrics", "valueStdDev", ""),
    ("customMetrics", "valueSum", "Sum"),
];

/// Columns of Narrows' own, which keep their names.
const OWN: [&str; 5] = ["trial", "variant", "kind", "charge", "unit"];

/// Additional columns of workspace tables, all empty.
pub(super) const MORE: &str = "TenantId:string= SourceSystem:string= _SubscriptionId:string= _BilledSize:real= \
    _IsBillable:string= ReferencedItemId:string= ReferencedType:string= OperationLinks:dynamic=";

/// The workspace name of a column; `None` if the workspace has no such column.
pub(super) fn column(table: &str, column: &str) -> Option<String> {
    let of_table = COLUMNS_OF_TABLES.iter().find(|(of, name, _)| *of == table && *name == column);
    let listed = of_table
        .map(|(_, _, renamed)| *renamed)
        .or_else(|| COLUMNS.iter().find(|(name, _)| *name == column).map(|(_, renamed)| *renamed));
    match listed {
        Some("") => None,
        Some(renamed) => Some(renamed.to_owned()),
        None if OWN.contains(&column) => Some(column.to_owned()),
        None => {
            let short = column.strip_prefix("value").filter(|rest| !rest.is_empty()).unwrap_or(column);
            let (first, rest) = short.split_at(1);
            Some(first.to_uppercase() + rest)
        }
    }
}
