// A model starts a build in the background and is done. When the build ends, the model is told, without being asked.
import { openBelay } from "agent-belay";
import { modelAgent, processTools } from "agent-belay/agent";
import { scriptedModel } from "agent-belay/testing";

const model = scriptedModel(
  [{ do: "call", name: "start_process", input: { command: "sleep 2.5; echo 40 of 40 files; exit 2" } }],
  [{ do: "say", text: "The build goes on; I will tell you." }],
  [{ do: "say", text: "The build has failed, with exit code 2." }],
);
const belay = await openBelay({
  store: ":memory:",
  agent: modelAgent({ model, tools: processTools() }), // shell, start_process, read_output, wait_process, stop_process
});
const session = await belay.createSession({ id: "ses_site" });
session.prompt("Build the site");

for await (const event of session.events()) {
  if (event.type === "question.asked" && event.about.kind === "approval") {
    console.log("may it run?", event.about.input);
    await belay.questions.allow(event.questionId);
  }
  if (event.type === "run.accepted")
    console.log(event.wake ? "a run begins by itself" : `prompt: ${event.prompt.text}`);
  if (event.type === "process.settled") console.log(event.processId, event.outcome, event.exit);
  if (event.type === "turn.settled" && event.text) console.log("model:", event.text);
  if (event.type === "run.settled" && event.runId.includes(".w")) break;
}
console.log("What the model was told:");
const [note] = model.requests[2]?.options.prompt.at(-1)?.content.slice(-1) ?? [];
if (typeof note === "object" && note.type === "text")
  console.log(note.text.replace(/ after [\d.]+ s/, "").replace(") ", ")\n"));
await belay.close();

// Prints:
//
//   prompt: Build the site
//   may it run? { command: 'sleep 2.5; echo 40 of 40 files; exit 2' }
//   model: The build goes on; I will tell you.
//   proc_site.1 { kind: 'completed' } { code: 2 }
//   a run begins by itself
//   model: The build has failed, with exit code 2.
//   What the model was told:
//   <note kind="result">The background process proc_site.1 (sleep 2.5; echo 40 of 40 files; exit 2)
//   ended by itself with exit code 2. It wrote 15 bytes.
//   The end of its output:
//   40 of 40 files
//   </note>
