// A model asks for two calls. One of them is stopped; the other goes on, and the model hears who stopped what.
import { setTimeout as sleep } from "node:timers/promises";
import { openBelay } from "agent-belay";
import { modelAgent, tool } from "agent-belay/agent";
import { scriptedModel } from "agent-belay/testing";
import { z } from "zod";

const lint = tool({ description: "Looks for mistakes.", input: z.object({}), execute: () => "no mistakes" });
const build = tool({
  description: "Builds everything.",
  input: z.object({}),
  execute: (_, { signal, changed, partial, progress }) => {
    changed("dist/index.js"); // told whatever becomes of the call
    partial("12 of 40 files"); // its result, if it is stopped
    progress({ files: 12 }); // told at once, and not kept
    return sleep(60_000, "40 of 40 files", { signal });
  },
});
const model = scriptedModel(
  [
    { do: "call", name: "lint" },
    { do: "call", name: "build" },
  ],
  [{ do: "say", text: "No mistakes. The build was stopped." }],
);
const belay = await openBelay({ store: ":memory:", agent: modelAgent({ model, tools: { lint, build } }) });
const session = await belay.createSession();
const run = session.prompt("Lint and build");

for await (const event of run) {
  if (event.type !== "progress") continue;
  const reason = { kind: "user", by: "Alice", note: "not on this branch" } as const;
  const receipt = await belay.cancel(event.callId, { reason }); // waits up to five seconds, and says what became of it
  console.log(receipt.kind, receipt.ended?.kind);
}
console.log((await run.result()).text);

console.log("What the model was told:");
const [results, reminder] = model.requests[1]?.options.prompt.slice(-2) ?? [];
for (const part of results?.role === "tool" ? results.content : [])
  if (part.type === "tool-result" && "value" in part.output) console.log(`[${part.toolName}] ${part.output.value}`);
for (const part of reminder?.role === "user" ? reminder.content : [])
  if (part.type === "text") console.log(part.text.replace(". ", ".\n"));
await belay.close();

// Prints:
//
//   stopping settled
//   No mistakes. The build was stopped.
//   What the model was told:
//   [lint] no mistakes
//   [build] STOPPED by Alice: not on this branch. It did not fail, and it was not completed.
//   It is known to have changed:
//   - dist/index.js
//   What there was of its output:
//   12 of 40 files
//   <note kind="reminder">The call of build was stopped by Alice: not on this branch.
//   Do not repeat it unless you are asked to.</note>
