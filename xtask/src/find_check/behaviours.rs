//! Behaviours that a newcomer looks for: the obvious search term, and the file that implements each.

pub(super) struct Behaviour {
    pub(super) question: &'static str,
    pub(super) term: &'static str,
    /// The file that implements it if `new` does not exist.
    pub(super) old: &'static str,
    pub(super) new: &'static str,
}

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        question: "Who renews the leases of running tasks?",
        term: "renew lease",
        old: "waypost-engine/src/run/life.rs",
        new: "waypost-service/src/report.rs",
    },
    Behaviour {
        question: "How does a worker show that it is alive?",
        term: "heartbeat",
        old: "waypost-engine/src/run/life.rs",
        new: "waypost-run/src/runner/heartbeat.rs",
    },
    Behaviour {
        question: "When is a failed model call retried?",
        term: "backoff",
        old: "waypost-engine/src/models/patience.rs",
        new: "waypost-llm/src/backoff.rs",
    },
    Behaviour {
        question: "How are secrets kept out of the model journal?",
        term: "redact",
        old: "waypost-engine/src/models/redact.rs",
        new: "waypost-text/src/redact.rs",
    },
    Behaviour {
        question: "How are model replies recorded and replayed?",
        term: "record replay",
        old: "waypost-engine/src/models/recorded.rs",
        new: "waypost-llm/src/record_replay.rs",
    },
    Behaviour {
        question: "How does an MCP client ask its user a question?",
        term: "elicitation question",
        old: "waypost-mcp/src/asking.rs",
        new: "waypost-mcp/src/elicitation/question.rs",
    },
    Behaviour {
        question: "How do concurrent writes share one commit?",
        term: "group commit",
        old: "waypost-store/src/group.rs",
        new: "waypost-store/src/plans/group_commit.rs",
    },
    Behaviour {
        question: "Where is the event loop of the terminal UI?",
        term: "event loop",
        old: "waypost-tui/src/turns.rs",
        new: "waypost-tui/src/event_loop.rs",
    },
    Behaviour {
        question: "Who rejects the report of an attempt that lost its lease?",
        term: "stale attempt",
        old: "waypost-core/src/plan/decide/attempt.rs",
        new: "waypost-core/src/plan/decide/attempt.rs",
    },
    Behaviour {
        question: "What does a person see before approving a plan?",
        term: "approval preview",
        old: "waypost-engine/src/preview.rs",
        new: "waypost-service/src/approval_preview.rs",
    },
    Behaviour {
        question: "Who decides whether a plan may run with this configuration?",
        term: "admission",
        old: "waypost-engine/src/admit.rs",
        new: "waypost-service/src/admission.rs",
    },
    Behaviour {
        question: "Why does a task not run?",
        term: "wait reason",
        old: "waypost-engine/src/why.rs",
        new: "waypost-service/src/wait_reasons.rs",
    },
    Behaviour {
        question: "How does an agent claim its next task?",
        term: "claim",
        old: "waypost-engine/src/claim.rs",
        new: "waypost-service/src/claim.rs",
    },
    Behaviour {
        question: "Where are control characters removed from text?",
        term: "sanitize",
        old: "waypost-core/src/letters.rs",
        new: "waypost-text/src/sanitize.rs",
    },
    Behaviour {
        question: "Where is long text shortened?",
        term: "truncate",
        old: "waypost-mcp/src/words.rs",
        new: "waypost-text/src/truncate.rs",
    },
    Behaviour {
        question: "Which glyph stands for which status?",
        term: "glyph",
        old: "waypost-tui/src/theme.rs",
        new: "waypost-text/src/status.rs",
    },
    Behaviour {
        question: "Who detects that tasks depend on each other in a cycle?",
        term: "cycle",
        old: "waypost-core/src/plan/decide/graph.rs",
        new: "waypost-core/src/plan/decide/cycle_check.rs",
    },
    Behaviour {
        question: "How does a failure skip the tasks that depend on it?",
        term: "propagate",
        old: "waypost-core/src/plan/ripple.rs",
        new: "waypost-core/src/plan/propagate.rs",
    },
    Behaviour {
        question: "How is a plan stored as a snapshot?",
        term: "snapshot",
        old: "waypost-core/src/plan/snapshot.rs",
        new: "waypost-core/src/plan/snapshot.rs",
    },
    Behaviour {
        question: "How are webhooks delivered at least once?",
        term: "webhook outbox",
        old: "waypost-engine/src/reporters/relay.rs",
        new: "waypost-run/src/reporters/webhook_outbox.rs",
    },
    Behaviour {
        question: "How do workers share the slots of a queue?",
        term: "slot quota",
        old: "waypost-store/src/plans/room.rs",
        new: "waypost-store/src/plans/slot_quota.rs",
    },
    Behaviour {
        question: "Where are the tables of SQLite created and upgraded?",
        term: "sqlite schema",
        old: "waypost-store/src/sqlite/schema.rs",
        new: "waypost-store/src/backends/sqlite/schema.rs",
    },
    Behaviour {
        question: "How is a damaged history found and repaired?",
        term: "integrity",
        old: "waypost-store/src/history.rs",
        new: "waypost-store/src/maintenance/integrity.rs",
    },
    Behaviour {
        question: "How are tasks placed in a drawing of the graph?",
        term: "graph layout",
        old: "waypost-formats/src/layout.rs",
        new: "waypost-formats/src/graph/drawing.rs",
    },
];
