// A tool asks people something and waits for the answer. A stop, or its deadline, ends the waiting.
import { ControlError, openBelay } from "agent-belay";
import { modelAgent, tool } from "agent-belay/agent";
import { scriptedModel } from "agent-belay/testing";
import { z } from "zod";

const deploy = tool({
  description: "Deploys a service, where people say.",
  input: z.object({ service: z.string() }),
  execute: async ({ service }, { ask }) => {
    const where = await ask({ text: `Where to, with ${service}?`, options: ["staging", "production"], only: true });
    if (where.kind !== "answered") return `not deployed: ${where.kind}`;
    const when = await ask({ text: "When?", deadlineMs: 100 });
    return `to ${where.value}, ${when.kind === "answered" ? when.value : "now, because nobody said when"}`;
  },
});
const model = scriptedModel(
  [{ do: "call", name: "deploy", input: { service: "web" } }],
  [{ do: "say", text: "Done." }],
);
const belay = await openBelay({ store: ":memory:", agent: modelAgent({ model, tools: { deploy } }) });
const session = await belay.createSession();

const run = session.prompt("Deploy the web service");
for await (const event of run) {
  if (event.type === "question.asked" && event.about.kind === "question") {
    console.log(event.about.text, event.about.options ?? "");
    if (event.about.options === undefined) continue; // nobody answers this one
    try {
      await belay.questions.answer(event.questionId, "on the moon");
    } catch (error) {
      if (error instanceof ControlError) console.log(error.code, "-", error.message);
    }
    console.log((await session.questions()).length, "open");
    console.log((await belay.questions.answer(event.questionId, "staging", { by: "Bob" })).kind);
    // It is answered once; whoever comes later is told how it ended.
    console.log(await belay.questions.answer(event.questionId, "production"));
  }
  if (event.type === "question.settled") console.log(event.ending);
  if (event.type === "call.settled") console.log(event.result);
}
console.log((await run.result()).text);
await belay.close();

// Prints:
//
//   Where to, with web? [ 'staging', 'production' ]
//   invalid - The answer is one of: staging, production.
//   1 open
//   recorded
//   {
//     kind: 'settled',
//     ending: { kind: 'answered', value: 'staging', by: 'Bob' }
//   }
//   { kind: 'answered', value: 'staging', by: 'Bob' }
//   When?
//   { kind: 'expired', limitMs: 100 }
//   to staging, now, because nobody said when
//   Done.
