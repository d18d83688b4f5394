//! The SQL of one page of plans, for SQLite and PostgreSQL. The cursor is the id and the sort value of the last plan,
//! so that no plan is missed or repeated because of concurrent writes. Knows no connection.

use waypost_core::Timestamp;

use crate::rows::{ATTENTION, ArchiveFilter, Page, PlanSummary, Query, Sort, parse_urgency};

/// The columns of a plan summary, in the order in which both backends read them.
pub(super) const HEAD: &str = "id, version, title, status, phase, owner, queue, created_by, created_at, updated_at, \
     archived, awaits_approval, total, ready, blocked, running, done, failed, skipped, cancelled, urgency, asking, goals, \
     atomic";

/// The differences between the SQL of the two databases.
pub(super) struct Dialect {
    pub(super) table: &'static str,
    /// The character before the number of a parameter.
    pub(super) parameter: char,
    /// The condition that a flag is set, or that it is not: indexes are only used for one wording of it.
    pub(super) flag: fn(column: &str, set: bool) -> String,
    /// The order of columns that may be NULL, the latest first.
    pub(super) latest_first: &'static str,
    /// Converts a text to the form in which the database stores it.
    pub(super) text: fn(&str) -> String,
    /// Converts a search text to the form that [`Dialect::contains`] needs.
    pub(super) search: fn(&str) -> String,
    /// The condition that a column contains the text of a parameter, ignoring case.
    pub(super) contains: fn(column: &str, parameter: &str) -> String,
}

/// The value of a parameter.
#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    Number(i64),
}

/// Two statements: the first counts the plans, the second reads one page of them and one more plan.
pub(super) struct ListQuery {
    pub(super) count: String,
    pub(super) page: String,
    pub(super) values: Vec<Value>,
    /// How many of the values the first statement takes.
    pub(super) counted_by: usize,
}

impl ListQuery {
    pub(super) fn new(query: &Query, dialect: &Dialect) -> Self {
        let Dialect { table, parameter, flag, latest_first, text, search, contains } = dialect;
        let mut conditions = vec!["purged_at IS NULL".to_owned()];
        let mut values: Vec<Value> = Vec::new();
        match query.shelf {
            ArchiveFilter::Current => conditions.push(flag("archived", false)),
            ArchiveFilter::Archived => conditions.push(flag("archived", true)),
            ArchiveFilter::All => {}
        }
        if !query.phases.is_empty() {
            let words: Vec<String> =
                query.phases.iter().map(|phase| format!("'{}'", phase.as_str())).collect();
            conditions.push(format!("phase IN ({})", words.join(", ")));
        }
        for (column, wanted) in [("status", &query.status), ("owner", &query.owner), ("queue", &query.queue)]
        {
            if let Some(wanted) = wanted {
                values.push(Value::Text(text(wanted)));
                let at = values.len();
                // Plans that name no queue belong to the default queue.
                let also = if column == "queue" && query.is_of_default_queue() { ", ''" } else { "" };
                conditions.push(format!("{column} IN ({parameter}{at}{also})"));
            }
        }
        if let Some(wanted) = &query.text {
            values.push(Value::Text(search(wanted)));
            let at = format!("{parameter}{}", values.len());
            conditions.push(format!("({} OR {})", contains("id", &at), contains("title", &at)));
        }
        if query.offers_work {
            let (current, approved) = (flag("archived", false), flag("awaits_approval", false));
            let may_run = format!("(phase = 'active' OR phase = 'draft' AND {approved})");
            conditions.push(format!("{current} AND ready > 0 AND {may_run}"));
        }
        let mut filter = conditions.join(" AND ");
        let count = format!("SELECT count(*) FROM {table} WHERE {filter}");
        let counted_by = values.len();
        let (by, order, compare) = match query.sort {
            Sort::Updated => ("updated_at", *latest_first, "<"),
            Sort::Created => ("created_at", *latest_first, "<"),
            Sort::Title => ("title", "ASC", ">"),
            Sort::Id => ("id", "ASC", ">"),
            Sort::Urgency => ("urgency", "DESC", "<"),
            Sort::Attention => (ATTENTION, "DESC", "<"),
        };
        // What decides among plans with the same value, in ascending order.
        let tie = match query.sort {
            Sort::Updated | Sort::Created | Sort::Title | Sort::Id | Sort::Attention => "id",
            Sort::Urgency => "coalesce(created_at, 0), id",
        };
        // The id comes first: it cannot contain the separator, but a title can.
        if let Some((id, value)) = query.after.as_deref().and_then(|after| after.split_once('|')) {
            let mut parameters = Vec::new();
            let mut push = |value: Value| {
                values.push(value);
                parameters.push(format!("{parameter}{}", values.len()));
            };
            match query.sort {
                Sort::Updated | Sort::Created | Sort::Attention => {
                    push(Value::Number(value.parse().unwrap_or(i64::MIN)));
                }
                Sort::Urgency => {
                    let (urgency, created) = parse_urgency(value).unwrap_or((i64::MIN, i64::MIN));
                    push(Value::Number(urgency));
                    push(Value::Number(created));
                }
                Sort::Title | Sort::Id => push(Value::Text(text(value))),
            }
            push(Value::Text(text(id)));
            let (value, rest) = (&parameters[0], parameters[1..].join(", "));
            filter
                .push_str(&format!(" AND ({by} {compare} {value} OR {by} = {value} AND ({tie}) > ({rest}))"));
        }
        values.push(Value::Number(i64::try_from(query.limit).unwrap_or(i64::MAX - 1).saturating_add(1)));
        let limit = values.len();
        let page = format!(
            "SELECT {HEAD} FROM {table} WHERE {filter} ORDER BY {by} {order}, {tie} LIMIT {parameter}{limit}"
        );
        Self { count, page, values, counted_by }
    }
}

/// Builds a page from the rows, which may contain one more than fits.
pub(super) fn page(query: &Query, mut items: Vec<PlanSummary>, total: u64) -> Page<PlanSummary> {
    let more = items.len() > query.limit;
    items.truncate(query.limit);
    let time = |at: Option<Timestamp>| at.map_or(i64::MIN, Timestamp::as_micros).to_string();
    let next = items.last().filter(|_| more).map(|last| {
        let value = match query.sort {
            Sort::Updated => time(last.updated_at),
            Sort::Created => time(last.created_at),
            Sort::Title => last.title.clone(),
            Sort::Id => last.id.to_string(),
            Sort::Urgency => last.urgency_cursor(),
            Sort::Attention => last.attention().to_string(),
        };
        format!("{}|{value}", last.id)
    });
    Page { items, total, next, ..Page::default() }
}
