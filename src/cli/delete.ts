// `belay delete SESSION`: deletes a session permanently.
import { confirm, isAttended } from "./confirm.ts";
import { UNTIL_ANSWERED, withControl } from "./control-door.ts";
import type { DoorOptions } from "./door-options.ts";
import { EXIT_FOUND, EXIT_OK } from "./exit-code.ts";
import { resolveSession } from "./id-prefix.ts";
import { print } from "./terminal.ts";
import { count } from "./words.ts";

export interface DeleteFlags extends DoorOptions {
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
