// A known mistake, as a change of the source: made while the module is loaded, so production code has no switches.
import type { Focus } from "../flavour.ts";

export interface Bug {
  /** In kebab-case; what `--only` and the reports call it. */
  readonly name: string;
  /** Which class of mistake, and who is known to have made it. */
  readonly about: string;
  readonly edits: readonly Edit[];
  /** Which schedules it is looked for in. Default: all kinds. */
  readonly focus?: Focus;
}

export interface Edit {
  /** From the root of the repository. */
  readonly file: string;
  /** Occurs exactly once in the file, or the corpus is out of date and says so. */
  readonly find: string;
  readonly replace: string;
}

/** A mistake in one place. */
export function bug(name: string, about: string, ...[file, find, replace]: readonly [string, string, string]): Bug {
  return { name, about, edits: [{ file, find, replace }] };
}
