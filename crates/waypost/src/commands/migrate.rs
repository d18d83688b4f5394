//! `waypost migrate`: brings the store to the schema of this build. Opening it does the same; this says so.

use std::path::Path;

use clap::Args;
use serde_json::json;
use waypost_store::{Durability, SqliteStore, open};

use crate::context::Context;
use crate::error::Outcome;

// Nothing more to say.
#[derive(Debug, Args)]
pub(crate) struct Migrate {}

impl Migrate {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let place = context.place()?;
        let database = place.location.strip_prefix("sqlite:").map(Path::new);
        let Some(database) = database else {
            open(&place.location, Durability::default())?;
            if context.out.json {
                return context.out.value(&json!({ "store": place.location, "changed": false }));
            }
            context.out.line(format!("{} has no schema to bring up to date", place.location));
            return Ok(());
        };
        let from = SqliteStore::schema_of(database)?;
        place.prepare()?;
        // Opening brings the file up to date; it is closed again before anybody looks.
        drop(open(&place.location, Durability::default())?);
        let to = SqliteStore::schema_of(database)?;
        if context.out.json {
            return context
                .out
                .value(&json!({ "store": place.location, "from": from, "to": to, "changed": from != to }));
        }
        let to = to.unwrap_or_default();
        context.out.line(match from {
            Some(from) if from == to => format!("{} is at schema {to} already", place.location),
            Some(from) => format!("{}: schema {from} → {to}", place.location),
            None => format!("{}: made, schema {to}", place.location),
        });
        Ok(())
    }
}
