//! The rows of subscriptions. Knows the columns, not who may read them.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use waypost_core::Timestamp;

use super::rows;
use crate::error::StoreError;
use crate::log::event::Cursor;
use crate::log::subscription::Subscription;

const COLUMNS: &str = "id, owner, filter, cursor, created_at, trouble";

fn subscription(row: &Row<'_>) -> Result<Subscription, StoreError> {
    let id: String = row.get(0)?;
    let corrupt =
        |detail: String| StoreError::Corrupt { what: format!("the row of subscription {id:?}"), detail };
    fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
    let trouble: Option<String> = row.get(5)?;
    Ok(Subscription {
        owner: row.get(1)?,
        filter: from_json(&row.get::<_, String>(2)?).map_err(corrupt)?,
        cursor: row.get::<_, String>(3)?.parse::<Cursor>().map_err(|error| corrupt(error.to_string()))?,
        created_at: Timestamp::from_micros(row.get(4)?),
        trouble: trouble.map(|text| from_json(&text)).transpose().map_err(corrupt)?,
        id,
    })
}

pub(super) fn one(connection: &Connection, id: &str) -> Result<Option<Subscription>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM subscriptions WHERE id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([id], |row| Ok(subscription(row))).optional()?.transpose()
}

pub(super) fn of(
    connection: &Connection,
    owner: Option<&str>,
    limit: usize,
) -> Result<Vec<Subscription>, StoreError> {
    let whose = if owner.is_some() { "owner = ?1" } else { "?1 IS NULL" };
    let sql = format!("SELECT {COLUMNS} FROM subscriptions WHERE {whose} ORDER BY created_at, id LIMIT ?2");
    rows::query(connection, &sql, params![owner, limit as i64], subscription)
}

pub(super) fn put(connection: &Connection, subscription: &Subscription) -> Result<(), StoreError> {
    fn json(value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|error| StoreError::Database(error.to_string()))
    }
    let mut statement = connection.prepare_cached(
        "INSERT OR REPLACE INTO subscriptions (id, owner, filter, cursor, created_at, trouble)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    statement.execute(params![
        subscription.id,
        subscription.owner,
        json(&subscription.filter)?,
        subscription.cursor.to_string(),
        subscription.created_at.as_micros(),
        subscription.trouble.as_ref().map(json).transpose()?,
    ])?;
    Ok(())
}

pub(super) fn remove(connection: &Connection, id: &str) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM subscriptions WHERE id = ?1")?.execute([id])?;
    Ok(())
}
