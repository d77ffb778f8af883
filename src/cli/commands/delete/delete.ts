// `belay delete SESSION`: deletes a session permanently.

import { UNTIL_ANSWERED, withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_FOUND, EXIT_OK } from "../../shared/exit-code.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { resolveSession } from "../../shared/id-prefix.ts";
import { confirm, isAttended } from "../../shared/terminal/confirm.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface DeleteFlags extends ConnectionOptions {
  readonly yes?: true;
  readonly json?: true;
}

export function runDelete(typed: string, flags: DeleteFlags): Promise<number> {
  return withControl(
    flags,
    async ({ control, where }) => {
      const id = await resolveSession(control, typed);
      if (!flags.yes && isAttended() && (await confirm(`Delete ${id} at ${where} permanently?`)) === "no") {
        process.stderr.write("Nothing was deleted.\n");
        return EXIT_FOUND;
      }
      const deleted = await control.session(id).delete();
      if (flags.json) print(JSON.stringify(deleted));
      else print(`${id} was deleted, with ${count(deleted.events, "event")}.`);
      return EXIT_OK;
    },
    UNTIL_ANSWERED,
  );
}
