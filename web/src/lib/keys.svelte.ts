// Keys without a modifier that do something. They are off while a field has the focus or a dialog is open, and people can turn
// them off altogether, because speech input types letters.

const STORED = "waypost-keys";

class Keys {
  /** Whether single letters and digits do something. */
  areOn = $state(stored());

  turn(on: boolean): void {
    this.areOn = on;
    try {
      localStorage.setItem(STORED, on ? "on" : "off");
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
  }

  /** Whether the palette is being opened: what is typed before it is there is meant for it. */
  isFinding = false;

  /** Whether a key press may mean something to a view. */
  mean(event: KeyboardEvent): boolean {
    const target = event.target as HTMLElement;
    const writes = target.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (writes || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || this.isFinding || document.querySelector("dialog[open]")) return false;
    return event.key.length > 1 || this.areOn;
  }
}

function stored(): boolean {
  try {
    return localStorage.getItem(STORED) !== "off";
  } catch {
    return true;
  }
}

export const keys = new Keys();
