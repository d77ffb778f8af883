// What a user's program does with Belay, in plain JavaScript so that every runtime reads it: a prompt, a live stream, a
// process, a stop, and a restart. Prints one line of JSON for each.
import { openBelay } from "agent-belay";

const [store, ...features] = process.argv.slice(2);
const withProcesses = features.includes("processes");
const say = (what) => console.log(JSON.stringify(what));

const open = () =>
  openBelay({
    store,
    graceMs: 1_000,
    ...(withProcesses ? { processes: {} } : {}),
    agent: async (turn) => {
      turn.emit("hello");
      if (turn.prompt.text === "wait") {
        await new Promise((_, reject) => turn.signal.addEventListener("abort", () => reject(turn.signal.reason)));
      }
      return "done";
    },
  });

let belay = await open();
let session = await belay.createSession();
const run = session.prompt("go", { key: "one" });
const seen = [];
for await (const event of run) seen.push(event.type);
say({ seen, outcome: await run.outcome, text: await run.text() });

if (withProcesses) {
  const child = await session.processes.start("echo up; sleep 600 & sleep 600", { feedback: "silent" });
  let said = "";
  for await (const page of child.follow()) {
    said += page.text;
    if (said.includes("up")) break;
  }
  const stopped = await child.cancel();
  say({ said, stopped: stopped.kind, outcome: (await child.wait()).outcome });
}

const waits = session.prompt("wait");
for await (const event of waits) if (event.type === "delta") break;
say({ receipt: (await waits.cancel()).kind, outcome: await waits.outcome });

const { id } = session;
await belay.close();
belay = await open();
session = belay.session(id);
if (store !== ":memory:") {
  const again = session.prompt("go", { key: "one" });
  say({ runs: (await session.runs()).length, repeated: (await again.accepted).repeated, outcome: await again.outcome });
}
await belay.close();
