-- The views under the names of Application Insights: requests, dependencies, exceptions, traces, customMetrics and
-- performanceCounters, with that product's columns and words. docs/reference/query.md describes every column.
--
-- They stand on the views spans, logs and metrics and on nothing below them, so that tables may change. All but
-- exceptions, which come from three places, are plain SELECTs, which SQLite dissolves in the query around them: a column
-- that is not asked for costs nothing.

-- Both views of spans have the same columns, so that UNION ALL over them is a whole trace.

CREATE VIEW requests AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', s.start_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', s.start_ns % 1000000000 / 100) AS timestamp,
       s.start_ns AS timestamp_ns,
       s.span_id AS id,
       '' AS source,
       s.request_name AS name,
       coalesce(s.url, '') AS url,
       CASE WHEN s.http_method IS NOT NULL OR s.http_status IS NOT NULL THEN 'HTTP' ELSE '' END AS type,
       coalesce(s.server_address || coalesce(':' || s.server_port, ''), '') AS target,
       coalesce(s.url, '') AS data,
       CASE WHEN s.status = 'error' OR s.http_status >= 400 THEN 0 ELSE 1 END AS success,
       coalesce(CAST(s.http_status AS TEXT), s.error_type, '0') AS resultCode,
       s.duration_ms AS duration,
       CASE WHEN s.duration_ms < 250 THEN '<250ms' WHEN s.duration_ms < 500 THEN '250ms-500ms'
            WHEN s.duration_ms < 1000 THEN '500ms-1sec' WHEN s.duration_ms < 3000 THEN '1sec-3sec'
            WHEN s.duration_ms < 7000 THEN '3sec-7sec' WHEN s.duration_ms < 15000 THEN '7sec-15sec'
            WHEN s.duration_ms < 30000 THEN '15sec-30sec' WHEN s.duration_ms < 60000 THEN '30sec-1min'
            WHEN s.duration_ms < 120000 THEN '1min-2min' WHEN s.duration_ms < 300000 THEN '2min-5min'
            ELSE '>=5min' END AS performanceBucket,
       NULL AS charge, -- a call's, not an answer's
       'request' AS itemType,
       {items of s} AS itemCount,
       s.trace_id AS operation_Id,
       s.request_name AS operation_Name,
       coalesce(s.parent_span_id, '') AS operation_ParentId,
       s.service AS cloud_RoleName,
       '' AS cloud_RoleInstance,
       s.attributes AS customDimensions,
       s.kind,
       s.trial,
       (SELECT variant FROM trials WHERE id = s.trial) AS variant
FROM spans AS s
WHERE s.kind IN ('server', 'consumer');

CREATE VIEW dependencies AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', s.start_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', s.start_ns % 1000000000 / 100) AS timestamp,
       s.start_ns AS timestamp_ns,
       s.span_id AS id,
       '' AS source,
       CASE WHEN s.http_method IS NULL OR s.db_system IS NOT NULL OR instr(s.url, '://') = 0 THEN s.name
            ELSE s.http_method || ' ' || coalesce(substr(s.path, nullif(instr(s.path, '/'), 0)), '/') END AS name,
       coalesce(s.url, '') AS url,
       CASE
           WHEN s.kind = 'internal' THEN 'InProc'
           WHEN s.db_system = 'azure.cosmosdb' THEN 'Azure DocumentDB'
           WHEN s.db_system IN ('microsoft.sql_server', 'ibm.db2', 'derby', 'mariadb', 'oracle.db', 'sqlite',
                                'other_sql', 'hsqldb', 'h2database') THEN 'SQL'
           WHEN s.db_system IS NOT NULL THEN s.db_system
           WHEN s.http_method IS NOT NULL OR s.http_status IS NOT NULL THEN 'HTTP'
           ELSE coalesce(
               CASE WHEN s.kind = 'producer' THEN 'Queue Message | ' ELSE '' END
                   || CASE s.messaging_system
                          WHEN 'servicebus' THEN 'Azure Service Bus' WHEN 'eventhubs' THEN 'Azure Event Hubs'
                          ELSE s.messaging_system END,
               s.rpc_system, '')
           END AS type,
       CASE WHEN s.db_system IS NOT NULL
            THEN coalesce(s.host || ' | ' || s.db_namespace, s.host, s.db_namespace, s.db_system)
            ELSE coalesce(s.host, '') END AS target,
       coalesce(s.db_query, s.url, '') AS data,
       CASE WHEN s.status = 'error' OR s.http_status >= 400 THEN 0 ELSE 1 END AS success,
       coalesce(s.db_status, CAST(s.http_status AS TEXT), s.error_type,
                CASE WHEN s.db_system IS NULL THEN '0' ELSE '' END) AS resultCode,
       s.duration_ms AS duration,
       CASE WHEN s.duration_ms < 250 THEN '<250ms' WHEN s.duration_ms < 500 THEN '250ms-500ms'
            WHEN s.duration_ms < 1000 THEN '500ms-1sec' WHEN s.duration_ms < 3000 THEN '1sec-3sec'
            WHEN s.duration_ms < 7000 THEN '3sec-7sec' WHEN s.duration_ms < 15000 THEN '7sec-15sec'
            WHEN s.duration_ms < 30000 THEN '15sec-30sec' WHEN s.duration_ms < 60000 THEN '30sec-1min'
            WHEN s.duration_ms < 120000 THEN '1min-2min' WHEN s.duration_ms < 300000 THEN '2min-5min'
            ELSE '>=5min' END AS performanceBucket,
       s.db_charge AS charge,
       'dependency' AS itemType,
       {items of s} AS itemCount,
       s.trace_id AS operation_Id,
       -- The request that it was made for: the nearest one among the spans above it, at most 64 of them.
       coalesce((
           WITH RECURSIVE above (id, depth) AS (
               SELECT s.parent_span_id, 1
               UNION -- not ALL: where ids come again, the ways up would be without number
               SELECT p.parent_span_id, above.depth + 1
               FROM above JOIN spans AS p ON p.trial = s.trial AND p.trace_id = s.trace_id AND p.span_id = above.id
               WHERE p.kind NOT IN ('server', 'consumer') AND above.depth < 64
           )
           SELECT r.name
           FROM above JOIN requests AS r ON r.trial = s.trial AND r.operation_Id = s.trace_id AND r.id = above.id
           LIMIT 1
       ), '') AS operation_Name,
       coalesce(s.parent_span_id, '') AS operation_ParentId,
       s.service AS cloud_RoleName,
       '' AS cloud_RoleInstance,
       s.attributes AS customDimensions,
       s.kind,
       s.trial,
       (SELECT variant FROM trials WHERE id = s.trial) AS variant
FROM (
    SELECT *,
           -- Without the ports that the product leaves out, since they go without saying.
           server_address || CASE
               WHEN server_port IS NULL OR server_port IN (80, 443) AND db_system IS NULL
                    OR db_system || ':' || server_port IN ('azure.cosmosdb:443', 'cassandra:9042', 'mariadb:3306',
                        'microsoft.sql_server:1433', 'mongodb:27017', 'mysql:3306', 'oracle.db:1521',
                        'postgresql:5432', 'redis:6379')
               THEN '' ELSE ':' || server_port END AS host,
           -- The address without its scheme and its query.
           substr(url, instr(url, '://') + 3, instr(url || '?', '?') - instr(url, '://') - 3) AS path
    FROM spans WHERE kind IN ('client', 'producer', 'internal')
) AS s;

-- The exceptions that spans and log records carry, and what spans without one say of their own failure.

CREATE VIEW exceptions AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', x.time_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', x.time_ns % 1000000000 / 100) AS timestamp,
       x.time_ns AS timestamp_ns,
       coalesce(x.span_id, '') AS id,
       CASE WHEN x.name IS NULL THEN x.type ELSE x.type || ' at ' || x.name END AS problemId,
       x.type,
       x.message,
       x.type AS outerType,
       x.message AS outerMessage,
       x.type AS innermostType,
       x.message AS innermostMessage,
       x.details,
       3 AS severityLevel,
       'exception' AS itemType,
       {items of x} AS itemCount,
       coalesce(x.trace_id, '') AS operation_Id,
       CASE WHEN x.span_id IS NULL THEN
           -- A log record does not say which span it is of: the first request of its service in the trace.
           coalesce((SELECT r.name FROM requests AS r
                     WHERE r.trial = x.trial AND r.operation_Id = x.trace_id AND r.cloud_RoleName = x.service
                     ORDER BY r.timestamp_ns LIMIT 1), '')
       ELSE coalesce((
           WITH RECURSIVE above (id, depth) AS (
               SELECT x.span_id, 0
               UNION -- not ALL, as above
               SELECT p.parent_span_id, above.depth + 1
               FROM above JOIN spans AS p ON p.trial = x.trial AND p.trace_id = x.trace_id AND p.span_id = above.id
               WHERE p.kind NOT IN ('server', 'consumer') AND above.depth < 64
           )
           SELECT r.name
           FROM above JOIN requests AS r ON r.trial = x.trial AND r.operation_Id = x.trace_id AND r.id = above.id
           LIMIT 1
       ), '') END AS operation_Name,
       coalesce(x.span_id, '') AS operation_ParentId,
       x.service AS cloud_RoleName,
       x.instance AS cloud_RoleInstance,
       x.attributes AS customDimensions,
       x.trial,
       (SELECT variant FROM trials WHERE id = x.trial) AS variant
FROM (
    SELECT s.trial, coalesce(nullif(json_extract(e.value, '$.time_ns'), 0), s.end_ns) AS time_ns, s.trace_id, s.span_id,
           s.name, s.service, '' AS instance, json_extract(e.value, '$.type') AS type,
           json_extract(e.value, '$.message') AS message, json_extract(e.value, '$.stacktrace') AS details, s.weight,
           s.attributes
    FROM spans AS s, json_each(s.attributes, '$."narrows.exceptions"') AS e
    WHERE instr(s.attributes, '"narrows.exceptions":') > 0
    UNION ALL
    SELECT s.trial, s.end_ns, s.trace_id, s.span_id, s.name, s.service, '', coalesce(s.error_type, 'error'),
           s.status_message, '', s.weight, s.attributes
    FROM spans AS s WHERE s.status = 'error' AND instr(s.attributes, '"narrows.exceptions":') = 0
    UNION ALL
    SELECT l.trial, l.time_ns, l.trace_id, NULL, NULL, l.service, CAST(l.replica AS TEXT),
           substr(l.text, l.type_at + 16, l.message_at - l.type_at - 16),
           substr(l.text, l.message_at + 19, l.details_at - l.message_at - 19), substr(l.text, l.details_at + 22), 1, '{}'
    FROM (
        SELECT *, instr(text, char(10) || 'exception.type=') AS type_at,
               instr(text, char(10) || 'exception.message=') AS message_at,
               instr(text, char(10) || 'exception.stacktrace=') AS details_at
        FROM logs WHERE stream = 'otlp' AND instr(text, char(10) || 'exception.type=') > 0
    ) AS l
) AS x;

CREATE VIEW traces AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', l.time_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', l.time_ns % 1000000000 / 100) AS timestamp,
       l.time_ns AS timestamp_ns,
       l.text AS message,
       CASE upper(substr(l.severity, 1, 4))
            WHEN 'TRAC' THEN 0 WHEN 'DEBU' THEN 0 WHEN 'VERB' THEN 0 WHEN 'INFO' THEN 1 WHEN 'WARN' THEN 2
            WHEN 'ERRO' THEN 3 WHEN 'FATA' THEN 4 WHEN 'CRIT' THEN 4 END AS severityLevel,
       'trace' AS itemType,
       1 AS itemCount,
       coalesce(l.trace_id, '') AS operation_Id,
       -- A log line does not say which span it is of: the first request of its service in the trace.
       coalesce((SELECT r.name FROM requests AS r
                 WHERE r.trial = l.trial AND r.operation_Id = l.trace_id AND r.cloud_RoleName = l.service
                 ORDER BY r.timestamp_ns LIMIT 1), '') AS operation_Name,
       '' AS operation_ParentId,
       l.service AS cloud_RoleName,
       CAST(l.replica AS TEXT) AS cloud_RoleInstance,
       json_object('stream', l.stream, 'severity', l.severity) AS customDimensions,
       l.trial,
       (SELECT variant FROM trials WHERE id = l.trial) AS variant
FROM logs AS l
-- What carries an exception is one of those, not one of these.
WHERE NOT (l.stream = 'otlp' AND instr(l.text, char(10) || 'exception.type=') > 0);

-- A series is one or the other: what Narrows samples itself is a performance counter, what services report a metric.

CREATE VIEW customMetrics AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', m.time_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', m.time_ns % 1000000000 / 100) AS timestamp,
       m.time_ns AS timestamp_ns,
       m.name,
       m.value,
       1 AS valueCount,
       m.value AS valueSum,
       m.value AS valueMin,
       m.value AS valueMax,
       m.unit,
       'customMetric' AS itemType,
       1 AS itemCount,
       '' AS operation_Id,
       '' AS operation_Name,
       '' AS operation_ParentId,
       m.service AS cloud_RoleName,
       CAST(m.replica AS TEXT) AS cloud_RoleInstance,
       m.labels AS customDimensions,
       m.trial,
       (SELECT variant FROM trials WHERE id = m.trial) AS variant
FROM metrics AS m
WHERE m.name || '|' || m.unit NOT IN (
    'process.cpu.cores|{cpu}', 'process.cpu.time|s/s', 'process.cpu.busiest_thread|{cpu}',
    'process.cpu.busiest_thread_wait|s/s', 'process.cpu.collector_thread|s/s', 'process.cpu.wait|s/s',
    'process.memory.rss|By', 'process.memory.pss|By', 'process.context_switches|{context_switch}/s',
    'process.open_file_descriptor.count|{file_descriptor}', 'process.open_file_descriptor.limit|{file_descriptor}',
    'process.open_file_descriptor.utilization|1', 'process.thread.count|{thread}', 'process.thread.state|{thread}',
    'process.disk.io|By/s', 'process.network.io|By/s', 'process.network.accept_queue.length|{connection}',
    'process.network.accept_queue.limit|{connection}', 'process.network.accept_queue.drops|{connection}/s',
    'process.network.listen_overflows|{connection}/s', 'process.network.connection.count|{connection}',
    'process.network.connection.one_way|{connection}', 'process.network.connection.opened|{connection}/s',
    'process.network.request.outstanding|{request}', 'process.network.request.undecided|{request}',
    'process.network.response.unread|{response}', 'process.network.request.rate|{request}/s',
    'process.network.connection.io|By/s', 'process.network.connection.busy|s/s',
    'process.network.client.connection.count|{connection}', 'process.network.client.connection.opened|{connection}/s',
    'process.network.client.request.outstanding|{request}', 'cgroup.cpu.limit|{cpu}', 'cgroup.cpu.periods|{period}/s',
    'cgroup.cpu.throttled_periods|{period}/s', 'cgroup.cpu.throttled_time|s/s', 'cgroup.memory.usage|By',
    'cgroup.memory.limit|By', 'cgroup.memory.oom_kills|{process}/s',
    'cgroup.pressure.some.avg10|1', 'cgroup.pressure.some.stalled|s/s',
    'system.cpu.logical.count|{cpu}', 'host.cpu.utilization|1', 'host.cpu.steal|1', 'host.network.io|By/s',
    'host.network.listen_overflows|{connection}/s',
    'host.network.tcp.time_wait|{connection}', 'host.network.ephemeral_ports|{port}',
    'process.network.tcp.time_wait|{connection}', 'process.network.ephemeral_ports|{port}',
    'host.pressure.some.avg10|1',
    'host.pressure.some.stalled|s/s', 'system.memory.linux.available|By', 'system.cpu.load_average.1m|{task}'
);

CREATE VIEW performanceCounters AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', m.time_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', m.time_ns % 1000000000 / 100) AS timestamp,
       m.time_ns AS timestamp_ns,
       m.counter AS name,
       m.category,
       m.counter,
       CASE WHEN m.category = 'Processor' THEN '_Total' WHEN m.service = '' THEN ''
            ELSE m.service || '#' || m.replica END AS instance,
       m.value * m.factor AS value,
       CASE m.factor WHEN 100 THEN '%' ELSE m.unit END AS unit,
       'performanceCounter' AS itemType,
       1 AS itemCount,
       '' AS operation_Id,
       '' AS operation_Name,
       '' AS operation_ParentId,
       m.service AS cloud_RoleName,
       CAST(m.replica AS TEXT) AS cloud_RoleInstance,
       m.labels AS customDimensions,
       m.trial,
       (SELECT variant FROM trials WHERE id = m.trial) AS variant
FROM (
    -- A counter that Windows, and so Application Insights, knows under a name of its own has that name; all others keep
    -- Narrows'. A rate that the product counts in per cent of a processor is so too.
    SELECT *,
           CASE WHEN name = 'host.cpu.utilization' OR name = 'host.cpu.steal' THEN 'Processor'
                WHEN name = 'system.memory.linux.available' THEN 'Memory'
                WHEN name LIKE 'process.%' THEN 'Process' WHEN name LIKE 'cgroup.%' THEN 'Control Group'
                ELSE 'System' END AS category,
           CASE name
               WHEN 'process.cpu.cores' THEN '% Processor Time'
               WHEN 'host.cpu.utilization' THEN '% Processor Time'
               WHEN 'process.memory.rss' THEN 'Working Set'
               WHEN 'process.thread.count' THEN 'Thread Count'
               WHEN 'process.open_file_descriptor.count' THEN 'Handle Count'
               WHEN 'system.memory.linux.available' THEN 'Available Bytes'
               WHEN 'process.disk.io' THEN
                   CASE json_extract(labels, '$."disk.io.direction"')
                       WHEN 'read' THEN 'IO Read Bytes/sec' ELSE 'IO Write Bytes/sec' END
               ELSE name END AS counter,
           CASE WHEN name IN ('process.cpu.cores', 'host.cpu.utilization') THEN 100 ELSE 1 END AS factor
    FROM metrics
) AS m
WHERE m.name || '|' || m.unit IN (
    'process.cpu.cores|{cpu}', 'process.cpu.time|s/s', 'process.cpu.busiest_thread|{cpu}',
    'process.cpu.busiest_thread_wait|s/s', 'process.cpu.collector_thread|s/s', 'process.cpu.wait|s/s',
    'process.memory.rss|By', 'process.memory.pss|By', 'process.context_switches|{context_switch}/s',
    'process.open_file_descriptor.count|{file_descriptor}', 'process.open_file_descriptor.limit|{file_descriptor}',
    'process.open_file_descriptor.utilization|1', 'process.thread.count|{thread}', 'process.thread.state|{thread}',
    'process.disk.io|By/s', 'process.network.io|By/s', 'process.network.accept_queue.length|{connection}',
    'process.network.accept_queue.limit|{connection}', 'process.network.accept_queue.drops|{connection}/s',
    'process.network.listen_overflows|{connection}/s', 'process.network.connection.count|{connection}',
    'process.network.connection.one_way|{connection}', 'process.network.connection.opened|{connection}/s',
    'process.network.request.outstanding|{request}', 'process.network.request.undecided|{request}',
    'process.network.response.unread|{response}', 'process.network.request.rate|{request}/s',
    'process.network.connection.io|By/s', 'process.network.connection.busy|s/s',
    'process.network.client.connection.count|{connection}', 'process.network.client.connection.opened|{connection}/s',
    'process.network.client.request.outstanding|{request}', 'cgroup.cpu.limit|{cpu}', 'cgroup.cpu.periods|{period}/s',
    'cgroup.cpu.throttled_periods|{period}/s', 'cgroup.cpu.throttled_time|s/s', 'cgroup.memory.usage|By',
    'cgroup.memory.limit|By', 'cgroup.memory.oom_kills|{process}/s',
    'cgroup.pressure.some.avg10|1', 'cgroup.pressure.some.stalled|s/s',
    'system.cpu.logical.count|{cpu}', 'host.cpu.utilization|1', 'host.cpu.steal|1', 'host.network.io|By/s',
    'host.network.listen_overflows|{connection}/s',
    'host.network.tcp.time_wait|{connection}', 'host.network.ephemeral_ports|{port}',
    'process.network.tcp.time_wait|{connection}', 'process.network.ephemeral_ports|{port}',
    'host.pressure.some.avg10|1',
    'host.pressure.some.stalled|s/s', 'system.memory.linux.available|By', 'system.cpu.load_average.1m|{task}'
);
