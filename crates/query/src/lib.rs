//! Turns a query in KQL, the language of Application Insights and Azure Data Explorer, into SQL over the views of a run
//! file.
//!
//! Pure: text in, text out. Who runs the SQL, and the functions that SQLite does not have, are in the run file's room.
