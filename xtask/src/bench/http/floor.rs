//! The baseline: bare axum handlers on the same store, in a process of their own. They authenticate and check nothing,
//! and return what the store returns.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use axum::extract::{Path as Named, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use waypost_core::{Actor, Command as Order, PlanChanges, PlanId};
use waypost_store::{Durability, PlanStore, PlanSummary, Query, Sort, SqliteStore, WriteRequest};

use super::server::store_path;

/// The process of the baseline, killed on drop.
pub(super) struct Floor {
    child: Child,
    address: String,
}

impl Floor {
    /// Starts the baseline on the store of a workspace.
    pub(super) fn start(scratch: &Path) -> Result<Self> {
        let mut own = Command::new(std::env::current_exe()?);
        own.args(["bench", "http-floor"]).arg(store_path(scratch));
        let mut child = own.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("no standard output")?).read_line(&mut address)?;
        if address.trim().is_empty() {
            let _gone = child.kill();
            bail!("the baseline server did not report its address");
        }
        Ok(Self { child, address: address.trim().to_owned() })
    }

    pub(super) fn site(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// `xtask bench http-floor STORE`: prints its address, and serves until it is killed.
pub(in crate::bench) fn serve(store: &str) -> Result<()> {
    let store = SqliteStore::open(Path::new(store), Durability::Full)?;
    let plans = Arc::new(PlanStore::new(Arc::new(store)));
    let router = Router::new()
        .route("/constant", get(|| async { "ok" }))
        .route("/plans", get(list))
        .route("/plans/{plan}", get(one).patch(revise))
        .with_state(plans);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        Ok(axum::serve(listener, router).await?)
    })
}

/// Runs store access on the blocking thread pool.
async fn run_blocking(
    work: impl FnOnce() -> Result<Value> + Send + 'static,
) -> Result<Json<Value>, axum::response::Response> {
    let failed =
        |error: anyhow::Error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| failed(error.into()))?.map(Json).map_err(failed)
}

type Answer = Result<Json<Value>, axum::response::Response>;

async fn list(State(plans): State<Arc<PlanStore>>) -> Answer {
    run_blocking(move || {
        let query = Query { sort: Sort::Updated, limit: 50, ..Query::default() };
        let page = plans.heads(&query)?;
        Ok(json!({ "plans": page.items, "total": page.total, "next": page.next }))
    })
    .await
}

async fn one(State(plans): State<Arc<PlanStore>>, Named(id): Named<String>) -> Answer {
    run_blocking(move || Ok(plans.with_plan(&PlanId::new(id)?, |plan| json!(PlanSummary::of(plan)))?)).await
}

async fn revise(
    State(plans): State<Arc<PlanStore>>,
    Named(id): Named<String>,
    Json(body): Json<Value>,
) -> Answer {
    run_blocking(move || {
        let status = body["status"].as_str().map(str::to_owned);
        let changes = PlanChanges { status, ..PlanChanges::default() };
        let request = WriteRequest {
            plan: PlanId::new(id)?,
            by: Actor::person("bench"),
            commands: vec![Order::RevisePlan(Box::new(changes))],
            known_version: None,
            lease_seconds: None,
        };
        Ok(json!({ "version": plans.write(request)?.version }))
    })
    .await
}
