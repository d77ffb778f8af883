// A known mistake: a fault that is switched on by editing the syntax tree of modules while they are loaded, so that
// production code has no switches. The suites must find each of them.
//
// The source names the place (`// @fault NAME`, see marks.ts); the mistake says what becomes of it. Neither quotes the
// other's text, so both survive renamed symbols, moved files and rewritten lines.
import { ROOT } from "../fixtures/repository.ts";
import { type MarkedPlaces, marksUnder } from "./marks.ts";
import { applyChanges, type Change, type Place } from "./place.ts";

/**
 * What becomes of a marked place. It must not contain a name of the source: code that needs one is written with
 * `inline` (place.ts), or takes the name from a place, if need be from another mark of the same mistake.
 */
export type Edit = (at: Place, other: (label: string) => Place) => Change | readonly Change[];

export interface Mistake {
  /** In kebab-case; what `--only`, the reports and the marks call it. */
  readonly name: string;
  /** Which class of mistake, and who is known to have made it. */
  readonly about: string;
  /** By the part of the mark behind the name: `cancel-lost` is marked by "", `cancel-lost:accept` by "accept". */
  readonly edits: Readonly<Record<string, Edit>>;
}

/** A module as it is with a mistake in it. */
export interface EditedModule {
  /** Absolute. */
  readonly file: string;
  readonly text: string;
}

/** A mistake in one place, or in several that are told apart by their labels. */
export function mistake(name: string, about: string, edit: Edit | Mistake["edits"]): Mistake {
  return { name, about, edits: typeof edit === "function" ? { "": edit } : edit };
}

export class MistakeError extends Error {
  override readonly name = "MistakeError";
}

/** The modules that change with these mistakes. Throws if one of them does not apply to the source as it is. */
export function editModules(
  mistakes: readonly Pick<Mistake, "name" | "edits">[],
  marks: MarkedPlaces = currentMarks(),
): readonly EditedModule[] {
  const changes = new Map<string, Change[]>();
  for (const { name, edits } of mistakes) {
    for (const [label, edit] of Object.entries(edits)) {
      const mark = label === "" ? name : `${name}:${label}`;
      const place = marks.place(mark);
      const made = changesOf(mark, () => edit(place, (another) => marks.place(`${name}:${another}`)), place);
      changes.set(place.path, [...(changes.get(place.path) ?? []), ...made]);
    }
  }
  return [...changes].map(([path, made]) => ({
    file: `${marks.root}/${path}`,
    text: applyChanges(marks.text(path), made),
  }));
}

function changesOf(mark: string, edit: () => ReturnType<Edit>, place: Place): readonly Change[] {
  try {
    const made = [edit()].flat();
    if (made.length === 0) throw new MistakeError("it changes nothing");
    return made;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new MistakeError(`The known mistake ${mark} does not apply to ${place.where}: ${why}.`, { cause: error });
  }
}

let current: MarkedPlaces | undefined;

/** Of `src`, read once. */
export function currentMarks(): MarkedPlaces {
  current ??= marksUnder(ROOT, "src");
  return current;
}
