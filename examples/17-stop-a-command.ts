// A tool runs commands. One of them does not listen, and a child of it has left its group: one cancel ends all of it.
import { openBelay } from "agent-belay";

const STUBBORN = `
  trap '' TERM          # neither the shell nor its children listen
  setsid sleep 300 &    # and one of them has left the process group
  echo ready; sleep 300`;

const belay = await openBelay({
  store: ":memory:",
  graceMs: 300, // how long work may take to stop: then it is ended
  agent: async (turn) => {
    for (const command of ["echo hello; exit 3", STUBBORN]) {
      const result = await turn.call("shell", command, async ({ processes }) => {
        const ran = await processes.run(command); // also: cwd, env, timeoutMs, backgroundAfterMs, profile, limits
        return ran.kind === "ended" ? `exit code ${ran.exit?.code}, said ${ran.output?.tail}` : "in the background";
      });
      if (result.kind === "completed") turn.emit(String(result.value));
    }
  },
});
const session = await belay.createSession({ id: "ses_shop" });
const run = session.prompt("Run both");

for await (const event of session.events()) {
  if (event.type !== "process.started" || event.processId !== "proc_shop.2") continue;
  const child = await session.processes.get(event.processId);
  for await (const { text } of child.follow()) if (text.includes("ready")) break;
  console.log((await belay.cancel(run.id, { reason: "enough" })).kind);
  const end = await child.wait(); // resolves when nobody of the tree is left, and that is recorded
  console.log(end?.outcome, end?.exit, "escaped:", end?.escaped ?? "nobody");
  break;
}
console.log((await run.outcome).kind, "-", (await run.text()).trim());
console.log("going on:", await session.processes.list());
await belay.close();

// Prints:
//
//   stopping
//   { kind: 'cancelled', reason: { kind: 'user', note: 'enough' } } { signal: 'SIGKILL' } escaped: nobody
//   cancelled - exit code 3, said hello
//   going on: []
