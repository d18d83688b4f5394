// The types of the API. The names are those of docs/api.md.

import type { StatusSign } from "./statusSigns";

export type Phase = "draft" | "awaiting_approval" | "active" | "paused" | "completed" | "failed" | "cancelled";

/** The status of a task as it is shown: its effective status, or that a person is to do it now. */
export type Standing =
  | "person"
  | "ready"
  | "blocked"
  | "queued"
  | "running"
  | "done"
  | "failed"
  | "skipped"
  | "cancelled"
  | "asking"
  | "held"
  | "disputed"
  | "reported";

export interface Counts {
  total: number;
  ready: number;
  blocked: number;
  /** These three are absent if none is. A list of plans counts reported tasks as ready, asking and held ones as blocked. */
  reported?: number;
  asking?: number;
  held?: number;
  disputed?: number;
  /** Only of what is shown: the server counts them as ready. */
  person?: number;
  queued: number;
  running: number;
  done: number;
  failed: number;
  skipped: number;
  cancelled: number;
}

/** The state of a plan for people: what needs somebody most. The server decides it. */
export interface PlanState {
  name: StatusSign;
  label: string;
  detail: string;
  needs_you: boolean;
}

export interface Head {
  id: string;
  version: number;
  title: string;
  status: string;
  phase: Phase;
  owner: string;
  queue: string;
  created_by: string | null;
  created_at: string | null;
  updated_at: string | null;
  archived: boolean;
  awaits_approval: boolean;
  counts: Counts;
  urgency: number;
  state: PlanState;
  /** Tasks that wait for a person's answer; absent if there are none. */
  asking?: number;
}

export interface Approval {
  required: boolean;
  standing: "none" | "requested" | "approved" | "rejected" | "voided";
  by?: string;
  at?: string;
  version?: number;
  note?: string;
  /** The approval itself, with the proof that a person gave it. */
  approved?: { work?: { proof: string; via: string } };
  reason?: string;
  requested_by?: string;
  requested_at?: string;
  message?: string;
  /** The workers that start nothing of the plan. */
  start_refusals?: { worker: string; reason: string; message: string; hint?: string }[];
}

export interface Question {
  task: string;
  question: string;
  choices?: string[];
  asked_at?: string;
  /** The digest of the question, which an answer names. */
  digest: string;
}

export interface ProgressReport {
  plan: string;
  task: string;
  attempt: number;
  progress: string;
  at: string;
}

export interface RunningTask {
  task: string;
  attempt: number;
  worker: string;
  since: string;
  progress?: string;
}

export interface Plan extends Head {
  goal: string;
  body: string;
  token_budget: number | null;
  tokens_used: number;
  approval: Approval;
  questions: Question[];
  running: RunningTask[];
  failed: string[];
  critical_path: string[];
  /** The number of things that clones disagree about; absent if there are none. */
  conflicts?: number;
}

/** One letter per task; see `LETTERS` in labels.ts. */
export type Letters = string;

export interface Graph {
  version: number;
  count: number;
  ids: string[];
  labels: string[];
  standing: Letters;
  from: number[];
  to: number[];
  parent: number[];
  level: number[];
  critical: number[];
  /** The tasks that a person does. */
  people: number[];
  /** One letter for each task: `w` if it has work, so that no task goes into it. */
  work: Letters;
}

/** A picture of the plan: boxes with places, and edges with their corners. */
export interface Layout {
  version: number;
  width: number;
  height: number;
  /** The height of the title of a frame. */
  head: number;
  boxes: LayoutBox[];
  /** The box of each task of the plan, in plan order; -1 for a task that is not shown. */
  of: number[];
  edges: LayoutEdge[];
  /** The keys of the open groups. */
  open: string[];
  /** The number of groups, open or not. */
  groups: number;
  grouping: "parent" | "prefix" | "executor" | "levels" | null;
}

export interface LayoutBox {
  kind: "task" | "group" | "frame" | "cells" | "outside";
  x: number;
  y: number;
  width: number;
  height: number;
  /** The task, or the parent that a group belongs to: its place in the plan. */
  task?: number;
  key?: string;
  name?: string;
  /** The number of tasks in a group. */
  tasks?: number;
  /** The frame around it. */
  outer?: number;
  /** The columns of a grid of cells. */
  columns?: number;
  /** Of a task of another plan. */
  agent?: string | null;
  plan?: string | null;
  plan_title?: string;
  status?: Standing | null;
  /** Whether there is no such plan, or no such task in it. */
  missing?: boolean;
}

export interface LayoutEdge {
  from: number;
  to: number;
  /** The number of dependencies that it stands for. */
  count: number;
  /** x and y of each corner in turn. */
  points: number[];
}

/** One thing that waits for a person. */
export interface InboxItem {
  kind: "approval" | "question" | "conflict" | "task" | "failure";
  plan: string;
  plan_title: string;
  version: number;
  tasks?: string[];
  tasks_total: number;
  text: string;
  choices?: string[];
  by?: string;
  since?: string;
  /** Whether it says more than its text, so that nobody should decide here. */
  is_cut?: boolean;
  /** The digest of what is asked, which an answer names. */
  digest?: string;
  /** The number of tasks that cannot continue before it is settled. */
  holds_up: number;
  error?: string;
  attempt?: number;
  commands?: { total: number; people?: number; groups: number; warnings: string[] };
}

export interface RunningNow {
  plan: string;
  plan_title: string;
  task: string;
  text: string;
  worker?: string;
  since?: string;
  progress?: string;
}

/** Everything that waits for a person, and what runs now. */
export interface Inbox {
  items: InboxItem[];
  /** The number of everything that waits, also of what is not listed. */
  total: number;
  /** The same number by kind. */
  totals: Partial<Record<InboxItem["kind"], number>>;
  /** The number of plans that need a person. */
  plans_total: number;
  running: RunningNow[];
  running_total: number;
  more: boolean;
}

export interface Attempt {
  attempt: number;
  worker?: string;
  started_at?: string;
  finished_at?: string;
  outcome?: string;
  error?: string;
  has_log: boolean;
}

export interface Why {
  kind: string;
  message: string;
  fact?: Record<string, unknown>;
}

export interface Task {
  id: string;
  description: string;
  notes?: string;
  depends_on?: (string | Record<string, string>)[];
  when?: string;
  complexity?: string;
  tools?: string[];
  skip?: boolean;
  locks?: (string | { key: string; mode: string })[];
  work?: { executor: string; inputs?: unknown; shape?: string };
  priority?: number;
  parent?: string;
  retry?: { attempts?: number; backoff_seconds?: number; backoff_seconds_max?: number };
  timeout_seconds?: number;
  provides?: string;
  check?: { executor: string; inputs?: unknown; shape?: string };
  thinking?: Thinking;
  standing: Standing;
  state: {
    status: string;
    attempt?: number;
    started_at?: string;
    finished_at?: string;
    worker?: string;
    progress?: string;
    result?: string;
    output?: unknown;
    error?: string;
    reason?: string;
    reported?: { by: string; result?: string; output?: unknown };
    evidence?: Evidence;
    answers?: { question: string; answer: string; by: string }[];
    question?: { text: string; choices?: string[] };
    comments?: Comment[];
    labels?: string[];
    assignee?: string;
  };
  children: string[];
  needed_by: string[];
  received_outputs: Record<string, unknown>;
  attempts: Attempt[];
  why: Why[];
  /** The digest of what a task for people asks, which its end names. Only of such a task. */
  question_digest?: string;
}

/** What people and agents say about a task besides its work. */
export interface Annotation {
  labels?: string[];
  assignee?: string;
  /** The number of comments. */
  comments?: number;
}

export interface Comment {
  by: string;
  at: string;
  text: string;
}

/** A task that a search found. */
export interface FoundTask {
  plan: string;
  plan_title: string;
  task: string;
  text: string;
  standing: Standing;
  /** Whether it waits for a person to do it. */
  for_person?: boolean;
  labels?: string[];
  assignee?: string;
}

export interface FoundTasks {
  tasks: FoundTask[];
  total: number;
  /** How many of all have tasks in them. */
  parents: number;
  plans_read: number;
  more: boolean;
}

/** The executors, shapes and checks that the configuration of the server names. */
export interface Executors {
  executors: { name: string; kind: string }[];
  shapes: string[];
  checks: string[];
  shape_schemas: Record<string, { description: string; input_schema: unknown }>;
}

/** The state and the reasoning of the planner for a task, and a digest of the result. */
export interface Thinking {
  refinement?: string;
  reasoning?: string;
  tokens?: number;
  digest?: { summary: string; key_decisions?: string[]; artifacts?: string[] };
}

/** The result of a check. */
export interface Evidence {
  passed: boolean;
  check: string;
  worker: string;
  outcome: string;
  output?: unknown;
  log_tail?: string;
  digest: string;
}

export interface TimelineRow {
  task: string;
  label: string;
  attempts: { attempt: number; worker?: string; started_at: string; finished_at?: string; outcome?: string }[];
}

export interface Version {
  version: number;
  at: string;
  actor: string;
  command: string;
  summary: string;
}

export type Difference =
  | { change: "plan"; field: string; before: string; after: string }
  | { change: "task"; task: string; field: string; before: string; after: string }
  | { change: "added"; task: string; description: string }
  | { change: "removed"; task: string; description: string }
  | { change: "reordered" };

export interface PreviewTask {
  id: string;
  /** The texts that the author passes to the program, by name. */
  particulars: [string, string][];
}

export interface PreviewGroup {
  group: number;
  program: string;
  role: "machine" | "person" | "nothing" | "parent";
  /** How the program runs: what its executor and check stand for, attempts, time limit. */
  settings: [string, string][];
  /** How the values of its tasks differ, the rarest first. */
  pattern: [string, string][];
  warnings: string[];
  tasks: PreviewTask[];
  tasks_total: number;
  next_offset: number | null;
}

/** Everything that machines would run for a plan. */
export interface Preview {
  version: number;
  digest: string;
  /** The words of the plan itself, and its queue. */
  about: [string, string][];
  resolved_by?: string;
  disagreeing?: string[];
  unresolved?: string[];
  total: number;
  since_approval?: string[];
  groups: PreviewGroup[];
}

/** What authors changed since a version. */
export interface WrittenSince {
  version: number;
  differences: Difference[];
  differences_total: number;
}

export interface ApprovalView extends Approval {
  problems: string[];
  since_approval?: WrittenSince;
  /** Since the version that was read before. */
  since_read?: WrittenSince;
}

export interface PlanEvent {
  sequence: number;
  index: number;
  at: string;
  actor: string;
  plan: string;
  version: number;
  owner?: string;
  kind: string;
  task?: string;
  derived?: boolean;
  event: Record<string, unknown>;
}

/** A task that somebody works on now. */
export interface Held {
  plan: string;
  plan_title: string;
  task: string;
  label: string | null;
  attempt: number;
  since: string | null;
  /** Until when the claim holds; null for one without an end. */
  until: string | null;
  progress?: string;
  progress_at?: string;
  /** Whether the worktree of the attempt is on the machine of the server. */
  worktree: boolean;
}

/** What an agent changed for a task. */
export interface TaskChanges {
  attempt: number;
  place: "worktree" | "branch" | "nowhere";
  branch: string;
  base?: string;
  commit?: string;
  files: { path: string; change: "added" | "removed" | "changed"; lines: string[]; insertions: number; deletions: number; note?: string }[];
  files_total: number;
  note?: string;
}

/** Calls of models, with their tokens and their cost. */
export interface Spent {
  calls: number;
  tokens: number;
  tokens_in: number;
  tokens_out: number;
  cost: string;
  unpriced_calls: number;
  estimated_calls: number;
}

export interface PlanSpending extends Partial<Spent> {
  tokens_used: number;
  token_budget: number | null;
  by_model?: Record<string, Spent>;
  by_task?: Record<string, Spent>;
  by_purpose?: Record<string, Spent>;
}

export interface RunCell {
  attempts: number;
  failed: number;
  seconds: number;
  outcome: string;
}

/** The plans with the same title, the oldest first. */
export interface Runs {
  runs: { plan: string; state: PlanState; created_at: string | null; started_at: string | null; finished_at: string | null; counts: Counts; attempts: number; failed: number; seconds: number; took_seconds: number | null }[];
  tasks: { task: string; label: string; cells: (RunCell | null)[] }[];
  tasks_total: number;
  days: { day: string; attempts: number; failed: number; seconds: number }[];
}

/** A plan that a model writes. */
export interface PlanJob {
  job: number;
  goal: string;
  by: string;
  begun_at: string;
  state: "running" | "stopping" | "stopped" | "failed" | "done";
  progress: string[];
  now: string;
  plan?: string;
  failure?: { message: string; hint: string; details: string[] };
}

export interface Worker {
  name: string;
  host: string;
  kind?: string;
  queues: string[];
  executors: string[];
  capacity: number | null;
  began_at: string;
  seen_at: string;
  state: string;
  running: Held[];
}

export interface Agent {
  name: string;
  plans: number;
  kind?: "agent" | "person";
  running: Held[];
  last_seen_at?: string;
}

/** One side of what clones disagree about. */
export interface ConflictVersion {
  record: string;
  /** Who wrote it, as the record says. */
  by: string;
  /** The tag of the clone. */
  from: string;
  at: string;
  value: string;
}

/** What clones disagree about. */
export interface MergeConflict {
  plan: string;
  /** Absent if it is about the plan. */
  task?: string;
  /** What is asked; an answer names it. */
  digest: string;
  kind: string | Record<string, string>;
  subject: string;
  text: string;
  versions: ConflictVersion[];
  /** The place of the version that the plan shows. */
  shown?: number;
  answers: string[];
}

export interface TaskCommits {
  commits: { commit: string; at: string; author: string; title: string }[];
  more: boolean;
  note?: string;
}

export type Role = "person" | "agent" | "worker" | "reader";

export interface Me {
  actor: string;
  role: Role;
  version: string;
  store: string;
  worker: boolean;
  /** Whether the server starts no new task, because it is about to end. */
  ends_soon: boolean;
  workspace: string;
  /** Why the configuration of the folder does not count, until a person has trusted it. */
  untrusted: string | null;
}

export interface Conflict {
  known: number;
  current: number;
  differences: Difference[];
  differences_total: number;
  writers: string[];
}

export interface Problem {
  type?: string;
  title: string;
  status: number;
  code?: string;
  detail?: string;
  hint?: string;
  problems?: { task?: string; message: string; hint?: string }[];
  conflict?: Conflict;
}
