//! Facts about the server for an operator: its version, the durability of commits, the connections in use, and whether
//! notifications reach other processes.

use super::connection::{Call, Link};
use super::listen;
use super::pool::{Pool, RetryDeadline};
use super::rows::get;
use super::schema;
use crate::error::{Result, StoreError};

const QUESTION: &str = "SELECT current_setting('server_version'), current_setting('synchronous_commit'),
     current_setting('fsync', true), current_setting('max_connections', true),
     (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
     (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), current_schema()::text";

/// Queries the server, and tests whether it delivers notifications.
pub(super) fn ask(pool: &Pool) -> Result<Vec<(&'static str, String)>> {
    let found = pool.on_link(&mut RetryDeadline::to_work(), |link: &mut Link| {
        Ok((schema::version(link)?, link.run(&[Call::new(QUESTION)])?))
    });
    // A database that only resembles PostgreSQL may not have all of these tables.
    let (schema, answers) = match found {
        Ok(found) => found,
        Err(StoreError::Database(_)) => pool.on_link(&mut RetryDeadline::to_work(), |link: &mut Link| {
            let plain =
                "SELECT version(), current_setting('synchronous_commit', true), NULL::text, NULL::text,
                 0::bigint, NULL::boolean, current_schema()::text";
            Ok((schema::version(link)?, link.run(&[Call::new(plain)])?))
        })?,
        Err(error) => return Err(error),
    };
    let row = answers.first().and_then(|rows| rows.first());
    let row = row.ok_or_else(|| StoreError::Database("the server did not say what it is".to_owned()))?;
    let text = |column| get::<Option<String>>(row, column);
    let unknown = || "unknown".to_owned();
    let encrypted = match get::<Option<bool>>(row, 5)? {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => unknown(),
    };
    let connections = match text(3)? {
        Some(most) => format!("{} of {most}", get::<i64>(row, 4)?),
        None => unknown(),
    };
    let notify = match listen::round_trip(pool) {
        Some(took) => format!("received after {} ms", took.as_millis()),
        None => "not received: writes of other processes are noticed by polling only".to_owned(),
    };
    Ok(vec![
        ("server", text(0)?.unwrap_or_else(unknown)),
        ("schema", schema.map_or_else(unknown, |schema| schema.to_string())),
        ("tables_in", text(6)?.unwrap_or_else(unknown)),
        ("synchronous_commit", text(1)?.unwrap_or_else(unknown)),
        ("fsync", text(2)?.unwrap_or_else(unknown)),
        ("connections", connections),
        ("encrypted", encrypted),
        ("notify", notify),
    ])
}
