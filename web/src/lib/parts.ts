// The parts of the page that are loaded when they are wanted. They are fetched ahead, once the page stands: a server that goes away
// later leaves none of them out of reach.

const PARTS: (() => Promise<unknown>)[] = [
  () => import("../parts/Palette.svelte"),
  () => import("../parts/TaskForm.svelte"),
  () => import("../parts/TaskNotes.svelte"),
  () => import("../parts/LogViewer.svelte"),
  () => import("../parts/PlansBulk.svelte"),
  () => import("../parts/TasksBulk.svelte"),
  () => import("../views/NewPlan.svelte"),
  () => import("../views/Workers.svelte"),
  () => import("../views/TaskSearch.svelte"),
  () => import("../views/GraphView.svelte"),
  () => import("../views/BoardView.svelte"),
  () => import("../views/TimelineView.svelte"),
  () => import("../views/DocumentView.svelte"),
  () => import("../views/ApprovalView.svelte"),
  () => import("../views/HistoryView.svelte"),
  () => import("../views/RunsView.svelte"),
  () => import("../views/LogView.svelte"),
  () => import("./markdown"),
];
/** The page itself comes first. */
const WAIT_MS = 1_500;

/** Fetches all parts, one after the other, once. */
export function fetchAhead(): () => void {
  const timer = setTimeout(() => {
    void (async () => {
      for (const fetch of PARTS) await fetch().catch(() => null);
    })();
  }, WAIT_MS);
  return () => clearTimeout(timer);
}
