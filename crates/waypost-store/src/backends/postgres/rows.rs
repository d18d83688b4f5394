//! Converts rows to values and back. Knows the columns, but not when to read or write them.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::connection::Call;
use crate::backends::columns::Columns;
pub(super) use crate::backends::columns::{
    add_plans, attempt_log, entry, hash, head, held_lock, json, lease, number, plan_id, pruned,
    stored_version, subscription, task_id, wait,
};
use crate::backends::list_query::{self, Dialect, ListQuery, Value};
use crate::error::{Result, StoreError};
use crate::log::subscription::Subscription;
use crate::rows::{Page, PlanSummary, Query};

/// Replaces NUL, which a PostgreSQL text cannot contain. It is a noncharacter, so no text contains it.
const NUL: &str = "\u{10FFFF}";

/// Converts a text to its stored form.
pub(super) fn text(text: &str) -> String {
    if text.contains('\0') { text.replace('\0', NUL) } else { text.to_owned() }
}

fn from_text(text: String) -> String {
    if text.contains(NUL) { text.replace(NUL, "\0") } else { text }
}

/// Reads a column that must exist.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Database(format!("a row is not as expected: {error}")))
}

impl Columns for Row {
    fn stored_text(&self, column: usize) -> Result<Option<&str>> {
        get(self, column)
    }

    fn text(&self, column: usize) -> Result<Option<String>> {
        Ok(get::<Option<String>>(self, column)?.map(from_text))
    }

    fn number(&self, column: usize) -> Result<Option<i64>> {
        match self.columns().get(column).map(|column| column.type_()) {
            Some(&Type::INT4) => Ok(get::<Option<i32>>(self, column)?.map(i64::from)),
            Some(_) | None => get(self, column),
        }
    }

    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>> {
        get(self, column)
    }

    fn flag(&self, column: usize) -> Result<bool> {
        get(self, column)
    }
}

pub(super) fn put_subscription(subscription: &Subscription) -> Result<Call> {
    let call = Call::new(
        "INSERT INTO waypost_subscriptions (id, owner, filter, cursor, created_at, trouble)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, filter = excluded.filter, cursor = excluded.cursor,
             created_at = excluded.created_at, trouble = excluded.trouble",
    );
    Ok(call
        .with(subscription.id.clone())
        .with(text(&subscription.owner))
        .with(json(&subscription.filter)?)
        .with(subscription.cursor.to_string())
        .with(subscription.created_at.as_micros())
        .with(subscription.trouble.as_ref().map(json).transpose()?))
}

const DIALECT: Dialect = Dialect {
    table: "waypost_plans",
    parameter: '$',
    flag: |column, set| if set { column.to_owned() } else { format!("NOT {column}") },
    latest_first: "DESC NULLS LAST",
    text,
    search: text,
    contains: |column, parameter| {
        format!(
            "position(lower({parameter}::text COLLATE \"default\") IN lower({column} COLLATE \"default\")) > 0"
        )
    },
};

/// Returns the queries for the number of plans of a list, and for one page of them.
pub(super) fn heads(query: &Query) -> [Call; 2] {
    let ListQuery { count, page, values, counted_by } = ListQuery::new(query, &DIALECT);
    let with = |call: Call, value: &Value| match value {
        Value::Text(text) => call.with(text.clone()),
        Value::Number(number) => call.with(*number),
    };
    let count = values[..counted_by].iter().fold(Call::once(count), with);
    [count, values.iter().fold(Call::once(page), with)]
}

/// Builds a page from the answers to [`heads`].
pub(super) fn page(query: &Query, total: &[Row], found: &[Row]) -> Result<Page<PlanSummary>> {
    let total = total.first().map_or(Ok(0), |row| number(row, 0))?;
    let items = found.iter().map(head).collect::<Result<Vec<_>, _>>()?;
    Ok(list_query::page(query, items, total))
}
