// A known mistake that the simulation must find.
import type { Mistake } from "../../test/mistakes/mistake.ts";
import type { Focus } from "../schedule-options.ts";

export interface Bug extends Mistake {
  /** Which schedules it is looked for in. Default: all kinds. */
  readonly focus?: Focus;
}
