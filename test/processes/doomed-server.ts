// A server that will be killed: it starts one tree for a call and one in the background, prints when both run, and
// waits.

import type { Mechanism } from "../../src/ports/spawner.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { heard, hostileTree } from "../fixtures/marked-process.ts";

const [file = "", foreground = "", background = "", mechanism] = process.argv.slice(2);
const belay = await openBelay({
  store: file,
  processes: mechanism === undefined ? {} : { mechanism: mechanism as Mechanism },
  agent: async (turn) => {
    await turn.call("shell", {}, async (call) => {
      const child = await call.processes.start(hostileTree(background), { feedback: "wake" });
      await heard(child, "up");
      void call.processes.run(hostileTree(foreground));
      await new Promise(() => {});
    });
  },
});
const session = await belay.createSession({ id: "ses_doomed" });
session.prompt("go");
for await (const event of session.events()) {
  if (event.type !== "process.started" || !event.processId.endsWith(".2")) continue;
  await heard(await session.processes.get(event.processId), "up");
  process.stdout.write("both up\n");
}
