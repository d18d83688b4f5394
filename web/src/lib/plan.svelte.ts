// The plan on screen: read once, then updated by events. What an event alone does not determine is read again.

import { ApiError, get, part, query } from "./api";
import { live, seldom } from "./live.svelte";
import { page } from "./page.svelte";
import type { Annotation, Graph, Plan, PlanEvent, Problem, Standing } from "./types";
import type { TaskAction } from "./actions";
import { forPeople, standings } from "./labels";
import { taskActions } from "./taskActions";

/** The status of a task after an event that names it. */
const MAKES: Record<string, Standing> = {
  task_queued: "queued",
  task_started: "running",
  task_done: "done",
  task_reported: "reported",
  task_skipped: "skipped",
  task_cancelled: "cancelled",
  task_blocked: "blocked",
  task_unblocked: "ready",
  question_asked: "asking",
};

/** Events after which tasks, edges or labels may have changed, so that the graph is read again. */
const REDRAWS = new Set([
  "plan_created",
  "plan_revised",
  "plan_restored",
  "plan_merged",
  "tasks_added",
  "task_revised",
  "tasks_removed",
  "task_moved",
  "tasks_reordered",
  "tasks_reset",
  "tasks_retried",
  "task_reopened",
  "task_released",
  "task_held",
  "task_unheld",
  "plan_reopened",
  "question_answered",
]);

/** Events after which labels, assignees or the number of comments may have changed. */
const ANNOTATES = new Set(["task_commented", "task_labeled", "task_assigned", "tasks_removed", "plan_restored"]);

const READ_AGAIN_MS = 400;
/** Large plans change all the time, and their parents seldom. */
const READ_PARENTS_MS = 1_000;
/** Tasks whose labels, assignees and comments are read. */
const ANNOTATED_MAX = 1_000;

export class PlanOnScreen {
  plan = $state<Plan | null>(null);
  graph = $state.raw<Graph | null>(null);
  /** The effective status of each task; replaced on every change, which causes a redraw. */
  #effective = $state.raw<Standing[]>([]);
  /** The status of each task as it is shown. */
  readonly standing = $derived(this.plan?.phase === "active" ? forPeople(this.#effective, this.graph?.people ?? []) : this.#effective);
  /** The tasks with tasks inside. Nobody works on them. */
  readonly parents: ReadonlySet<number> = $derived(new Set(this.graph?.parent ?? []));
  trouble = $state<Problem | null>(null);
  /** The latest events of this plan. */
  heard = $state<PlanEvent[]>([]);
  #places = new Map<string, number>();
  #readHead = seldom(() => void this.#loadPlan(), READ_AGAIN_MS);
  #readGraph = seldom(() => void this.#loadGraph(), READ_AGAIN_MS);
  #readParents = seldom(() => void this.#loadGraph(), READ_PARENTS_MS);
  /** The latest progress reported since the plan was opened, by task. */
  progress = $state<Record<string, string>>({});
  /** The labels, assignee and number of comments of the tasks that have any; read when a view asks for them first. */
  annotations = $state.raw<Record<string, Annotation>>({});
  #isAnnotated = false;
  #readAnnotations = seldom(() => void this.#loadAnnotations(), READ_AGAIN_MS);
  #silence: (() => void)[] = [];
  #over = false;

  constructor(readonly id: string) {}

  /** Reads the plan and follows its events until `close`. */
  async open(): Promise<void> {
    this.#silence = [
      live.hear(
        (events) => this.#take(events),
        () => void this.reload(),
      ),
      live.hearProgress((report) => {
        if (report.plan === this.id) this.progress[report.task] = report.progress;
      }),
    ];
    await this.reload();
  }

  close(): void {
    this.#over = true;
    for (const silence of this.#silence) silence();
  }

  async reload(): Promise<void> {
    await Promise.all([this.#loadPlan(), this.#loadGraph(), this.#isAnnotated ? this.#loadAnnotations() : null]);
  }

  /** Reads labels, assignees and comments, now and after each change. */
  annotate(): void {
    if (this.#isAnnotated) return;
    this.#isAnnotated = true;
    void this.#loadAnnotations();
  }

  async #loadAnnotations(): Promise<void> {
    try {
      const found = await get<{ tasks: (Annotation & { id: string })[] }>(`/plans/${part(this.id)}/tasks${query({ annotated: true, limit: ANNOTATED_MAX })}`);
      if (!this.#over) this.annotations = Object.fromEntries(found.tasks.map((task) => [task.id, task]));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Returns the index of a task in the graph. */
  placeOf(task: string): number | undefined {
    return this.#places.get(task);
  }

  /** Returns the actions that a task takes now, with the text of their buttons. */
  actionsOf(task: string): [TaskAction, string][] {
    const place = this.graph ? (this.#places.get(task) ?? -1) : -1;
    return place < 0 ? [] : taskActions(this.standing[place] ?? "blocked", this.parents.has(place));
  }

  async #loadPlan(): Promise<void> {
    try {
      const plan = await get<Plan>(`/plans/${part(this.id)}`);
      if (this.#over) return;
      this.plan = plan;
      this.trouble = null;
    } catch (error) {
      this.#failed(error);
    }
  }

  async #loadGraph(): Promise<void> {
    try {
      const graph = await get<Graph>(`/plans/${part(this.id)}/graph`);
      if (this.#over) return;
      this.#places = new Map(graph.ids.map((id, place) => [id, place]));
      this.graph = graph;
      this.#effective = standings(graph);
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (this.#over) return;
    if (error instanceof ApiError && (error.status === 404 || error.status === 0)) this.trouble = error.problem;
    else page.failed(error);
  }

  #take(events: PlanEvent[]): void {
    const ours = events.filter((event) => event.plan === this.id);
    if (ours.length === 0) return;
    this.heard = [...ours.toReversed(), ...this.heard].slice(0, 500);
    let moved: Standing[] | null = null;
    // Derived events follow the decided events of the same version. A task that became ready and started is thus
    // reported as started first, and as unblocked second.
    const decided = new Set(ours.filter((event) => !event.derived).map((event) => `${event.version} ${event.task}`));
    for (const event of ours) {
      if (event.derived && event.kind === "task_unblocked" && decided.has(`${event.version} ${event.task}`)) continue;
      if (REDRAWS.has(event.kind)) this.#readGraph();
      if (this.#isAnnotated && ANNOTATES.has(event.kind)) this.#readAnnotations();
      const made = this.#made(event);
      // A new attempt starts without progress.
      if (event.task !== undefined && made !== undefined) delete this.progress[event.task];
      const place = event.task === undefined ? undefined : this.#places.get(event.task);
      if (made !== undefined && place !== undefined && event.version > (this.graph?.version ?? 0)) {
        moved ??= [...this.#effective];
        moved[place] = made;
        // What a parent shows follows from its children, by rules that the server knows.
        if ((this.graph?.parent[place] ?? -1) >= 0) this.#readParents();
      }
    }
    if (moved) this.#effective = moved;
    this.#readHead();
  }

  #made(event: PlanEvent): Standing | undefined {
    if (event.kind === "task_failed") return event.event["again_at"] ? "ready" : "failed";
    return MAKES[event.kind];
  }
}
