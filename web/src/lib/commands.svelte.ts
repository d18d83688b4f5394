// What the palette can do besides going somewhere: the views on screen offer their commands here.

import { untrack } from "svelte";

import type { IconName } from "../parts/Icon.svelte";

export interface Command {
  /** Unique among the commands on screen. */
  id: string;
  title: string;
  icon?: IconName;
  /** The key that does the same. */
  key?: string;
  run: () => void;
}

class Commands {
  #offers = $state.raw<(() => Command[])[]>([]);

  /** Offers commands until the returned function is called. */
  offer(commands: () => Command[]): () => void {
    // Whoever offers does not depend on what others offer.
    this.#offers = [...untrack(() => this.#offers), commands];
    return () => void (this.#offers = untrack(() => this.#offers).filter((one) => one !== commands));
  }

  /** All commands; those of the view on screen come first. */
  get all(): Command[] {
    return this.#offers.toReversed().flatMap((offer) => offer());
  }
}

export const commands = new Commands();
