// The command that starts Belay again, for hints: it depends on how this program was started and installed.
import { sep } from "node:path";

/**
 * `script`: the npm script that runs, as `npm_lifecycle_event` has it. `directory`: where the code of Belay is.
 * Outside of a project, `npx belay` would run another package of that name.
 */
export function commandName(script = process.env.npm_lifecycle_event, directory = import.meta.dirname): string {
  if (script === undefined || script === "") return "belay";
  if (directory.split(sep).includes("node_modules")) return "npx agent-belay";
  return script === "npx" ? "npx belay" : "npm run belay --";
}
