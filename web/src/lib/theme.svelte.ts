// The theme: light, dark, or that of the system.

type Theme = "system" | "light" | "dark";

const ICONS = { system: "system", light: "sun", dark: "moon" } as const;
const ORDER: Theme[] = ["system", "light", "dark"];

const root = document.documentElement;

function kept(): Theme {
  return ORDER.find((theme) => theme === root.dataset["chosen"]) ?? "system";
}

class Themes {
  chosen = $state<Theme>(kept());
  /** Counts changes, so that canvases redraw. */
  turn = $state(0);

  constructor() {
    // `theme.js` sets the effective theme.
    new MutationObserver(() => this.turn++).observe(root, { attributeFilter: ["data-theme"] });
  }

  get icon(): "system" | "sun" | "moon" {
    return ICONS[this.chosen];
  }

  next(): void {
    this.chosen = ORDER[(ORDER.indexOf(this.chosen) + 1) % ORDER.length] ?? "system";
    root.dataset["chosen"] = this.chosen;
    try {
      localStorage.setItem("waypost-theme", this.chosen);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  }
}

export const theme = new Themes();
