// The columns of the board of plans, and what a move from one to another means.

import type { PlanAction } from "./actions";
import type { StatusSign } from "./statusSigns";
import type { Head } from "./types";

export interface PlanColumn {
  name: string;
  title: string;
  glyph: StatusSign;
  statuses: StatusSign[];
}

export const PLAN_COLUMNS: PlanColumn[] = [
  { name: "draft", title: "Draft", glyph: "draft", statuses: ["draft", "rejected"] },
  { name: "approval", title: "Needs approval", glyph: "approval", statuses: ["approval", "refused"] },
  { name: "person", title: "Waits for a person", glyph: "person", statuses: ["asking", "disputed", "person"] },
  { name: "running", title: "Running", glyph: "running", statuses: ["running", "reported"] },
  { name: "waiting", title: "Blocked or idle", glyph: "blocked", statuses: ["blocked", "idle", "paused", "ready", "queued", "held"] },
  { name: "failed", title: "Failed", glyph: "failed", statuses: ["failed"] },
  { name: "ended", title: "Ended", glyph: "done", statuses: ["done", "skipped", "cancelled"] },
];

/** What a move does: a command, or the page on which the plan is reviewed. */
export type PlanMove = { does: PlanAction; text: string } | { does: "review"; text: string };

export const columnOf = (plan: Pick<Head, "state">): string => PLAN_COLUMNS.find((one) => one.statuses.includes(plan.state.name))?.name ?? "waiting";

/** Returns what moving a plan to a column means; nothing if it cannot go there. The commands are those of its buttons. */
export function planMove(plan: Pick<Head, "state" | "phase" | "awaits_approval" | "counts">, to: string): PlanMove | null {
  if (columnOf(plan) === to) return null;
  switch (plan.phase) {
    case "draft":
      if (to === "approval") return plan.awaits_approval ? { does: "request-approval", text: "Ask for approval" } : null;
      return to === "running" && !plan.awaits_approval ? { does: "start", text: "Start" } : null;
    case "awaiting_approval":
      // A decision is made where everything that it covers is shown.
      if (to === "running" || to === "draft") return { does: "review", text: "Review" };
      return to === "ended" ? { does: "cancel", text: "Stop plan…" } : null;
    case "active":
      if (to === "waiting") return { does: "pause", text: "Pause" };
      if (to === "running" && plan.counts.failed > 0) return { does: "retry", text: "Retry what failed" };
      return to === "ended" ? { does: "cancel", text: "Stop plan…" } : null;
    case "paused":
      if (to === "running") return { does: "resume", text: "Resume" };
      return to === "ended" ? { does: "cancel", text: "Stop plan…" } : null;
    case "failed":
    case "cancelled":
      return to === "running" ? { does: "retry", text: "Retry what failed" } : null;
    case "completed":
      return null;
  }
}
