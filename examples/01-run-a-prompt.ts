// Run a prompt, and stop it while its tool is at work.
import { setTimeout as sleep } from "node:timers/promises";
import { openBelay } from "agent-belay";

const belay = await openBelay({
  store: ":memory:", // or a file, "belay.db": then nothing is forgotten
  agent: async (turn) => {
    const built = await turn.call("build", {}, ({ signal }) => sleep(60_000, "ok", { signal }));
    return `The build was ${built.kind}.`;
  },
});
const session = await belay.createSession();
const run = session.prompt("Build the site");
for await (const event of run) {
  if (event.type === "call.requested") console.log(await run.cancel({ reason: "changed my mind" }));
}
console.log(await run.outcome, await run.text());
await belay.close();

// Prints:
//
//   { kind: 'stopping', since: 6, first: true }
//   {
//     kind: 'cancelled',
//     reason: { kind: 'user', note: 'changed my mind' }
//   } The build was cancelled.
