//! The rows of subscriptions. Knows the columns, not who may read them.

use rusqlite::{Connection, params};

use super::rows::{self, SUBSCRIPTION, json, subscription};
use crate::error::StoreError;
use crate::log::subscription::Subscription;

pub(super) fn one(connection: &Connection, id: &str) -> Result<Option<Subscription>, StoreError> {
    let sql = format!("SELECT {SUBSCRIPTION} FROM subscriptions WHERE id = ?1");
    Ok(rows::query(connection, &sql, [id], |row| subscription(row))?.pop())
}

pub(super) fn of(
    connection: &Connection,
    owner: Option<&str>,
    limit: usize,
) -> Result<Vec<Subscription>, StoreError> {
    let whose = if owner.is_some() { "owner = ?1" } else { "?1 IS NULL" };
    let sql =
        format!("SELECT {SUBSCRIPTION} FROM subscriptions WHERE {whose} ORDER BY created_at, id LIMIT ?2");
    rows::query(connection, &sql, params![owner, limit as i64], |row| subscription(row))
}

pub(super) fn put(connection: &Connection, subscription: &Subscription) -> Result<(), StoreError> {
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
