// Light, dark, or as the system has it.

type Theme = "system" | "light" | "dark";

const SIGNS: Record<Theme, string> = { system: "◐", light: "☀", dark: "☾" };
const ORDER: Theme[] = ["system", "light", "dark"];

function kept(): Theme {
  const found = document.documentElement.dataset["theme"];
  return found === "light" || found === "dark" ? found : "system";
}

class Themes {
  chosen = $state<Theme>(kept());
  /** Counts changes, so that what draws by itself draws anew. */
  turn = $state(0);

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.turn++);
  }

  get sign(): string {
    return SIGNS[this.chosen];
  }

  next(): void {
    this.chosen = ORDER[(ORDER.indexOf(this.chosen) + 1) % ORDER.length] ?? "system";
    if (this.chosen === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = this.chosen;
    try {
      localStorage.setItem("waypost-theme", this.chosen);
    } catch {
      // It holds until the page is closed.
    }
    this.turn++;
  }
}

export const theme = new Themes();
