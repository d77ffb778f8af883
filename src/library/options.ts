// What a caller hands over besides the thing itself: an object of named wishes.
import { invalid, isObject } from "../engine/validate.ts";

/** `cancel("enough")` and `cancel(null)` are mistakes whose answer should say what would be right. */
export function optionsOf<O extends object>(given: O, of: string): O {
  if (!isObject(given)) throw invalid(`${of} takes its options as an object, { name: value }.`);
  return given;
}
