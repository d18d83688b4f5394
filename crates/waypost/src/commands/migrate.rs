//! `waypost migrate`: migrates the store to this build's schema. Opening a store does the same; this command reports it.

use std::path::Path;

use clap::Args;
use serde_json::json;
use waypost_store::{Durability, PostgresStore, SqliteStore, StoreError, open};

use crate::context::Context;
use crate::error::Outcome;

#[derive(Debug, Args)]
pub(crate) struct Migrate {}

/// The current schema version of a store; `None` for stores without a schema.
fn schema_of(location: &str) -> Option<Result<Option<u32>, StoreError>> {
    match location.split_once(':') {
        Some(("sqlite", path)) => Some(SqliteStore::schema_of(Path::new(path))),
        Some(("postgres" | "postgresql", _)) => Some(PostgresStore::schema_of(location)),
        Some(_) | None => None,
    }
}

impl Migrate {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let place = context.store_location()?;
        let shown = place.shown();
        let Some(from) = schema_of(&place.location) else {
            open(&place.location, Durability::default())?;
            if context.out.json {
                return context.out.value(&json!({ "store": shown, "changed": false }));
            }
            context.out.line(format!("{shown} has no schema to bring up to date"));
            return Ok(());
        };
        let from = from?;
        place.prepare()?;
        // Opening migrates the store. It is closed again before its schema is read.
        drop(open(&place.location, Durability::default())?);
        let to = schema_of(&place.location).transpose()?.flatten();
        if context.out.json {
            return context
                .out
                .value(&json!({ "store": shown, "from": from, "to": to, "changed": from != to }));
        }
        let to = to.unwrap_or_default();
        context.out.line(match from {
            Some(from) if from == to => format!("{shown} is at schema {to} already"),
            Some(from) => format!("{shown}: schema {from} → {to}"),
            None => format!("{shown}: created, schema {to}"),
        });
        Ok(())
    }
}
